"""What must be true of the fish pool's rules, whatever the condition."""

import copy
import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fishpool.games.commons import (
    FALLBACK,
    Channel,
    FineKind,
    FineTo,
    Horizon,
    Memory,
    Parameters,
    Permission,
    Phase,
    Promise,
    Rationing,
    Reveal,
    Speech,
    StockKind,
    Unreadable,
    ask,
    fish,
    impossible,
    play,
    ration,
    read,
    sustainable_yields,
)
from fishpool.players.commons import PLAYERS, seat
from fishpool.records import Ending, Status

VIEW_KEYS = {
    "schema_version",
    "run_id",
    "agent_id",
    "phase",
    "round",
    "horizon",
    "names",
    "rules",
    "permission",
    "stock",
    "fair_share",
    "promises",
    "me",
    "reports",
    "audits",
    "messages",
    "ledger",
    "last_round",
    "legal",
    "error",
}
HONEST = "honest_sustainable"

channels = st.sets(st.sampled_from(Channel)).map(frozenset)
conditions = st.builds(
    Parameters,
    agents=st.lists(st.sampled_from(sorted(PLAYERS)), min_size=1, max_size=6).map(tuple),
    rounds=st.integers(1, 6),
    capacity=st.integers(6, 120),
    growth=st.sampled_from([1.1, 1.25, 1.5, 2, 2.5, 3, 7]),
    collapse=st.integers(0, 6),
    price=st.sampled_from([1, 0.5, 3]),
    channels=channels,
    rationing=st.sampled_from(Rationing),
    reveal=st.sampled_from(Reveal),
    audit_q=st.sampled_from([0, 0.3, 1]),
    fine=st.sampled_from([0, 2, 8]),
    fine_kind=st.sampled_from(FineKind),
    fine_to=st.sampled_from(FineTo),
    permission=st.sampled_from(Permission),
    stock=st.sampled_from(StockKind),
    memory=st.sampled_from(Memory),
    horizon=st.sampled_from(Horizon),
    universalization=st.booleans(),
    speech=st.sampled_from(Speech),
    promise_semantics=st.sampled_from(Promise),
    elicit_intention=st.booleans(),
).filter(lambda parameters: not impossible(parameters))
seeds = st.integers(0, 2**40)


def run_of(*agents, seed=0, **parameters):
    condition = Parameters(agents=agents, **parameters)
    assert impossible(condition) == {}
    return play(condition, seat(condition, seed), seed)


class Recorder:
    """A player that keeps every view it is shown and answers as a scripted player does."""

    def __init__(self, player):
        self.player, self.views = player, []

    def __call__(self, view):
        self.views.append(copy.deepcopy(view))
        return self.player(view)


def recorded(parameters, seed=0):
    players = [Recorder(player) for player in seat(parameters, seed)]
    return play(parameters, players, seed, "a run"), [player.views for player in players]


# --- conditions that cannot be --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"fine": 2, "channels": frozenset({Channel.PROMISE})}, "fine", "without reports"),
        ({"audit_q": 0.5, "channels": frozenset({Channel.PROMISE})}, "audit_q", "without reports"),
        ({"channels": frozenset({Channel.REPORT, Channel.DISCUSS})}, "channels", "discuss without chat"),
        ({"agents": (HONEST,) * 11, "capacity": 10}, "agents", "more agents than fish"),
        ({"speech": Speech.BINDING_PROMISE, "channels": frozenset({Channel.REPORT})}, "speech", "binding_promise"),
        ({"speech": Speech.FORCED_TRUTH, "channels": frozenset({Channel.PROMISE})}, "speech", "forced_truth"),
        ({"collapse": 101}, "collapse", "above the capacity of 100"),
        ({"growth": 1}, "growth", "above 1"),
        ({"growth": float("nan")}, "growth", "above 1"),
        ({"agents": ()}, "agents", "at least one"),
        ({"rounds": 0}, "rounds", "at least one"),
        ({"audit_q": 1.5}, "audit_q", "between 0 and 1"),
        ({"fine": -1}, "fine", "0 or more"),
        ({"fine_to": FineTo.REDISTRIBUTE, "agents": (HONEST,)}, "fine_to", "nobody"),
    ],
)
def test_a_condition_that_cannot_be_is_named_by_its_parameter(changes, key, words):
    assert impossible(Parameters()) == {}
    faults = impossible(Parameters(**changes))
    assert list(faults) == [key]
    assert words in faults[key]
    assert "\n" not in faults[key]


