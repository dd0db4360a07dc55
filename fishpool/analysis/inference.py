"""The seed-cluster bootstrap: intervals for means and ratios whose unit of inference is a whole seed.

It resamples seeds, never rounds, moves or matches, because whatever happens under one seed hangs together; it does not
test hypotheses and does not decide what the numerator and the denominator of a metric are (the SQL does).
Source: Efron (1987), "Better bootstrap confidence intervals", JASA 82, 171-185; Efron and Tibshirani (1993), "An
introduction to the bootstrap", chapter 14.

Every cell is computed from the same resampled seeds, and they come from a named stream of `fishpool.seeds`: the same
data give the same interval, to the last bit, alone or among a thousand others. The sums behind a replicate are exact
(see `_whole`), so that neither the order in which a processor adds nor the number of its threads shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fishpool.seeds import name_key, uniforms

if TYPE_CHECKING:
    import duckdb

DRAWS = 10_000
LEVEL = 0.95

# Relative to the largest numerator of a cell: what differs by less is float noise, and the cell is deterministic.
_NOISE = 1e-9
_BLOCK = 2**21  # numbers held by one temporary array, 16 MiB of float64
_CACHE = 2**17  # numbers that a processor's own cache holds, 1 MiB of float64
_SEED = 0

_Floats = NDArray[np.float64]

# Of the standard library, because to import SciPy takes longer than most queries.
_normal = NormalDist()


def bootstrap_ratio(
    numerators: ArrayLike, denominators: ArrayLike, *, draws: int = DRAWS, level: float = LEVEL
) -> tuple[_Floats, _Floats]:
    """BCa interval of sum(numerator) / sum(denominator) over clusters, for many cells at once.

    Both arguments have shape (clusters, cells); with counts as denominators the statistic is a mean. A missing (NaN)
    denominator is 0, a numerator may be missing only where the denominator is 0: that cluster observed nothing.

    Returns (low, high), each of shape (cells,). Both are NaN where an interval would claim something the data cannot
    say: fewer than two clusters with a denominator above 0, or the same ratio in every cluster. Draws whose denominator
    is 0 are left out. Replicates equal to the statistic count half in the bias correction; the acceleration comes from
    the jackknife over clusters. Like every bootstrap it is too short where clusters are few: of normal data a 95 %
    interval covers the mean 84 times in 100 with 5 clusters, 90 with 10, 93 with 30 and 95 with 200.

    Raises ValueError for shapes that differ, infinite values, negative denominators, and a missing numerator over a
    positive denominator.
    """
    top, bottom, exponent = _whole_cells(numerators, denominators)
    low, high = np.full(len(top), np.nan), np.full(len(top), np.nan)
    shown = np.flatnonzero(_varies(top, bottom))
    for block in _blocks(len(shown), max(1, _BLOCK // draws)):
        part = shown[block]
        low[part], high[part] = _bca(top[part], bottom[part], exponent[part], draws, level)
    return low, high


def interval(numerator: Sequence[float | None], denominator: Sequence[float | None]) -> dict[str, float] | None:
    """`bootstrap_ratio` for one cell, one item a cluster; None where there is no interval."""
    low, high = bootstrap_ratio(_column(numerator), _column(denominator))
    return None if np.isnan(low[0]) else {"low": float(low[0]), "high": float(high[0])}


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the SQL function `bootstrap_interval(DOUBLE[], DOUBLE[]) -> STRUCT(low DOUBLE, high DOUBLE)`.

    Use: `bootstrap_interval(list(numerator ORDER BY seed), list(denominator ORDER BY seed))`, one item a seed. The
    result is NULL where `bootstrap_ratio` has none; an error of `bootstrap_ratio` stops the query with its sentence.
    """
    from duckdb.func import SPECIAL

    connection.create_function(
        "bootstrap_interval",
        _interval_or_null,
        ["DOUBLE[]", "DOUBLE[]"],
        "STRUCT(low DOUBLE, high DOUBLE)",
        null_handling=SPECIAL,  # by default a function may not return NULL
    )


