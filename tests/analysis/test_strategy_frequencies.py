"""Strategy-frequency estimation: that it finds the shares that made the data, says how sure it is, and where it cannot.

The populations are simulated here from the model itself, with strategies written out anew, so that the truth is known.
"""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binom

from fishpool.analysis import strategy_frequencies as sfem
from fishpool.analysis.strategy_frequencies import estimate, identifiable, intervals, shares_of_players, strategy_shares

ROUNDS = 20


def always_cooperate(own, other):
    return np.ones(own.shape[1], bool)


def always_defect(own, other):
    return np.zeros(own.shape[1], bool)


def tit_for_tat(own, other):
    return other[-1] if len(other) else always_cooperate(own, other)


def grim(own, other):
    return other.all(axis=0)


STRATEGIES = (always_cooperate, always_defect, tit_for_tat, grim)
SHARES = np.array([0.3, 0.2, 0.35, 0.15])


def play(rng, strategy, beta, rounds=ROUNDS):
    """Agreements (units, strategies) and choices of units that follow `strategy` (units,) against random opponents.

    An opponent cooperates with a probability of its own, the same in every round.
    """
    units = len(strategy)
    other = rng.random((rounds, units)) < rng.beta(2, 1, units)
    own = np.empty((rounds, units), bool)
    agreements = np.zeros((units, len(STRATEGIES)), int)
    for now in range(rounds):
        prescribed = np.stack([rule(own[:now], other[:now]) for rule in STRATEGIES], axis=1)
        meant = np.take_along_axis(prescribed, strategy[:, None], axis=1)[:, 0]
        own[now] = meant ^ (rng.random(units) > beta)
        agreements += prescribed == own[now][:, None]
    return agreements, np.full(units, rounds)


def population(rng, units, shares, beta):
    return play(rng, rng.choice(len(STRATEGIES), units, p=shares), beta)


def log_likelihood(agreements, choices, shares, beta):
    likelihood = beta**agreements * (1 - beta) ** (choices[:, None] - agreements)
    return np.log(likelihood @ shares).sum()


@st.composite
def tables(draw, most_units=12, most_strategies=5):
    """Any agreements that fit the choices, whether a population could have made them or not."""
    units, strategies = draw(st.integers(1, most_units)), draw(st.integers(1, most_strategies))
    choices = draw(st.lists(st.integers(1, ROUNDS), min_size=units, max_size=units))
    agreements = [draw(st.lists(st.integers(0, n), min_size=strategies, max_size=strategies)) for n in choices]
    return np.array(agreements), np.array(choices)


# ── What the estimate is ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("beta", [0.75, 0.9, 0.98, 1.0])
def test_finds_the_shares_and_the_errors_that_made_the_data(beta):
    fit = estimate(*population(np.random.default_rng(1), 20_000, SHARES, beta))
    assert fit.converged
    assert fit.shares == pytest.approx(SHARES, abs=0.02)  # four standard errors of a share are 0.014 where all is seen
    assert fit.beta == pytest.approx(beta, abs=0.005)


@given(tables())
@settings(max_examples=60, deadline=None)
def test_is_a_point_of_the_model_and_reports_its_likelihood(table):
    fit = estimate(*table)
    assert fit.converged
    assert (fit.shares >= 0).all()
    assert fit.shares.sum() == pytest.approx(1)
    assert 0.5 <= fit.beta <= 1
    with np.errstate(divide="ignore"):
        assert fit.log_likelihood == pytest.approx(log_likelihood(*table, fit.shares, fit.beta), abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_a_general_optimiser_finds_no_greater_likelihood(seed):
    rng = np.random.default_rng(seed)
    choices = rng.integers(5, ROUNDS + 1, 40)
    agreements = rng.binomial(choices[:, None], rng.choice([0.3, 0.5, 0.8, 0.95], (40, 4)))
    fit = estimate(agreements, choices)

    def negative(parameters):
        weights = np.exp(parameters[:4] - parameters[:4].max())
        beta = 0.5 + 0.5 / (1 + np.exp(-parameters[4]))
        return -log_likelihood(agreements, choices, weights / weights.sum(), min(beta, 1 - 1e-12))

    ends = [minimize(negative, rng.normal(0, 1, 5), options={"maxiter": 2_000}).fun for _ in range(6)]
    assert fit.log_likelihood == pytest.approx(-min(ends), abs=1e-4)
    assert fit.log_likelihood >= -min(ends) - 1e-6


@given(tables(), st.sampled_from([0.55, 0.75, 0.95]))
@settings(max_examples=60, deadline=None)
def test_no_iteration_lowers_the_likelihood(table, start):
    data = sfem._patterns(*table)
    path = []
    for iterations in range(1, 8):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sfem, "_ITERATIONS", iterations)
            path.append(sfem._ascend(data, start).log_likelihood)
    assert (np.diff(path) >= -1e-9).all()