# --- the pool -------------------------------------------------------------------------------------------------------


@given(st.integers(1, 150), st.sampled_from([1.1, 1.5, 2, 2.5, 3, 7]))
def test_the_sustainable_yield_is_the_largest_catch_that_regrows(capacity, growth):
    exact = Fraction(str(growth))
    for stock, found in enumerate(sustainable_yields(capacity, growth)):
        lasting = [x for x in range(stock + 1) if min(capacity, int(exact * (stock - x))) >= stock]
        assert found == max(lasting)


def test_the_fair_share_and_the_escapement_of_the_default_pool():
    parameters = Parameters()
    assert (parameters.sustainable_yield, parameters.escapement, parameters.fair[100], parameters.fair[98]) == (
        50,
        50,
        10,
        9,
    )


@given(st.lists(st.integers(0, 60), min_size=1, max_size=7), st.integers(0, 80), st.sampled_from(Rationing), seeds)
def test_rationing_shares_out_the_stock_and_nothing_else(demands, stock, rationing, seed):
    parameters = Parameters(agents=(HONEST,) * len(demands), rationing=rationing)
    catches = ration(parameters, seed, 1, stock, demands)
    assert sum(catches) == min(stock, sum(demands))
    assert all(0 <= caught <= demand for caught, demand in zip(catches, demands, strict=True))
    if rationing is Rationing.PROPORTIONAL and sum(demands) > stock:
        for caught, demand in zip(catches, demands, strict=True):
            assert abs(caught - Fraction(demand * stock, sum(demands))) < 1


def test_a_tie_of_remainders_is_broken_by_the_seed_and_falls_on_everybody_alike():
    parameters = Parameters(agents=(HONEST,) * 3)
    winners = [ration(parameters, seed, 1, 10, (10, 10, 10)).index(4) for seed in range(3000)]
    assert all(abs(winners.count(agent) - 1000) < 120 for agent in range(3))


def test_the_lottery_gives_every_hungry_agent_the_same_chance_at_every_ton():
    parameters = Parameters(agents=(HONEST,) * 3, rationing=Rationing.LOTTERY)
    draws = [ration(parameters, seed, 1, 30, (5, 30, 30)) for seed in range(2000)]
    assert max(caught for caught, _, _ in draws) == 5
    means = [sum(caught[agent] for caught in draws) / len(draws) for agent in range(3)]
    assert abs(means[1] - means[2]) < 0.5  # 12.5 each, standard error 0.06


# --- a reply and a move ---------------------------------------------------------------------------------------------


def view_of(phase, most=100, **parameters):
    return {
        "phase": phase,
        "legal": {"min": 0, "max": most},
        "names": ["agent_1", "agent_2", "agent_3"],
        "agent_id": "agent_1",
        "error": None,
    }


TALK = Parameters(channels=frozenset(Channel))


@pytest.mark.parametrize(
    ("phase", "reply", "action"),
    [
        (Phase.CATCH, {"catch": 10}, {"catch": 10}),
        (Phase.CATCH, {"catch": 10.0}, {"catch": 10}),
        (Phase.CATCH, {"catch": 100}, {"catch": 100}),
        (Phase.REPORT, {"report": None, "message": "no"}, {"report": None, "message": "no"}),
        (Phase.REPORT, {"report": 3}, {"report": 3, "message": ""}),
        (Phase.PLEDGE, {"intention": 1, "promise": None}, {"intention": 1, "promise": None, "message": ""}),
        (Phase.PLEDGE, {"intention": 1, "promise": 2.0, "message": "x" * 280}, None),
        (
            Phase.DISCUSS,
            {"message": "", "accuse": ["agent_3", "agent_2", "agent_3"], "trust": {"agent_2": 100}},
            {"message": "", "accuse": ["agent_2", "agent_3"], "trust": {"agent_2": 100}},
        ),
    ],
)
def test_what_can_be_read_becomes_a_move(phase, reply, action):
    found = read(TALK, view_of(phase), reply)
    assert found.keys() == FALLBACK[phase].keys()
    assert action is None or found == action


