"""The tables of the open-strategy dictator game: from the decisions of one tournament to everything the figures show.

It only arranges what the other modules of this folder compute, one function a table; no file is read or written, and a
missing decision is NULL in every table that would need it. Each function says what a row is.

Every function takes the pools of a `dictator_decisions` frame and returns a frame with an explicit schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fishpool.analysis import properties
from fishpool.analysis.agreement import agreement
from fishpool.analysis.author_types import (
    REFERENCE_MASSES,
    REFERENCE_WEIGHTS,
    author_types,
    bloc_welfare,
    field_welfare,
    mass_simplex,
    ranks,
)
from fishpool.analysis.basins import boundary, informative_coordinates, wilson_interval
from fishpool.analysis.decomposition import decompose, harvest, second_order_gaps
from fishpool.analysis.dominance import dominance
from fishpool.analysis.equilibria import (
    Dynamics,
    Ending,
    Equilibria,
    LogitResponse,
    centre,
    equilibria,
    iterate,
    own_payoff,
    trajectory,
    uniform_starts,
)
from fishpool.analysis.resampling import drawn_from_votes, drawn_with_noise, outcome, single_flips
from fishpool.analysis.sensitivity import endowment_at, matched_beta, share_payoff, sigma_at, sweep
from fishpool.games.dictator import ENDOWMENT, UTILITIES, Decision, Stakes, payoff_matrix, stakes, welfare_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


FLIP_SIZE = 50
"""The largest pool in which every single decision is turned over."""


@dataclass(frozen=True)
class Settings:
    """What the analysis varies; the defaults are the paper's.

    `betas` are the inverse temperatures of the equilibria, the last of them that of the basins, boundaries, type
    masses, blocs and resampled decisions, and of the sensitivity sweep (matched to its normalisation).
    """

    endowment: float = ENDOWMENT
    utility: str = "log"
    betas: tuple[float, ...] = (1.0, 5.0, 20.0)
    starts: int = 2000
    sweep_starts: int = 300
    type_starts: int = 100
    draws: int = 200
    noise: tuple[float, ...] = (0.01, 0.03, 0.1)
    seed: int = 1

    @staticmethod
    def from_config(given: Mapping[str, Any]) -> Settings:
        """The settings that a study's keys give; `self_play` is a matter of the decisions and passed over."""
        values = {key: value for key, value in given.items() if key != "self_play"}
        return Settings(**values | {"betas": tuple(sorted(map(float, values["betas"])))})

    @property
    def stakes(self) -> Stakes:
        return stakes(self.endowment, UTILITIES[self.utility])


@dataclass(frozen=True)
class Pool:
    """One tournament under one oracle, as matrices (dictators, recipients) in the order of the frame."""

    tournament: str
    oracle: str
    strategies: tuple[str, ...]
    families: tuple[str, ...]
    decisions: Array
    share_votes: Array
    replicates: Array
    self_play: bool
    settings: Settings
    _found: dict[tuple[str, float, Dynamics], Equilibria] = field(default_factory=dict, repr=False)

    @property
    def stakes(self) -> Stakes:
        return self.settings.stakes

    @cached_property
    def payoffs(self) -> Array:
        return payoff_matrix(self.decisions, self.stakes)

    @cached_property
    def welfare(self) -> Array:
        return welfare_matrix(self.decisions, self.stakes)

    @property
    def complete(self) -> bool:
        """Whether every payoff is known, the copies' included; without that there is no equilibrium to speak of."""
        return not bool(np.isnan(self.decisions).any())

    @property
    def key(self) -> dict[str, str]:
        return {"tournament": self.tournament, "oracle": self.oracle}

    def response(self, model: str, beta: float) -> LogitResponse:
        """`own_payoff` (equation 9) or `author_types` at the reference masses (section 8.5)."""
        if model == "own_payoff":
            return own_payoff(self.payoffs, beta)
        return author_types(self.payoffs, self.welfare, beta, REFERENCE_MASSES, REFERENCE_WEIGHTS)

    def equilibria(self, model: str, beta: float, dynamics: Dynamics) -> Equilibria:
        """The fixed points of one model; kept, because four tables show the same ones."""
        key = (model, beta, dynamics)
        if key not in self._found:
            starts = uniform_starts(len(self.strategies), self.settings.starts, self.settings.seed)
            self._found[key] = equilibria(self.response(model, beta), starts, dynamics)
        return self._found[key]


