"""Ranks and strengths: known truths are found again, a plain optimiser agrees, nothing finite comes from nothing."""

import time
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp

from fishpool.analysis import ranking
from fishpool.analysis.ranking import davidson, mean_score_ranks

SCHEMA = {
    "study": pl.String,
    "condition": pl.String,
    "seed": pl.Int64,
    "player": pl.String,
    "opponent": pl.String,
    "score": pl.Float64,
    "outcome": pl.String,
}
MIRROR = {"win": "loss", "loss": "win", "draw": "draw", "void": "void"}


def simulate(generator, strengths, nu, matches):
    """Counts of `matches` matches of every pair under Davidson's model: wins and ties, (players, players)."""
    players = len(strengths)
    wins, ties = np.zeros((players, players)), np.zeros((players, players))
    for i, j in combinations(range(players), 2):
        chance = np.exp([strengths[i], strengths[j], np.log(nu) + (strengths[i] + strengths[j]) / 2])
        wins[i, j], wins[j, i], ties[i, j] = generator.multinomial(matches, chance / chance.sum())
        ties[j, i] = ties[i, j]
    return wins, ties


def table(matches, study="s", condition="c"):
    """Two rows a match from (seed, player, opponent, score, opponent's score, outcome)."""
    rows = []
    for seed, player, opponent, score, other, outcome in matches:
        rows.append((study, condition, seed, player, opponent, score, outcome))
        rows.append((study, condition, seed, opponent, player, other, MIRROR[outcome]))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row", strict=False)


def random_matches(generator, seeds, strengths, nu=0.5, copies=1):
    """A round robin a seed; each match's result stands `copies` times. Better players score more."""
    names = [f"player {i}" for i in range(len(strengths))]
    for seed in range(seeds):
        wins, ties = simulate(generator, strengths, nu, 1)
        for i, j in combinations(range(len(names)), 2):
            outcome = "draw" if ties[i, j] else "win" if wins[i, j] else "loss"
            points = {"win": (60, 40), "loss": (40, 60), "draw": (50, 50)}[outcome]
            yield from [(seed, names[i], names[j], *points, outcome)] * copies


def counts(matches, players):
    """Wins and ties of `random_matches`, (players, players)."""
    wins, ties = np.zeros((players, players)), np.zeros((players, players))
    for _, player, opponent, _, _, outcome in matches:
        i, j = int(player[-1]), int(opponent[-1])
        if outcome == "draw":
            ties[[i, j], [j, i]] += 1
        else:
            wins[(i, j) if outcome == "win" else (j, i)] += 1
    return wins, ties


# Davidson's model


def test_two_players_have_a_closed_form():
    fit = davidson([[0, 12], [3, 0]], [[0, 5], [5, 0]])
    np.testing.assert_allclose(fit.strengths, [np.log(4) / 2, -np.log(4) / 2])
    assert fit.tie_parameter == pytest.approx(5 / np.sqrt(12 * 3))
    np.testing.assert_allclose(fit.standard_errors, np.sqrt(1 / 12 + 1 / 3) / 2)
    assert fit.reason is None


def test_without_draws_it_is_bradley_terry_as_published():
    # American League baseball 1987, 13 matches a pair: Agresti (2002), "Categorical data analysis", table 10.10. The
    # estimates and standard errors, against Baltimore, are those of the R package BradleyTerry2 (Turner and Firth 2012,
    # "Bradley-Terry models in R: the BradleyTerry2 package", Journal of Statistical Software 48(9)).
    wins = np.array(
        [
            [0, 7, 9, 7, 7, 9, 11],  # Milwaukee
            [6, 0, 7, 5, 11, 9, 9],  # Detroit
            [4, 6, 0, 7, 7, 8, 12],  # Toronto
            [6, 8, 6, 0, 6, 7, 10],  # New York
            [6, 2, 6, 7, 0, 7, 12],  # Boston
            [4, 4, 5, 6, 6, 0, 6],  # Cleveland
            [2, 4, 1, 3, 1, 7, 0],  # Baltimore
        ]
    )
    fit = davidson(wins, np.zeros((7, 7)))
    published = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0.0]
    np.testing.assert_allclose(fit.strengths - fit.strengths[-1], published, atol=6e-5)
    assert fit.tie_parameter == 0
    assert fit.strengths.sum() == pytest.approx(0)


@pytest.mark.parametrize("nu", [0.05, 0.7, 5.0])
def test_simulated_strengths_are_recovered(nu):
    truth = np.array([1.2, 0.5, 0.1, -0.3, -1.5])
    wins, ties = simulate(np.random.default_rng(1), truth, nu, 20_000)
    fit = davidson(wins, ties)
    assert (np.abs(fit.strengths - truth) < 4 * fit.standard_errors).all()  # 5 players: missed once in 3,000 tests
    assert fit.tie_parameter == pytest.approx(nu, rel=0.05)


