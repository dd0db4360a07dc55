"""The scripted players: their moves by hand from the rule sheet, and what must hold of any stateless strategy.

`tests/reference` holds them against the public library; nothing here needs it.
"""

import asyncio
import json
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fishpool.games.prisoners_dilemma import Choice, Parameters
from fishpool.players.scripted import STRATEGIES, History, prescribe
from fishpool.runners.prisoners_dilemma import Pairing, ScriptedPlayer, play_in_columns, referee_match
from fishpool.seeds import draw

DETERMINISTIC = [strategy for strategy in STRATEGIES.values() if not strategy.stochastic]
STOCHASTIC = [strategy for strategy in STRATEGIES.values() if strategy.stochastic]
ORDERED_PAIRS = list(product(STRATEGIES, repeat=2))
few = settings(max_examples=20, deadline=None)  # of each of 22 players, or of a whole round robin
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
every_deterministic = pytest.mark.parametrize("strategy", DETERMINISTIC, ids=lambda strategy: strategy.name)
every_stochastic = pytest.mark.parametrize("strategy", STOCHASTIC, ids=lambda strategy: strategy.name)


@st.composite
def recorded(draw_from, max_rounds=24):
    """(own, other, luck): choices of shape (rounds, matches) and uniform draws of the same shape."""
    shape = draw_from(st.integers(1, max_rounds)), draw_from(st.integers(1, 4))
    own, other = (draw_from(arrays.arrays(bool, shape)) for _ in range(2))
    return own, other, np.random.default_rng(draw_from(st.integers(0, 2**32 - 1))).random(shape)


def choices(strategy, own, other, luck):
    """What a strategy chooses in each round of recorded matches, each round asked afresh; shape (rounds, matches)."""
    rounds = len(own)
    return np.array([strategy.choose(History(own, other, rounds, luck.__getitem__, k)) for k in range(rounds)])


def no_luck(resolved):
    raise AssertionError("asked for a random draw")


def actions(moves):
    """Letters as a history of one match, shape (rounds, 1)."""
    return np.array([move == "C" for move in moves], bool).reshape(-1, 1)


def answer(strategy, opponent):
    """A deterministic strategy's moves against an opponent whose moves are given, as letters."""
    own, other = np.empty((len(opponent), 1), bool), actions(opponent)
    for k in range(len(opponent)):
        own[k] = strategy.choose(History(own, other, len(opponent), no_luck, k))
    return "".join("DC"[int(cooperates)] for cooperates in own[:, 0])


# ── Moves by hand ────────────────────────────────────────────────────────────────────────────────────────────────

