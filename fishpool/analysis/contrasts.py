"""Contrasts that were declared before anything was played: the same seeds under two conditions, compared pair by pair.

It does not look for differences, and it decides nothing about what a metric is (the SQL does). Sources: Efron (1987),
JASA 82, 171-185 (BCa); Pitman (1937), Suppl. JRSS 4, 119-130 (sign flips); McNemar (1947), Psychometrika 12, 153-157;
Cliff (1993), Psychological Bulletin 114, 494-509; Holm (1979), Scandinavian Journal of Statistics 6, 65-70.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from fishpool.analysis.inference import bootstrap_ratio

FLIPS = 10_000  # sign flips drawn; all 2^n of them if that is fewer
_SEED = 20_240_416

_Floats = NDArray[np.float64]

SCHEMA: dict[str, Any] = {
    "question": pl.String,
    "study": pl.String,
    "metric": pl.String,
    "player": pl.String,
    "condition_a": pl.String,
    "condition_b": pl.String,
    "pairs": pl.Int64,
    "mean_a": pl.Float64,
    "mean_b": pl.Float64,
    "mean_difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "effect": pl.Float64,
    "test": pl.String,
    "note": pl.String,
}


@dataclass(frozen=True)
class Comparison:
    """What one contrast gives; None where the data cannot say. Differences are a minus b."""

    pairs: int
    mean_a: float | None
    mean_b: float | None
    mean_difference: float | None
    low: float | None
    high: float | None
    p: float | None
    effect: float | None
    test: str
    note: str


def contrasts(commons_observations: pl.LazyFrame, declared: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """One row a declared contrast (keys question, study, metric, a, b and perhaps player), with the columns of SCHEMA.

    `commons_observations` has a row a metric, run and player (none: all agents). p_holm is corrected over all contrasts
    that have a p.
    """
    rows = []
    for contrast in declared:
        chosen = (
            commons_observations.filter(
                pl.col("study") == contrast["study"],
                pl.col("metric") == contrast["metric"],
                pl.col("player").eq_missing(pl.lit(contrast.get("player"))),
            )
            .select("condition", "seed", value=pl.col("numerator") / pl.col("denominator"))
            .collect()
        )
        a, b = (chosen.filter(pl.col("condition") == contrast[side]).drop("condition") for side in "ab")
        paired = a.join(b, on="seed", suffix="_b").sort("seed")
        compared = compare(paired["value"].to_numpy(), paired["value_b"].to_numpy())
        rows.append(
            {
                **{name: contrast.get(name) for name in ("question", "study", "metric", "player")},
                "condition_a": contrast["a"],
                "condition_b": contrast["b"],
                **asdict(compared),
            }
        )
    for row, p_holm in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p_holm
    return pl.DataFrame(rows, schema=SCHEMA)


def compare(a: _Floats, b: _Floats) -> Comparison:
    """Two conditions under the same seeds, each of shape (seeds,), pair by pair.

    Values that are all 0 or 1 are tested by McNemar's exact test, others by sign flips of the differences. Two cells
    without any variation are two facts, not a sample: they get neither interval nor p.
    """
    pairs = len(a)
    if pairs == 0:
        return Comparison(
            0, None, None, None, None, None, None, None, "none", "no seed was observed in both conditions"
        )
    difference = a - b
    binary = bool(np.isin(np.concatenate([a, b]), (0, 1)).all())
    means = (float(a.mean()), float(b.mean()), float(difference.mean()))
    delta = cliffs_delta(a, b)
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Comparison(pairs, *means, None, None, None, delta, "none", "deterministic: nothing varies between seeds")
    low, high = (
        None if np.isnan(bound[0]) else float(bound[0])
        for bound in bootstrap_ratio(difference[:, None], np.ones((pairs, 1)))
    )
    p, test = (mcnemar(a, b), "McNemar") if binary else (sign_flip(difference), "sign flip")
    least = 2 / 2 ** min(pairs, 1000)
    note = f"with {pairs} pairs p cannot fall below {least:.4g}" if least > 0.05 else ""
    return Comparison(pairs, *means, low, high, p, delta, test, note)


def sign_flip(difference: _Floats) -> float:
    """Two-sided p of a mean of 0, under which each difference might as well have had the other sign; shape (pairs,)."""
    if len(difference) == 1 or not difference.any():
        return 1.0
    tested = stats.permutation_test(
        (difference,),
        lambda sample, axis: sample.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FLIPS,
        rng=np.random.default_rng(_SEED),
    )
    return float(tested.pvalue)


def mcnemar(a: _Floats, b: _Floats) -> float:
    """Two-sided exact p that a pair of 0/1 values differs either way with equal chance."""
    only_a, only_b = int(((a == 1) & (b == 0)).sum()), int(((a == 0) & (b == 1)).sum())
    if only_a + only_b == 0:
        return 1.0
    return float(stats.binomtest(only_a, only_a + only_b).pvalue)


def cliffs_delta(a: _Floats, b: _Floats) -> float:
    """P(a > b) - P(a < b) over all pairs of a value of a and a value of b."""
    return float(2 * stats.mannwhitneyu(a, b, method="asymptotic").statistic / (len(a) * len(b)) - 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction over those that are there."""
    adjusted: list[float | None] = [None] * len(p_values)
    there = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    largest = 0.0
    for rank, (p, place) in enumerate(there):
        largest = max(largest, min(1.0, p * (len(there) - rank)))
        adjusted[place] = largest
    return adjusted