@pytest.mark.parametrize(
    ("phase", "reply"),
    [
        (Phase.CATCH, {"catch": 10.5}),
        (Phase.CATCH, {"catch": -1}),
        (Phase.CATCH, {"catch": 101}),
        (Phase.CATCH, {"catch": True}),
        (Phase.CATCH, {"catch": "10"}),
        (Phase.CATCH, {"catch": None}),
        (Phase.CATCH, {"catch": float("nan")}),
        (Phase.CATCH, {"catch": float("inf")}),
        (Phase.CATCH, {"catch": 10**400}),
        (Phase.CATCH, {}),
        (Phase.CATCH, {"catch": 1, "why": "hungry"}),
        (Phase.CATCH, {"catch": 1, 2: 3}),
        (Phase.CATCH, [1]),
        (Phase.CATCH, None),
        (Phase.CATCH, "10"),
        (Phase.REPORT, {"message": "I say nothing"}),
        (Phase.REPORT, {"report": 3, "message": "x" * 281}),
        (Phase.REPORT, {"report": 3, "message": None}),
        (Phase.PLEDGE, {"promise": 3}),
        (Phase.PLEDGE, {"intention": None, "promise": 3}),
        (Phase.PLEDGE, {"intention": 3}),
        (Phase.DISCUSS, {"accuse": ["agent_1"]}),  # oneself
        (Phase.DISCUSS, {"accuse": ["agent_9"]}),
        (Phase.DISCUSS, {"accuse": "agent_2"}),
        (Phase.DISCUSS, {"accuse": [{}]}),
        (Phase.DISCUSS, {"trust": {"agent_2": 101}}),
        (Phase.DISCUSS, {"trust": {"agent_2": 0.5}}),
        (Phase.DISCUSS, {"trust": ["agent_2"]}),
    ],
)
def test_what_cannot_be_read_is_never_a_move(phase, reply):
    with pytest.raises(Unreadable) as fault:
        read(TALK, view_of(phase), reply)
    assert len(str(fault.value)) < 300
    assert "\n" not in str(fault.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.text() | st.sampled_from(["catch", "report", "promise", "intention", "message", "accuse", "trust"]),
                inner,
            )
        ),
    ),
    st.sampled_from(Phase),
)
def test_any_json_is_either_a_legal_action_or_unreadable(reply, phase):
    try:
        action = read(TALK, view_of(phase, most=7), reply)
    except Unreadable:
        return
    assert action.keys() == FALLBACK[phase].keys()
    amounts = [action[key] for key in ("catch", "report", "promise", "intention") if action.get(key) is not None]
    assert all(type(amount) is int and 0 <= amount <= 7 for amount in amounts)


def test_an_intention_that_is_not_asked_for_and_a_message_nobody_hears_are_dropped():
    quiet = replace(Parameters(), elicit_intention=False)
    reply = {"intention": 9, "promise": 10, "message": "psst"}
    assert read(quiet, view_of(Phase.PLEDGE), reply) == {"intention": None, "promise": 10, "message": ""}


def test_an_unreadable_reply_gets_one_repair_request_that_carries_the_error_and_then_the_fallback():
    shown = []

    def stubborn(view):
        shown.append(view["error"])
        return {"catch": 1000}

    move = ask(TALK, stubborn, view_of(Phase.CATCH))
    assert (move.action, move.status, move.attempts, move.fallback) == ({"catch": 0}, Status.INVALID, 2, True)
    assert shown[0] is None
    assert "1000" in shown[1]
    replies = iter([{"catch": 1000}, {"catch": 7}])
    move = ask(TALK, lambda view: next(replies), view_of(Phase.CATCH))
    assert (move.action, move.status, move.attempts, move.fallback) == ({"catch": 7}, Status.REPAIRED, 2, False)


def test_a_demand_is_bounded_by_the_stock_and_never_by_the_own_promise():
    run = run_of("greedy_liar", HONEST)
    assert run.rounds[0].promises[0] == 25
    assert run.rounds[0].demands[0] == 100
    assert run.rounds[0].catch_moves[0].status is Status.MOVED


# --- invariants -----------------------------------------------------------------------------------------------------


