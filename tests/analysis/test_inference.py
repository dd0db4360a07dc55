"""The seed-cluster bootstrap: it covers, agrees with SciPy, is silent where it must be; no bit depends on company."""

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fishpool.analysis.inference import DRAWS, _weights, bootstrap_ratio, interval, register, resampled_ratios


def ones_like(values):
    return np.ones_like(np.asarray(values, float))


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        register(connection)
        yield connection


# What an interval promises


@pytest.mark.parametrize("kind", ["mean of normals", "ratio of gammas"])
def test_a_95_percent_interval_covers_the_truth_95_times_in_100(kind):
    # 2,000 data sets at once, one a cell. Were the coverage 95 %, the band of 4 binomial standard errors around it
    # would be missed once in 16,000 tests.
    generator = np.random.default_rng(20261130)
    shape = (200, 2_000)
    if kind == "mean of normals":
        denominators = np.ones(shape)
        numerators, truth = generator.normal(3, 2, shape), 3.0
    else:
        denominators = generator.poisson(10, shape)
        numerators, truth = denominators * generator.gamma(2, 1, shape), 2.0
    low, high = bootstrap_ratio(numerators, denominators)
    covered = np.mean((low <= truth) & (truth <= high))
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / shape[1])


@pytest.mark.parametrize("kind", ["lognormal", "binary", "ratio"])
def test_agrees_with_scipy_on_skewed_data(kind):
    # Two independent bootstraps of 50,000 draws: an endpoint's Monte-Carlo error is about 0.02 standard errors of the
    # statistic each, so 0.12 is four of their difference. The BCa correction moves the endpoints by more (checked).
    draws, generator = 50_000, np.random.default_rng(5)
    denominators = np.ones(30)
    if kind == "lognormal":
        numerators = generator.lognormal(0, 1, 30)
    elif kind == "binary":
        numerators = (np.arange(30) < 3).astype(float)
    else:
        denominators = generator.integers(1, 20, 30).astype(float)
        numerators = denominators * generator.lognormal(0, 1, 30)

    def ratio(top, bottom, axis=-1):
        return top.sum(axis=axis) / bottom.sum(axis=axis)

    def scipy(method):
        options = {"n_resamples": draws, "method": method, "rng": generator}
        return stats.bootstrap((numerators, denominators), ratio, paired=True, vectorized=True, **options)

    theirs = scipy("BCa")
    (low,), (high,) = bootstrap_ratio(numerators[:, None], denominators[:, None], draws=draws)
    grain = 1 / 30 if kind == "binary" else 0.0  # a proportion's replicates are a lattice, so are its quantiles
    tolerance = max(0.12 * theirs.standard_error, 1.01 * grain)
    assert low == pytest.approx(theirs.confidence_interval.low, abs=tolerance)
    assert high == pytest.approx(theirs.confidence_interval.high, abs=tolerance)
    if kind != "binary":
        uncorrected = scipy("percentile").confidence_interval
        assert high - uncorrected.high > 2 * tolerance


@pytest.mark.parametrize("kind", ["binary", "counts", "lognormal"])
def test_agrees_with_the_definition_written_out_for_one_cell(kind):
    # Efron and Tibshirani (1993), equations 14.9 to 14.15, from the same replicates. Few clusters and small whole
    # numbers make more than a tenth of the replicates equal the statistic: counting all or none of them would show.
    generator = np.random.default_rng(2)
    values = {
        "binary": np.array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1.0]),
        "counts": np.array([0, 0, 1, 1, 1, 2, 5.0]),
        "lognormal": generator.lognormal(0, 1, 25),
    }[kind]
    (statistic,), (replicates,) = resampled_ratios(values[:, None], np.ones((len(values), 1)))
    ties = np.mean(replicates == statistic)
    assert ties > 0.1 or kind == "lognormal"
    bias = stats.norm.ppf(np.mean(replicates < statistic) + ties / 2)
    without = np.array([np.delete(values, i).mean() for i in range(len(values))])
    d = without.mean() - without
    acceleration = np.sum(d**3) / (6 * np.sum(d**2) ** 1.5)
    z = bias + stats.norm.ppf([0.025, 0.975])
    ends = np.quantile(replicates, stats.norm.cdf(bias + z / (1 - acceleration * z)))
    found = interval(values, np.ones(len(values)))
    np.testing.assert_allclose([found["low"], found["high"]], ends, rtol=1e-9)