def test_standard_errors_are_those_of_repeated_tournaments():
    generator, truth = np.random.default_rng(2), np.array([1.0, 0.0, 0.0, -1.0])
    fits = [davidson(*simulate(generator, truth, 0.6, 60)) for _ in range(300)]
    spread = np.std([fit.strengths for fit in fits], axis=0)
    claimed = np.mean([fit.standard_errors for fit in fits], axis=0)
    np.testing.assert_allclose(claimed, spread, rtol=0.17)  # 4 standard errors of a spread from 300


def log_likelihood(parameters, wins, ties):
    """The likelihood as it is written in the paper, one pair after the other."""
    strengths, log_nu = parameters[:-1], parameters[-1]
    total = 0.0
    for i, j in combinations(range(len(wins)), 2):
        terms = np.array([strengths[i], strengths[j], log_nu + (strengths[i] + strengths[j]) / 2])
        log_chance = terms - logsumexp(terms)
        total += wins[i, j] * log_chance[0] + wins[j, i] * log_chance[1] + ties[i, j] * log_chance[2]
    return total


def tournaments(most=9):
    """Wins and symmetric ties of two to five players."""
    return st.integers(2, 5).flatmap(
        lambda players: st.tuples(
            arrays(float, (players, players), elements=st.integers(0, most)).map(lambda a: a - np.diag(np.diag(a))),
            arrays(float, (players, players), elements=st.integers(0, most)).map(
                lambda a: np.triu(a, 1) + np.triu(a, 1).T
            ),
        )
    )


@settings(max_examples=40, deadline=None)
@given(tournaments())
def test_agrees_with_a_plain_optimiser(tournament):
    wins, ties = tournament
    fit = davidson(wins, ties)
    assume(fit.reason is None and ties.any() and not np.isnan(fit.strengths).any())
    found = minimize(lambda x: -log_likelihood(x, wins, ties), np.zeros(len(wins) + 1), method="BFGS", tol=1e-8).x
    np.testing.assert_allclose(fit.strengths, found[:-1] - found[:-1].mean(), atol=2e-3)
    assert np.log(fit.tie_parameter) == pytest.approx(found[-1], abs=2e-3)
    ours = np.append(fit.strengths, np.log(fit.tie_parameter))
    assert log_likelihood(ours, wins, ties) >= log_likelihood(found, wins, ties) - 1e-9


def has_finite_maximum(wins, ties):
    """By linear programming: no direction in which no outcome's probability ever falls, but the strengths' level.

    (Albert and Anderson 1984, "On the existence of maximum likelihood estimates in logistic regression models".)
    """
    players, rows = len(wins), []
    for i, j in combinations(range(players), 2):
        terms = np.zeros((3, players + 1))  # linear predictors of win, loss, draw
        terms[0, i] = terms[1, j] = 1.0
        terms[2, [i, j]], terms[2, -1] = 0.5, 1.0
        for outcome, count in enumerate([wins[i, j], wins[j, i], ties[i, j]]):
            others = [0, 1] if not ties.any() else [0, 1, 2]  # nu is 0 without ties: a draw is no alternative
            rows += [terms[outcome] - terms[other] for other in others if other != outcome and count]
    rows = np.array(rows).reshape(-1, players + 1)
    free = players + 1 if ties.any() else players
    if np.linalg.matrix_rank(rows) < free - 1:
        return False
    best = linprog(-rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=[(-1, 1)] * (players + 1))
    return -best.fun < 1e-7


@settings(max_examples=300, deadline=None)
@given(tournaments(most=1) | tournaments(most=2))
def test_a_fit_exists_exactly_where_linear_programming_says_so(tournament):
    wins, ties = tournament
    played = (wins + wins.T + ties).any(axis=1)
    assume(played.all())
    fit = davidson(wins, ties)
    assert (fit.reason is None) == has_finite_maximum(wins, ties)
    assert np.isfinite(fit.strengths).all() == np.isfinite(fit.tie_parameter) == (fit.reason is None)
    assert np.isfinite(fit.standard_errors).all() == (fit.reason is None)


A_BEATS_B = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0.0]])
C_DRAWS_WITH_BOTH = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0.0]])


