"""Strategy-frequency estimation: which shares of a stated set of strategies explain the choices a player made.

It compares choices with prescriptions that are handed to it; it neither knows the strategies' rules nor looks for
strategies outside the set, so its shares are those of the best mixture within the set, not of everything conceivable.
The model is that of Dal Bó and Fréchette (2011), "The Evolution of Cooperation in Infinitely Repeated Games", American
Economic Review 101(1), pp. 423-425: a unit follows strategy k with probability `shares[k]` (their phi), and then
chooses in every round what k prescribes after that history with probability `beta`, the opposite otherwise.

Dal Bó and Fréchette's unit is a subject; ours is one side of one match, because our agents start each match afresh.
Their gamma is 1 / log(beta / (1 - beta)). With n choices, of which e_k are errors under strategy k, a unit's
likelihood is sum_k shares[k] beta^(n - e_k) (1 - beta)^e_k. All that the data say is therefore in two tables:
`agreements`, shape (units, strategies), the rounds in which a unit chose what the strategy prescribes, and `choices`,
shape (units,), the rounds in which it chose at all. A unit without choices says nothing and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import polars as pl

_Floats = NDArray[np.float64]

DRAWS = 1_000
LEVEL = 0.95

_STARTS = (0.55, 0.75, 0.95)  # of beta; given beta the likelihood has no second summit (see `_best_shares`)
_ITERATIONS = 1_000
_BETA_TOLERANCE = 1e-9
_GAP = 1e-10  # log-likelihood a unit that better shares could still add
_GAP_OF_A_DRAW = 1e-7
_STEPS = 100
_CLEAR = 1e-12  # shares below are 0
_SAME = 1e-6  # shares this close are one share
_DEPENDENT = 1e-8  # relative singular value below which columns count as linearly dependent
_FLAT = 1e-12  # slope of a quadratic's summit
_RIDGE = 1e-12  # keeps a singular system solvable
_BLOCK = 2**18  # numbers held by one temporary array: 2 MiB, to stay in the cache
_SEED = 0


@dataclass(frozen=True)
class Estimate:
    """The maximum of the likelihood: `shares` of shape (strategies,), `beta` in [1/2, 1], and how it was reached."""

    shares: _Floats
    beta: float
    log_likelihood: float
    iterations: int
    converged: bool


def estimate(agreements: ArrayLike, choices: ArrayLike) -> Estimate:
    """Shares and beta of the greatest likelihood; agreements (units, strategies), choices (units,).

    An expectation-maximisation algorithm of the ECME kind (Liu and Rubin 1994, Biometrika 81(4)): beta by its closed
    form given the posterior of each unit's strategy, the shares by maximising the likelihood itself. No step lowers
    the likelihood. It is run from several values of beta, and from beta = 1 where no unit needs an error; the best end
    counts. Strategies that agree with every unit equally often get equal parts of their common share; with
    beta = 1/2 all strategies fit alike and the shares are equal.

    Raises ValueError for tables that do not fit together, and where no unit has a choice.
    """
    data = _patterns(agreements, choices)
    starts = _STARTS if data.least_errors.any() else (*_STARTS, 1.0)
    best = max((_ascend(data, beta) for beta in starts), key=lambda end: end.log_likelihood)
    return Estimate(data.spread(best.shares), best.beta, best.log_likelihood, best.iterations, best.converged)


def intervals(
    agreements: ArrayLike,
    choices: ArrayLike,
    clusters: ArrayLike,
    fit: Estimate,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> tuple[_Floats, _Floats]:
    """Intervals of the shares from resampled clusters (BCa): low and high, each of shape (strategies,).

    `clusters`, shape (units,), says which units were drawn together (their seed); `fit` is what `estimate` made of the
    same tables. The shares are estimated anew in every draw, beta is held: the two are estimated almost independently
    unless beta is close to 1/2, where the set explains hardly anything. NaN where there is no interval: one cluster
    only, or a share that no draw changes. As with any bootstrap, a share of so few clusters that the data may well
    have none of them is covered less often than `level` says. The draws come from a fixed seed, so that the same tables
    always give the same intervals.
    """
    data = _patterns(agreements, choices)
    names, cluster = np.unique(np.asarray(clusters)[data.kept], return_inverse=True)
    if len(names) < 2:
        nothing = np.full(len(fit.shares), np.nan)
        return nothing, nothing.copy()

    likelihood, shares = data.likelihood(fit.beta), data.gather(fit.shares)
    units = np.bincount(cluster * len(likelihood) + data.pattern, minlength=len(names) * len(likelihood))
    units = units.reshape(len(names), -1)  # (clusters, patterns)
    times = np.random.default_rng(_SEED).multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    times = np.concatenate([times, 1 - np.eye(len(names), dtype=times.dtype)])  # after the draws, each cluster left out
    size = max(1, _BLOCK // len(likelihood))
    again = np.concatenate(
        [
            _best_shares(likelihood, block @ units, np.tile(shares, (len(block), 1)), _GAP_OF_A_DRAW)[0]
            for block in np.split(times.astype(np.float64), range(size, len(times), size))
        ]
    )
    low, high = _bca(shares, again[:draws], again[draws:], level)
    return data.spread(low), data.spread(high)


def identifiable(agreements: ArrayLike, choices: ArrayLike, fit: Estimate) -> NDArray[np.bool_]:
    """Whether the data settle each strategy's share; shape (strategies,).

    False for strategies that agree with every unit equally often, whatever their share: nothing tells them apart.
    False also for a share that could be another without loss of likelihood. Given beta the likelihood is strictly
    concave in the units' likelihoods L @ shares, so that these are settled, and only strategies whose derivative is at
    its upper bound can have a share: a share is free exactly if the columns of L of those strategies are linearly
    dependent with a coefficient for it. Columns are compared after each is scaled to length 1, with a relative
    tolerance of 1e-8, so that one unit in millions that tells strategies apart counts.
    """
    data = _patterns(agreements, choices)
    counts = data.counts()
    likelihood, shares = data.likelihood(fit.beta), data.gather(fit.shares)
    relative = likelihood / (likelihood @ shares)[:, None]  # (patterns, strategies)
    bound = np.flatnonzero(counts @ relative / counts.sum() > 1 - _SAME)
    columns = relative[:, bound] * np.sqrt(counts)[:, None]
    columns /= np.linalg.norm(columns, axis=0)
    _, singular, directions = np.linalg.svd(np.linalg.qr(columns, mode="r"))
    rank = int((singular > _DEPENDENT * singular[0]).sum())
    settled = np.ones(len(shares), np.bool_)
    settled[bound] = (np.abs(directions[rank:]) < _SAME).all(axis=0)
    return settled[data.column] & (np.bincount(data.column)[data.column] == 1)


def strategy_shares(frame: pl.DataFrame, strategy_set: Sequence[str]) -> pl.DataFrame:
    """The estimates of every player in every condition; one row a study, condition, player and strategy of the set.

    `frame` has one row a choice: study, condition, seed, run_id, agent, player, round (from 1), choice and
    other_choice ("cooperate" or "defect"; other_choice may be null in the round that ended a match). `strategy_set`
    names deterministic scripted strategies. The answer has the columns study, condition, player, strategy, share, low,
    high, identifiable, matches (units) and implementation_error (1 - beta), the last two of the player as a whole; low
    and high are null where there is no interval or the share is not identifiable.

    Raises ValueError where a match lacks a round or a strategy of the set draws lots.
    """
    import polars as pl

    cell = ["study", "condition", "player"]
    unit = ["seed", "run_id", "agent"]
    names = pl.Series("strategy", list(strategy_set), pl.String)
    tables = []
    for key, turns in sorted(frame.partition_by(cell, as_dict=True).items()):
        agreements, choices, seeds = _agreements(turns.sort([*unit, "round"]), unit, strategy_set)
        fit = estimate(agreements, choices)
        settled = identifiable(agreements, choices, fit)
        low, high = (np.where(settled, end, np.nan) for end in intervals(agreements, choices, seeds, fit))
        columns = {"share": fit.shares, "low": low, "high": high, "identifiable": settled}
        labels = [pl.lit(value, pl.String).alias(name) for name, value in zip(cell, key, strict=True)]
        whole = [pl.lit(len(choices), pl.Int64).alias("matches"), pl.lit(1 - fit.beta).alias("implementation_error")]
        tables.append(pl.DataFrame(columns, nan_to_null=True).select(*labels, names, *columns, *whole))
    if tables:
        return pl.concat(tables)
    kinds: dict[str, pl.DataType] = {name: pl.String() for name in (*cell, "strategy")}
    kinds |= {name: pl.Float64() for name in ("share", "low", "high")}
    kinds |= {"identifiable": pl.Boolean(), "matches": pl.Int64(), "implementation_error": pl.Float64()}
    return pl.DataFrame(schema=kinds)


def shares_of_players(turns: pl.LazyFrame, sides: pl.LazyFrame, strategy_set: Sequence[str]) -> pl.DataFrame:
    """`strategy_shares` from the tables `turns` and `pd_individual` of one or more conditions.

    Self-play and void matches are left out; a choice that was accepted counts, also in a round that was not scored.
    Of a turn 14 bytes are kept, and players are estimated one after the other, so that the memory is hardly more.
    """
    import polars as pl

    cell, unit = ["study", "condition", "player"], ["seed", "run_id", "agent"]
    matches = sides.select(*cell, *unit, "opponent", "outcome").collect()
    matches = matches.with_row_index("side").with_columns(run=pl.col("run_id").rank("dense"))
    choices = (
        turns.select("run_id", "agent", "round", "choice")
        .join(matches.lazy().select("run_id", "agent", "side", "run"), on=unit[1:], how="left", maintain_order="left")
        .select("side", "run", pl.col("round").cast(pl.UInt32), pl.col("choice").cast(pl.Enum(["cooperate", "defect"])))
        .collect(engine="streaming")
    )
    for name in ("run", "round"):  # both agents of a round stand next to each other
        if not choices[name].gather_every(2).equals(choices[name].gather_every(2, offset=1)):
            raise ValueError(
                "turns: two rows of one round do not follow each other; rebuild the table from the records"
            )
    choices = choices.drop("run").with_columns(other_choice=choices["choice"][np.arange(len(choices)) ^ 1])
    choices = choices.filter(pl.col("choice").is_not_null())
    counted = matches.filter(pl.col("outcome") != "void", pl.col("player") != pl.col("opponent"))
    players = [counted.filter(player=player) for player in counted["player"].unique()]
    return pl.concat(
        strategy_shares(choices.join(mine.select("side", *cell, *unit), on="side"), strategy_set)
        for mine in [counted.clear(), *players]  # the first has no rows, but the columns
    ).sort("study", "condition", "player", maintain_order=True)


def _agreements(
    turns: pl.DataFrame, unit: list[str], strategy_set: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Agreements (units, strategies), choices (units,) and seeds (units,) of rows that are sorted by unit and round.

    Units with equally many choices are replayed together.
    """
    from fishpool.players.scripted import STRATEGIES, prescribe

    units = turns.group_by(unit, maintain_order=True).len("choices")
    choices = units["choices"].to_numpy().astype(np.int64)
    first = np.cumsum(choices) - choices  # row of each unit's first choice
    own, other = ((turns[name] == "cooperate").fill_null(False).to_numpy() for name in ("choice", "other_choice"))
    expected = np.arange(len(turns)) - np.repeat(first, choices) + 1
    if (wrong := turns["round"].to_numpy() != expected).any():
        row = turns.row(int(wrong.argmax()), named=True)
        raise ValueError(
            f"run {row['run_id']}, agent {row['agent']}: found a choice of round {row['round']} where that of round "
            f"{expected[wrong.argmax()]} was expected; rebuild the table of turns from the records"
        )
    agreements = np.empty((len(units), len(strategy_set)), np.int64)
    for rounds in np.unique(choices):
        together = choices == rounds
        rows = first[together] + np.arange(rounds)[:, None]  # (rounds, units)
        for k, name in enumerate(strategy_set):
            prescribed = prescribe(STRATEGIES[name], own[rows], other[rows])
            agreements[together, k] = (prescribed == own[rows]).sum(axis=0)
    return agreements, choices, units["seed"].to_numpy()