def test_a_wider_level_gives_a_wider_interval():
    values = np.random.default_rng(1).exponential(size=(25, 40))
    narrow, wide = (bootstrap_ratio(values, ones_like(values), level=level) for level in (0.8, 0.99))
    assert (wide[0] < narrow[0]).all()
    assert (wide[1] > narrow[1]).all()


# Where there is none


@pytest.mark.parametrize(
    ("why", "numerators", "denominators"),
    [
        ("no cluster", [], []),
        ("one cluster", [3.0], [1.0]),
        ("one cluster observed anything", [3.0, 0.0, 0.0], [2.0, 0.0, 0.0]),
        ("nothing was observed", [0.0, 0.0], [0.0, 0.0]),
        ("nothing was observed, and sums over nothing are NULL", [None, None], [None, 0.0]),
        ("every cluster gives the same", [60.0] * 5, [1.0] * 5),
        ("every cluster gives 0", [0.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]),
        ("the same ratio from different counts", [1.0, 2.0, 3.0], [3.0, 6.0, 9.0]),
        ("the same ratio but for float noise", [0.1, 0.3, 0.1 + 0.2, 0.7], [1.0, 3.0, 3.0, 7.0]),
        ("the same ratio where anything was observed", [2.0, 0.0, 4.0], [1.0, 0.0, 2.0]),
        ("a second cluster too small to change a bit of the first", [1.0, 1e-300], [1e300, 1.0]),
    ],
)
def test_no_interval_where_the_data_cannot_give_one(connection, why, numerators, denominators):
    assert interval(numerators, denominators) is None, why
    connection.execute("SELECT bootstrap_interval(?::DOUBLE[], ?::DOUBLE[])", [numerators, denominators])
    assert connection.fetchone() == (None,)


def test_a_silent_cell_leaves_its_neighbours_alone():
    numerators = np.array([[1.0, 5.0, 0.0], [2.0, 5.0, 0.0], [4.0, 5.0, 0.0]])
    denominators = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    low, high = bootstrap_ratio(numerators, denominators)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [False, True, True]


def test_draws_without_a_denominator_are_left_out():
    # Two of six clusters observed something: (4/6)**6 = 9 % of the draws hold neither.
    numerators, denominators = np.array([[1.0, 3.0, 0, 0, 0, 0]]).T, np.array([[1.0, 1.0, 0, 0, 0, 0]]).T
    _, replicates = resampled_ratios(numerators, denominators)
    assert np.isnan(replicates).mean() == pytest.approx((4 / 6) ** 6, abs=0.012)
    assert interval([1.0, 3.0, 0, 0, 0, 0], [1.0, 1.0, 0, 0, 0, 0]) == {"low": 1.0, "high": 3.0}


@pytest.mark.parametrize(
    ("numerators", "denominators", "sentence"),
    [
        ([1.0, 2.0], [1.0], "have shape"),
        ([1.0, np.inf], [1.0, 1.0], "infinite"),
        ([1.0, 2.0], [1.0, np.inf], "infinite"),
        ([1.0, 2.0], [1.0, -1.0], "negative"),
        ([1.0, 2.0], [1.0, -np.inf], "negative"),
        ([1.0, None], [1.0, 1.0], "missing although its denominator"),
    ],
)
def test_sums_that_no_metric_can_have_are_errors(numerators, denominators, sentence):
    with pytest.raises(ValueError, match=sentence):
        interval(numerators, denominators)


# What it must not depend on

# No ratio of these leaves the range of float64, nor does its multiple.
sums = st.floats(-1e6, 1e6).filter(lambda value: not 0 < abs(value) < 1e-100) | st.integers(-50, 50).map(float)
counts = st.integers(0, 20).map(float) | st.floats(1e-100, 1e3)
tables = st.tuples(st.integers(1, 12), st.integers(1, 6)).flatmap(
    lambda shape: st.tuples(arrays(float, shape, elements=sums), arrays(float, shape, elements=counts))
)


@settings(max_examples=60, deadline=None)
@given(tables)
def test_a_cell_alone_and_among_others_agree_to_the_last_bit(table):
    numerators, denominators = table
    together = bootstrap_ratio(numerators, denominators, draws=500)
    for cell in range(numerators.shape[1]):
        alone = bootstrap_ratio(numerators[:, [cell]], denominators[:, [cell]], draws=500)
        np.testing.assert_array_equal([end[0] for end in alone], [end[cell] for end in together])


