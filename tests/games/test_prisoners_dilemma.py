"""The rule sheet of the iterated prisoner's dilemma, row by row."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishpool.games.prisoners_dilemma import (
    PAYOFF,
    RESIGN,
    Choice,
    Match,
    Move,
    points_in_columns,
    read_action,
    settle,
    view,
)
from fishpool.records import Ending, Status

C, D = Choice.COOPERATE, Choice.DEFECT
A, B = AGENTS = ("ann", "bob")
RESIGNED = Move(Status.RESIGNED)
LATE = Move(Status.TIMEOUT, fault="no action within 30 s")
REJECTED = Move(Status.INVALID, fault="not an action")
BROKEN = Move(Status.INFRASTRUCTURE, fault="raised ConnectionError: refused")
rounds_played = st.lists(st.tuples(st.sampled_from(Choice), st.sampled_from(Choice)), max_size=19)


def chose(choice):
    return Move(Status.MOVED, choice=choice)


def after(choices, total_rounds=20):
    match = Match(AGENTS, total_rounds)
    for first, second in choices:
        match = settle(match, {A: chose(first), B: chose(second)})
    return match


@pytest.mark.parametrize(("own", "other", "points"), [(C, C, 3), (C, D, 0), (D, C, 5), (D, D, 1)])
def test_payoffs(own, other, points):
    assert PAYOFF[own, other] == points


@given(rounds_played)
def test_columns_pay_what_the_rules_pay(choices):
    own = np.array([first is C for first, _ in choices], bool)
    other = np.array([second is C for _, second in choices], bool)
    assert points_in_columns(own, other).tolist() == [PAYOFF[pair] for pair in choices]


@given(rounds_played)
def test_view_has_exactly_these_keys_and_is_keyed_by_agent_id(choices):
    match = after(choices)
    seen = view(match, B)
    assert list(seen) == [
        "gameId",
        "you",
        "turnNumber",
        "round",
        "totalRounds",
        "roundsRemaining",
        "scores",
        "history",
        "isYourTurn",
    ]
    played = len(choices)
    assert (seen["gameId"], seen["you"], seen["isYourTurn"]) == ("prisoners-dilemma", B, True)
    assert (seen["turnNumber"], seen["round"], seen["totalRounds"]) == (played, played + 1, 20)
    assert seen["roundsRemaining"] == 20 - played
    assert seen["scores"] == {
        A: sum(PAYOFF[first, second] for first, second in choices),
        B: sum(PAYOFF[second, first] for first, second in choices),
    }
    assert seen["history"] == [
        {"choices": {A: first, B: second}, "scores": {A: PAYOFF[first, second], B: PAYOFF[second, first]}}
        for first, second in choices
    ]
    assert json.loads(json.dumps(seen)) == seen


@pytest.mark.parametrize(
    ("action", "meaning"),
    [
        ({"type": "choose", "choice": "cooperate"}, C),
        ({"type": "choose", "choice": "defect"}, D),
        ({"type": "resign"}, RESIGN),
    ],
)
def test_the_three_actions(action, meaning):
    assert read_action(action) == meaning


@pytest.mark.parametrize(
    "action",
    [
        {"type": "choose", "choice": "Cooperate"},
        {"type": "choose", "choice": "c"},
        {"type": "Choose", "choice": "cooperate"},
        {"type": "choose", "choice": "cooperate", "why": "trust"},
        {"type": "choose"},
        {"choice": "cooperate"},
        {"type": "resign", "choice": "defect"},
        {"type": "pass"},
        {"type": ["choose"], "choice": "cooperate"},
        {"type": "choose", "choice": ["cooperate"]},
        {"type": "choose", "choice": True},
        {},
        [],
        "cooperate",
        None,
        1,
    ],
)
def test_anything_else_is_rejected(action):
    with pytest.raises(ValueError, match="an action is"):
        read_action(action)


@given(rounds_played, st.integers(1, 20))
def test_most_points_after_the_last_round_wins(choices, total_rounds):
    choices = choices[:total_rounds] + [(C, C)] * (total_rounds - len(choices))
    match = after(choices, total_rounds)
    scores = match.scores
    assert match.result.ending is Ending.COMPLETED
    expected = None if scores[A] == scores[B] else max(AGENTS, key=scores.get)
    assert match.result.winner == expected
    assert not view(match, A)["isYourTurn"]


def test_mutual_cooperation_is_a_draw_at_60():
    match = after([(C, C)] * 20)
    assert match.scores == {A: 60, B: 60}
    assert match.result.winner is None


# The table of endings, once before any valid choice and once after; `None` as winner is a draw or a void match.
ENDINGS = [
    # A's move, B's move, at once: (ending, winner), later: (ending, winner)
    (RESIGNED, chose(C), (Ending.RESIGNED, B), (Ending.RESIGNED, B)),
    (RESIGNED, RESIGNED, (Ending.RESIGNED, None), (Ending.RESIGNED, None)),
    (LATE, chose(D), (Ending.VOID, None), (Ending.FORFEITED, B)),
    (REJECTED, chose(D), (Ending.VOID, None), (Ending.FORFEITED, B)),
    (RESIGNED, LATE, (Ending.VOID, None), (Ending.FORFEITED, None)),
    (RESIGNED, REJECTED, (Ending.VOID, None), (Ending.FORFEITED, None)),
    (LATE, LATE, (Ending.VOID, None), (Ending.FORFEITED, None)),
    (LATE, REJECTED, (Ending.VOID, None), (Ending.FORFEITED, None)),
    (REJECTED, REJECTED, (Ending.VOID, None), (Ending.FORFEITED, None)),
    (BROKEN, chose(C), (Ending.VOID, None), (Ending.VOID, None)),
    (BROKEN, RESIGNED, (Ending.VOID, None), (Ending.VOID, None)),
    (BROKEN, LATE, (Ending.VOID, None), (Ending.VOID, None)),
    (BROKEN, BROKEN, (Ending.VOID, None), (Ending.VOID, None)),
]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("first", "second", "at_once", "later"), ENDINGS)
def test_endings_before_the_last_round(first, second, at_once, later, swapped):
    moves = {A: second, B: first} if swapped else {A: first, B: second}
    for history, (ending, winner) in (([], at_once), ([(D, C)], later)):
        before = after(history)
        match = settle(before, moves)
        other = {A: B, B: A, None: None}[winner] if swapped else winner
        assert (match.result.ending, match.result.winner) == (ending, other)
        assert match.history == before.history, "the round that ends a match is never scored"
        assert match.scores == before.scores
        for agent, move in moves.items():
            if move.status not in (Status.MOVED, Status.RESIGNED) and match.result.ending is not Ending.VOID:
                assert agent in match.result.reason


def test_every_pair_of_outcomes_ends_or_goes_on():
    outcomes = [chose(C), chose(D), RESIGNED, LATE, REJECTED, BROKEN]
    for first, second in product(outcomes, repeat=2):
        match = settle(after([(C, C)]), {A: first, B: second})
        assert (match.result is None) == (first.choice is not None and second.choice is not None)


def test_a_resignation_loses_whatever_the_scores():
    match = settle(after([(D, C)] * 19), {A: RESIGNED, B: chose(C)})
    assert match.scores[A] > match.scores[B]
    assert match.result.winner == B


def test_the_reason_of_a_void_match_holds_the_exception():
    match = settle(after([]), {A: BROKEN, B: chose(C)})
    assert match.result.reason == "ann raised ConnectionError: refused"


@given(st.sampled_from(Choice), st.sampled_from(Choice), st.booleans(), st.booleans())
def test_noise_carries_out_the_opposite_and_pays_for_it(first, second, flip_first, flip_second):
    match = settle(Match(AGENTS, 2), {A: chose(first), B: chose(second)}, {A: flip_first, B: flip_second})
    done = match.history[0].choices
    assert (done[A] is first, done[B] is second) == (not flip_first, not flip_second)
    assert match.scores[A] == PAYOFF[done[A], done[B]]