def read_pools(decisions: pl.DataFrame, settings: Settings) -> list[Pool]:
    """The tournaments of a `dictator_decisions` frame, one a (tournament, oracle), in order of appearance.

    The frame has one row a round that was played: tournament, oracle, dictator, recipient, family (the dictator's),
    decision (SHARE, TAKE or NULL), replicates, share_votes.
    """
    found = []
    for (tournament, oracle), frame in decisions.group_by("tournament", "oracle", maintain_order=True):
        names = frame["dictator"].unique(maintain_order=True).to_list()
        index = {name: i for i, name in enumerate(names)}
        size = len(names)
        shared, votes, counts = np.full((size, size), np.nan), np.zeros((size, size)), np.zeros((size, size))
        families = [""] * size
        played = np.zeros((size, size), bool)
        for row in frame.iter_rows(named=True):
            i, j = index[row["dictator"]], index[row["recipient"]]
            families[i], played[i, j] = row["family"], True
            votes[i, j], counts[i, j] = row["share_votes"], row["replicates"]
            if row["decision"] is not None:
                shared[i, j] = float(row["decision"] == Decision.SHARE)
        self_play = bool(np.diagonal(played).any())
        key = (str(tournament), str(oracle), tuple(names), tuple(families))
        found.append(Pool(*key, shared, votes, counts, self_play, settings))
    return found


def dictator_tables(pools: Sequence[Pool]) -> dict[str, pl.DataFrame]:
    """All tables that one pool fills by itself, by name; `compare_oracles` is not among them."""
    tables = {
        table.__name__: table(pools)
        for table in (
            dictator_payoffs,
            dictator_scores,
            dictator_pool,
            dictator_dominance,
            dictator_equilibria,
            dictator_trajectories,
            dictator_basins,
            dictator_boundary,
            dictator_sensitivity,
            dictator_type_masses,
            dictator_bloc,
            dictator_flips,
            dictator_draws,
        )
    }
    return tables | {"dictator_robustness": dictator_robustness(tables["dictator_draws"])}


# ── Who wins: payoffs, scores, properties, dominance ─────────────────────────────────────────────────────────────