@pytest.mark.parametrize(
    ("wins", "ties", "reason"),
    [
        (np.zeros((0, 0)), np.zeros((0, 0)), "fewer than two players"),
        (np.zeros((3, 3)), np.zeros((3, 3)), "fewer than two players"),
        (np.triu(np.ones((3, 3)), 1), np.zeros((3, 3)), "3 groups"),  # one always wins
        (np.kron(np.eye(2), [[0, 1], [1, 0]]), np.zeros((4, 4)), "2 groups"),  # two leagues that never met
        (np.zeros((3, 3)), 1 - np.eye(3), "no cycle"),  # all draws: nu is infinite, the strengths could be anything
        (A_BEATS_B, C_DRAWS_WITH_BOTH, "no cycle"),  # strongly connected, and still without a maximum
    ],
)
def test_no_strength_is_made_up_where_the_likelihood_has_no_maximum(wins, ties, reason):
    fit = davidson(wins, ties)
    assert reason in fit.reason
    assert np.isnan(fit.strengths).all()
    assert np.isnan(fit.standard_errors).all()
    assert np.isnan(fit.tie_parameter)


def test_connected_but_unbounded_really_is_unbounded():
    direction = np.array([1.0, -1.0, 0.0, 0.75])  # A, B, C, log nu
    values = [log_likelihood(size * direction, A_BEATS_B, C_DRAWS_WITH_BOTH) for size in (0, 5, 10, 20, 40, 80)]
    assert np.all(np.diff(values) > 0)
    assert values[-1] == pytest.approx(0, abs=1e-6)  # a probability of 1 for everything


def test_a_player_without_a_match_does_not_take_the_others_strengths():
    wins, ties = simulate(np.random.default_rng(3), [0.5, 0.0, -0.5], 0.5, 40)
    alone = davidson(wins, ties)
    idle = davidson(np.pad(wins, (0, 1)), np.pad(ties, (0, 1)))
    np.testing.assert_array_equal(idle.strengths, [*alone.strengths, np.nan])
    np.testing.assert_array_equal(idle.standard_errors, [*alone.standard_errors, np.nan])


@settings(max_examples=40, deadline=None)
@given(tournaments(), st.randoms(use_true_random=False))
def test_relabelling_players_relabels_the_fit(tournament, random):
    wins, ties = tournament
    order = random.sample(range(len(wins)), len(wins))
    fit, relabelled = davidson(wins, ties), davidson(wins[np.ix_(order, order)], ties[np.ix_(order, order)])
    assert fit.reason == relabelled.reason
    np.testing.assert_allclose(relabelled.strengths, fit.strengths[order], atol=1e-8)
    np.testing.assert_allclose(relabelled.standard_errors, fit.standard_errors[order], rtol=1e-6)
    np.testing.assert_allclose(relabelled.tie_parameter, fit.tie_parameter, rtol=1e-8)


@settings(max_examples=40, deadline=None)
@given(tournaments(), st.integers(1, 5))
def test_playing_everything_again_changes_the_errors_only(tournament, times):
    once, again = davidson(*tournament), davidson(*(times * counts for counts in tournament))
    assert once.reason == again.reason
    np.testing.assert_allclose(again.strengths, once.strengths, atol=1e-8)
    np.testing.assert_allclose(again.standard_errors, once.standard_errors / np.sqrt(times), rtol=1e-6)


@settings(max_examples=60, deadline=None)
@given(tournaments(), st.integers(1, 3), st.data())
def test_draws_in_the_place_of_a_win_each_way_raise_nu(tournament, times, data):
    # Nobody's points change, only the number of draws; maximum likelihood in an exponential family is monotone. (Draws
    # added to a pair may lower nu: they pull the two together, and everyone else's draws become less of a surprise.)
    wins, ties = tournament
    i = data.draw(st.integers(0, len(wins) - 2))
    pair = ([i, i + 1], [i + 1, i])
    ties[pair] += 1
    fewer, more = wins.copy(), ties.copy()
    wins[pair] += times
    more[pair] += 2 * times
    before, after = davidson(wins, ties), davidson(fewer, more)
    assume(before.reason is None and after.reason is None)
    assert after.tie_parameter > before.tie_parameter


@pytest.mark.parametrize("draws", [0, 2])
def test_a_cyclic_tournament_has_equal_strengths(draws):
    wins = np.roll(np.eye(5), 1, axis=1) + np.roll(np.eye(5), 2, axis=1)  # each beats the next two
    fit = davidson(3 * wins, draws * (1 - np.eye(5)))
    np.testing.assert_allclose(fit.strengths, 0, atol=1e-9)
    assert fit.tie_parameter == pytest.approx(2 * draws / 3)  # nu / (2 + nu) = draws / (draws + 3)


