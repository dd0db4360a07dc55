"""From which starts the field reaches which fixed point: shares of the simplex, and the line that divides it.

The starts are a sample, so a share is an estimate and carries an interval; which points there are is decided in
`fishpool.analysis.equilibria`. The source is section 7.4 and Figure 2 of the paper named in `fishpool.games.dictator`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def wilson_interval(count: int, total: int, *, level: float = 0.95) -> tuple[float, float] | None:
    """Score interval of a proportion (Wilson 1927); None where nothing or only one thing was counted."""
    from scipy.stats import binomtest

    if total < 2:
        return None
    interval = binomtest(int(count), int(total)).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class Boundary:
    """A logistic boundary between two basins in some coordinates of the start.

    A start is predicted to reach the *second* basin where
    start[coordinates[0]] > intercept + slope start[coordinates[1]] + .. (one term of `slopes` a further coordinate).
    `accuracy` is the fraction of the fitted starts that this predicts rightly.
    """

    coordinates: tuple[int, ...]
    accuracy: float
    intercept: float
    slopes: tuple[float, ...]


def boundary(starts: Any, second: Any, coordinates: tuple[int, ...]) -> Boundary:
    """Fit the boundary by logistic regression on the given coordinates of `starts`, shape (starts, strategies).

    `second` says which starts reach the second basin. A ridge of 1e-3 on the standardised slopes keeps the fit finite
    where the basins separate perfectly. ValueError if one of the two basins is empty.
    """
    from scipy.special import expit

    x = np.asarray(starts, np.float64)[:, list(coordinates)]
    y = np.asarray(second, bool)
    if y.all() or not y.any():
        raise ValueError("boundary: one of the two basins is empty, so nothing divides them")
    centre, spread = x.mean(axis=0), x.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    design = np.column_stack([np.ones(len(x)), (x - centre) / spread])  # shape (starts, 1 + coordinates)
    ridge = np.diag([0.0, *[1e-3] * x.shape[1]])
    weights = np.zeros(design.shape[1])
    for _ in range(100):
        chance = expit(design @ weights)
        gradient = design.T @ (y - chance) - ridge @ weights
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + ridge
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(weights)), gradient)
        weights = weights + step
        if np.abs(step).max() < 1e-9:
            break
    slopes = weights[1:] / spread
    constant = weights[0] - slopes @ centre
    accuracy = float(((constant + x @ slopes > 0) == y).mean())
    lead = slopes[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return Boundary(
            tuple(coordinates), accuracy, float(-constant / lead), tuple(float(s) for s in -slopes[1:] / lead)
        )


def informative_coordinates(starts: Any, second: Any, count: int) -> tuple[int, ...]:
    """The coordinates that predict the basin best, chosen one after the other by the accuracy they add.

    The pair is chosen together; each further one is added to those. With this pool and plain dynamics the first are the
    two second-order norms, as in Figure 2. At most all coordinates are returned.
    """
    size = np.asarray(starts).shape[1]
    count = min(count, size)
    if size <= 2:
        return tuple(range(count))
    # Each alone first, so that large pools try pairs among the twelve best only.
    alone = sorted(range(size), key=lambda i: -boundary(starts, second, (i,)).accuracy)[:12]
    pairs = [(i, j) for i in alone for j in alone if i < j]
    best = max(pairs, key=lambda pair: boundary(starts, second, pair).accuracy)
    # First the coordinate whose growth leads to the second basin.
    chosen = tuple(sorted(best, key=lambda i: -_tendency(starts, second, i)))
    while len(chosen) < count:
        rest = [i for i in range(size) if i not in chosen]
        chosen = (*chosen, max(rest, key=lambda i: boundary(starts, second, (*chosen, i)).accuracy))
    return chosen[:count]


def _tendency(starts: Any, second: Any, coordinate: int) -> float:
    x, y = np.asarray(starts, np.float64)[:, coordinate], np.asarray(second, bool)
    return float(x[y].mean() - x[~y].mean())
