"""How the equilibrium moves with what a share is worth: the decisions stay, the payoff of a share goes from 0 to 1.

Nothing else is varied, and with one number every utility function is reached (section 10.1). Taking pays 1, and the
inverse temperature is beta' = beta u(E), so that the game of the other sections lies on the sweep.
The source is section 10.1 and Figure 3 of the paper named in `fishpool.games.dictator`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np

from fishpool.analysis.equilibria import Dynamics, Ending, centre, iterate, nearest_point, own_payoff
from fishpool.games.dictator import Stakes, normalised_stakes, payoff_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """The equilibrium at one share payoff, reached from the uniform field; `field` is NaN if that run did not converge.

    `share_of_starts` is the fraction of all starts that reach this same point, NaN if there is none.
    """

    sigma: float
    dynamics: Dynamics
    field: Array
    ending: Ending
    residual: float
    share_of_starts: float


def sweep(decisions: Any, beta: float, sigmas: Any, dynamics: Dynamics, starts: Any) -> list[Step]:
    """One step a share payoff; `beta` is that of the normalised game, `starts` has shape (starts, strategies)."""
    starts = np.array(starts, np.float64, ndmin=2)
    everyone = np.vstack([centre(starts.shape[1]), starts])
    steps = []
    for sigma in sigmas:
        response = own_payoff(payoff_matrix(decisions, normalised_stakes(float(sigma))), beta)
        runs = iterate(response, everyone, dynamics)
        settled = bool(runs.converged[0])
        field = runs.points[0] if settled else np.full(starts.shape[1], np.nan)
        reached = (nearest_point(field[None], runs.points[1:], within=1e-3) == 0) & runs.converged[1:]
        share = float(reached.mean()) if settled else np.nan
        steps.append(Step(float(sigma), dynamics, field, runs.endings[0], float(runs.residuals[0]), share))
    return steps


def matched_beta(beta: float, stakes: Stakes) -> float:
    """beta' of section 10.1: the inverse temperature of the normalised game that equals `beta` in this one."""
    return beta * (stakes.take - stakes.nothing)


def share_payoff(stakes: Stakes) -> float:
    """sigma of a game: what a share is worth if taking is worth 1 and nothing is worth 0."""
    return stakes.gain / (stakes.take - stakes.nothing)


def sigma_at(exchange_rate: float) -> float:
    """The share payoff at which the exchange rate sigma / (1 - sigma) has this value."""
    return exchange_rate / (1 + exchange_rate)


def endowment_at(exchange_rate: float) -> float:
    """The endowment at which logarithmic utility has this exchange rate (> 1; 25.6 for rate 4)."""
    from scipy.optimize import brentq

    def distance(log_endowment: float) -> float:
        half, whole = np.log1p(exp(log_endowment) / 2), np.log1p(exp(log_endowment))
        return float(half / (whole - half) - exchange_rate)

    return exp(brentq(distance, -20.0, 300.0, xtol=1e-12))