@pytest.mark.parametrize(
    ("wins", "ties", "sentence"),
    [
        (np.zeros((2, 3)), np.zeros((2, 3)), "have shape"),
        (np.zeros((2, 2)), np.zeros((3, 3)), "have shape"),
        ([[0, -1], [0, 0]], np.zeros((2, 2)), "negative"),
        ([[0, np.nan], [0, 0]], np.zeros((2, 2)), "not finite"),
        ([[1, 0], [0, 0]], np.zeros((2, 2)), "self-play"),
        (np.zeros((2, 2)), [[0, 1], [0, 0]], "not symmetric"),
    ],
)
def test_counts_that_no_tournament_can_have_are_errors(wins, ties, sentence):
    with pytest.raises(ValueError, match=sentence):
        davidson(wins, ties)


# Ranks by mean score


def test_clear_differences_have_clear_ranks():
    scores = np.random.default_rng(4).normal([10, 30, 20], 0.1, (50, 3))
    for found in mean_score_ranks(scores):
        np.testing.assert_array_equal(found, [3, 1, 2])


def test_equal_players_share_the_best_rank_in_every_resample():
    scores = np.random.default_rng(5).integers(0, 9, (20, 1)) * [1, 1, 1, 1] + [0.1, 0.1 + 1e-13, 0, 5]
    for found in mean_score_ranks(scores):
        np.testing.assert_array_equal(found, [2, 2, 4, 1])


def test_indistinguishable_players_may_have_any_rank():
    rank, low, high = mean_score_ranks(np.random.default_rng(6).normal(size=(100, 4)))
    assert sorted(rank) == [1, 2, 3, 4]
    assert (low <= rank).all()
    assert (rank <= high).all()
    assert low.min() == 1
    assert high.max() == 4
    assert (high - low >= 1).all()


@pytest.mark.parametrize("seeds", [1, 30])
def test_a_rank_has_no_interval_without_variation_over_seeds(seeds):
    rank, low, high = mean_score_ranks(np.tile([0.1 + 0.2, 2.0, 0.3], (seeds, 1)))
    np.testing.assert_array_equal(rank, [2, 1, 2])
    assert np.isnan([low, high]).all()


@settings(max_examples=30, deadline=None)
@given(arrays(float, st.tuples(st.integers(2, 8), st.integers(1, 5)), elements=st.integers(0, 20)), st.randoms())
def test_relabelling_players_relabels_the_ranks(scores, random):
    order = random.sample(range(scores.shape[1]), scores.shape[1])
    for plain, relabelled in zip(mean_score_ranks(scores), mean_score_ranks(scores[:, order]), strict=True):
        np.testing.assert_array_equal(relabelled, plain[order])
    for plain, scaled in zip(mean_score_ranks(scores), mean_score_ranks(scores * 0.1), strict=True):
        np.testing.assert_array_equal(scaled, plain)


def test_a_missing_match_is_missing_not_zero():
    # Player 0 misses half of its matches: 40 a match, the best mean though not the largest sum. Player 2 misses all.
    scores = np.tile([[40, 60, 0], [80, 61, 0], [0, 59, 0.0]], (4, 1))
    matches = np.tile([[1, 2, 0], [2, 2, 0], [0, 2, 0]], (4, 1))
    for found in mean_score_ranks(scores, matches):
        np.testing.assert_array_equal(found, [1, 2, np.nan])


# The table


def rank_players(sides):
    return ranking.rank_players(sides.lazy())


def test_strengths_are_davidsons_with_each_match_counted_once():
    matches = list(random_matches(np.random.default_rng(7), 40, [0.8, 0.0, -0.8]))
    found, fit = rank_players(table(matches)), davidson(*counts(matches, 3))
    np.testing.assert_allclose(found["strength"], fit.strengths)
    np.testing.assert_allclose(found["tie_parameter"], fit.tie_parameter)
    # Matches are independent here, so that clustering by seed changes the errors little (seeds are few, hence t).
    half = (found["strength_high"] - found["strength_low"]) / 2
    np.testing.assert_allclose(half, 2.02 * fit.standard_errors, rtol=0.35)


def test_columns_types_and_groups():
    generator = np.random.default_rng(8)
    tables = [
        table(random_matches(generator, 5, [1, 0, -1]), study, condition)
        for study, condition in [("b", "plain"), ("a", "noise"), ("a", "plain")]
    ]
    found = rank_players(pl.concat(tables).sample(fraction=1, shuffle=True, seed=1))
    assert dict(found.schema) == {
        "study": pl.String,
        "condition": pl.String,
        "player": pl.String,
        "rank_low": pl.Int64,
        "rank_high": pl.Int64,
        "strength": pl.Float64,
        "strength_low": pl.Float64,
        "strength_high": pl.Float64,
        "tie_parameter": pl.Float64,
    }
    assert found.equals(found.sort("study", "condition", "player"))
    alone = pl.concat([rank_players(part) for part in tables]).sort("study", "condition", "player")
    assert found.equals(alone)
    assert rank_players(tables[0].clear()).schema == found.schema