@given(tables(most_strategies=6), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_no_newton_step_lowers_the_likelihood_from_any_start(table, seed):
    rng = np.random.default_rng(seed)
    data = sfem._patterns(*table)
    likelihood, counts = data.likelihood(0.97), rng.integers(0, 4, (1, len(data.excess))).astype(float)
    counts[0, 0] += 1
    start = rng.dirichlet(np.full(likelihood.shape[1], 0.3), 1) + 1e-9
    path = []
    for steps in range(6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sfem, "_STEPS", steps)
            shares, _ = sfem._best_shares(likelihood, counts, start / start.sum(), 1e-10)
        held = counts[0] > 0
        path.append(counts[0, held] @ np.log(likelihood[held] @ shares[0]))
    assert (np.diff(path) >= -1e-9).all()


# ── What it does not depend on ───────────────────────────────────────────────────────────────────────────────────


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_the_order_of_strategies_and_units_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    agreements, choices = population(rng, 80, SHARES, 0.9)
    units, strategies = rng.permutation(80), rng.permutation(len(SHARES))
    fit, shuffled = estimate(agreements, choices), estimate(agreements[units][:, strategies], choices[units])
    assert shuffled.shares == pytest.approx(fit.shares[strategies], abs=1e-4)
    assert shuffled.beta == pytest.approx(fit.beta, abs=1e-6)
    assert shuffled.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-6)


def test_units_seen_three_times_over_give_the_same_shares():
    agreements, choices = population(np.random.default_rng(2), 60, SHARES, 0.9)
    fit, thrice = estimate(agreements, choices), estimate(np.tile(agreements, (3, 1)), np.tile(choices, 3))
    assert thrice.shares == pytest.approx(fit.shares, abs=1e-5)
    assert thrice.beta == pytest.approx(fit.beta, abs=1e-7)
    assert thrice.log_likelihood == pytest.approx(3 * fit.log_likelihood)


def test_merging_equal_units_loses_nothing():
    agreements, choices = population(np.random.default_rng(4), 400, SHARES, 0.95)
    data = sfem._patterns(agreements, choices)
    assert len(data.excess) < len(agreements)
    assert data.counts().sum() == len(agreements)
    assert (data.excess[data.pattern][:, data.column] + data.least_errors[:, None] == ROUNDS - agreements).all()


def test_a_unit_without_choices_is_left_out():
    agreements, choices = population(np.random.default_rng(5), 50, SHARES, 0.9)
    more = np.vstack([agreements, np.zeros((3, 4), int)]), np.append(choices, [0, 0, 0])
    fit, same = estimate(agreements, choices), estimate(*more)
    assert (same.shares == fit.shares).all()
    assert same.log_likelihood == fit.log_likelihood
    clusters = np.arange(53)
    assert np.array_equal(
        intervals(*more, clusters, fit, draws=50),
        intervals(agreements, choices, clusters[:50], fit, draws=50),
        equal_nan=True,
    )


def test_matches_of_unequal_length_count_by_their_rounds():
    # One strategy: beta is the fraction of all rounds in which it was followed, not a mean over matches.
    fit = estimate([[1], [18]], [1, 20])
    assert fit.shares == pytest.approx([1])
    assert fit.beta == pytest.approx(19 / 21)


# ── Edges ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_errors_beta_is_one_and_all_is_finite():
    agreements, choices = population(np.random.default_rng(6), 300, SHARES, 1.0)
    fit = estimate(agreements, choices)
    low, high = intervals(agreements, choices, np.arange(300), fit)
    assert fit.beta == 1
    assert np.isfinite(fit.log_likelihood)
    assert (low < fit.shares).all()
    assert (fit.shares < high).all()


