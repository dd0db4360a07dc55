"""Logit fixed points f = sum_t m_t softmax(beta U_t f): where iteration leads, what attracts, and the saddles.

A run that does not settle is a value of its own (`Ending.CYCLE`, `Ending.RUNNING`), never a point; whether a field of
strategies is best for anybody is not asked here.
The source is equations 9, 10 and 16 (sections 7 and 8.4) of the paper named in `fishpool.games.dictator`; logit
equilibria are those of McKelvey and Palfrey, "Quantal response equilibria for normal form games" (1995).

Fields (frequencies of strategies, or beliefs about them) have shape (starts, strategies). Inside the iteration the axes
are turned, so that sums over strategies run along memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SAME_POINT = 1e-4
"""Ends of runs closer than this in every frequency are one fixed point."""

BRANCH_SIZE = 50
"""The largest pool in which a branch of fixed points is followed: each of its many steps costs the size cubed."""


class Dynamics(StrEnum):
    """Equation 10 (`plain`), or a small step towards it (`damped`): the fixed points are the same, basins are not."""

    PLAIN = "plain"
    DAMPED = "damped"

    @property
    def step(self) -> float:
        """a in f <- (1 - a) f + a response(f)."""
        return 1.0 if self is Dynamics.PLAIN else 0.02

    @property
    def tolerance(self) -> float:
        """A run has settled when no frequency changes by more than this in one application of the response."""
        return 1e-9 if self is Dynamics.PLAIN else 1e-7

    @property
    def limit(self) -> int:
        """Iterations after which a run counts as not settled."""
        return 2_000 if self is Dynamics.PLAIN else 20_000


class Ending(StrEnum):
    """How a run of the iteration ended."""

    CONVERGED = "converged"
    CYCLE = "cycle"  # comes back to where it was before
    RUNNING = "running"  # still moving at the limit


@dataclass(frozen=True)
class LogitResponse:
    """The right-hand side of equation 16, with some mass pinned (section 9).

    `utilities` has shape (types, strategies, opponents), `masses` (types,), `pinned` (strategies,); masses and pinned
    mass sum to one. `beta` is the inverse temperature.
    """

    utilities: Array
    masses: Array
    pinned: Array
    beta: float

    @property
    def size(self) -> int:
        return len(self.pinned)

    @cached_property
    def _scaled(self) -> Array:
        return self.beta * self.utilities

    def __call__(self, fields: Array) -> Array:
        """The field that authors who believe in `fields` choose; shape (starts, strategies) in and out."""
        return self.columns(np.asarray(fields, np.float64).T).T

    def columns(self, fields: Array) -> Array:
        """The same with turned axes, (strategies, starts)."""
        answer = _softmax(self._scaled[0] @ fields)
        if len(self.masses) == 1 and self.masses[0] == 1:
            return answer
        answer *= self.masses[0]
        for utility, mass in zip(self._scaled[1:], self.masses[1:], strict=True):
            answer += mass * _softmax(utility @ fields)
        answer += self.pinned[:, None]
        return answer

    def jacobian(self, fields: Array) -> Array:
        """Derivative of the response, shape (starts, strategies, strategies)."""
        fields = np.asarray(fields, np.float64)
        total = np.zeros((len(fields), self.size, self.size))
        for utility, mass in zip(self.utilities, self.masses, strict=True):
            choice = _softmax(self.beta * (utility @ fields.T)).T
            mean = choice @ utility  # utility of each opponent to the average author, shape (starts, opponents)
            total += mass * self.beta * choice[:, :, None] * (utility[None] - mean[:, None, :])
        return total


def own_payoff(payoffs: Any, beta: float) -> LogitResponse:
    """Equation 9: one type of author, who maximises own payoff A of shape (strategies, opponents).

    Raises ValueError if a payoff is missing: a field with an unknown payoff has no equilibrium that we could know.
    """
    A = np.asarray(payoffs, np.float64)
    if not np.isfinite(A).all():
        raise ValueError("payoffs: a payoff is missing, so the equilibria are not known")
    return LogitResponse(A[None], np.ones(1), np.zeros(len(A)), float(beta))


def uniform_starts(size: int, starts: int, seed: int = 0) -> Array:
    """Fields drawn uniformly from the simplex, shape (starts, strategies); the same seed gives the same fields."""
    return np.random.default_rng(seed).dirichlet(np.ones(size), starts)


def centre(size: int) -> Array:
    """The uniform field as a single start, shape (1, strategies)."""
    return np.full((1, size), 1 / size)


@dataclass(frozen=True)
class Runs:
    """Where each start led: shapes (starts, strategies), (starts,), (starts,) and (starts,).

    `residuals` is the greatest change of a frequency under one more response; `points` of runs that did not converge
    are where they stood, and no fixed points.
    """

    points: Array
    residuals: Array
    endings: NDArray[np.object_]
    iterations: NDArray[np.int64]

    @property
    def converged(self) -> NDArray[np.bool_]:
        return np.array([ending is Ending.CONVERGED for ending in self.endings], bool)


def iterate(
    response: LogitResponse, starts: Any, dynamics: Dynamics = Dynamics.PLAIN, *, tolerance: float | None = None
) -> Runs:
    """Follow every start until it settles, cycles or reaches the limit; `starts` has shape (starts, strategies).

    `tolerance` is that of the dynamics unless given. All starts move together; those that have ended are taken out
    every few iterations.
    """
    fields = np.array(starts, np.float64, ndmin=2).T.copy()  # shape (strategies, starts)
    total = fields.shape[1]
    points, residuals = np.empty_like(fields), np.empty(total)
    endings, iterations = np.empty(total, object), np.full(total, dynamics.limit)
    endings.fill(Ending.RUNNING)  # np.full would make plain text of it
    moving = np.arange(total)
    tolerance = dynamics.tolerance if tolerance is None else tolerance
    step, check = dynamics.step, 4 if dynamics is Dynamics.PLAIN else 20
    # Brent's way to find a cycle of any length: compare with one earlier state, renewed at every doubling of time.
    anchor, renewal = fields, check
    for iteration in range(1, dynamics.limit + 1):
        following = response.columns(fields)
        if iteration % check == 0:  # the limits are multiples of it
            residual = np.abs(following - fields).max(axis=0)
            settled = residual < tolerance
            # A run that is about to settle also nearly repeats itself; only one that still moves far is a cycle.
            cycling = (np.abs(fields - anchor).max(axis=0) < 1e-12) & (residual > 1e-6)
            ended = settled | cycling if iteration < dynamics.limit else np.ones_like(settled)
            if ended.any():
                index = moving[ended]
                points[:, index] = np.where(settled, following, fields)[:, ended]
                residuals[index] = residual[ended]
                endings[moving[cycling]] = Ending.CYCLE
                endings[moving[settled]] = Ending.CONVERGED
                iterations[index] = iteration
                keep = ~ended
                moving, fields, following, anchor = moving[keep], fields[:, keep], following[:, keep], anchor[:, keep]
                if not len(moving):
                    break
            if iteration >= 2 * renewal:
                anchor, renewal = fields, iteration
        fields = following if step == 1 else fields + step * (following - fields)
    return Runs(points.T, residuals, endings, iterations)


def trajectory(response: LogitResponse, start: Any, dynamics: Dynamics = Dynamics.PLAIN) -> tuple[Array, Ending]:
    """One start and every iterate after it, shape (iterations + 1, strategies), and how it ended."""
    ending = iterate(response, start, dynamics)
    field = np.array(start, np.float64, ndmin=2)
    path = [field[0]]
    for _ in range(int(ending.iterations[0])):
        field = field + dynamics.step * (response(field) - field)
        path.append(field[0])
    return np.array(path), ending.endings[0]


def newton(response: LogitResponse, seeds: Any, *, iterations: int = 60) -> tuple[Array, Array]:
    """Roots of response(f) - f near the seeds, stable or not: fields (seeds, strategies) and residuals (seeds,).

    Newton's method, its step halved while it makes the residual worse. A seed without a root keeps a large residual.
    """
    fields = np.array(seeds, np.float64, ndmin=2)
    gap = response(fields) - fields
    identity = np.eye(response.size)
    for _ in range(iterations):
        size = np.abs(gap).max(axis=1)
        if (size < 1e-13).all():
            break
        matrices = identity - response.jacobian(fields)
        try:
            steps = np.linalg.solve(matrices, gap[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:  # some seed stands where two roots merge
            steps = np.stack([np.linalg.lstsq(m, g, rcond=None)[0] for m, g in zip(matrices, gap, strict=True)])
        length = np.ones(len(fields))
        for _ in range(12):
            trial = fields + length[:, None] * steps
            trial_gap = response(trial) - trial
            worse = np.abs(trial_gap).max(axis=1) > np.maximum(size, 1e-14)
            if not worse.any():
                break
            length[worse] /= 2
        fields, gap = np.where(worse[:, None], fields, trial), np.where(worse[:, None], gap, trial_gap)
        if worse.all():
            break
    return fields, np.abs(gap).max(axis=1)


def spectral_radius(response: LogitResponse, point: Any, dynamics: Dynamics = Dynamics.PLAIN) -> float:
    """Greatest modulus of an eigenvalue of the dynamics at a point, along the simplex; below 1 the point attracts."""
    from scipy.linalg import helmert

    along = helmert(response.size)  # orthonormal rows that span the directions of sum zero
    inner = along @ response.jacobian(np.array(point, np.float64, ndmin=2))[0] @ along.T
    eigenvalues = 1 - dynamics.step + dynamics.step * np.linalg.eigvals(inner)
    return float(np.abs(eigenvalues).max()) if len(eigenvalues) else 0.0


@dataclass(frozen=True)
class Equilibria:
    """The fixed points found, largest basin first; shapes (points, strategies) and (points,).

    `basin` says for every start which point it reached, -1 if its run did not converge. Points that no start reached
    (saddles, and points that attract only under other dynamics) come last, most mass on the first strategies first.
    """

    points: Array
    residuals: Array
    spectral_radii: Array
    counts: NDArray[np.int64]
    basin: NDArray[np.int64]
    starts: Array
    runs: Runs

    @property
    def stable(self) -> NDArray[np.bool_]:
        return self.spectral_radii < 1

    @property
    def attractors(self) -> int:
        """How many of the points some start reached."""
        return int((self.counts > 0).sum())


def equilibria(
    response: LogitResponse,
    starts: Any,
    dynamics: Dynamics = Dynamics.PLAIN,
    *,
    unstable: bool = True,
    root_seeds: int = 200,
) -> Equilibria:
    """Iterate from every start, gather the ends into fixed points, and look for the unstable ones between them.

    Unstable points are roots found by Newton's method from the boundary between the largest basin and each of the next
    few, and from the first `root_seeds` starts; where all of that finds no point, the branch of fixed points that
    starts at beta 0 is followed to this beta (in pools up to BRANCH_SIZE). That all are found is not guaranteed.
    """
    starts = np.array(starts, np.float64, ndmin=2)
    runs = iterate(response, starts, dynamics)
    points, basin = _gather(response, runs)
    found = np.zeros((0, response.size))
    if unstable:
        seeds = [starts[:root_seeds]]
        seeds += [_boundary_path(response, points[0], other, dynamics) for other in points[1:6]]
        roots, residuals = newton(response, np.vstack(seeds))
        found = _distinct(roots[residuals < 1e-9], points)
        if not len(points) and not len(found) and response.size <= BRANCH_SIZE:
            found = _principal_point(response)
    everything = response(np.vstack([points, found]))  # once more, so that all are inside the simplex
    radii = np.array([spectral_radius(response, point, dynamics) for point in everything])
    residuals = np.abs(response(everything) - everything).max(axis=1) if len(everything) else np.zeros(0)
    counts = np.bincount(basin[basin >= 0], minlength=len(everything))
    return Equilibria(everything, residuals, radii, counts, basin, starts, runs)


def nearest_point(points: Array, fields: Array, *, within: float = SAME_POINT) -> NDArray[np.int64]:
    """For every field the index of the point it lies on, -1 if on none; shape (fields,)."""
    nearest = np.full(len(fields), -1)
    for index, point in enumerate(points):
        nearest[(np.abs(fields - point).max(axis=1) < within) & (nearest < 0)] = index
    return nearest


def _softmax(values: Array) -> Array:
    values -= values.max(axis=0)
    np.exp(values, out=values)
    values /= values.sum(axis=0)
    return values


def _gather(response: LogitResponse, runs: Runs) -> tuple[Array, NDArray[np.int64]]:
    """Distinct ends of the converged runs, polished, largest group first; and each run's group (-1: none)."""
    converged = np.flatnonzero(runs.converged)
    group = np.full(len(runs.points), -1)
    points: list[Array] = []
    waiting = converged
    while len(waiting):
        (polished,), _ = newton(response, runs.points[waiting[:1]], iterations=8)
        first = runs.points[waiting[0]]
        polished = polished if np.abs(polished - first).max() < SAME_POINT else first
        ends = runs.points[waiting]
        mine = (np.abs(ends - polished).max(axis=1) < SAME_POINT) | (np.abs(ends - first).max(axis=1) < SAME_POINT)
        known = nearest_point(np.array(points).reshape(-1, response.size), polished[None])[0]
        group[waiting[mine]] = known if known >= 0 else len(points)
        if known < 0:
            points.append(polished)
        waiting = waiting[~mine]
    order = np.argsort(-np.bincount(group[group >= 0], minlength=len(points)), kind="stable")
    rank = np.argsort(order)
    group = np.where(group >= 0, rank[group] if len(points) else group, -1)
    return np.array([points[i] for i in order]).reshape(-1, response.size), group