@dataclass(frozen=True)
class _Patterns:
    """The tables with equal rows and equal columns merged: on real data a fraction of the units remain.

    A unit's likelihood under strategy k is beta^choices q^least_errors times q^excess[k], where q = (1 - beta) / beta.
    Only `excess` bears on the shares, so units with the same excess are one pattern. The powers are exact at q = 0.
    """

    excess: NDArray[np.int64]  # (patterns, columns): errors beyond those of the pattern's best strategy
    column: NDArray[np.intp]  # (strategies,): its column of `excess`
    kept: NDArray[np.bool_]  # (units,): whether the unit has choices
    pattern: NDArray[np.intp]  # (kept units,): its row of `excess`
    choices: NDArray[np.int64]  # (kept units,)
    least_errors: NDArray[np.int64]  # (kept units,): errors of the unit's best strategy

    def likelihood(self, beta: float) -> _Floats:
        """Shape (patterns, columns), relative to each pattern's best strategy."""
        powers: _Floats = ((1 - beta) / beta) ** np.arange(self.excess.max() + 1.0)
        return powers[self.excess]

    def counts(self) -> _Floats:
        """Units of each pattern, shape (patterns,)."""
        return np.bincount(self.pattern).astype(np.float64)

    def gather(self, shares: _Floats) -> _Floats:
        """Shares of strategies, (strategies,), to those of columns, (columns,)."""
        return np.bincount(self.column, shares).astype(np.float64)

    def spread(self, shares: _Floats) -> _Floats:
        """The way back: strategies that share a column get equal parts. What is left of a share of 0 is cleared."""
        parts: _Floats = (np.where(shares < _CLEAR, 0, shares) / np.bincount(self.column))[self.column]
        return parts