def resampled_ratios(numerators: ArrayLike, denominators: ArrayLike, *, draws: int = DRAWS) -> tuple[_Floats, _Floats]:
    """The statistic sum(numerator) / sum(denominator) of every cell, and its replicates over the resampled clusters.

    Arguments as in `bootstrap_ratio`. Returns arrays of shape (cells,) and (cells, draws); column b of the second
    belongs to the same resampled clusters in every cell. NaN where the denominator is 0.
    """
    top, bottom, exponent = _whole_cells(numerators, denominators)
    statistic, replicates = _replicates(top, bottom, draws)
    return np.asarray(np.ldexp(statistic, exponent)), np.asarray(np.ldexp(replicates, exponent[:, None]))


def _whole_cells(numerators: ArrayLike, denominators: ArrayLike) -> tuple[_Floats, _Floats, NDArray[np.intp]]:
    """The arguments checked and turned to whole numbers of shape (cells, clusters), and the exponent of each cell.

    A cell's statistic is sum(top) / sum(bottom) * 2.0**exponent.
    """
    top, bottom = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    if top.ndim != 2 or top.shape != bottom.shape:
        raise ValueError(
            f"numerators have shape {top.shape} and denominators {bottom.shape}; both must be (clusters, cells)."
        )
    bottom = np.where(np.isnan(bottom), 0.0, bottom)
    if (np.isnan(top) & (bottom > 0)).any():
        raise ValueError("a numerator is missing although its denominator is above 0; count only what was observed.")
    top = np.where(np.isnan(top), 0.0, top)
    if not np.isfinite(top).all() or not np.isfinite(bottom).all() or (bottom < 0).any():
        raise ValueError("a numerator or denominator is infinite, or a denominator is negative; sums must be finite.")
    (top, top_exponent), (bottom, bottom_exponent) = _whole(top.T), _whole(bottom.T)
    return top, bottom, top_exponent - bottom_exponent


def _whole(values: _Floats) -> tuple[_Floats, NDArray[np.intp]]:
    """Each cell as whole numbers times a power of two: `values` is about `whole * 2.0**exponent`, shape (cells, ...).

    No whole number exceeds 2**53 / clusters, and the weights of a draw sum to the number of clusters, so that each
    weighted sum is a whole number of at most 2**53 and float64 adds it without rounding, in any order. Values that are
    whole already lose nothing; others keep 53 - log2(clusters) bits of the largest, 13 digits at 200 clusters.
    """
    bits = 53 - values.shape[1].bit_length()
    exponent = np.frexp(np.abs(values).max(axis=1, initial=0.0))[1].astype(np.intp) - bits
    return np.ascontiguousarray(np.rint(np.ldexp(values, -exponent[:, None]))), exponent


def _varies(top: _Floats, bottom: _Floats) -> NDArray[np.bool_]:
    """Which cells have two clusters that observed something, and not the same ratio in all of them."""
    total = np.maximum(bottom.sum(axis=1), 1.0)
    distance = np.abs(top - (top.sum(axis=1) / total)[:, None] * bottom).max(axis=1, initial=0.0)
    varies = distance > _NOISE * np.abs(top).max(axis=1, initial=0.0)
    return np.asarray(varies & ((bottom > 0).sum(axis=1) >= 2))