OPPONENTS = ["CCCCCCCC", "DDDDDDDD", "CDCDCDCD", "CCDDCCDC", "DDCCCDDD"]
ANSWERS = {  # worked out by hand from the rule sheet; matches of eight rounds
    "Cooperator": ["CCCCCCCC", "CCCCCCCC", "CCCCCCCC", "CCCCCCCC", "CCCCCCCC"],
    "Defector": ["DDDDDDDD", "DDDDDDDD", "DDDDDDDD", "DDDDDDDD", "DDDDDDDD"],
    "Alternator": ["CDCDCDCD", "CDCDCDCD", "CDCDCDCD", "CDCDCDCD", "CDCDCDCD"],
    "TitForTat": ["CCCCCCCC", "CDDDDDDD", "CCDCDCDC", "CCCDDCCD", "CDDCCCDD"],
    "SuspiciousTitForTat": ["DCCCCCCC", "DDDDDDDD", "DCDCDCDC", "DCCDDCCD", "DDDCCCDD"],
    "TitForTwoTats": ["CCCCCCCC", "CCDDDDDD", "CCCCCCCC", "CCCCDCCC", "CCDCCCCD"],
    "TwoTitsForTat": ["CCCCCCCC", "CDDDDDDD", "CCDDDDDD", "CCCDDDCD", "CDDDCCDD"],
    "Grudger": ["CCCCCCCC", "CDDDDDDD", "CCDDDDDD", "CCCDDDDD", "CDDDDDDD"],
    "WinStayLoseShift": ["CCCCCCCC", "CDCDCDCD", "CCDDCCDD", "CCCDCCCD", "CDCCCCDC"],
    "SoftMajority": ["CCCCCCCC", "CDDDDDDD", "CCCCCCCC", "CCCCCCCC", "CDDDCCCD"],
    "HardMajority": ["DCCCCCCC", "DDDDDDDD", "DCDCDCDC", "DCCCDCCC", "DDDDDCDD"],
    "BackStabber": ["CCCCCCDD", "CCCCDDDD", "CCCCCCDD", "CCCCCCDD", "CCCCCCDD"],
    "Prober": ["DCCDDDDD", "DCCDDDDD", "DCCCDCDC", "DCCDDCCD", "DCCCCCDD"],
    "Handshake": ["CDDDDDDD", "CDDDDDDD", "CDCCCCCC", "CDDDDDDD", "CDDDDDDD"],
    "Tester": ["DCCDCDCD", "DCDDDDDD", "DCCCDCDC", "DCCCDCCD", "DCDCCCDD"],
    "Appeaser": ["CCCCCCCC", "CDCDCDCD", "CCDDCCDD", "CCCDCCCD", "CDCCCCDC"],
    "GradualKiller": ["DDDDDCCC", "DDDDDCCD", "DDDDDCCC", "DDDDDCCC", "DDDDDCCD"],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_moves_against_given_opponents(name):
    assert [answer(STRATEGIES[name], opponent) for opponent in OPPONENTS] == ANSWERS[name]


@pytest.mark.parametrize(
    ("opponent", "answered"),
    [
        ("C" * 15, "CCCCCCDDDDD" + "DDDD"),  # 18 from cooperating, 25 from defecting
        ("D" * 15, "CCCCCCDDDDD" + "DDDD"),  # 0 and 5
        ("CCCCCC" + "DDDDD" + "DCDC", "CCCCCCDDDDD" + "CCCC"),  # 18 and 5; being exploited adds nothing to either
        ("CCCDDD" + "CDDDD" + "CCCC", "CCCCCCDDDDD" + "DDDD"),  # 9 and 9: a tie is D
        ("CCCCCC" + "CCCDD" + "DDDD", "CCCCCCDDDDD" + "CCCC"),  # 18 and 17: totals count, not means (3 and 3.4)
    ],
)
def test_adaptive_follows_the_total_score(opponent, answered):
    assert answer(STRATEGIES["Adaptive"], opponent) == answered


def test_back_stabber_ends_a_grudge_only_with_the_match():
    stabber = STRATEGIES["BackStabber"]
    assert answer(stabber, "DDDCCCCCCC") == "CCCCCCCCDD"  # three defections are forgiven
    assert answer(stabber, "DDDDCCCCCC") == "CCCCDDDDDD"  # four are not
    assert answer(stabber, "CC") == "DD"
    assert answer(stabber, "C") == "D"


def test_a_move_by_hand_for_every_player():
    assert {*ANSWERS, "Adaptive"} == {strategy.name for strategy in DETERMINISTIC}
    assert {*FIRST_AND_REPLIES} == {strategy.name for strategy in STOCHASTIC}


FIRST_AND_REPLIES = {  # P(C) in the first round, then given CC, CD, DC, DD of the last
    "Random": (1 / 2, (1 / 2, 1 / 2, 1 / 2, 1 / 2)),
    "GenerousTitForTat": (1, (1, 1 / 3, 1, 1 / 3)),
    "Joss": (1, (0.9, 0, 0.9, 0)),
    "ZDExtort2": (1, (8 / 9, 1 / 2, 1 / 3, 0)),
}


@every_stochastic
def test_stochastic_players_cooperate_with_the_stated_probabilities(strategy):
    """Over evenly spaced draws, the middles of `cells` equal parts of [0, 1), the share of C is P(C) to one part."""
    cells = 9000
    luck = (np.arange(cells) + 0.5) / cells
    first, replies = FIRST_AND_REPLIES[strategy.name]

    def share_of_cooperation(before):
        """`before`: one (own, other) pair of letters a round."""
        own, other = (np.repeat(actions(moves), cells, axis=1) for moves in (before[0::2], before[1::2]))
        return strategy.choose(History(own, other, 20, lambda resolved: luck, len(own))).mean()

    assert share_of_cooperation("") == pytest.approx(first, abs=1 / cells)
    for last, probability in zip(["CC", "CD", "DC", "DD"], replies, strict=True):
        for earlier in ("", "CC", "DD", "CDDC"):  # only the last round counts
            assert share_of_cooperation(earlier + last) == pytest.approx(probability, abs=1 / cells)


# ── What must hold of every strategy ─────────────────────────────────────────────────────────────────────────────


@every_strategy
@few
@given(match=recorded())
def test_a_strategy_sees_neither_the_future_nor_the_round_that_is_being_played(strategy, match):
    own, other, luck = match
    chosen = choices(strategy, own, other, luck)
    for resolved in range(len(own)):
        hidden = [np.vstack([seen[:resolved], ~seen[resolved:]]) for seen in (own, other)]
        history = History(*hidden, len(own), luck.__getitem__, resolved)
        assert (strategy.choose(history) == chosen[resolved]).all()
        history = History(own[:resolved], other[:resolved], len(own), luck.__getitem__, resolved)
        assert (strategy.choose(history) == chosen[resolved]).all()


@every_strategy
@few
@given(match=recorded())
def test_a_strategy_asks_for_no_draw_but_that_of_the_round_to_come(strategy, match):
    own, other, luck = match
    asked = []
    for resolved in range(len(own)):
        history = History(own, other, len(own), lambda k: asked.append(k) or luck[k], resolved)
        strategy.choose(history)
        assert set(asked) <= {resolved}
        asked.clear()


@every_strategy
@few
@given(match=recorded())
def test_a_batch_chooses_as_its_matches_do_one_by_one(strategy, match):
    own, other, luck = match
    together = choices(strategy, own, other, luck)
    assert together.dtype == bool
    assert together.shape == own.shape
    for column in range(own.shape[1]):
        only = slice(column, column + 1)
        assert (choices(strategy, own[:, only], other[:, only], luck[:, only]) == together[:, only]).all()


@every_strategy
@few
@given(match=recorded())
def test_one_history_followed_from_round_to_round_is_as_good_as_a_fresh_one_each_round(strategy, match):
    own, other, luck = match
    history = History(own, other, len(own), luck.__getitem__)
    for resolved, fresh in enumerate(choices(strategy, own, other, luck)):
        history.resolved = resolved
        assert (strategy.choose(history) == fresh).all()


@every_strategy
@few
@given(match=recorded())
def test_choosing_changes_no_history(strategy, match):
    own, other, luck = match
    for seen in match:
        seen.flags.writeable = False
    before = own.copy(), other.copy()
    choices(strategy, own, other, luck)
    assert (own == before[0]).all()
    assert (other == before[1]).all()


@every_deterministic
@few
@given(match=recorded())
def test_deterministic_players_never_ask_for_luck(strategy, match):
    own, other, _ = match
    for resolved in range(len(own)):
        strategy.choose(History(own, other, len(own), no_luck, resolved))


@every_stochastic
@few
@given(match=recorded())
def test_stochastic_players_prescribe_nothing(strategy, match):
    own, other, _ = match
    with pytest.raises(ValueError, match=strategy.name):
        prescribe(strategy, own, other)


@few
@given(match=recorded())
def test_win_stay_lose_shift_and_appeaser_are_one_function_of_the_history(match):
    """To cooperate after CC or DD, and to change one's choice after each D, is the same rule.

    No data can tell the two apart, so no estimate of strategy shares can either; the sheet and the library list both.
    """
    own, other, _ = match
    assert (
        prescribe(STRATEGIES["Appeaser"], own, other) == prescribe(STRATEGIES["WinStayLoseShift"], own, other)
    ).all()


@pytest.mark.parametrize("pair", list(combinations(DETERMINISTIC, 2)), ids=lambda pair: "-".join(s.name for s in pair))
def test_no_other_two_deterministic_players_are_the_same(pair):
    own, other = np.random.default_rng(1).random((2, 20, 500)) < 0.5
    first, second = (prescribe(strategy, own, other) for strategy in pair)
    same = {strategy.name for strategy in pair} == {"Appeaser", "WinStayLoseShift"}
    assert (first == second).all() == same


# ── What they do in matches ──────────────────────────────────────────────────────────────────────────────────────


@few
@given(seed=st.integers(0, 2**63 - 1), noise=st.sampled_from([0, 0.05, 0.5]), rounds=st.sampled_from([1, 7, 20]))
def test_the_choices_submitted_in_a_match_are_those_prescribed_by_its_history(seed, noise, rounds):
    done, submitted = play_in_columns([seed], ORDERED_PAIRS, STRATEGIES, Parameters(rounds=rounds, noise=noise))
    for seat, strategy in product((0, 1), DETERMINISTIC):
        theirs = [i for i, pair in enumerate(ORDERED_PAIRS) if pair[seat] == strategy.name]
        own, other = done[:, 0, theirs, seat], done[:, 0, theirs, 1 - seat]
        assert (prescribe(strategy, own, other) == submitted[:, 0, theirs, seat]).all()


def test_the_referee_s_player_makes_the_moves_that_columns_make():
    parameters = Parameters(noise=0.2, agent_ids=("ann", "bob"))
    seeds = range(1, 4)
    done, submitted = play_in_columns(seeds, ORDERED_PAIRS, STRATEGIES, parameters)

    def luck(pairing, stream, seat, resolved):
        return draw(pairing.seed, stream, *pairing.players, seat, counter=resolved)

    async def refereed(pairing):
        players = {
            agent: ScriptedPlayer(
                STRATEGIES[name], lambda resolved, seat=seat: np.array([luck(pairing, "policy", seat, resolved)])
            )
            for seat, (agent, name) in enumerate(zip(parameters.agent_ids, pairing.players, strict=True))
        }
        flip = lambda seat, resolved: luck(pairing, "noise", seat, resolved) < parameters.noise  # noqa: E731
        return await referee_match(players, parameters, turn_timeout=60, flip=flip)

    for i, pair in enumerate(ORDERED_PAIRS):
        seed = i % len(seeds)  # not each seed with each pair, for the referee takes its time
        played = asyncio.run(refereed(Pairing(seeds[seed], pair)))
        carried_out = [
            [past.choices[agent] is Choice.COOPERATE for agent in ("ann", "bob")] for past in played.match.history
        ]
        sent = [[moves[agent].action is Choice.COOPERATE for agent in ("ann", "bob")] for moves in played.turns]
        assert carried_out == done[:, seed, i].tolist(), pair
        assert sent == submitted[:, seed, i].tolist(), pair


@few
@given(
    seeds=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=4),
    pairs=st.lists(st.sampled_from(ORDERED_PAIRS), min_size=1, max_size=6),
)
def test_a_match_does_not_depend_on_the_matches_played_beside_it(seeds, pairs):
    """Nor on their order, on how often they are played, or on being alone."""
    parameters = Parameters(noise=0.1)
    together = play_in_columns(seeds, pairs, STRATEGIES, parameters)
    backwards = play_in_columns(seeds[::-1], pairs[::-1], STRATEGIES, parameters)
    twice = play_in_columns(seeds * 2, pairs * 2, STRATEGIES, parameters)
    for one, reverse, doubled in zip(together, backwards, twice, strict=True):
        assert (one == reverse[:, ::-1, ::-1]).all()
        assert (np.tile(one, (1, 2, 2, 1)) == doubled).all()
    for (i, seed), (j, pair) in product(enumerate(seeds), enumerate(pairs)):
        alone = play_in_columns([seed], [pair], STRATEGIES, parameters)
        for one, single in zip(together, alone, strict=True):
            assert (one[:, [i], [j]] == single[:, 0]).all()


