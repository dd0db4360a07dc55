"""The statistics of the contrasts, against worked cases and the properties that define them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fishpool.analysis.contrasts import SCHEMA, cliffs_delta, compare, contrasts, holm, mcnemar, sign_flip

values = st.lists(st.integers(-5, 5), min_size=1, max_size=9).map(lambda some: np.array(some, float))


@given(values)
@settings(max_examples=50, deadline=None)
def test_the_sign_flip_p_of_few_pairs_is_the_share_of_all_sign_patterns(difference):
    n = len(difference)
    signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    means = (signs * difference).mean(axis=1)
    assert sign_flip(difference) == pytest.approx((np.abs(means) >= abs(difference.mean()) - 1e-12).mean())


def test_five_pairs_never_reach_the_five_percent_level_and_say_so():
    compared = compare(np.array([1.0, 2, 3, 4, 5]), np.array([9.0, 9, 9, 9, 9]))
    assert compared.p == 0.0625
    assert "0.0625" in compared.note
    assert compare(np.arange(10.0), np.arange(10.0)[::-1].copy()).note == ""


def test_mcnemar_counts_only_the_pairs_that_differ():
    a = np.array([1] * 9 + [0] * 1 + [1] * 50, float)
    b = np.array([0] * 9 + [1] * 1 + [1] * 50, float)
    assert mcnemar(a, b) == pytest.approx(2 * (1 + 10) / 2**10)
    assert mcnemar(a, a) == 1
    assert compare(a, b).test == "McNemar"


@given(values, values)
@settings(max_examples=50, deadline=None)
def test_cliffs_delta_is_the_share_of_greater_minus_the_share_of_smaller(a, b):
    greater, smaller = (a[:, None] > b).mean(), (a[:, None] < b).mean()
    assert cliffs_delta(a, b) == pytest.approx(greater - smaller)


def test_holm_on_a_worked_case_leaves_out_what_has_no_p():
    assert holm([0.01, None, 0.04, 0.03, 0.005]) == [
        pytest.approx(p) if p else None for p in (0.03, None, 0.06, 0.06, 0.02)
    ]


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_p_nor_swaps_two(p_values):
    adjusted = holm(p_values)
    assert all(before <= after <= 1 for before, after in zip(p_values, adjusted, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert list(np.array(adjusted)[order]) == sorted(adjusted)


def test_two_deterministic_cells_have_a_difference_and_nothing_else():
    compared = compare(np.full(200, 3.0), np.full(200, 2.0))
    assert (compared.mean_difference, compared.low, compared.high, compared.p) == (1, None, None, None)
    assert compared.effect == 1


def test_a_difference_that_is_there_is_found_and_its_interval_holds_it():
    rng = np.random.default_rng(0)
    luck = rng.normal(size=200)
    compared = compare(luck + rng.normal(0.5, 0.3, 200), luck)
    assert compared.low < 0.5 < compared.high
    assert compared.high - compared.low < 0.12  # paired: the shared luck cancels
    assert compared.p < 0.001


def test_contrasts_pair_by_seed_and_correct_over_all_of_them():
    rows = [
        {"study": "s", "condition": condition, "player": None, "metric": "welfare", "seed": seed,
         "numerator": float(value), "denominator": 2.0}
        for condition, cell in {"a": [4, 6, 9, 12, 7, 3], "b": [2, 2, 3, 1, 2, 2]}.items()
        for seed, value in enumerate(cell)
    ]  # fmt: skip
    observed = pl.DataFrame(rows, schema_overrides={"player": pl.String}).sample(fraction=1, shuffle=True, seed=1)
    extra = rows[0] | {"seed": 77}  # a seed without a partner
    observed = pl.concat([observed, pl.DataFrame([extra], schema=observed.schema)])
    declared = [
        {"question": "RQ5", "study": "s", "metric": "welfare", "a": "a", "b": "b"},
        {"question": "RQ5", "study": "s", "metric": "welfare", "a": "b", "b": "a"},
        {"question": "RQ5", "study": "s", "metric": "trust", "a": "a", "b": "b"},
    ]
    found = contrasts(observed.lazy(), declared)
    assert dict(found.schema) == SCHEMA
    assert found["pairs"].to_list() == [6, 6, 0]
    assert found["mean_difference"].to_list() == [pytest.approx(29 / 12), pytest.approx(-29 / 12), None]
    assert found["p"].to_list() == [2 / 64, 2 / 64, None]
    assert found["p_holm"].to_list() == [4 / 64, 4 / 64, None]