def _bca(
    top: _Floats, bottom: _Floats, exponent: NDArray[np.intp], draws: int, level: float
) -> tuple[_Floats, _Floats]:
    """The interval of cells that vary; (cells, clusters) to (cells,). Efron and Tibshirani, equations 14.9 to 14.15."""
    statistic, replicates = _replicates(top, bottom, draws)
    below = (replicates < statistic[:, None]).sum(axis=1)
    equal = (replicates == statistic[:, None]).sum(axis=1)
    valid = draws - np.isnan(replicates).sum(axis=1)
    # Half a draw from either end keeps the correction finite where the statistic lies outside all its replicates.
    chance = np.clip((below + 0.5 * equal) / valid, 0.5 / valid, 1 - 0.5 / valid)
    bias = np.array([_normal.inv_cdf(p) for p in chance.tolist()])
    acceleration = _acceleration(top, bottom)
    replicates.sort(axis=1)  # NaN last
    tail = (1 - level) / 2

    def endpoint(z: float) -> _Floats:
        shifted = bias + z
        adjusted = bias + shifted / (1 - acceleration * shifted)
        place = np.array([_normal.cdf(z) for z in adjusted.tolist()]) * (valid - 1)
        index = place.astype(np.intp)
        left = np.take_along_axis(replicates, index[:, None], axis=1)[:, 0]
        right = np.take_along_axis(replicates, np.minimum(index + 1, valid - 1)[:, None], axis=1)[:, 0]
        # The unit comes last, so that nothing overflows before an end that does.
        return np.asarray(np.ldexp(left + (right - left) * (place - index), exponent))

    return endpoint(_normal.inv_cdf(tail)), endpoint(_normal.inv_cdf(1 - tail))


def _acceleration(top: _Floats, bottom: _Floats) -> _Floats:
    """A sixth of the skewness of the jackknife over clusters; (cells, clusters) to (cells,)."""
    without = (top.sum(axis=1)[:, None] - top) / (bottom.sum(axis=1)[:, None] - bottom)
    influence = without.mean(axis=1)[:, None] - without
    influence /= np.abs(influence).max(axis=1)[:, None]  # so that no cube underflows
    return np.asarray((influence**3).sum(axis=1) / (6 * (influence**2).sum(axis=1) ** 1.5))


def _replicates(top: _Floats, bottom: _Floats, draws: int) -> tuple[_Floats, _Floats]:
    """Statistic and replicates, without the exponent; (cells, clusters) to (cells,) and (cells, draws)."""
    cells, clusters = top.shape
    both = np.concatenate([top, bottom])  # so that the weights are read once for both
    replicates = np.full((cells, draws), np.nan)

    def divide(sums: _Floats, into: _Floats) -> None:
        np.divide(sums[:cells], sums[cells:], out=into, where=sums[cells:] > 0)

    weights = _weights(clusters, draws)
    for block in _blocks(draws, max(1, _CACHE // max(1, clusters))):
        divide(both @ weights[:, block].astype(np.float64), replicates[:, block])
    statistic = np.full(cells, np.nan)
    divide(both.sum(axis=1), statistic)
    return statistic, replicates


@lru_cache(maxsize=8)
def _weights(clusters: int, draws: int) -> NDArray[np.uint8]:
    """How often each draw holds each cluster: multinomial counts of shape (clusters, draws), every column's sum the
    number of clusters. (A byte is enough: a count above 255 has probability below 1e-500.)"""
    weights = np.empty((clusters, draws), np.uint8)
    for block in _blocks(draws, max(1, _BLOCK // max(1, clusters))):
        draw = np.arange(draws)[block]
        chosen = (uniforms(_SEED + draw[:, None], name_key("bootstrap"), np.arange(clusters)) * clusters).astype(
            np.intp
        )
        cell = chosen + clusters * np.arange(len(draw))[:, None]
        counts = np.bincount(cell.ravel(), minlength=clusters * len(draw))
        weights[:, block] = counts.reshape(len(draw), clusters).T
    weights.flags.writeable = False
    return weights


def _blocks(total: int, size: int) -> Iterator[slice]:
    for start in range(0, total, size):
        yield slice(start, min(total, start + size))


def _column(values: Sequence[float | None]) -> _Floats:
    return np.array(values, np.float64)[:, None]  # None becomes NaN


def _interval_or_null(
    numerator: Sequence[float | None] | None, denominator: Sequence[float | None] | None
) -> dict[str, float] | None:
    if numerator is None or denominator is None:
        return None
    if len(numerator) != len(denominator):
        raise ValueError(
            f"bootstrap_interval got {len(numerator)} numerators and {len(denominator)} denominators in one row; both "
            "lists must have one item a seed."
        )
    return interval(numerator, denominator)