def _boundary_path(response: LogitResponse, here: Array, there: Array, dynamics: Dynamics) -> Array:
    """Iterates of a field between two attractors that reaches neither for as long as possible; they pass the saddle."""
    low, high = 0.0, 1.0
    for _ in range(13):  # each time 16 fields between the last one that leads here and the first that does not
        between = np.linspace(low, high, 18)[1:-1]
        ends = iterate(response, here + between[:, None] * (there - here), dynamics, tolerance=1e-6).points
        elsewhere = np.flatnonzero(np.abs(ends - here).max(axis=1) > 1e-2)
        first = int(elsewhere[0]) if len(elsewhere) else len(between)
        low = between[first - 1] if first > 0 else low
        high = between[first] if first < len(between) else high
    field = (here + low * (there - here))[None]
    path = []
    for _ in range(int(80 / dynamics.step)):
        field = field + dynamics.step * (response(field) - field)
        path.append(field[0])
    fields = np.array(path)
    residuals = np.abs(response(fields) - fields).max(axis=1)
    return fields[np.argsort(residuals)[: min(len(fields), 20)]]


def _principal_point(response: LogitResponse, *, steps: int = 4000) -> Array:
    """The fixed point on the branch from beta 0, shape (1, strategies); (0, strategies) if the steps do not suffice.

    Pseudo-arclength continuation, which passes the turns of the branch (Turocy, "A dynamic homotopy interpretation of
    the logistic quantal response equilibrium correspondence", 2005). Distance is that of (field, beta / target).
    """
    n, target = response.size, response.beta

    def at(point: Array) -> LogitResponse:
        return replace(response, beta=float(point[n] * target))

    def gap(point: Array) -> Array:
        return np.asarray(at(point)(point[None, :n])[0] - point[:n])

    def derivative(point: Array) -> Array:
        here, small = at(point), 1e-7
        along = (gap(np.append(point[:n], point[n] + small)) - gap(np.append(point[:n], point[n] - small))) / (
            2 * small
        )
        return np.column_stack([here.jacobian(point[None, :n])[0] - np.eye(n), along])

    point = np.append(replace(response, beta=0.0)(centre(n))[0], 0.0)
    tangent, length = np.append(np.zeros(n), 1.0), 1e-3
    for _ in range(steps):
        trial, direction = point + length * tangent, tangent
        for _ in range(8):
            matrix = np.vstack([derivative(trial), direction])
            error = np.append(gap(trial), direction @ (trial - point) - length)
            trial = trial - np.linalg.lstsq(matrix, error, rcond=None)[0]
            if np.abs(error).max() < 1e-10:
                break
        if np.abs(gap(trial)).max() > 1e-8:
            length /= 2
            continue
        if trial[n] >= 1:
            share = (1 - point[n]) / (trial[n] - point[n])
            roots, residuals = newton(response, (point + share * (trial - point))[None, :n])
            if residuals[0] < 1e-9:
                return roots
            length /= 2  # too long a step over the last stretch
            continue
        last = tangent
        tangent = np.linalg.svd(derivative(trial))[2][-1]
        tangent = tangent if tangent @ last >= 0 else -tangent
        length = min(length * (1.5 if tangent @ last > 0.98 else 0.7), 0.05)
        point = trial
    return np.zeros((0, n))


def _distinct(roots: Array, known: Array) -> Array:
    """Roots that are not among the known points, each once, by falling frequency of the first strategies."""
    found: list[Array] = []
    for root in roots:
        so_far = np.vstack([known, *(point[None] for point in found)])
        if nearest_point(so_far, root[None])[0] < 0:
            found.append(root)
    found.sort(key=lambda point: tuple(-point.round(6)))
    return np.array(found).reshape(-1, known.shape[1])