def _patterns(agreements: ArrayLike, choices: ArrayLike) -> _Patterns:
    table, rounds = np.asarray(agreements), np.asarray(choices)
    if table.ndim != 2 or not table.shape[1] or rounds.shape != table.shape[:1]:
        raise ValueError(
            f"agreements of shape {table.shape} do not fit choices of shape {rounds.shape}; "
            "expected (units, strategies) and (units,), with at least one strategy"
        )
    if ((table < 0) | (table > rounds[:, None])).any():
        raise ValueError("found more agreements than choices, or fewer than none; count both over the same rounds")
    kept = rounds > 0
    if not kept.any():
        raise ValueError("found no unit with a choice; strategy frequencies need at least one")
    errors = (rounds[:, None] - table)[kept].astype(np.int64)
    least = errors.min(axis=1)
    excess, pattern = _distinct_rows(errors - least[:, None])
    columns, column = _distinct_rows(excess.T)
    return _Patterns(columns.T.copy(), column, kept, pattern, rounds[kept].astype(np.int64), least)


def _ascend(data: _Patterns, start: float) -> Estimate:
    """Climb from one value of beta. The shares are still those of columns."""
    counts, choices, least_errors = data.counts(), int(data.choices.sum()), int(data.least_errors.sum())
    columns = data.excess.shape[1]
    shares, update = np.full((1, columns), 1 / columns), start
    iterations, converged = 0, False
    while not converged and iterations < _ITERATIONS:
        iterations += 1
        beta, likelihood = update, data.likelihood(update)
        shares, best = _best_shares(likelihood, counts[None], shares, _GAP)
        mixture = likelihood @ shares[0]
        errors = least_errors + (counts / mixture) @ (likelihood * data.excess) @ shares[0]
        update = min(1.0, max(0.5, float(1 - errors / choices)))
        converged = abs(update - beta) < _BETA_TOLERANCE
    log_odds = np.log((1 - beta) / beta) if least_errors else 0.0
    log_likelihood = choices * np.log(beta) + least_errors * log_odds + counts @ np.log(mixture)
    if beta == 0.5:
        shares = data.gather(np.full(len(data.column), 1 / len(data.column)))[None]
    return Estimate(shares[0], beta, float(log_likelihood), iterations, converged and best)