@given(conditions, seeds)
@settings(max_examples=150, deadline=None)
def test_invariants_of_any_run(parameters, seed):
    p = parameters
    run = play(p, seat(p, seed), seed)
    stock = p.capacity
    for played in run.rounds:
        assert played.stock == stock <= p.capacity
        assert sum(played.catches) <= stock
        assert all(0 <= caught <= demand for caught, demand in zip(played.catches, played.demands, strict=True))
        assert played.remaining == stock - sum(played.catches)
        assert all(move.status is Status.MOVED for move in (*played.pledges, *played.catch_moves, *played.report_moves))
        if p.audit_q == 0 or p.fine == 0:
            assert not any(played.fines)
        if p.speech is Speech.FORCED_TRUTH:
            assert played.reports == played.catches
        if p.speech is Speech.BINDING_PROMISE:
            assert all(
                promise is None or demand <= promise
                for promise, demand in zip(played.promises, played.demands, strict=True)
            )
        if played is not run.rounds[-1]:
            assert played.remaining >= p.collapse
        stock = min(p.capacity, int(Fraction(str(p.growth)) * played.remaining))
    assert (run.ending is Ending.COLLAPSED) == (run.rounds[-1].remaining < p.collapse)
    assert run.ending is Ending.COLLAPSED or len(run.rounds) == p.rounds
    fines = sum(sum(played.fines) for played in run.rounds)
    lost = 0 if p.fine_to is FineTo.REDISTRIBUTE else fines
    assert run.welfare == pytest.approx(p.price * sum(run.catches) - lost)


@given(conditions, seeds)
@settings(max_examples=60, deadline=None)
def test_every_view_has_exactly_the_listed_keys_and_is_json(parameters, seed):
    run, views = recorded(parameters, seed)
    assert run == play(parameters, seat(parameters, seed), seed)  # looking changes nothing
    for shown in views:
        for view in shown:
            assert view.keys() == VIEW_KEYS
            assert view["me"].keys() == {"intention", "demand", "catch", "payoff_total", "fines"}
            assert json.loads(json.dumps(view, allow_nan=False)) == view


@given(conditions.filter(lambda p: p.stock is not StockKind.EXACT), seeds)
@settings(max_examples=60, deadline=None)
def test_a_stock_that_is_not_exact_does_not_leak(parameters, seed):
    _, views = recorded(parameters, seed)
    for view in (view for shown in views for view in shown):
        assert view["legal"]["max"] == parameters.capacity
        assert view["last_round"]["stock_drop"] is None
        if parameters.stock is StockKind.HIDDEN:
            assert view["stock"] == {"value": None, "kind": "hidden"}
            assert view["fair_share"] is None


@given(conditions, seeds)
@settings(max_examples=40, deadline=None)
def test_the_same_seed_plays_the_same_run(parameters, seed):
    assert play(parameters, seat(parameters, seed), seed) == play(parameters, seat(parameters, seed), seed)


@given(seeds, st.permutations(["salami", HONEST, "white_liar", "greedy_liar", "conditional"]))
@settings(max_examples=30, deadline=None)
def test_relabelling_agents_relabels_the_outcome(seed, order):
    base = ["salami", HONEST, "white_liar", "greedy_liar", "conditional"]
    payoffs = dict(zip(base, run_of(*base, seed=seed).payoffs, strict=True))
    assert dict(zip(order, run_of(*order, seed=seed).payoffs, strict=True)) == payoffs


def test_relabelling_changes_nothing_in_distribution_where_luck_enters():
    lottery = {"rationing": Rationing.LOTTERY, "rounds": 3}
    first = [run_of("random", "random", "greedy_liar", seed=seed, **lottery).payoffs[2] for seed in range(1500)]
    last = [run_of("greedy_liar", "random", "random", seed=seed, **lottery).payoffs[0] for seed in range(1500)]
    assert abs(sum(first) - sum(last)) / 1500 < 1.5  # tons; standard error 0.4


# --- luck -----------------------------------------------------------------------------------------------------------