def test_self_play_and_void_matches_count_for_nothing():
    plain = table(random_matches(np.random.default_rng(9), 12, [0.5, 0.2, 0.0, -0.6]))
    noise = table(
        [
            (3, "player 0", "player 0", 0.0, 100.0, "loss"),
            (3, "player 1", "player 2", 99.0, 0.0, "void"),
            (4, "player 1", "player 2", None, None, "void"),
        ]
    )
    assert rank_players(pl.concat([plain, noise])).equals(rank_players(plain))


def test_a_player_whose_matches_are_all_void_is_listed_and_has_nothing():
    plain = table(random_matches(np.random.default_rng(10), 12, [0.5, 0.2, 0.0]))
    void = table([(seed, "player 0", "silent", 0.0, 0.0, "void") for seed in range(12)])
    found = rank_players(pl.concat([plain, void]))
    assert found.filter(player="silent").row(0)[3:8] == (None,) * 5
    assert found.filter(pl.col("player") != "silent").equals(rank_players(plain))
    nothing = rank_players(void)
    assert nothing["player"].to_list() == ["player 0", "silent"]
    assert nothing.row(0)[3:] == (None,) * 6


def test_copies_of_one_tournament_are_no_evidence():
    once = [("a", "b", 60, 40, "win"), ("b", "c", 60, 40, "win"), ("c", "a", 55, 45, "win"), ("a", "b", 50, 50, "draw")]
    found = rank_players(table([(seed, *match) for seed in range(200) for match in once]))
    assert found["strength"].null_count() == 0
    for column in ("rank_low", "rank_high", "strength_low", "strength_high"):
        assert found[column].null_count() == 3
    one_seed = rank_players(table(random_matches(np.random.default_rng(0), 1, [0, 0, 0, 0, 0])))
    assert one_seed["strength_low"].null_count() == one_seed["rank_low"].null_count() == 5


def test_strength_intervals_cover_also_where_matches_of_a_seed_hang_together():
    # Every result stands four times in its seed. Errors that take matches for independent are half as long as they
    # should be and cover 67 times in 100. 100 tournaments of 4 players, within 4 standard errors of a coverage of 95 %
    # (a tournament's players depend on one another, so it is taken for one trial).
    generator, truth = np.random.default_rng(11), np.array([0.9, 0.3, -0.3, -0.9])
    covered, as_if_independent = [], []
    for _ in range(100):
        matches = list(random_matches(generator, 40, truth, copies=4))
        found = rank_players(table(matches))
        low, high = found["strength_low"].to_numpy(), found["strength_high"].to_numpy()
        covered.append((low < truth) & (truth < high))
        fit = davidson(*counts(matches, 4))
        as_if_independent.append(np.abs(fit.strengths - truth) < 1.96 * fit.standard_errors)
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 100)
    assert np.mean(as_if_independent) < 0.8


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([(7, "ann", "bob", 3.0, "win")], "seed 7: the matches of 'ann' against 'bob' do not mirror"),
        ([(7, "ann", "bob", 3.0, "win"), (7, "bob", "ann", 3.0, "win")], "do not mirror"),
        ([(7, "ann", "bob", 3.0, "draw"), (8, "bob", "ann", 3.0, "draw")], "do not mirror"),
        ([(7, "ann", "bob", 3.0, "won"), (7, "bob", "ann", 3.0, "loss")], "'won'; it must be win, loss, draw or void"),
        ([(7, "ann", "bob", 3.0, None), (7, "bob", "ann", 3.0, "loss")], "found the outcome None"),
        ([(7, "ann", "bob", None, "win"), (7, "bob", "ann", 3.0, "loss")], "numerator is missing"),
    ],
)
def test_half_a_match_is_an_error(rows, sentence):
    frame = pl.DataFrame([("s", "c", *row) for row in rows], schema=SCHEMA, orient="row")
    with pytest.raises(ValueError, match=sentence):
        rank_players(frame)


def test_22_players_and_200_seeds_take_less_than_a_second():
    frame = table(random_matches(np.random.default_rng(12), 200, np.linspace(-1.5, 1.5, 22)))
    start = time.process_time()
    found = rank_players(frame)
    assert time.process_time() - start < 1
    assert (found["strength_low"] < found["strength_high"]).all()