def test_many_cells_agree_with_one_to_the_last_bit_across_blocks():
    generator = np.random.default_rng(3)
    numerators, denominators = generator.normal(size=(200, 450)), generator.uniform(0.1, 9, (200, 450))
    low, high = bootstrap_ratio(numerators, denominators)
    for cell in [0, 1, 208, 209, 210, 449]:
        assert interval(numerators[:, cell], denominators[:, cell]) == {"low": low[cell], "high": high[cell]}
    backwards = bootstrap_ratio(np.asfortranarray(numerators[:, ::-1]), np.asfortranarray(denominators[:, ::-1]))
    np.testing.assert_array_equal(backwards, (low[::-1], high[::-1]))


@settings(max_examples=60, deadline=None)
@given(tables, st.integers(-60, 60), st.floats(0.1, 10))
def test_the_unit_of_the_numerator_is_the_unit_of_the_interval(table, power, factor):
    numerators, denominators = table
    plain = np.array(bootstrap_ratio(numerators, denominators, draws=500))
    np.testing.assert_array_equal(bootstrap_ratio(numerators * 2.0**power, denominators, draws=500), plain * 2.0**power)
    np.testing.assert_array_equal(bootstrap_ratio(numerators, denominators * 2.0**power, draws=500), plain / 2.0**power)
    integers = np.rint(numerators)  # sums that tie exactly tie after a multiplication by a whole number too
    seven = np.array(bootstrap_ratio(7 * integers, np.rint(denominators), draws=500))
    np.testing.assert_allclose(
        seven, 7 * np.array(bootstrap_ratio(integers, np.rint(denominators), draws=500)), rtol=1e-12
    )


def test_an_end_beyond_the_range_of_numbers_is_infinite_and_no_other_is():
    """The denominators are those at which such an end was once NaN, a difference of infinities."""
    numerators, denominators = np.array([[0.0], [0.0], [1.0]]), np.array([[4.498198e-300], [4.86142209e-300], [0.0]])
    low, high = bootstrap_ratio(numerators, denominators, draws=500)
    assert (low == 0).all()
    assert (high > 0).all()
    assert np.isfinite(high).all()
    assert bootstrap_ratio(numerators * 2.0**40, denominators, draws=500) == ([0], [np.inf])


def test_turning_the_sign_turns_the_interval():
    values = np.random.default_rng(4).exponential(size=(31, 20))
    low, high = bootstrap_ratio(values, ones_like(values))
    np.testing.assert_allclose(bootstrap_ratio(-values, ones_like(values)), (-high, -low), rtol=1e-9)


def test_relabelling_clusters_moves_the_interval_by_monte_carlo_error_only():
    generator = np.random.default_rng(6)
    values = generator.exponential(size=(40, 50))
    plain = np.array(bootstrap_ratio(values, ones_like(values)))
    relabelled = np.array(bootstrap_ratio(values[generator.permutation(40)], ones_like(values)))
    error = values.std(axis=0) / np.sqrt(40)
    assert (np.abs(plain - relabelled) < 0.3 * error).all()
    assert (np.abs(plain - relabelled) > 0).any()


def test_clusters_that_observed_nothing_do_not_move_the_ends_much():
    values = np.random.default_rng(7).exponential(size=(100, 30))
    error = values.std(axis=0) / 10
    padded = np.vstack([values, np.zeros((20, 30))]), np.vstack([np.ones((100, 30)), np.zeros((20, 30))])
    difference = np.array(bootstrap_ratio(values, ones_like(values))) - bootstrap_ratio(*padded)
    assert (np.abs(difference) < 0.35 * error).all()


# The draws


def test_replicates_are_the_exact_ratios_of_the_drawn_sums():
    generator = np.random.default_rng(8)
    numerators, denominators = generator.integers(-90, 90, (13, 5)), generator.integers(0, 9, (13, 5))
    statistic, replicates = resampled_ratios(numerators, denominators)
    np.testing.assert_array_equal(statistic, numerators.sum(axis=0) / denominators.sum(axis=0))
    weights = _weights(13, DRAWS).astype(int)  # shape (clusters, draws)
    expected = (numerators.T @ weights) / (denominators.T @ weights)
    np.testing.assert_array_equal(replicates, expected)


