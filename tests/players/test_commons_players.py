"""What each scripted player of the fish pool does, move by move, and that its view is all it has."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fishpool.games.commons import Channel, Parameters, Phase, StockKind, impossible, play
from fishpool.players.commons import PLAYERS, fair, seat, stock_seen


def view(phase, tons=100, **changes):
    return {
        "phase": phase,
        "round": 1,
        "horizon": 12,
        "agent_id": "agent_1",
        "names": ["agent_1", "agent_2", "agent_3", "agent_4", "agent_5"],
        "rules": {"n": 5, "capacity": 100, "growth": 2.0},
        "stock": {"value": tons, "kind": "exact"},
        "legal": {"min": 0, "max": tons},
        "me": {"catch": None},
        "ledger": [],
        "last_round": {"reports_total": None, "stock_drop": None},
    } | changes


def moves(name, stock=100, catch=0, **changes):
    """Promise, catch and report of a player."""
    act = PLAYERS[name]
    after = {"me": {"catch": catch}, "stock": {"value": 0, "kind": "exact"}}
    return (
        act(view(Phase.PLEDGE, stock, **changes), luck=None)["promise"],
        act(view(Phase.CATCH, stock, **changes), luck=None)["catch"],
        act(view(Phase.REPORT, stock, **(changes | after)), luck=None)["report"],
    )


@pytest.mark.parametrize(
    ("name", "stock", "catch", "expected"),
    [
        ("honest_sustainable", 100, 10, (10, 10, 10)),
        ("honest_sustainable", 98, 7, (9, 9, 7)),
        ("greedy_liar", 100, 20, (10, 100, 10)),
        ("greedy_liar", 100, 3, (10, 100, 3)),
        ("honest_greedy", 100, 20, (100, 100, 20)),
        ("salami", 100, 11, (10, 11, 10)),
        ("salami", 10, 2, (1, 2, 1)),
        ("white_liar", 100, 8, (10, 8, 10)),
        ("white_liar", 10, 0, (1, 0, 1)),
        ("conditional", 100, 10, (10, 10, 10)),
        ("grim", 100, 10, (10, 10, 10)),
        ("opportunist", 100, 10, (10, 10, 10)),
    ],
)
def test_a_players_rule(name, stock, catch, expected):
    assert moves(name, stock, catch) == expected


def past(reports, catches=None, drop=0):
    names = view(Phase.CATCH)["names"]
    return {
        "ledger": [
            {"round": 1, "promises": {}, "reports": dict(zip(names, reports, strict=True)), "catches": catches or {}}
        ],
        "last_round": {"reports_total": None, "stock_drop": drop},
        "round": 2,
    }


@pytest.mark.parametrize(
    ("reports", "stock", "drop", "catch"),
    [
        ((0, 10, 10, 10, 10), 98, 2, 9),  # the mean is last round's fair share of 100, although today's is 9
        ((0, 10, 10, 10, 11), 98, 2, 11),  # 10.25, rounded up
        ((99, 10, 10, 10, 10), 98, 2, 9),  # its own report does not count
        ((0, 40, 40, 40, 40), 30, 70, 30),  # never above the stock
        ((0, None, None, None, 11), 98, 2, 11),  # those who reported
        ((5, None, None, None, None), 98, 2, 9),
    ],
)
def test_conditional_answers_last_reports(reports, stock, drop, catch):
    assert moves("conditional", stock, **past(reports, drop=drop))[:2] == (catch, catch)


def test_grim_is_triggered_by_a_published_catch_that_belies_a_report_and_by_nothing_else():
    assert moves("grim", 98, **past((10, 8, 10, 10, 10), {"agent_2": 8}))[:2] == (9, 9)
    assert moves("grim", 98, **past((10, 10, None, 10, 10), {"agent_3": 50}))[:2] == (9, 9)
    assert moves("grim", 98, **past((10, 10, 10, 10, 10), {"agent_2": 8}))[:2] == (98, 98)


def test_opportunist_grabs_in_a_last_round_that_it_knows():
    assert moves("opportunist", 100, 20, round=12) == (10, 100, 10)
    assert moves("opportunist", 100, 10, round=12, horizon=None) == (10, 10, 10)


def test_everybody_trusts_everybody_else_and_accuses_nobody():
    for act in PLAYERS.values():
        said = act(view(Phase.DISCUSS), luck=None)
        assert said == {"message": "", "accuse": [], "trust": dict.fromkeys(view(Phase.DISCUSS)["names"][1:], 100)}


def test_random_is_uniform_on_twice_the_fair_share():
    parameters = Parameters(agents=("random",) * 5, rounds=1)
    demands, promises, reports = set(), set(), set()
    for seed in range(400):
        [played] = play(parameters, seat(parameters, seed), seed).rounds
        demands |= set(played.demands)
        promises |= set(played.promises)
        reports |= set(played.reports)
    assert demands == promises == reports == set(range(21))


def test_what_a_player_makes_of_a_stock_that_it_cannot_see_exactly():
    noisy = view(Phase.CATCH, 100, stock={"value": 60, "kind": StockKind.NOISY})
    hidden = view(Phase.CATCH, 100, stock={"value": None, "kind": StockKind.HIDDEN})
    assert (stock_seen(noisy), fair(noisy)) == (60, 6)
    assert (stock_seen(hidden), fair(hidden)) == (100, 10)


@given(
    st.lists(st.sampled_from(sorted(PLAYERS)), min_size=1, max_size=5),
    st.sampled_from(StockKind),
    st.sets(st.sampled_from(Channel)),
    st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_players_of_any_group_need_nothing_but_their_view_as_json(agents, stock, channels, seed):
    parameters = Parameters(agents=tuple(agents), stock=stock, channels=frozenset(channels), rounds=3)
    if impossible(parameters):
        return
    players = seat(parameters, seed)
    through_json = [
        lambda view, player=player: player(json.loads(json.dumps(view)) | {"phase": Phase(view["phase"])})
        for player in players
    ]
    assert play(parameters, through_json, seed) == play(parameters, players, seed)
