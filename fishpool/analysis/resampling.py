"""How much of a result hangs on single decisions: one cell turned over, or all cells drawn anew.

It gives no better decisions, it only asks what others would have led to. The paper does not ask it; its section 5 says
which cells oracles disagree about, and its sections 6 and 7 what is asked of each profile here.

Decision matrices are (dictators, recipients): 1 share, 0 take, NaN missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fishpool.analysis.dominance import pure_dominators
from fishpool.analysis.equilibria import SAME_POINT, centre, iterate, own_payoff
from fishpool.games.dictator import Stakes, payoff_matrix, scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def drawn_from_votes(share_votes: Any, replicates: Any, draws: int, seed: int = 0) -> Array:
    """Profiles in which each cell is one answer drawn from its votes; shape (draws, dictators, recipients).

    A cell without votes stays missing. Cells are drawn independently.
    """
    votes, counts = np.asarray(share_votes, np.float64), np.asarray(replicates, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = votes / counts
    uniform = np.random.default_rng(seed).random((draws, *chance.shape))
    return np.where(np.isnan(chance), np.nan, (uniform < chance).astype(float))


def drawn_with_noise(decisions: Any, rate: float, draws: int, seed: int = 0) -> Array:
    """Profiles in which each decision is turned into its opposite with probability `rate`; shape as above."""
    d = np.asarray(decisions, np.float64)
    turned = np.random.default_rng(seed).random((draws, *d.shape)) < rate
    return np.where(turned, 1 - d, d)


def single_flips(decisions: Any) -> Iterable[tuple[int, int, Array]]:
    """Every profile that differs in one decided cell: (dictator, recipient, decisions)."""
    d = np.asarray(decisions, np.float64)
    for i, j in np.argwhere(~np.isnan(d)):
        changed = d.copy()
        changed[i, j] = 1 - changed[i, j]
        yield int(i), int(j), changed


@dataclass(frozen=True)
class Outcome:
    """What one decision profile leads to.

    `scores` has shape (strategies,); `undominated` says which strategies no pure strategy dominates; `field` is the
    equilibrium from the uniform start (NaN if that run did not converge) and `basin` the fraction of the starts that
    reach it too (NaN likewise).
    """

    scores: Array
    undominated: NDArray[np.bool_]
    field: Array
    basin: float


def outcome(decisions: Any, stakes: Stakes, beta: float, starts: Any) -> Outcome:
    """Ranking, admissibility and plain equilibrium of one profile; ValueError if a decision is missing."""
    payoffs = payoff_matrix(decisions, stakes)
    everyone = np.vstack([centre(len(payoffs)), np.array(starts, np.float64, ndmin=2)])
    runs = iterate(own_payoff(payoffs, beta), everyone)
    undominated: NDArray[np.bool_] = np.logical_not(pure_dominators(payoffs).any(axis=0))
    if not runs.converged[0]:
        return Outcome(scores(decisions, stakes), undominated, np.full(len(payoffs), np.nan), np.nan)
    field = runs.points[0]
    same = (np.abs(runs.points[1:] - field).max(axis=1) < SAME_POINT) & runs.converged[1:]
    return Outcome(scores(decisions, stakes), undominated, field, float(same.mean()))