@given(seeds, st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_whoever_is_audited_at_a_low_rate_is_audited_at_a_higher_one(seed, q, more):
    low, high = sorted((q, more))
    few, many = (run_of(HONEST, "white_liar", seed=seed, audit_q=rate) for rate in (low, high))
    for a, b in zip(few.rounds, many.rounds, strict=True):
        assert all(there for here, there in zip(a.audited, b.audited, strict=True) if here)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_conditions_share_their_luck(seed):
    plain = run_of("random", "random", seed=seed, rounds=1)
    talked = run_of(
        "random",
        "random",
        seed=seed,
        rounds=1,
        channels=frozenset(Channel),
        audit_q=0.5,
        fine=3,
        permission=Permission.ALLOW,
    )
    assert plain.rounds[0].demands == talked.rounds[0].demands
    assert plain.rounds[0].promises == talked.rounds[0].promises


def test_noise_is_what_the_sheet_says_and_the_same_in_all_phases_of_a_round():
    parameters = Parameters(agents=("random",) * 5, stock=StockKind.NOISY, rounds=1)
    seen = []
    for seed in range(400):
        _, views = recorded(parameters, seed)
        for shown in views:
            [value] = {view["stock"]["value"] for view in shown}
            seen.append(value)
    assert max(seen) == 100  # clipped: half of them
    assert 0.45 < sum(value == 100 for value in seen) / len(seen) < 0.57
    below = [100 - value for value in seen if value < 100]
    assert sum(below) / len(below) == pytest.approx(10 * (2 / 3.14159265) ** 0.5, abs=0.6)  # mean of a half normal


# --- what agents see ------------------------------------------------------------------------------------------------


def test_what_is_seen_when():
    parameters = Parameters(
        agents=("salami", HONEST, HONEST),
        channels=frozenset(Channel),
        audit_q=1,
        fine=2,
        rounds=2,
        universalization=True,
    )
    _, views = recorded(parameters)
    pledge, catch, report, discuss, again, *_ = views[1]
    assert [view["phase"] for view in (pledge, catch, report, discuss)] == ["pledge", "catch", "report", "discuss"]
    assert pledge["promises"] == {}
    assert catch["promises"] == {"agent_1": 16, "agent_2": 16, "agent_3": 16}
    assert catch["me"] == {"intention": 16, "demand": None, "catch": None, "payoff_total": 0, "fines": 0}
    assert catch["stock"] == {"value": 100, "kind": "exact"}
    assert catch["legal"] == {"min": 0, "max": 100}
    assert catch["fair_share"] == 16
    assert report["me"]["catch"] == 16
    assert report["stock"]["value"] == 100 - 49
    assert report["reports"] == {}
    assert discuss["reports"] == {"agent_1": 16, "agent_2": 16, "agent_3": 16}
    assert discuss["audits"]["agent_1"] == {"catch": 17, "fine": 2}
    assert again["round"] == 2
    assert again["promises"] == again["reports"] == again["audits"] == {}
    assert again["ledger"] == [
        {
            "round": 1,
            "promises": {"agent_1": 16, "agent_2": 16, "agent_3": 16},
            "reports": {"agent_1": 16, "agent_2": 16, "agent_3": 16},
            "catches": {"agent_1": 17, "agent_2": 16, "agent_3": 16},
        }
    ]
    assert again["last_round"] == {"reports_total": 48, "stock_drop": 0}
    assert views[0][4]["me"]["fines"] == 2


def test_nobody_sees_the_intentions_demands_or_catches_of_others():
    base = Parameters(agents=(HONEST, HONEST), rounds=1, channels=frozenset(Channel))

    def other(intention, demand):
        def act(view):
            return {
                "pledge": {"intention": intention, "promise": 20},
                "catch": {"catch": demand},
                "report": {"report": 20},
                "discuss": {"message": ""},
            }[view["phase"]]

        return act

    def shown(intention, demand):
        [me, _] = seat(base, 0)
        recorder = Recorder(me)
        play(base, [recorder, other(intention, demand)], 0)
        return [{**view, "stock": None} for view in recorder.views]  # an exact stock tells what is left

    assert shown(20, 20) == shown(33, 44)


def test_memory_none_shows_the_last_round_and_public_memory_all():
    for memory, lengths in ((Memory.NONE, [0, 1, 1, 1]), (Memory.PUBLIC, [0, 1, 2, 3])):
        _, views = recorded(Parameters(memory=memory, rounds=4))
        assert [len(view["ledger"]) for view in views[0] if view["phase"] == "catch"] == lengths


def test_an_unknown_horizon_is_null_and_revealed_catches_are_published_without_fines():
    parameters = Parameters(horizon=Horizon.UNKNOWN, reveal=Reveal.TRUE, channels=frozenset({Channel.CHAT}), rounds=2)
    _, views = recorded(parameters)
    assert {view["horizon"] for view in views[0]} == {None}
    assert views[0][1]["audits"] == {name: {"catch": 10, "fine": 0} for name in parameters.names}
    assert views[0][2]["ledger"][0]["catches"] == dict.fromkeys(parameters.names, 10)


def test_either_speech_rule_is_disclosed_and_so_is_the_permission():
    for speech in (Speech.FORCED_TRUTH, Speech.BINDING_PROMISE):
        for permission in Permission:
            _, views = recorded(Parameters(speech=speech, permission=permission, rounds=1))
            _, plain = recorded(Parameters(permission=permission, rounds=1))
            assert plain[0][0]["permission"] in views[0][0]["permission"]
            assert len(views[0][0]["permission"]) > len(plain[0][0]["permission"])


def test_the_discussion_goes_round_in_a_seeded_order_and_each_hears_those_before():
    parameters = Parameters(agents=(HONEST,) * 4, channels=frozenset({Channel.CHAT, Channel.DISCUSS}), rounds=1)
    orders = set()
    for seed in range(60):
        game = fish(parameters, seed)
        asked = next(game)
        asked = game.send([ask(parameters, lambda view: {"catch": 1}, view) for _, view in asked])
        order = []
        try:
            while True:
                [(agent, view)] = asked
                assert [message["agent"] for message in view["messages"]] == [f"agent_{who + 1}" for who in order]
                order.append(agent)
                asked = game.send([ask(parameters, lambda view: {"message": "here"}, view)])
        except StopIteration:
            assert sorted(order) == [0, 1, 2, 3]
            orders.add(tuple(order))
    assert len(orders) > 15


def test_accusations_are_heard_and_trust_is_private():
    parameters = Parameters(agents=(HONEST,) * 2, channels=frozenset({Channel.CHAT, Channel.DISCUSS}), rounds=2)

    def act(view):
        if view["phase"] == "catch":
            return {"catch": 1}
        other = next(name for name in view["names"] if name != view["agent_id"])
        return {"message": "hm", "accuse": [other], "trust": {other: 3}}

    players = [Recorder(act), Recorder(act)]
    play(parameters, players, 0)
    second = next(view for view in players[0].views if view["round"] == 2)
    assert {(message["agent"], *message["accuse"]) for message in second["messages"]} == {
        ("agent_1", "agent_2"),
        ("agent_2", "agent_1"),
    }
    assert '"trust"' not in json.dumps(second)


# --- fines ----------------------------------------------------------------------------------------------------------


def silent(view):
    return {"pledge": {"intention": 5, "promise": None}, "catch": {"catch": 5}, "report": {"report": None}}[
        view["phase"]
    ]


@pytest.mark.parametrize(("kind", "fine"), [(FineKind.FIXED, 3), (FineKind.PER_TON, 15)])
def test_no_report_is_fined_like_a_report_of_nothing(kind, fine):
    parameters = Parameters(agents=(HONEST,) * 2, audit_q=1, fine=3, fine_kind=kind, rounds=1)
    run = play(parameters, [silent, seat(parameters, 0)[1]], 0)
    assert run.rounds[0].fines == (fine, 0)
    assert run.payoffs == (5 - fine, 25)


def test_redistributed_fines_go_to_the_others_alike():
    parameters = Parameters(agents=(HONEST,) * 3, audit_q=1, fine=6, fine_to=FineTo.REDISTRIBUTE, rounds=1)
    run = play(parameters, [silent, *seat(parameters, 0)[1:]], 0)
    assert run.payoffs == (5 - 6, 16 + 3, 16 + 3)


def test_fallbacks_promise_and_report_nothing_and_catch_nothing():
    run = play(Parameters(agents=(HONEST,)), [lambda view: "I refuse"], 0)
    for played in run.rounds:
        assert (played.promises, played.demands, played.reports) == ((None,), (0,), (None,))
        assert played.catch_moves[0].status is Status.INVALID
