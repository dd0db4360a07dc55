"""The rules of the open-strategy dictator game: stakes, allocations, payoffs, tournaments."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishpool.games.dictator import (
    UTILITIES,
    Decision,
    Document,
    Votes,
    allocation,
    normalised_stakes,
    payoff_matrix,
    play,
    scores,
    stakes,
    welfare_matrix,
)

ADA, BOB = (Document(name, "test", f"I am {name}.") for name in ("ada", "bob"))


def test_the_four_payoffs_of_equation_3():
    A = payoff_matrix([[1, 1], [0, 0]], stakes(60))
    assert A.ravel() == pytest.approx([2 * log(31), log(31), log(61) + log(31), log(61)])


def test_half_of_an_odd_endowment_is_not_rounded_whatever_comes_first():
    # A share first and a take later: whoever takes the type of a column from its first value loses the half, or fails.
    oracle = {("ada", "ada"): 1, ("ada", "bob"): 1, ("bob", "ada"): 0, ("bob", "bob"): 0}
    tournament = play([ADA, BOB], lambda d, r: Votes(oracle[d.name, r.name], 1))
    assert allocation(Decision.SHARE, 61) == (30.5, 30.5)
    assert allocation(Decision.TAKE, 61) == (61.0, 0.0)
    A = payoff_matrix(tournament.decisions, stakes(61))
    assert A.ravel() == pytest.approx([2 * log(31.5), log(31.5), log(62) + log(31.5), log(62)])
    assert payoff_matrix(np.array([[1, 1], [0, 0]]), stakes(61)) == pytest.approx(A)


@given(st.floats(1e-3, 1e9), st.sampled_from(sorted(UTILITIES)))
def test_sharing_never_destroys_welfare_under_a_concave_utility(endowment, utility):
    game = stakes(endowment, UTILITIES[utility])
    assert game.gain >= game.cost * (1 - 1e-9)
    assert game.exchange_rate >= 1 - 1e-9
    assert 2 * game.share >= (game.take + game.nothing) * (1 - 1e-9)


def test_a_convex_utility_is_a_fault_and_reached_with_normalised_stakes():
    with pytest.raises(ValueError, match="not concave"):
        stakes(60, lambda value: value**2)
    assert normalised_stakes(0.25).exchange_rate == pytest.approx(1 / 3)


@pytest.mark.parametrize("endowment", [0, -1, float("nan"), float("inf")])
def test_an_endowment_is_a_positive_number(endowment):
    with pytest.raises(ValueError, match="positive"):
        stakes(endowment)


def test_without_self_play_the_diagonal_is_missing():
    asked = []

    def oracle(dictator, recipient):
        asked.append((dictator.name, recipient.name))
        return Votes(1, 1)

    tournament = play([ADA, BOB], oracle, self_play=False)
    assert asked == [("ada", "bob"), ("bob", "ada")]
    assert np.isnan(np.diagonal(tournament.decisions)).all()
    assert (np.diagonal(tournament.replicates) == 0).all()
    A = payoff_matrix(tournament.decisions, stakes())
    assert np.isnan(np.diagonal(A)).all()
    assert scores(tournament.decisions, stakes(), self_play=False) == pytest.approx([2 * log(31)] * 2)


def test_an_unreadable_answer_is_missing_and_carried():
    tournament = play([ADA, BOB], lambda d, r: Votes(0, 0) if (d, r) == (ADA, BOB) else Votes(1, 1))
    A, W = (matrix(tournament.decisions, stakes()) for matrix in (payoff_matrix, welfare_matrix))
    for matrix in (A, W):
        assert np.isnan(matrix).tolist() == [[False, True], [True, False]]
    assert np.isnan(scores(tournament.decisions, stakes())).all()


@given(st.integers(0, 9), st.integers(0, 9))
def test_the_decision_is_the_majority_and_a_tie_is_none(share, take):
    (cell,) = play([ADA], lambda d, r: Votes(share, share + take)).decisions.ravel()
    assert np.isnan(cell) if share == take else cell == (share > take)


def test_two_documents_of_one_name_are_a_fault():
    with pytest.raises(ValueError, match="two documents have this name"):
        play([ADA, ADA], lambda d, r: Votes(1, 1))


@pytest.mark.parametrize("bad", [[[1, 0]], [1, 0], [[2, 0], [0, 0]]])
def test_a_decision_matrix_is_square_with_known_decisions(bad):
    with pytest.raises(ValueError, match="decisions"):
        payoff_matrix(bad, stakes())