@pytest.mark.parametrize("clusters", [1, 2, 5, 200])
def test_a_draw_is_as_many_clusters_as_there_are_each_equally_likely(clusters):
    weights = _weights(clusters, DRAWS)
    assert (weights.sum(axis=0, dtype=int) == clusters).all()
    # Each cluster's total is binomial(draws * clusters, 1 / clusters); 4.5 standard errors, 200 clusters: 1 in 700.
    error = np.sqrt(DRAWS * (1 - 1 / clusters))
    assert np.abs(weights.sum(axis=1, dtype=int) - DRAWS).max() <= 4.5 * error
    assert weights.astype(float).var() == pytest.approx(1 - 1 / clusters, rel=0.05)


# In SQL


def test_sql_gives_what_python_gives(connection):
    generator = np.random.default_rng(9)
    connection.execute("CREATE TABLE runs (cell INTEGER, seed INTEGER, caught DOUBLE, rounds BIGINT)")
    cells = {cell: generator.integers(2, 6) for cell in range(3_000)}  # more rows than one vector of the engine
    rows = [
        (cell, seed, generator.exponential(), int(generator.integers(1, 20)))
        for cell, seeds in cells.items()
        for seed in range(seeds)
    ]
    columns = list(zip(*rows, strict=True))
    connection.execute("INSERT INTO runs SELECT unnest(?), unnest(?), unnest(?), unnest(?)", [list(c) for c in columns])
    found = connection.execute("""
        SELECT
            cell,
            list(caught ORDER BY seed),
            list(rounds ORDER BY seed),
            bootstrap_interval(list(caught ORDER BY seed), list(rounds ORDER BY seed))
        FROM runs
        GROUP BY cell
    """).fetchall()
    assert len(found) == 3_000
    for length in range(2, 6):
        group = [row for row in found if len(row[1]) == length]
        low, high = bootstrap_ratio(np.array([row[1] for row in group]).T, np.array([row[2] for row in group]).T)
        assert [row[3] for row in group] == [{"low": a, "high": b} for a, b in zip(low, high, strict=True)]


def test_sql_null_is_nothing_observed(connection):
    found = connection.execute("""
        SELECT bootstrap_interval(top, bottom)
        FROM (VALUES
            (1, [1, 2, 4]::DOUBLE[], [1, 1, 1]::DOUBLE[]),
            (2, NULL, [1, 1, 1]::DOUBLE[]),
            (3, [1, 2, NULL, 4]::DOUBLE[], [1, 1, 0, 1]::DOUBLE[]),
            (4, [1, 2, NULL, 4]::DOUBLE[], [1, 1, NULL, 1]::DOUBLE[]),
            (5, []::DOUBLE[], []::DOUBLE[]),
            (6, [1, 2, 4]::DOUBLE[], NULL)
        ) AS rows (i, top, bottom)
        ORDER BY i
    """).fetchall()
    three, padded = interval([1, 2, 4], [1, 1, 1]), interval([1, 2, 0, 4], [1, 1, 0, 1])
    assert [row[0] for row in found] == [three, None, padded, padded, None, None]


def test_sql_takes_counts_booleans_sums_and_decimals(connection):
    (found,) = connection.execute("""
        SELECT bootstrap_interval(list(hits ORDER BY seed), list(tries ORDER BY seed))
        FROM (
            SELECT seed, sum(hit) AS hits, count(*) AS tries
            FROM (VALUES (1, true::INT), (1, false::INT), (2, true::INT), (3, false::INT)) AS turns (seed, hit)
            GROUP BY seed
        )
    """).fetchone()
    assert found == interval([1, 1, 0], [2, 1, 1])
    assert connection.execute("SELECT bootstrap_interval([0.5, 1.5, 2.5], [1, 1, 1])").fetchone()[0] == interval(
        [0.5, 1.5, 2.5], [1, 1, 1]
    )


def test_sql_errors_say_what_is_wrong(connection):
    with pytest.raises(duckdb.Error, match="got 2 numerators and 1 denominators"):
        connection.execute("SELECT bootstrap_interval([1.0, 2.0], [1.0])").fetchall()
    with pytest.raises(duckdb.Error, match="missing although its denominator is above 0"):
        connection.execute("SELECT bootstrap_interval([1.0, NULL], [1.0, 1.0])").fetchall()
