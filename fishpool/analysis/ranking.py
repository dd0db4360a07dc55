"""Rankings of players from matches: ranks by mean score, and strengths from wins, losses and draws.

A rank comes with its interval over resampled seeds, a strength with its standard error; neither is a test of who is
better, and neither decides which matches count (the caller leaves out self-play and void matches).
Source: Davidson (1970), "On extending the Bradley-Terry model to accommodate ties in paired comparison experiments",
JASA 65, 317-328; Ford (1957), "Solution of a ranking problem from binary comparisons", American Mathematical Monthly
64(8), 28-33; Liang and Zeger (1986), "Longitudinal data analysis using generalized linear models", Biometrika 73,
13-22, for the standard errors clustered by seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, bellman_ford, connected_components
from scipy.special import stdtrit, xlogy

from fishpool.analysis.inference import LEVEL, resampled_ratios

if TYPE_CHECKING:
    import polars as pl

# Relative to the largest mean score: means that differ by less differ by float noise, and are tied.
_NOISE = 1e-9
_STEPS = 100
_CONVERGED = 1e-10

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Davidson:
    """A fit of `davidson`: natural-log strengths with mean 0, and the tie parameter nu.

    `strengths` and `standard_errors` have shape (players,). `reason` says in one clause why there are no finite
    strengths (all NaN, `tie_parameter` too); None if there are. A player without a match is NaN in either case.
    """

    strengths: _Floats
    standard_errors: _Floats
    tie_parameter: float
    reason: str | None = None


def mean_score_ranks(scores: ArrayLike, matches: ArrayLike = 1.0) -> tuple[_Floats, _Floats, _Floats]:
    """Rank of each player by mean score a match (1 = best, ties share the best rank), and its 95 % interval.

    `scores` has shape (seeds, players): the sum of a player's scores in that seed, over the `matches` (the same shape)
    it played there; with the default, its mean score. The mean is the ratio of the two sums over seeds.

    Returns (rank, low, high), whole numbers as floats of shape (players,): low and high are the 2.5 % and 97.5 %
    quantiles of the rank over resampled seeds. NaN for a player without a match; low and high are NaN for everyone if
    there are fewer than two seeds, or if every seed tells the same.
    """
    scores = np.asarray(scores, np.float64)
    matches = np.broadcast_to(np.asarray(matches, np.float64), scores.shape)
    means, replicates = resampled_ratios(scores, matches)  # shapes (players,), (players, draws)
    rank = _ranks(means[:, None])[:, 0]
    low, high = np.full(len(rank), np.nan), np.full(len(rank), np.nan)
    if len(scores) > 1 and not (_all_rows_same(scores) and _all_rows_same(matches)):
        tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
        for player, ranks in enumerate(_ranks(replicates)):
            if not np.isnan(rank[player]):  # the method takes a rank that occurred, never one between two
                low[player], high[player] = np.quantile(ranks[~np.isnan(ranks)], tails, method="inverted_cdf")
    return rank, low, high


def davidson(wins: ArrayLike, ties: ArrayLike) -> Davidson:
    """Maximum likelihood of Bradley-Terry with ties, each match counted once.

    `wins[i, j]` is how often player i beat player j, `ties[i, j] == ties[j, i]` how often the two drew; both have shape
    (players, players) and a zero diagonal. With p the strengths and nu the tie parameter,

        P(i beats j) = p_i / (p_i + p_j + nu sqrt(p_i p_j)),    P(draw) = nu sqrt(p_i p_j) / (the same sum)

    Strengths are log p with mean 0. Without a draw nu is 0 and the model is plain Bradley-Terry. Standard errors come
    from the observed information, as if matches were independent; `rank_players` clusters them by seed instead.

    The maximum lies at finite strengths, and only there, if both hold:

    - the graph "beat or drew with" is strongly connected (Ford 1957: however the players are split in two, someone of
      each side beat or drew with someone of the other);
    - unless there is no draw: some cycle of that graph holds more wins than draws. Otherwise there are strengths s with
      s_i >= s_j + 2 wherever i beat j and |s_i - s_j| <= 2 wherever they drew, and moving along (s, 1) in the
      strengths and log nu raises the likelihood for ever. (A beats B, both draw with C: connected, yet unbounded.)

    If not, no player has a finite strength, across components or within one: everything is NaN and `reason` says why.

    Raises ValueError for matrices of another shape, counts negative or not finite, a filled diagonal, asymmetric ties.
    """
    wins, ties = np.asarray(wins, np.float64), np.asarray(ties, np.float64)
    if wins.ndim != 2 or wins.shape[0] != wins.shape[1] or wins.shape != ties.shape:
        raise ValueError(f"wins have shape {wins.shape} and ties {ties.shape}; both must be (players, players).")
    if not (np.isfinite(wins).all() and np.isfinite(ties).all()) or (wins < 0).any() or (ties < 0).any():
        raise ValueError("wins and ties are counts of matches; found one that is negative or not finite.")
    if wins.diagonal().any() or ties.diagonal().any():
        raise ValueError("a player has matches against itself; leave self-play out.")
    if (ties != ties.T).any():
        raise ValueError("ties are not symmetric; a draw of i with j is a draw of j with i.")

    played = np.flatnonzero((wins + wins.T + ties).any(axis=1))
    fit = _fit(wins[np.ix_(played, played)], ties[np.ix_(played, played)])
    strengths, errors = np.full(len(wins), np.nan), np.full(len(wins), np.nan)
    strengths[played], errors[played] = fit.strengths, fit.standard_errors
    return Davidson(strengths, errors, fit.tie_parameter, fit.reason)


def rank_players(sides: pl.LazyFrame) -> pl.DataFrame:
    """Rank intervals and strengths of the players of every (study, condition).

    `sides` has the columns study, condition, seed, player, opponent, score and outcome (`win`, `loss`, `draw`, `void`)
    of table `pd_individual`: two rows a match, one from each side. Self-play and void matches are left out.

    Returns one row a player, sorted: study, condition, player, rank_low, rank_high, strength, strength_low,
    strength_high, tie_parameter. Ranks are those of `mean_score_ranks`, strengths those of `davidson`. The interval of
    a strength is its 95 % Wald interval with standard errors clustered by seed (a sandwich with Student's t on seeds -
    1 degrees of freedom): scripted players play the same match again in every seed, and copies are not evidence. Null
    where undefined.

    Raises ValueError for an outcome of another name, a missing score, or a match not seen from both sides.
    """
    import polars as pl

    schema = pl.Schema(
        {
            **dict.fromkeys(("study", "condition", "player"), pl.String()),
            **dict.fromkeys(("rank_low", "rank_high"), pl.Int64()),
            **dict.fromkeys(("strength", "strength_low", "strength_high", "tie_parameter"), pl.Float64()),
        }
    )
    columns = ("study", "condition", "seed", "player", "opponent", "score", "outcome")
    groups = sides.select(columns).sort("study", "condition").collect().partition_by("study", "condition")
    return pl.concat([pl.DataFrame(schema=schema), *(_rank_group(group).cast(schema) for group in groups)])


def _ranks(scores: _Floats) -> _Floats:
    """1 + how many players score more, in each column; shape (players, columns) to the same, NaN where NaN."""
    noise = _NOISE * np.max(np.abs(scores), initial=0.0, where=~np.isnan(scores))
    ranks = np.array([1.0 + (scores > own + noise).sum(axis=0) for own in scores]).reshape(scores.shape)
    return np.where(np.isnan(scores), np.nan, ranks)


def _all_rows_same(table: _Floats) -> bool:
    return np.allclose(table, table[0], rtol=_NOISE, atol=0.0, equal_nan=True)


def _fit(wins: _Floats, ties: _Floats) -> Davidson:
    """`davidson` among players who all have a match."""
    players = len(wins)
    reason = _why_unbounded(wins, ties)
    if reason:
        return Davidson(np.full(players, np.nan), np.full(players, np.nan), np.nan, reason)

    drawn = ties.sum() / (ties.sum() + 2 * wins.sum())
    start = np.zeros(players + 1)  # the strengths, then log nu; this nu is the answer if all are equally strong
    start[-1] = np.log(2 * drawn / (1 - drawn)) if drawn else -np.inf
    parameters = _newton(wins, ties, start)
    covariance = np.linalg.inv(_information(wins, ties, parameters))
    # `_information` holds the strengths' common level in place; it is no part of their variance.
    variance = covariance.diagonal()[:-1] - covariance[:-1, :-1].mean()
    return Davidson(parameters[:-1], np.sqrt(variance), float(np.exp(parameters[-1])))


def _newton(wins: _Floats, ties: _Floats, parameters: _Floats) -> _Floats:
    """The maximum of the log-likelihood, which is concave: full steps, halved while they overshoot."""
    value = _log_likelihood(wins, ties, parameters)
    for _ in range(_STEPS):
        step = np.linalg.solve(_information(wins, ties, parameters), _score(wins, ties, parameters))
        while (trial := _log_likelihood(wins, ties, parameters + step)) < value and np.abs(step).max() > _CONVERGED:
            step /= 2
        parameters, value = parameters + step, trial
        if np.abs(step).max() <= _CONVERGED:
            parameters[:-1] -= parameters[:-1].mean()
            return parameters
    raise RuntimeError(f"no maximum of the likelihood of {len(wins)} players' matches within {_STEPS} Newton steps.")


def _probabilities(parameters: _Floats) -> tuple[_Floats, _Floats]:
    """P(i beats j) and P(i and j draw), each of shape (players, players)."""
    half = (parameters[:-1, None] - parameters[None, :-1]) / 2
    largest = np.maximum(np.abs(half), parameters[-1])
    win, loss, draw = (np.exp(term - largest) for term in (half, -half, np.full_like(half, parameters[-1])))
    total = win + loss + draw
    return win / total, draw / total


def _log_likelihood(wins: _Floats, ties: _Floats, parameters: _Floats) -> float:
    beats, draws = _probabilities(parameters)
    return float(xlogy(wins, beats).sum() + xlogy(ties, draws).sum() / 2)


def _score(wins: _Floats, ties: _Floats, parameters: _Floats) -> _Floats:
    """Gradient of the log-likelihood; counts of shape (..., players, players) to (..., players + 1)."""
    beats, draws = _probabilities(parameters)
    losses = np.swapaxes(wins, -1, -2)
    matches = wins + losses + ties
    by_strength = ((wins - losses) - matches * (beats - beats.T)).sum(axis=-1) / 2
    by_log_nu = (ties - matches * draws).sum(axis=(-1, -2)) / 2  # each draw stands in both triangles
    return np.concatenate([by_strength, by_log_nu[..., None]], axis=-1)


def _information(wins: _Floats, ties: _Floats, parameters: _Floats) -> _Floats:
    """Minus the second derivative of the log-likelihood, made invertible; shape (players + 1, players + 1).

    The likelihood does not depend on the strengths' common level, and not on log nu where nu is 0. A constant added to
    the block of the strengths, a 1 in the place of log nu, leave every other direction alone and the first two at rest.
    """
    beats, draws = _probabilities(parameters)
    matches = wins + wins.T + ties
    edge = (beats - beats.T) / 2  # expected win (1/2), loss (-1/2) or draw (0)
    weight = matches * ((beats + beats.T) / 4 - edge**2)
    information = np.empty((len(wins) + 1, len(wins) + 1))
    information[:-1, :-1] = np.diag(weight.sum(axis=1)) - weight + weight.mean()
    information[:-1, -1] = information[-1, :-1] = -(matches * edge * draws).sum(axis=1)
    information[-1, -1] = (matches * draws * (1 - draws)).sum() / 2 if ties.any() else 1.0
    return information


def _why_unbounded(wins: _Floats, ties: _Floats) -> str | None:
    """Why the likelihood has no maximum at finite strengths; None if it has one (the conditions of `davidson`)."""
    if len(wins) < 2:
        return "fewer than two players have a match"
    groups, _ = connected_components(csr_array((wins + ties) > 0), directed=True, connection="strong")
    if groups > 1:
        return f"the players fall into {groups} groups that beat or drew with one another in one direction at most"
    if not ties.any():
        return None
    # A win is a step of -1, a draw one of 1: a cycle with more wins than draws is one of negative length.
    try:
        bellman_ford(csr_array(np.where(wins > 0, -1.0, (ties > 0) * 1.0)), indices=0)
    except NegativeCycleError:
        return None
    return "no cycle of players, each of whom beat or drew with the next, holds more wins than draws"


def _rank_group(frame: pl.DataFrame) -> pl.DataFrame:
    """`rank_players` for one (study, condition)."""
    import polars as pl

    study, condition = frame["study"][0], frame["condition"][0]
    place = f"study {study!r}, condition {condition!r}"
    rows = frame.filter(pl.col("player") != pl.col("opponent"), pl.col("outcome").ne_missing("void"))
    unknown = sorted(map(repr, set(rows["outcome"].unique()) - {"win", "loss", "draw"}))
    if unknown:
        raise ValueError(f"{place}: found the outcome {unknown[0]}; it must be win, loss, draw or void.")
    players = pl.concat([frame["player"], frame["opponent"]]).unique().sort()
    seeds = rows["seed"].unique().sort()
    seed, player, opponent = (
        rows[column].replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
        for column, names in (("seed", seeds), ("player", players), ("opponent", players))
    )
    shape = (len(seeds), len(players), len(players))

    def total(values: pl.Series) -> _Floats:
        """Sum of a column's values by seed, player and opponent; axes in this order."""
        cell = np.ravel_multi_index((seed, player, opponent), shape)
        sums = np.bincount(cell, values.cast(pl.Float64).to_numpy(), int(np.prod(shape)))
        return np.asarray(sums, np.float64).reshape(shape)

    wins, losses, ties = (total(rows["outcome"] == outcome) for outcome in ("win", "loss", "draw"))
    one_sided = np.argwhere((wins != np.swapaxes(losses, 1, 2)) | (ties != np.swapaxes(ties, 1, 2)))
    if len(one_sided):
        s, i, j = one_sided[0]
        raise ValueError(
            f"{place}, seed {seeds[int(s)]}: the matches of {players[int(i)]!r} against {players[int(j)]!r} do not "
            "mirror those of the opponent; a match needs one row from each side, a win and a loss or two draws."
        )
    _, rank_low, rank_high = mean_score_ranks(total(rows["score"]).sum(axis=2), (wins + losses + ties).sum(axis=2))
    fit = davidson(wins.sum(axis=0), ties.sum(axis=0))
    margin = _clustered_margin(fit, wins, ties)
    return pl.DataFrame(
        {
            "study": np.full(len(players), study),
            "condition": np.full(len(players), condition),
            "player": players,
            "rank_low": rank_low,
            "rank_high": rank_high,
            "strength": fit.strengths,
            "strength_low": fit.strengths - margin,
            "strength_high": fit.strengths + margin,
            "tie_parameter": np.full(len(players), fit.tie_parameter),
        },
        nan_to_null=True,
    )


def _clustered_margin(fit: Davidson, wins: _Floats, ties: _Floats) -> _Floats:
    """Half the width of the interval of each strength; counts of shape (seeds, players, players) to (players,)."""
    seeds, players, _ = wins.shape
    margin = np.full(players, np.nan)
    played = np.flatnonzero(~np.isnan(fit.strengths))
    if seeds < 2 or not len(played):
        return margin
    wins, ties = (counts[:, played[:, None], played] for counts in (wins, ties))
    parameters = np.append(fit.strengths[played], np.log(fit.tie_parameter) if fit.tie_parameter else -np.inf)
    information = _information(wins.sum(axis=0), ties.sum(axis=0), parameters)
    influence = np.linalg.solve(information, _score(wins, ties, parameters).T)[:-1]  # shape (players, seeds)
    error = np.sqrt(seeds / (seeds - 1) * (influence**2).sum(axis=1))
    margin[played] = np.where(error > _NOISE, stdtrit(seeds - 1, (1 + LEVEL) / 2) * error, np.nan)
    return margin