def test_a_single_pure_strategy_without_errors_has_share_one_and_no_interval():
    agreements, choices = population(np.random.default_rng(7), 100, [0, 0, 1, 0], 1.0)
    fit = estimate(agreements, choices)
    assert fit.shares == pytest.approx([0, 0, 1, 0])
    assert (fit.beta, fit.log_likelihood) == (1, pytest.approx(0))
    assert np.isnan(intervals(agreements, choices, np.arange(100), fit)).all()
    assert identifiable(agreements, choices, fit).all()


def test_choices_that_no_strategy_explains_leave_the_shares_equal_and_not_identifiable():
    fit = estimate([[1, 9, 4], [9, 1, 4], [5, 5, 4]], [10, 10, 10])
    assert fit.beta > 0.5  # the first two units each have a strategy
    nothing = [[4, 3, 5]] * 5, [10] * 5
    fit = estimate(*nothing)
    assert fit.beta == 0.5
    assert fit.shares == pytest.approx([1 / 3] * 3)
    assert fit.log_likelihood == pytest.approx(50 * np.log(0.5))
    assert not identifiable(*nothing, fit).any()


def test_one_cluster_has_no_interval():
    agreements, choices = population(np.random.default_rng(8), 50, SHARES, 0.9)
    fit = estimate(agreements, choices)
    assert np.isnan(intervals(agreements, choices, np.zeros(50), fit)).all()


@pytest.mark.parametrize(
    ("agreements", "choices", "message"),
    [
        ([1, 2], [2, 2], "shape"),
        ([[1], [2]], [2], "shape"),
        (np.empty((2, 0)), [2, 2], "at least one strategy"),
        ([[3]], [2], "more agreements than choices"),
        ([[-1]], [2], "fewer than none"),
        ([[0]], [0], "no unit with a choice"),
    ],
)
def test_tables_that_do_not_fit_are_refused(agreements, choices, message):
    with pytest.raises(ValueError, match=message):
        estimate(agreements, choices)


# ── Which strategies can be told apart ───────────────────────────────────────────────────────────────────────────


def test_strategies_that_the_data_cannot_tell_apart_are_flagged_and_share_what_is_theirs():
    agreements, choices = population(np.random.default_rng(9), 400, SHARES, 0.93)
    alone = estimate(agreements, choices)
    twice = agreements[:, [0, 1, 2, 3, 2]]
    fit = estimate(twice, choices)
    assert identifiable(agreements, choices, alone).all()
    assert identifiable(twice, choices, fit).tolist() == [True, True, False, True, False]
    assert fit.shares[2] == fit.shares[4]
    assert fit.shares[2] + fit.shares[4] == pytest.approx(alone.shares[2], abs=1e-5)
    assert fit.shares[[0, 1, 3]] == pytest.approx(alone.shares[[0, 1, 3]], abs=1e-5)


def test_against_cooperators_the_nice_strategies_are_one():
    # Nobody defects, so always cooperate, tit for tat and grim prescribe the same.
    agreements = np.array([[20, 0, 20, 20]] * 6 + [[0, 20, 0, 0]] * 2)
    choices = np.full(8, 20)
    fit = estimate(agreements, choices)
    assert fit.shares == pytest.approx([1 / 4, 1 / 4, 1 / 4, 1 / 4])
    assert identifiable(agreements, choices, fit).tolist() == [False, True, False, False]


def test_a_share_that_a_mixture_of_others_could_replace_is_flagged():
    # At beta = 1 the third column is half the sum of the first two on every unit's likelihood ... so none is settled.
    agreements = np.array([[10, 0, 10, 0], [10, 0, 0, 10], [0, 10, 10, 0], [0, 10, 0, 10]] * 5)
    choices = np.full(20, 10)
    fit = estimate(agreements, choices)
    assert fit.beta == 1
    assert not identifiable(agreements, choices, fit).any()
    # Halves of the first pair and halves of the second are equally likely: the likelihood is flat between them.
    flat = [log_likelihood(agreements, choices, np.array(s), 1 - 1e-9) for s in ([0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5])]
    assert flat[0] == pytest.approx(flat[1])


def test_fewer_units_than_strategies_can_be_enough():
    # One unit that followed the first strategy in every round: no mixture is as likely as that strategy alone.
    agreements, choices = [[20, 15, 10, 12]], [20]
    fit = estimate(agreements, choices)
    assert fit.shares == pytest.approx([1, 0, 0, 0])
    assert identifiable(agreements, choices, fit).all()