def _bca(shares: _Floats, draws: _Floats, without: _Floats, level: float) -> tuple[_Floats, _Floats]:
    """Bias-corrected and accelerated intervals (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", 14.3).

    shares (columns,), draws (draws, columns), without (clusters, columns), each with one cluster left out. Draws that
    equal the share count half below it, and at least half a draw lies on either side.
    """
    from scipy.special import ndtr, ndtri

    difference, count = draws - shares, len(draws)
    below = (difference < -_SAME).mean(axis=0) + (np.abs(difference) <= _SAME).mean(axis=0) / 2
    bias = ndtri(np.clip(below, 0.5 / count, 1 - 0.5 / count))
    influence = without.mean(axis=0) - without
    spread = np.maximum((influence**2).sum(axis=0), _SAME**2)
    acceleration = (influence**3).sum(axis=0) / (6 * spread**1.5)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + ndtri(tail)
        place = ndtr(bias + shifted / np.maximum(1 - acceleration * shifted, _SAME))
        ends.append(np.array([np.quantile(draws[:, k], place[k]) for k in range(len(shares))]))
    still = np.ptp(draws, axis=0) < _SAME
    return np.where(still, np.nan, ends[0]), np.where(still, np.nan, ends[1])


def _best_shares(likelihood: _Floats, counts: _Floats, start: _Floats, tolerance: float) -> tuple[_Floats, bool]:
    """For each draw b the shares that maximise sum_i counts[b, i] log(likelihood[i] @ shares[b]), and whether all did.

    likelihood (patterns, columns), counts (draws, patterns), start (draws, columns), at which every pattern that
    counts has a likelihood above 0. The function is concave, and its mean over units is at most max_k derivative_k - 1
    below its maximum: that gap ends the climb. Each step is Newton's, towards the maximum of the second-order
    expansion over shares >= 0; that the shares sum to 1 follows from the term -sum(shares), which takes the place of
    a multiplier. With u the largest relative loss of a pattern's likelihood on the way there, going 1 / (1 + u) of the
    way never lowers the function, because -log(1 - v) <= v + v^2 / (2 (1 - v)); so no line search is needed.
    """
    shares, climbing = start.copy(), np.arange(len(start))
    upper, lower = np.triu_indices(shares.shape[1])
    products = likelihood[:, upper] * likelihood[:, lower]
    for _ in range(_STEPS):
        total = counts.sum(axis=1, keepdims=True)
        mixture = shares[climbing] @ likelihood.T  # (draws, patterns)
        ratio = np.divide(counts, mixture, out=np.zeros_like(mixture), where=counts > 0)
        gradient = ratio @ likelihood / total - 1
        short = gradient.max(axis=1) > tolerance
        if not short.any():
            return shares, True
        if not short.all():
            climbing = climbing[short]
            counts, total, mixture, ratio, gradient = (x[short] for x in (counts, total, mixture, ratio, gradient))
        mixture[counts == 0] = np.inf  # what a draw does not hold limits no step
        ratio /= mixture
        curvature = np.empty((*gradient.shape, gradient.shape[1]))
        curvature[:, upper, lower] = curvature[:, lower, upper] = ratio @ products / total
        goal = _summit(gradient, curvature, shares[climbing])
        change = (goal - shares[climbing]) @ likelihood.T
        change /= mixture
        loss = np.maximum(0, -change.min(axis=1, keepdims=True))
        moved = shares[climbing] + (goal - shares[climbing]) / (1 + loss)
        shares[climbing] = moved / moved.sum(axis=1, keepdims=True)
    return shares, False