def test_without_luck_names_and_seats_change_nothing():
    names = [strategy.name for strategy in DETERMINISTIC]
    pairs = list(product(names, repeat=2))
    plain = play_in_columns([1], pairs, STRATEGIES, Parameters())[0]
    swapped = play_in_columns([1], [pair[::-1] for pair in pairs], STRATEGIES, Parameters())[0]
    assert (plain == swapped[..., ::-1]).all()
    aliases = {f"player {i}": STRATEGIES[name] for i, name in enumerate(names)}
    renamed = play_in_columns([2], list(product(aliases, repeat=2)), aliases, Parameters())[0]
    assert (plain == renamed).all()


def test_two_players_of_one_strategy_draw_their_own_luck():
    two_of_a_kind = {"first": STRATEGIES["Random"], "second": STRATEGIES["Random"]}
    done, _ = play_in_columns(range(200), [("first", "second")], two_of_a_kind, Parameters())
    agreement = (done[..., 0] == done[..., 1]).mean()
    assert abs(agreement - 1 / 2) < 4 * np.sqrt(1 / 4 / done[..., 0].size)  # four standard errors: 6 in 100,000


def test_a_scripted_player_reads_only_its_view():
    tit_for_tat = STRATEGIES["TitForTat"]
    view = {
        "you": "bob",
        "turnNumber": 1,
        "totalRounds": 20,
        "scores": {"ann": 5, "bob": 0},
        "history": [{"choices": {"ann": "defect", "bob": "cooperate"}, "scores": {"ann": 5, "bob": 0}}],
    }
    replies = {
        you: asyncio.run(ScriptedPlayer(tit_for_tat, no_luck).act({**view, "you": you})) for you in ("ann", "bob")
    }
    assert json.loads(replies["bob"]) == {"type": "choose", "choice": "defect"}
    assert json.loads(replies["ann"]) == {"type": "choose", "choice": "cooperate"}