def test_one_unit_that_differs_tells_strategies_apart():
    agreements, choices = population(np.random.default_rng(10), 4_000, SHARES, 0.93)
    near = np.column_stack([agreements, agreements[:, 2]])
    odd = int((agreements[:, 2] < ROUNDS).argmax())
    near[odd, 4] += 1
    assert identifiable(near, choices, estimate(near, choices)).all()


# ── How sure it is ───────────────────────────────────────────────────────────────────────────────────────────────

REPLICATIONS = 200


def covered(rng, shares, beta, units, cluster_size=1, draws=400):
    """In how many replications the 95 % interval of each strategy covers its share; a cluster's units play alike."""
    hits = np.zeros(len(shares), int)
    for _ in range(REPLICATIONS):
        strategy = np.repeat(rng.choice(len(shares), units // cluster_size, p=shares), cluster_size)
        table = play(rng, strategy, beta)
        low, high = intervals(*table, np.arange(units) // cluster_size, estimate(*table), draws=draws)
        hits += (low <= shares) & (shares <= high)
    return hits


@pytest.mark.parametrize(
    ("beta", "units", "cluster_size"),
    [
        (0.93, 150, 1),
        pytest.param(0.75, 200, 1, id="many errors, where holding beta could matter most"),
        pytest.param(0.95, 200, 2, id="units drawn together in pairs"),
    ],
)
def test_the_95_percent_interval_covers_the_truth_about_95_times_in_100(beta, units, cluster_size):
    # With a coverage of 95 % the hits of one strategy are binomial; each bound is passed wrongly once in 2,000 tests.
    hits = covered(np.random.default_rng(11), SHARES, beta, units, cluster_size)
    fewest, most = binom.ppf([0.0005, 0.9995], REPLICATIONS, 0.95)
    assert (hits >= fewest).all(), hits
    assert (hits <= most).all(), hits


def test_holding_beta_hardly_changes_the_intervals():
    agreements, choices = population(np.random.default_rng(12), 200, SHARES, 0.85)
    fit = estimate(agreements, choices)
    low, high = intervals(agreements, choices, np.arange(200), fit)
    rng = np.random.default_rng(13)
    anew = [estimate(agreements[r], choices[r]).shares for r in rng.integers(0, 200, (300, 200))]
    width = np.subtract(*np.quantile(anew, [0.975, 0.025], axis=0))
    # The ends of 300 draws have a standard error of about 8 % of a half width.
    assert high - low == pytest.approx(width, rel=0.2)


def test_a_strategy_that_nobody_plays_has_an_interval_at_zero_or_none():
    agreements, choices = population(np.random.default_rng(14), 300, [0.6, 0, 0.4, 0], 0.93)
    fit = estimate(agreements, choices)
    low, high = intervals(agreements, choices, np.arange(300), fit)
    absent = [1, 3]
    assert (np.isnan(low[absent]) | (low[absent] == 0)).all()
    assert (np.isnan(high[absent]) | (high[absent] < 0.05)).all()


def test_intervals_are_the_same_every_time_and_nested():
    agreements, choices = population(np.random.default_rng(15), 100, SHARES, 0.9)
    fit = estimate(agreements, choices)
    once, again = (np.array(intervals(agreements, choices, np.arange(100), fit)) for _ in range(2))
    narrow = np.array(intervals(agreements, choices, np.arange(100), fit, level=0.5))
    assert (once == again).all()
    assert (once[0] <= narrow[0]).all()
    assert (narrow[1] <= once[1]).all()


# ── From a table of choices ──────────────────────────────────────────────────────────────────────────────────────


def turns(player, own, other, condition="plain"):
    """Rows of one match a column; choices as strings, "C" and "D" a round, other's last may be missing ("-")."""
    words = {"C": "cooperate", "D": "defect", "-": None}
    return pl.DataFrame(
        [
            {
                "study": "s", "condition": condition, "seed": seed, "run_id": f"{condition}-{player}-{seed}",
                "agent": "ann", "player": player, "round": r + 1,
                "choice": words[own[seed][r]], "other_choice": words[other[seed][r]],
            }
            for seed in range(len(own))
            for r in range(len(own[seed]))
        ],
        schema_overrides={"other_choice": pl.String},
    )  # fmt: skip


SET = ("Cooperator", "Defector", "TitForTat")


def test_shares_of_players_by_condition():
    copies = turns("copycat", ["CCDC", "CDDC", "CCCD"], ["CDCC", "DDCC", "CCDD"])
    constant = turns("wall", ["DDDD", "DDDD"], ["CDCC", "DDCC"], condition="other")
    frame = pl.concat([copies, constant]).sample(fraction=1, shuffle=True, seed=1)
    table = strategy_shares(frame, SET)
    keys, numbers = ["study", "condition", "player", "strategy"], ["share", "low", "high", "identifiable"]
    assert table.columns == [*keys, *numbers, "matches", "implementation_error"]
    assert table["matches"].to_list() == [2] * 3 + [3] * 3
    assert table.select("condition", "player", "strategy").rows() == [
        (condition, player, name) for condition, player in (("other", "wall"), ("plain", "copycat")) for name in SET
    ]
    assert table["share"].to_list() == pytest.approx([0, 1, 0, 0, 0, 1])
    assert table["low"].null_count() == table["high"].null_count() == 6  # every draw gives the same shares


def test_a_match_cut_short_counts_for_its_rounds():
    # The opponent never made its third choice; ours was accepted and counts.
    frame = turns("copycat", ["CCD", "CDDC"], ["CD-", "DDCC"])
    table = strategy_shares(frame, SET)
    assert table.filter(strategy="TitForTat")["share"].to_list() == pytest.approx([1])


def test_a_missing_round_is_refused_with_its_run():
    frame = turns("copycat", ["CCD"], ["CDC"]).filter(pl.col("round") != 2)
    with pytest.raises(ValueError, match="run plain-copycat-0, agent ann: found a choice of round 3 where that of rou"):
        strategy_shares(frame, SET)


def test_a_strategy_that_draws_lots_is_refused():
    with pytest.raises(ValueError, match="Random draws lots"):
        strategy_shares(turns("copycat", ["CC"], ["CC"]), ["Random"])


def test_no_rows_give_an_empty_table_of_the_same_columns():
    frame = turns("copycat", ["CCDC", "CDDC"], ["CDCC", "DDCC"])
    assert strategy_shares(frame.clear(), SET).schema == strategy_shares(frame, SET).schema


def match(run, players, choices, outcome):
    """The rows of `turns` and `pd_individual` of one match."""
    turns = [
        {"run_id": run, "round": r, "agent": agent, "player": player, "choice": made or None}
        for r, both in enumerate(choices, start=1)
        for agent, player, made in zip(("ann", "bob"), players, both, strict=True)
    ]
    sides = [
        {"study": "s", "condition": "c", "seed": 0, "run_id": run, "agent": agent, "player": player,
         "opponent": opponent, "outcome": outcome}
        for agent, player, opponent in zip(("ann", "bob"), players, players[::-1], strict=True)
    ]  # fmt: skip
    return pl.DataFrame(turns), pl.DataFrame(sides)


def test_self_play_and_void_matches_are_left_out():
    c, d = "cooperate", "defect"
    matches = [
        match("counted", ("copycat", "wall"), [(c, d), (d, d), (d, "")], "draw"),
        match("mirror", ("copycat", "copycat"), [(d, d), (d, d), (d, d)], "draw"),
        match("spoilt", ("wall", "copycat"), [(c, d), (c, d), (c, "")], "void"),
    ]
    turns, sides = (pl.concat(tables) for tables in zip(*matches, strict=True))
    table = shares_of_players(turns.lazy(), sides.lazy(), SET)
    assert table.filter(pl.col("share") > 0.5).select("player", "strategy", "matches").rows() == [
        ("copycat", "TitForTat", 1),
        ("wall", "Defector", 1),
    ]


@pytest.mark.parametrize("rows", [slice(1, None), [0, 2, 1, 3]])
def test_rows_of_a_round_that_do_not_follow_each_other_are_refused(rows):
    both, sides = match("m", ("copycat", "wall"), [("cooperate", "defect"), ("defect", "defect")], "loss")
    with pytest.raises(ValueError, match="two rows of one round do not follow each other"):
        shares_of_players(both[rows].lazy(), sides.lazy(), SET)


def test_where_nobody_is_counted_the_table_has_its_columns_and_no_rows():
    played, sides = match("m", ("wall", "wall"), [("defect", "defect")], "draw")
    nobody = shares_of_players(played.lazy(), sides.lazy(), SET)
    assert nobody.is_empty()
    assert nobody.schema == strategy_shares(turns("copycat", ["C"], ["C"]), SET).schema