def dictator_payoffs(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is an ordered pair that met; payoff is A of equation 3 and welfare W of equation 12, in utilities."""
    rows = [
        {
            **pool.key,
            "strategy": name,
            "opponent": other,
            "payoff": _null(pool.payoffs[i, j]),
            "welfare": _null(pool.welfare[i, j]),
        }
        for pool in pools
        for i, name in enumerate(pool.strategies)
        for j, other in enumerate(pool.strategies)
        if pool.self_play or i != j
    ]
    return _frame(rows, strategy=pl.String, opponent=pl.String, payoff=pl.Float64, welfare=pl.Float64)


_PROPERTIES = (
    "unconditional",
    "self_cooperating",
    "reciprocal",
    "exploited",
    "exploiter",
    "subsidizer",
    "first_order_deterrent",
    "second_order_deterrent",
    "deters_defectors",
    "deters_subsidizers",
    "protective",
    "extensional",
)


def dictator_scores(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a strategy: its score (utilities, over all rounds it played), rank, decomposition and properties.

    `first_order_deterrent` and `second_order_deterrent` are Definitions 8 and 9 to the letter (every exploiter of the
    profile); `deters_defectors` and `deters_subsidizers` are the same relative to the unconditional defectors.
    """
    rows = []
    for pool in pools:
        parts = decompose(pool.decisions, pool.stakes, self_play=pool.self_play)
        rank = ranks(parts.score)
        held = _properties(pool)
        classes = properties.equivalence_classes(pool.decisions)
        exploits = properties.exploits(pool.decisions) == 1
        rows += [
            {
                **pool.key,
                "strategy": name,
                "family": pool.families[i],
                "score": _null(parts.score[i]),
                "rank": _integer(rank[i]),
                "rounds": int(parts.rounds[i]),
                "k_give": _integer(parts.k_give[i]),
                "k_recv": _integer(parts.k_recv[i]),
                **{key: _boolean(values[i]) for key, values in held.items()},
                "exploited_by": [pool.strategies[j] for j in np.flatnonzero(exploits[:, i])],
                "equivalence_class": _integer(classes[i]),
            }
            for i, name in enumerate(pool.strategies)
        ]
    return _frame(
        rows,
        strategy=pl.String,
        family=pl.String,
        score=pl.Float64,
        rank=pl.Int64,
        rounds=pl.Int64,
        k_give=pl.Int64,
        k_recv=pl.Int64,
        **dict.fromkeys(_PROPERTIES, pl.Boolean),
        exploited_by=pl.List(pl.String),
        equivalence_class=pl.Int64,
    )


def _properties(pool: Pool) -> dict[str, Array]:
    d, self_play = pool.decisions, pool.self_play
    defectors = properties.unconditional_defector(d, self_play=self_play)
    return dict(
        zip(
            _PROPERTIES,
            (
                properties.unconditional(d, self_play=self_play),
                properties.self_cooperating(d),
                properties.reciprocal(d, self_play=self_play),
                properties.exploited(d, self_play=self_play),
                properties.exploiter(d, self_play=self_play),
                properties.subsidizer(d, self_play=self_play),
                properties.first_order_deterrent(d, self_play=self_play),
                properties.second_order_deterrent(d, self_play=self_play),
                properties.first_order_deterrent(d, defectors, self_play=self_play),
                properties.second_order_deterrent(d, defectors, self_play=self_play),
                properties.protective(d, self_play=self_play),
                properties.extensional(d),
            ),
            strict=True,
        )
    )


def dictator_pool(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a tournament under an oracle: the constants of equations 4 to 6 and 14, inequality 7, Proposition 1.

    `gap` is the least advantage that Proposition 1 finds over an unconditional cooperator (NULL where its premise holds
    for nobody); the proposition says that it is at least `gain`. `share_payoff` is sigma of section 10.1, beside it
    those at which the exchange rate is 1 and 4, and the endowment at which it is 4 under logarithmic utility.
    """
    rows = []
    for pool in pools:
        sides = harvest(pool.decisions, pool.stakes)
        gaps = [found.gap for found in second_order_gaps(pool.decisions, pool.stakes)] if pool.complete else []
        played = pool.decisions.size - (0 if pool.self_play else len(pool.strategies))
        decided = int((~np.isnan(pool.decisions)).sum())
        rows.append(
            {
                **pool.key,
                "strategies": len(pool.strategies),
                "self_play": pool.self_play,
                "cells": played,
                "missing": played - decided,
                "endowment": float(pool.settings.endowment),
                "utility": pool.settings.utility,
                "cost": pool.stakes.cost,
                "gain": pool.stakes.gain,
                "exchange_rate": _finite(pool.stakes.exchange_rate),
                "altruism_threshold": _finite(pool.stakes.altruism_threshold),
                "first_best": pool.stakes.first_best,
                "unconditional_cooperators": sides.cooperators,
                "protectors": sides.protectors,
                "harvest_threshold": sides.threshold,
                "harvesting_pays": sides.pays,
                "gap": min(gaps, default=None),
                "share_payoff": share_payoff(pool.stakes),
                "share_payoff_for_rate_1": sigma_at(1.0),
                "share_payoff_for_rate_4": sigma_at(4.0),
                "endowment_for_rate_4": endowment_at(4.0),
            }
        )
    return _frame(
        rows,
        strategies=pl.Int64,
        self_play=pl.Boolean,
        cells=pl.Int64,
        missing=pl.Int64,
        endowment=pl.Float64,
        utility=pl.String,
        cost=pl.Float64,
        gain=pl.Float64,
        exchange_rate=pl.Float64,
        altruism_threshold=pl.Float64,
        first_best=pl.Float64,
        unconditional_cooperators=pl.Int64,
        protectors=pl.Int64,
        harvest_threshold=pl.Float64,
        harvesting_pays=pl.Boolean,
        gap=pl.Float64,
        share_payoff=pl.Float64,
        share_payoff_for_rate_1=pl.Float64,
        share_payoff_for_rate_4=pl.Float64,
        endowment_for_rate_4=pl.Float64,
    )


def dictator_dominance(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a strategy: how it is dominated, by how much in all (utilities), and by which pure and mixed ones."""
    rows = []
    for pool in pools:
        verdicts = dominance(pool.payoffs) if pool.complete else [None] * len(pool.strategies)
        for name, verdict in zip(pool.strategies, verdicts, strict=True):
            known: dict[str, Any] = {"kind": None, "slack": None, "dominated_by": None, "mixture": None}
            if verdict is not None:
                mixture = {pool.strategies[j]: round(weight, 12) for j, weight in verdict.mixture.items()}
                known = {
                    "kind": verdict.kind.value,
                    "slack": verdict.slack,
                    "dominated_by": [pool.strategies[j] for j in verdict.dominators],
                    "mixture": json.dumps(mixture, sort_keys=True),
                }
            rows.append({**pool.key, "strategy": name, **known})
    return _frame(
        rows, strategy=pl.String, kind=pl.String, slack=pl.Float64, dominated_by=pl.List(pl.String), mixture=pl.String
    )


# ── What survives selection: trajectories, equilibria, basins ────────────────────────────────────────────────────


def dictator_equilibria(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a strategy's frequency at a fixed point; 0 is the point with the largest basin.

    `basin_share` is the fraction of the `starts` uniform starts that reach the point, with its 95 % score interval; a
    point that none reaches is a saddle, or attracts under other dynamics only. `unconverged` is the fraction that
    reaches no point at all. `welfare` is V of equation 17. With a missing decision all of it is NULL.
    """
    rows: list[dict[str, Any]] = []
    for pool in pools:
        for model, beta, dynamics in _grid(pool.settings):
            key = {**pool.key, "model": model, "beta": beta, "dynamics": dynamics.value}
            if not pool.complete:
                rows += [{**key, "strategy": name} for name in pool.strategies]
                continue
            found = pool.equilibria(model, beta, dynamics)
            welfare = field_welfare(pool.welfare, found.points)
            for index, point in enumerate(found.points):
                interval = wilson_interval(int(found.counts[index]), len(found.starts))
                low, high = interval if interval else (None, None)
                rows += [
                    {
                        **key,
                        "equilibrium": index,
                        "stable": bool(found.stable[index]),
                        "spectral_radius": float(found.spectral_radii[index]),
                        "residual": float(found.residuals[index]),
                        "starts": len(found.starts),
                        "unconverged": float((found.basin < 0).mean()),
                        "basin_share": float(found.counts[index] / len(found.starts)),
                        "basin_low": low,
                        "basin_high": high,
                        "welfare": float(welfare[index]),
                        "strategy": name,
                        "frequency": float(point[i]),
                    }
                    for i, name in enumerate(pool.strategies)
                ]
    return _frame(
        rows,
        model=pl.String,
        beta=pl.Float64,
        dynamics=pl.String,
        equilibrium=pl.Int64,
        stable=pl.Boolean,
        spectral_radius=pl.Float64,
        residual=pl.Float64,
        starts=pl.Int64,
        unconverged=pl.Float64,
        basin_share=pl.Float64,
        basin_low=pl.Float64,
        basin_high=pl.Float64,
        welfare=pl.Float64,
        strategy=pl.String,
        frequency=pl.Float64,
    )


def dictator_trajectories(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a strategy's frequency at one iterate of a run; iteration 0 is the start.

    `start` is `uniform`, or `basin 2`: the first of the uniform starts that reaches the second largest basin.
    `distance` is the greatest distance of a frequency to the run's limit, NULL if it has none (`ending` says why).
    """
    rows: list[dict[str, Any]] = []
    for pool in pools:
        for model, beta, dynamics in _grid(pool.settings):
            key = {**pool.key, "model": model, "beta": beta, "dynamics": dynamics.value}
            if not pool.complete:
                rows += [{**key, "strategy": name} for name in pool.strategies]
                continue
            response = pool.response(model, beta)
            starts = {"uniform": centre(len(pool.strategies))}
            if dynamics is Dynamics.PLAIN:
                found = pool.equilibria(model, beta, dynamics)
                second = np.flatnonzero(found.basin == 1)
                if len(second):
                    starts["basin 2"] = found.starts[second[:1]]
            for start, first in starts.items():
                path, ending = trajectory(response, first, dynamics)
                distance = np.abs(path - path[-1]).max(axis=1)
                # The iterates that anybody looks at: the first hundred, and of a long (damped) run every tenth.
                kept = [t for t in range(len(path)) if t <= 100 or t % 10 == 0 or t == len(path) - 1]
                rows += [
                    {
                        **key,
                        "start": start,
                        "iteration": t,
                        "strategy": name,
                        "frequency": float(path[t, i]),
                        "distance": float(distance[t]) if ending is Ending.CONVERGED else None,
                        "ending": ending.value,
                    }
                    for t in kept
                    for i, name in enumerate(pool.strategies)
                ]
    return _frame(
        rows,
        model=pl.String,
        beta=pl.Float64,
        dynamics=pl.String,
        start=pl.String,
        iteration=pl.Int64,
        strategy=pl.String,
        frequency=pl.Float64,
        distance=pl.Float64,
        ending=pl.String,
    )


def dictator_basins(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a start at the highest beta: its shares (one column a strategy) and the equilibrium it reaches.

    `equilibrium` numbers are those of `dictator_equilibria` (model own_payoff), NULL where the run did not converge.
    """
    frames = []
    for pool in pools:
        for dynamics in Dynamics:
            key = {**pool.key, "beta": pool.settings.betas[-1], "dynamics": dynamics.value}
            if not pool.complete:
                frames.append(pl.DataFrame([key]).with_columns(beta=pl.lit(pool.settings.betas[-1], pl.Float64)))
                continue
            found = pool.equilibria("own_payoff", pool.settings.betas[-1], dynamics)
            reached = [int(point) if point >= 0 else None for point in found.basin]
            frames.append(
                pl.DataFrame(
                    {
                        **{name: [value] * len(reached) for name, value in key.items()},
                        "start": range(len(reached)),
                        "equilibrium": pl.Series(reached, dtype=pl.Int64),
                        "converged": found.runs.converged,
                        **{_column(name): found.starts[:, i] for i, name in enumerate(pool.strategies)},
                    }
                )
            )
    order = ["tournament", "oracle", "beta", "dynamics", "start", "equilibrium", "converged"]
    empty = pl.DataFrame(schema=_KEY | dict(zip(order[2:], _BASIN_TYPES, strict=True)))
    return pl.concat([empty, *frames], how="diagonal")


_BASIN_TYPES = (pl.Float64, pl.String, pl.Int64, pl.Int64, pl.Boolean)


def _column(strategy: str) -> str:
    """The column of a strategy's first share; a strategy named like another column gets a longer one."""
    taken = {"tournament", "oracle", "beta", "dynamics", "start", "equilibrium", "converged"}
    return f"{strategy}_share" if strategy.lower() in taken else strategy


def dictator_boundary(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a logistic boundary between the largest basin and all others, in 2, 3 and all coordinates of the start.

    A start is predicted to leave the largest basin where its share of the first of `strategies` exceeds intercept plus
    slope times its share of the second (further ones: `slopes`). NULL where one basin takes all.
    """
    rows: list[dict[str, Any]] = []
    for pool in pools:
        size = len(pool.strategies)
        for dynamics in Dynamics:
            key = {**pool.key, "beta": pool.settings.betas[-1], "dynamics": dynamics.value}
            counts = sorted({min(2, size), min(3, size), size})
            starts, second = np.empty((0, size)), np.empty(0, bool)
            if pool.complete:
                found = pool.equilibria("own_payoff", pool.settings.betas[-1], dynamics)
                starts, second = found.starts[found.basin >= 0], found.basin[found.basin >= 0] > 0
            if not second.any():
                rows += [{**key, "coordinates": count, "starts": len(starts)} for count in counts]
                continue
            informative = informative_coordinates(starts, second, 3)
            for count in counts:
                rest = [i for i in range(size) if i not in informative]
                fit = boundary(starts, second, (*informative, *rest)[:count])
                rows.append(
                    {
                        **key,
                        "coordinates": count,
                        "starts": len(starts),
                        "strategies": [pool.strategies[i] for i in fit.coordinates],
                        "accuracy": fit.accuracy,
                        "intercept": _finite(fit.intercept),
                        "slope": _finite(fit.slopes[0]) if fit.slopes else None,
                        "slopes": [_finite(slope) for slope in fit.slopes],
                    }
                )
    return _frame(
        rows,
        beta=pl.Float64,
        dynamics=pl.String,
        coordinates=pl.Int64,
        starts=pl.Int64,
        strategies=pl.List(pl.String),
        accuracy=pl.Float64,
        intercept=pl.Float64,
        slope=pl.Float64,
        slopes=pl.List(pl.Float64),
    )


# ── Sensitivity: share payoff, author types, blocs ───────────────────────────────────────────────────────────────


def dictator_sensitivity(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a strategy's frequency in the equilibrium from the uniform start at one share payoff sigma.

    NULL where that run does not converge. `share_of_starts` is the fraction of `starts` that reach the same point, with
    its 95 % score interval; `rho` is the exchange rate sigma / (1 - sigma); `reference` marks the game of this study.
    """
    rows: list[dict[str, Any]] = []
    for pool in pools:
        here = share_payoff(pool.stakes)
        sigmas = sorted({percent / 100 for percent in range(5, 96)} | {here})
        beta = matched_beta(pool.settings.betas[-1], pool.stakes)
        starts = uniform_starts(len(pool.strategies), pool.settings.sweep_starts, pool.settings.seed)
        for dynamics in Dynamics:
            if not pool.complete:
                rows += [{**pool.key, "dynamics": dynamics.value, "strategy": name} for name in pool.strategies]
                continue
            for step in sweep(pool.decisions, beta, sigmas, dynamics, starts):
                share = _null(step.share_of_starts)
                interval = None if share is None else wilson_interval(round(share * len(starts)), len(starts))
                low, high = interval if interval else (None, None)
                rows += [
                    {
                        **pool.key,
                        "sigma": step.sigma,
                        "rho": step.sigma / (1 - step.sigma),
                        "reference": step.sigma == here,
                        "beta": beta,
                        "dynamics": dynamics.value,
                        "strategy": name,
                        "frequency": _null(step.field[i]),
                        "converged": step.ending is Ending.CONVERGED,
                        "ending": step.ending.value,
                        "residual": step.residual,
                        "starts": len(starts),
                        "share_of_starts": share,
                        "share_low": low,
                        "share_high": high,
                    }
                    for i, name in enumerate(pool.strategies)
                ]
    return _frame(
        rows,
        sigma=pl.Float64,
        rho=pl.Float64,
        reference=pl.Boolean,
        beta=pl.Float64,
        dynamics=pl.String,
        strategy=pl.String,
        frequency=pl.Float64,
        converged=pl.Boolean,
        ending=pl.String,
        residual=pl.Float64,
        starts=pl.Int64,
        share_of_starts=pl.Float64,
        share_low=pl.Float64,
        share_high=pl.Float64,
    )


def dictator_type_masses(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a composition of author types: own payoff, mixed (lambda_mixed), total welfare; at the highest beta.

    The simplex of masses at lambda_mixed 0.5, then the sweep of lambda_mixed at the reference masses. `fixed_points`
    counts the points that starts reach; `core_share` is the fraction of converged starts that reach the core, the
    strategies that share the field where own-payoff authors settle from the uniform start; `welfare` is the least V of
    the points and `welfare_ratio` that over the first best. NULL where no start converges or a decision is missing.
    """
    grid = [(tuple(masses), 0.5, "simplex") for masses in mass_simplex()]
    grid += [(REFERENCE_MASSES, percent / 100, "lambda") for percent in range(0, 101, 10)]
    rows: list[dict[str, Any]] = []
    for pool in pools:
        starts = uniform_starts(len(pool.strategies), pool.settings.type_starts, pool.settings.seed)
        beta = pool.settings.betas[-1]
        core = None
        if pool.complete:
            settled = iterate(own_payoff(pool.payoffs, beta), centre(len(pool.strategies)))
            core = _support(settled.points)[0] if settled.converged[0] else None
        for dynamics in Dynamics:
            for masses, weight, part in grid:
                row = {
                    **pool.key,
                    "dynamics": dynamics.value,
                    "part": part,
                    "own": float(masses[0]),
                    "mixed": float(masses[1]),
                    "welfare_type": float(masses[2]),
                    "lambda_mixed": weight,
                }
                if pool.complete:
                    response = author_types(pool.payoffs, pool.welfare, beta, masses, (0.0, weight, 1.0))
                    found = equilibria(response, starts, dynamics, unstable=False)
                    row |= _composition(pool, found, core)
                rows.append(row)
    return _frame(
        rows,
        dynamics=pl.String,
        part=pl.String,
        own=pl.Float64,
        mixed=pl.Float64,
        welfare_type=pl.Float64,
        lambda_mixed=pl.Float64,
        starts=pl.Int64,
        unconverged=pl.Float64,
        fixed_points=pl.Int64,
        core_share=pl.Float64,
        welfare=pl.Float64,
        welfare_ratio=pl.Float64,
    )


def _composition(pool: Pool, found: Equilibria, core: NDArray[np.bool_] | None) -> dict[str, Any]:
    converged = found.basin >= 0
    row: dict[str, Any] = {"starts": len(found.starts), "unconverged": float((~converged).mean())}
    row["fixed_points"] = found.attractors
    if converged.any():
        welfare = float(field_welfare(pool.welfare, found.points).min())
        row |= {"welfare": welfare, "welfare_ratio": welfare / pool.stakes.first_best}
        if core is not None:
            at_core = (_support(found.points) == core).all(axis=1)
            row["core_share"] = float(at_core[found.basin[converged]].mean())
    return row


def _support(points: Array) -> NDArray[np.bool_]:
    """The strategies with at least 5 % of a field, shape (points, strategies)."""
    return np.asarray(points >= 0.05)


def dictator_bloc(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a strategy that the total-welfare bloc of this mass submits: welfare V of the field that then settles.

    The rest of the mass is half own-payoff and half mixed authors (lambda 0.5), at the highest beta, plain iteration
    from the uniform start; NULL where it does not converge. Rank 1 is the most welfare.
    """
    rows: list[dict[str, Any]] = []
    for pool in pools:
        for mass in [percent / 100 for percent in range(5, 51, 5)]:
            values = residuals = np.full(len(pool.strategies), np.nan)
            if pool.complete:
                values, residuals = bloc_welfare(pool.payoffs, pool.welfare, pool.settings.betas[-1], mass)
            rank = ranks(values)
            rows += [
                {
                    **pool.key,
                    "mass": mass,
                    "strategy": name,
                    "welfare": _null(values[i]),
                    "welfare_ratio": _null(values[i] / pool.stakes.first_best),
                    "rank": _integer(rank[i]),
                    "residual": _null(residuals[i]),
                }
                for i, name in enumerate(pool.strategies)
            ]
    return _frame(
        rows,
        mass=pl.Float64,
        strategy=pl.String,
        welfare=pl.Float64,
        welfare_ratio=pl.Float64,
        rank=pl.Int64,
        residual=pl.Float64,
    )


# ── What hangs on the oracle: agreement, flips, resampled decisions ──────────────────────────────────────────────


def compare_oracles(dictator_decisions: pl.LazyFrame) -> pl.DataFrame:
    """The table `dictator_agreement`: the first oracle of the table against itself and each of the others.

    A row is a pair of oracles on one tournament: the cells both decided, and those they decided alike. An oracle beside
    itself has the cells with at least two votes, those with unanimous votes, and as rate the mean share of votes that
    the decision has: 1 means that it never contradicted itself.
    """
    first, *others = read_pools(dictator_decisions.collect(), Settings())
    rows: list[dict[str, Any]] = []
    repeated = first.replicates >= 2
    if repeated.any():
        votes = first.replicates[repeated]
        majority = np.maximum(first.share_votes[repeated], votes - first.share_votes[repeated])
        alike, rate = int((majority == votes).sum()), float((majority / votes).mean())
        rows.append({"oracle_b": first.oracle, "cells": int(repeated.sum()), "agree": alike, "rate": rate})
    for second in others:
        order = [second.strategies.index(name) for name in first.strategies]
        both = agreement(first.decisions, second.decisions[np.ix_(order, order)])
        rows.append({"oracle_b": second.oracle, "cells": both.cells, "agree": both.agree, "rate": _null(both.rate)})
    key = {"tournament": first.tournament, "oracle_a": first.oracle}
    schema: dict[str, Any] = {"tournament": pl.String, "oracle_a": pl.String, "oracle_b": pl.String}
    schema |= {"cells": pl.Int64, "agree": pl.Int64, "rate": pl.Float64}
    return pl.DataFrame([key | row for row in rows], schema)


def dictator_flips(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a decided cell: what follows if this one decision is turned into its opposite.

    In pools of more than FLIP_SIZE strategies only the cells with split votes: all of them would take hours.

    `winner` is the first-ranked strategy then (NULL in a tie), `winner_changes` whether it is another one,
    `undominated_changes` how many strategies become or cease to be purely undominated, `distance` half the sum of the
    changes of frequency in the equilibrium from the uniform start, `basin_change` the change of its basin's share of
    the starts. The last two are NULL where either run does not converge.
    """
    rows: list[dict[str, Any]] = []
    for pool in pools:
        if not pool.complete:
            rows += [
                {**pool.key, "dictator": name, "recipient": other}
                for i, name in enumerate(pool.strategies)
                for j, other in enumerate(pool.strategies)
                if not np.isnan(pool.decisions[i, j])
            ]
            continue
        starts = uniform_starts(len(pool.strategies), pool.settings.sweep_starts, pool.settings.seed)
        before = outcome(pool.decisions, pool.stakes, pool.settings.betas[-1], starts)
        winner = _winner(before.scores)
        for i, j, changed in single_flips(pool.decisions):
            if len(starts[0]) > FLIP_SIZE and pool.share_votes[i, j] in (0, pool.replicates[i, j]):
                continue
            after = outcome(changed, pool.stakes, pool.settings.betas[-1], starts)
            now = _winner(after.scores)
            rows.append(
                {
                    **pool.key,
                    "dictator": pool.strategies[i],
                    "recipient": pool.strategies[j],
                    "winner": None if now is None else pool.strategies[now],
                    "winner_changes": now != winner,
                    "undominated_changes": int((before.undominated != after.undominated).sum()),
                    "distance": _null(float(np.abs(before.field - after.field).sum() / 2)),
                    "basin_change": _null(after.basin - before.basin),
                }
            )
    return _frame(
        rows,
        dictator=pl.String,
        recipient=pl.String,
        winner=pl.String,
        winner_changes=pl.Boolean,
        undominated_changes=pl.Int64,
        distance=pl.Float64,
        basin_change=pl.Float64,
    )


def dictator_draws(pools: Sequence[Pool]) -> pl.DataFrame:
    """A row is a strategy in one resampled tournament.

    `scheme` says how the decisions were drawn: `votes` (each cell one answer from its own replicates; rate NULL) or
    `noise` (each decision turned over with probability `rate`). `frequency` and `basin_share` belong to the equilibrium
    from the uniform start and are NULL where it does not converge.
    """
    rows: list[dict[str, Any]] = []
    for pool in pools:
        size = len(pool.strategies)
        starts = uniform_starts(size, pool.settings.sweep_starts, pool.settings.seed)
        for scheme, rate in _schemes(pool.settings):
            key = {**pool.key, "scheme": scheme, "rate": rate}
            if not pool.complete:
                rows += [{**key, "strategy": name} for name in pool.strategies]
                continue
            profiles = (
                drawn_from_votes(pool.share_votes, pool.replicates, pool.settings.draws, pool.settings.seed)
                if rate is None
                else drawn_with_noise(pool.decisions, rate, pool.settings.draws, pool.settings.seed)
            )
            outcomes: dict[bytes, Any] = {}  # few cells differ, so profiles come again and again
            for draw, profile in enumerate(profiles):
                found = outcomes.get(profile.tobytes())
                if found is None:
                    found = outcome(profile, pool.stakes, pool.settings.betas[-1], starts)
                    outcomes[profile.tobytes()] = found
                rank = ranks(found.scores)
                rows += [
                    {
                        **key,
                        "draw": draw,
                        "strategy": name,
                        "score": float(found.scores[i]),
                        "rank": int(rank[i]),
                        "undominated": bool(found.undominated[i]),
                        "frequency": _null(found.field[i]),
                        "basin_share": _null(found.basin),
                    }
                    for i, name in enumerate(pool.strategies)
                ]
    return _frame(
        rows,
        scheme=pl.String,
        rate=pl.Float64,
        draw=pl.Int64,
        strategy=pl.String,
        score=pl.Float64,
        rank=pl.Int64,
        undominated=pl.Boolean,
        frequency=pl.Float64,
        basin_share=pl.Float64,
    )


def dictator_robustness(draws: pl.DataFrame) -> pl.DataFrame:
    """A row is a strategy over all draws of `dictator_draws` of one scheme: medians and the middle 95 % of the draws.

    The interval is NULL where all draws are equal: then nothing hangs on the decisions that were drawn.
    """

    def spread(column: str) -> list[pl.Expr]:
        varies = pl.col(column).n_unique() > 1
        return [
            pl.col(column).median().alias(column),
            pl.when(varies).then(pl.col(column).quantile(0.025, "linear")).alias(f"{column}_low"),
            pl.when(varies).then(pl.col(column).quantile(0.975, "linear")).alias(f"{column}_high"),
        ]

    return draws.group_by("tournament", "oracle", "scheme", "rate", "strategy", maintain_order=True).agg(
        pl.col("draw").count().alias("draws"),
        *spread("score"),
        *spread("rank"),
        (pl.col("rank") == 1).mean().alias("first"),
        pl.col("undominated").mean().alias("undominated"),
        pl.col("frequency").is_not_null().mean().alias("converged"),
        *spread("frequency"),
        *spread("basin_share"),
    )


# ── Private ──────────────────────────────────────────────────────────────────────────────────────────────────────

_KEY: dict[str, Any] = {"tournament": pl.String, "oracle": pl.String}


def _frame(rows: list[dict[str, Any]], **columns: Any) -> pl.DataFrame:
    """A frame with exactly these columns behind the key; a row that lacks a column has NULL there."""
    schema = {**_KEY, **columns}
    return pl.DataFrame({name: pl.Series([row.get(name) for row in rows], dtype=kind) for name, kind in schema.items()})


def _grid(settings: Settings) -> list[tuple[str, float, Dynamics]]:
    return [
        (model, beta, dynamics)
        for model in ("own_payoff", "author_types")
        for beta in settings.betas
        for dynamics in Dynamics
    ]


def _schemes(settings: Settings) -> list[tuple[str, float | None]]:
    return [("votes", None), *(("noise", rate) for rate in settings.noise)]


def _winner(scores: Array) -> int | None:
    first = np.flatnonzero(ranks(scores) == 1)
    return int(first[0]) if len(first) == 1 else None


def _null(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _integer(value: Any) -> int | None:
    return None if np.isnan(value) else round(float(value))


def _boolean(value: Any) -> bool | None:
    return None if np.isnan(value) else bool(value)
