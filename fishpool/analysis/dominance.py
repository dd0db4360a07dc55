"""Which strategies are dominated by a mixture of others, strictly or weakly, and by which pure ones.

No equilibrium is involved, and equal rows do not dominate each other. Payoffs are compared on the scale of the matrix's
own range, not of its entries: a difference of 0.005 counts among payoffs of 1000.
The source is Definitions 11 and 12 (section 6) of the paper named in `fishpool.games.dictator`. A has shape
(strategies, opponents).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

TOLERANCE = 1e-9
"""Payoffs closer than this fraction of the matrix's range are equal."""

MIXED_TOLERANCE = 1e-6
"""A mixture must gain this fraction of the range: more than the solver can err by."""

_SOLVER = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Kind(StrEnum):
    """How a strategy is dominated; strict includes weak."""

    NONE = "none"
    WEAK = "weak"
    STRICT = "strict"


@dataclass(frozen=True)
class Dominance:
    """The verdict on one strategy.

    `slack` is the greatest total advantage sum_k ((p A)_k - A_ik) of a mixture p that is nowhere worse, in units of
    payoff; `mixture` maps strategies to the weights of that p (empty for `none`); `dominators` are the pure strategies
    that dominate at least weakly.
    """

    kind: Kind
    slack: float
    dominators: tuple[int, ...]
    mixture: dict[int, float]


def dominance(payoffs: Any) -> list[Dominance]:
    """One verdict a strategy. Raises ValueError if a payoff is missing: what is unknown cannot be compared.

    The linear programme maximises *total* slack; maximising one common slack finds strict dominance only (a mixture
    that gains in one column and ties in the others has common slack 0). Each programme is first reduced to the
    strategies that can carry weight, which for large pools mostly leaves none.
    """
    A = np.asarray(payoffs, np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"payoffs: found shape {A.shape}, expected (strategies, opponents) of equal length")
    if not np.isfinite(A).all():
        raise ValueError("payoffs: a payoff is missing, so dominance is not decided")
    scale = float(np.ptp(A))
    if scale == 0:
        return [Dominance(Kind.NONE, 0.0, (), {}) for _ in A]
    B = (A - A.min()) / scale
    return [_verdict(B, i, scale) for i in range(len(B))]


def pure_dominators(payoffs: Any) -> NDArray[np.bool_]:
    """Shape (dominators, dominated): the row is nowhere worse than the column's strategy and somewhere better."""
    A = np.asarray(payoffs, np.float64)
    tolerance = TOLERANCE * float(np.ptp(A))
    columns = []
    for row in A:
        gain = A - row
        columns.append((gain >= -tolerance).all(axis=1) & (gain > tolerance).any(axis=1))
    return np.array(columns).T


def _verdict(B: Matrix, i: int, scale: float) -> Dominance:
    others = _candidates(B, i)
    if not len(others):
        return Dominance(Kind.NONE, 0.0, (), {})
    gain = B[others] - B[i]  # shape (candidates, opponents)
    nowhere_worse = (gain >= -TOLERANCE).all(axis=1)
    dominators = tuple(int(j) for j in others[nowhere_worse & (gain > TOLERANCE).any(axis=1)])
    weights = _greatest_total(gain)
    if weights is None:
        return Dominance(Kind.NONE, 0.0, (), {})
    total = float((weights @ gain).sum())
    if total <= MIXED_TOLERANCE and not dominators:
        return Dominance(Kind.NONE, 0.0, (), {})
    kind = Kind.STRICT if _greatest_common(gain) > MIXED_TOLERANCE else Kind.WEAK
    mixture = {int(j): float(weight) for j, weight in zip(others, weights, strict=True) if weight > 1e-9}
    return Dominance(kind, total * scale, dominators, mixture)


def _candidates(B: Matrix, i: int) -> NDArray[np.intp]:
    """The strategies that a mixture nowhere worse than row i can use.

    Where row i attains the greatest payoff of a column, every strategy with weight must attain it too. Dropping those
    that do not lowers other columns' greatest payoffs, and so on; a column in which all are worse leaves nobody.
    """
    others = np.flatnonzero(np.arange(len(B)) != i)
    while len(others):
        best = B[others].max(axis=0)
        if (best < B[i] - TOLERANCE).any():
            return others[:0]
        tight = best <= B[i] + TOLERANCE
        attained = (B[np.ix_(others, np.flatnonzero(tight))] >= B[i, tight] - TOLERANCE).all(axis=1)
        if attained.all():
            break
        others = others[attained]
    return others


def _greatest_total(gain: Matrix) -> Matrix | None:
    """Weights p >= 0, sum 1, p gain >= 0 that maximise the sum of p gain; None if no p is nowhere worse."""
    from scipy.optimize import linprog

    size, opponents = gain.shape
    result = linprog(
        -gain.sum(axis=1),
        A_ub=-gain.T,
        b_ub=np.full(opponents, TOLERANCE),
        A_eq=np.ones((1, size)),
        b_eq=[1.0],
        method="highs",
        options=_SOLVER,
    )
    return result.x if result.status == 0 else None


def _greatest_common(gain: Matrix) -> float:
    """The greatest s with p gain >= s in every column for some mixture p."""
    from scipy.optimize import linprog

    size, opponents = gain.shape
    if (gain.max(axis=0) <= TOLERANCE).any():
        return 0.0  # nobody gains in this column
    result = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.hstack([-gain.T, np.ones((opponents, 1))]),
        b_ub=np.zeros(opponents),
        A_eq=np.append(np.ones(size), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * size + [(None, None)],
        method="highs",
        options=_SOLVER,
    )
    return float(-result.fun) if result.status == 0 else 0.0
