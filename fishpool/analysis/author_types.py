"""Authors who weigh their own payoff against everybody's welfare: mixtures of types, and blocs that choose together.

The fixed points themselves are those of `fishpool.analysis.equilibria`; here are only the responses that mix types.
The source is sections 8 to 10.2 (equations 12 to 17) of the paper named in `fishpool.games.dictator`. A and W have
shape (strategies, opponents).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fishpool.analysis.equilibria import Dynamics, LogitResponse, centre, iterate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

REFERENCE_MASSES = (0.4, 0.4, 0.2)
"""Own-payoff, mixed and total-welfare authors (section 8.5)."""

REFERENCE_WEIGHTS = (0.0, 0.5, 1.0)
"""lambda of the three types."""


def author_types(
    payoffs: Any,
    welfare: Any,
    beta: float,
    masses: Sequence[float] = REFERENCE_MASSES,
    weights: Sequence[float] = REFERENCE_WEIGHTS,
) -> LogitResponse:
    """The response of equation 16: a type with weight lambda maximises (1 - lambda) A f + lambda W f.

    ValueError if a payoff is missing or the masses do not sum to one.
    """
    A, W = np.asarray(payoffs, np.float64), np.asarray(welfare, np.float64)
    if not (np.isfinite(A).all() and np.isfinite(W).all()):
        raise ValueError("payoffs: a payoff is missing, so the equilibria are not known")
    if abs(sum(masses) - 1) > 1e-9 or min(masses) < 0:
        raise ValueError(f"masses: found {tuple(masses)}, expected shares that sum to 1")
    present = [(mass, weight) for mass, weight in zip(masses, weights, strict=True) if mass > 0]
    utilities = np.array([(1 - weight) * A + weight * W for _, weight in present])
    return LogitResponse(utilities, np.array([mass for mass, _ in present]), np.zeros(len(A)), float(beta))


def field_welfare(welfare: Any, fields: Any) -> Array:
    """V = f'Wf / 2 of equation 17, the welfare of a round in each field; fields have shape (fields, strategies)."""
    fields = np.array(fields, np.float64, ndmin=2)
    values: Array = ((fields @ np.asarray(welfare, np.float64)) * fields).sum(axis=1) / 2
    return values


def mass_simplex(steps: int = 10) -> Array:
    """All compositions of three types in steps of 1/steps, shape (compositions, 3)."""
    return np.array(
        [(own, mixed, steps - own - mixed) for own in range(steps, -1, -1) for mixed in range(steps - own, -1, -1)]
    ) / float(steps)


def bloc_response(
    payoffs: Any,
    welfare: Any,
    beta: float,
    mass: float,
    candidate: int,
    others: Sequence[float] = (0.5, 0.5),
    weights: Sequence[float] = (0.0, 0.5),
) -> LogitResponse:
    """Section 9: a bloc of this mass submits the candidate, and the other types share the rest (`others` sum to 1)."""
    rest = author_types(payoffs, welfare, beta, others, weights)
    pinned = np.zeros(rest.size)
    pinned[candidate] = mass
    return LogitResponse(rest.utilities, rest.masses * (1 - mass), pinned, rest.beta)


def bloc_welfare(payoffs: Any, welfare: Any, beta: float, mass: float) -> tuple[Array, Array]:
    """Pin the bloc on each strategy in turn, let the rest settle from the uniform field by plain iteration.

    Returns the field's welfare V (NaN where the run does not converge) and the residual, both of shape (candidates,).
    """
    size = len(np.asarray(payoffs))
    values, residuals = np.empty(size), np.empty(size)
    for candidate in range(size):
        runs = iterate(bloc_response(payoffs, welfare, beta, mass, candidate), centre(size), Dynamics.PLAIN)
        residuals[candidate] = runs.residuals[0]
        values[candidate] = field_welfare(welfare, runs.points)[0] if runs.converged[0] else np.nan
    return values, residuals


def ranks(values: Any) -> Array:
    """Rank 1 for the greatest value, ties (to one part in 10^9) share the better rank; NaN has no rank."""
    values = np.asarray(values, np.float64)
    scale = np.nanmax(np.abs(values)) if np.isfinite(values).any() else 0.0
    with np.errstate(invalid="ignore"):
        better = (values[None, :] > values[:, None] + 1e-9 * scale).sum(axis=1)
    return np.where(np.isnan(values), np.nan, 1.0 + better)