def _summit(gradient: _Floats, curvature: _Floats, start: _Floats) -> _Floats:
    """The maximum over x >= 0 of gradient @ (x - start) - (x - start) @ curvature @ (x - start) / 2, for each draw.

    gradient and start (draws, columns), curvature (draws, columns, columns), positive semidefinite. The active-set
    method of Lawson and Hanson (1974, "Solving Least Squares Problems", chapter 23): solve for the free coordinates,
    stop where one of them reaches 0 and bind it, else free the bound one of steepest slope. No move lowers the
    objective, so the answer serves `_best_shares` even where the rounds do not suffice.
    """
    x, slope, free = start.copy(), gradient.copy(), start > 0
    columns = x.shape[1]
    identity, ridge = np.eye(columns), _RIDGE * (1 + np.einsum("bkk->bk", curvature))
    for _ in range(5 * columns):
        system = np.where(free[:, :, None] & free[:, None, :], curvature, 0)
        system += identity * np.where(free, ridge, 1)[:, None, :]
        direction = np.linalg.solve(system, np.where(free, slope, 0)[:, :, None])[:, :, 0]
        crossing = x + direction < 0
        reach = np.where(crossing, x / np.where(crossing, -direction, 1), np.inf)
        nearest = reach.min(axis=1, keepdims=True)
        change = np.where(reach <= np.minimum(1, nearest), -x, np.minimum(1, nearest) * direction)
        x += change
        slope -= (curvature @ change[:, :, None])[:, :, 0]
        free &= x > 0
        steepest = np.where(free, -np.inf, slope).argmax(axis=1, keepdims=True)
        solved = nearest == np.inf
        freed = solved & (np.take_along_axis(slope, steepest, axis=1) > _FLAT)
        if (solved & ~freed).all():
            break
        free |= freed & (np.arange(columns) == steepest)
    return x


def _distinct_rows(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The distinct rows, sorted, and for each row its place among them; much faster than `np.unique` over an axis."""
    order = np.lexsort(table.T[::-1])
    new = np.ones(len(table), np.bool_)
    new[1:] = (table[order[1:]] != table[order[:-1]]).any(axis=1)
    place = np.empty(len(table), np.intp)
    place[order] = np.cumsum(new) - 1
    return table[order[new]], place
