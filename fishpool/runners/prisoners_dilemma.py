"""Plays a shard of the iterated prisoner's dilemma: every pair of players, self-play included, for every seed.

Scripted pairs are played many matches at a time in columns; whatever cannot be (a strategy that raises) goes through
the referee match by match, with the same draws, so that both ways give the same records. The rules are in
`fishpool.games.prisoners_dilemma`.
"""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fishpool import __version__, records
from fishpool.games import prisoners_dilemma as rules
from fishpool.games.prisoners_dilemma import Choice, Match, Move, Parameters
from fishpool.players.scripted import STRATEGIES, History, Strategy, no_luck
from fishpool.records import Ending, Status
from fishpool.referee import Player, Turn, ask
from fishpool.seeds import draw, name_key, uniforms
from fishpool.shards import Shard

if TYPE_CHECKING:
    import polars as pl

GAME = "prisoners_dilemma"
_MATCHES_AT_ONCE = 10_000  # bounds the memory of a job whatever the size of its shard


class Pairing(NamedTuple):
    """One match to be played: two players in seat order and the seed of its draws."""

    seed: int
    players: tuple[str, str]


@dataclass(frozen=True)
class Played:
    """A match with, for each round that was begun, what the referee made of both turns."""

    match: Match
    turns: Sequence[Mapping[str, Move]]
    flips: Sequence[Mapping[str, bool]]


class StrategyError(Exception):
    """A scripted strategy raised while playing in columns."""

    def __init__(self, strategy: Strategy):
        super().__init__(strategy.name)
        self.strategy = strategy


def pairings(shard: Shard) -> list[Pairing]:
    """All matches of a shard in their canonical order: by seed, then by the players' order in the config."""
    names = [player.name for player in shard.players]
    return [Pairing(seed, pair) for seed in shard.seeds for pair in combinations_with_replacement(names, 2)]


def number_of_runs(shard: Shard) -> int:
    return len(shard.seeds) * len(shard.players) * (len(shard.players) + 1) // 2


def play(shard: Shard) -> Iterator[dict[str, pl.DataFrame]]:
    """Play all matches; yields frames of `runs` and `turns`, some thousand matches at a time, in canonical order."""
    strategies = {player.name: STRATEGIES[player.strategy] for player in shard.players}
    parameters = Parameters(**{**shard.parameters, "agent_ids": tuple(shard.parameters["agent_ids"])})
    todo = pairings(shard)
    for start in range(0, len(todo), _MATCHES_AT_ONCE):
        yield _play_batch(shard, parameters, strategies, todo[start : start + _MATCHES_AT_ONCE])


def _play_batch(
    shard: Shard, parameters: Parameters, strategies: Mapping[str, Strategy], batch: Sequence[Pairing]
) -> dict[str, pl.DataFrame]:
    """All in columns; if a strategy raises there, its matches are refereed one by one, so that only those end void."""
    import polars as pl

    broken: set[str] = set()
    while True:
        refereed = [pairing for pairing in batch if not broken.isdisjoint(strategies[p].name for p in pairing.players)]
        together = [pairing for pairing in batch if broken.isdisjoint(strategies[p].name for p in pairing.players)]
        try:
            done, submitted = play_in_columns(together, strategies, parameters)
            break
        except StrategyError as error:
            broken.add(error.strategy.name)
    frames = _frames_of_columns(shard, parameters, together, done, submitted)
    if not refereed:
        return frames
    played = asyncio.run(_referee_all(refereed, strategies, parameters, shard.turn_timeout))
    extra = _frames_of_matches(shard, parameters, refereed, played)
    canonical = pl.DataFrame({"run_id": [_run_id(shard, pairing) for pairing in batch]})
    return {
        table: canonical.join(pl.concat([frames[table], extra[table]]), on="run_id", maintain_order="left_right")
        for table in frames
    }


# ── In columns ───────────────────────────────────────────────────────────────────────────────────────────────────


def play_in_columns(
    batch: Sequence[Pairing], strategies: Mapping[str, Strategy], parameters: Parameters
) -> tuple[np.ndarray, np.ndarray]:
    """Choices (after noise, as submitted), both bool of shape (rounds, matches, seats), True is cooperate.

    A *side* is one agent in one match. Sides are sorted by strategy, so that each strategy is asked once a round for
    all its sides, which lie next to each other.
    """
    rounds, matches = parameters.rounds, len(batch)
    pairs: dict[tuple[str, str], int] = {}
    pair = np.array([pairs.setdefault(pairing.players, len(pairs)) for pairing in batch], np.int64)
    kinds: dict[Strategy, int] = {}
    of_pairs = [[kinds.setdefault(strategies[name], len(kinds)) for name in players] for players in pairs]
    kind = np.array(of_pairs, np.int64)[pair].ravel()
    order = np.argsort(kind, kind="stable")  # which side (2 * match + seat) stands where
    place = np.empty_like(order)  # where a side stands
    place[order] = np.arange(len(order))
    partner = place[order ^ 1]
    seeds = np.array([pairing.seed for pairing in batch], np.uint64).repeat(2)[order]

    def keys(stream: str) -> np.ndarray:  # of each side, as they stand
        by_pair = [[name_key(stream, *players, seat) for seat in (0, 1)] for players in pairs]
        return np.array(by_pair, np.uint64)[pair].ravel()[order]

    policy, steps = keys("policy"), np.arange(rounds)[:, None]
    submitted = np.empty((rounds, 2 * matches), bool)
    flips = uniforms(seeds, keys("noise"), steps) < parameters.noise if parameters.noise else None
    done = submitted if flips is None else np.empty_like(submitted)
    other = np.empty_like(submitted)
    askable = []
    bounds = np.searchsorted(kind[order], np.arange(len(kinds) + 1))
    for strategy, sides in zip(kinds, map(slice, bounds[:-1], bounds[1:]), strict=True):
        luck = uniforms(seeds[sides], policy[sides], steps).__getitem__ if strategy.stochastic else no_luck
        askable.append((strategy, sides, History(done[:, sides], other[:, sides], rounds, luck)))
    for resolved in range(rounds):
        for strategy, sides, history in askable:
            history.resolved = resolved
            try:
                submitted[resolved, sides] = strategy.choose(history)
            except Exception as error:
                raise StrategyError(strategy) from error
        if flips is not None:
            np.not_equal(submitted[resolved], flips[resolved], out=done[resolved])
        np.take(done[resolved], partner, out=other[resolved])
    shape = (rounds, matches, 2)
    return done[:, place].reshape(shape), submitted[:, place].reshape(shape)


# ── Through the referee ──────────────────────────────────────────────────────────────────────────────────────────


class ScriptedPlayer:
    """A scripted strategy as a player of one match: it reads its view and nothing else, as a batch of one."""

    def __init__(self, strategy: Strategy, luck: Callable[[int], np.ndarray]):
        self._strategy = strategy
        self._luck = luck

    async def act(self, view: Mapping[str, Any]) -> str:
        own, other = (
            np.array([[past["choices"][who] == "cooperate"] for past in view["history"]], bool).reshape(-1, 1)
            for who in (view["you"], next(who for who in view["scores"] if who != view["you"]))
        )
        history = History(own, other, view["totalRounds"], self._luck, resolved=view["turnNumber"])
        cooperates = bool(self._strategy.choose(history)[0])
        return json.dumps({"type": "choose", "choice": Choice.COOPERATE if cooperates else Choice.DEFECT})


async def referee_match(
    players: Mapping[str, Player],
    parameters: Parameters,
    turn_timeout: float,
    flip: Callable[[int, int], bool] = lambda seat, resolved: False,
) -> Played:
    """Play one match between any two players. `flip(seat, resolved rounds)` says whether noise turns that choice."""
    match = Match(parameters.agent_ids, parameters.rounds)
    turns: list[Mapping[str, Move]] = []
    flipped: list[Mapping[str, bool]] = []
    while match.result is None:
        asked = await asyncio.gather(
            *(ask(players[agent], rules.view(match, agent), rules.read_action, turn_timeout) for agent in match.agents)
        )
        moves = {agent: _as_move(turn) for agent, turn in zip(match.agents, asked, strict=True)}
        flips = {agent: flip(seat, len(match.history)) for seat, agent in enumerate(match.agents)}
        match = rules.settle(match, moves, flips)
        turns.append(moves)
        flipped.append(flips)
    return Played(match, turns, flipped)


def _as_move(turn: Turn) -> Move:
    if turn.status is not Status.MOVED:
        return Move(turn.status, fault=turn.fault)
    if turn.action == rules.RESIGN:
        return Move(Status.RESIGNED)
    return Move(Status.MOVED, choice=turn.action)


async def _referee_all(
    batch: Sequence[Pairing], strategies: Mapping[str, Strategy], parameters: Parameters, turn_timeout: float
) -> list[Played]:
    return [await _referee_scripted(pairing, strategies, parameters, turn_timeout) for pairing in batch]


async def _referee_scripted(
    pairing: Pairing, strategies: Mapping[str, Strategy], parameters: Parameters, turn_timeout: float
) -> Played:
    def luck(stream: str, seat: int, resolved: int) -> float:
        return draw(pairing.seed, stream, *pairing.players, seat, counter=resolved)

    def policy(seat: int, resolved: int) -> np.ndarray:
        return np.array([luck("policy", seat, resolved)])

    def flip(seat: int, resolved: int) -> bool:
        return luck("noise", seat, resolved) < parameters.noise

    players = {
        agent: ScriptedPlayer(strategies[name], partial(policy, seat))
        for seat, (agent, name) in enumerate(zip(parameters.agent_ids, pairing.players, strict=True))
    }
    return await referee_match(players, parameters, turn_timeout, flip)


# ── Writing down ─────────────────────────────────────────────────────────────────────────────────────────────────


def _run_id(shard: Shard, pairing: Pairing) -> str:
    return ":".join((shard.study, shard.condition, str(pairing.seed), *pairing.players))


_ACTIONS = {choice: json.dumps({"type": "choose", "choice": choice}) for choice in Choice}


def _runs_frame(
    shard: Shard, parameters: Parameters, batch: Sequence[Pairing], values: Mapping[str, Any]
) -> pl.DataFrame:
    """The `runs` frame: what all matches of a shard have in common, beside the `values` that differ."""
    everywhere = {
        "study": shard.study,
        "game": GAME,
        "condition": shard.condition,
        "parameters": json.dumps(shard.parameters, sort_keys=True),
        "fishpool_version": __version__,
        "versions": json.dumps({"python": platform.python_version(), "numpy": np.__version__}),
    }
    return records.frame(
        GAME,
        "runs",
        {
            "run_id": [_run_id(shard, pairing) for pairing in batch],
            "seed": [pairing.seed for pairing in batch],
            "agents": [json.dumps(dict(zip(parameters.agent_ids, pairing.players, strict=True))) for pairing in batch],
            **{name: [value] * len(batch) for name, value in everywhere.items()},
            **values,
        },
    )


def _frames_of_columns(
    shard: Shard, parameters: Parameters, batch: Sequence[Pairing], done: np.ndarray, submitted: np.ndarray
) -> dict[str, pl.DataFrame]:
    """Frames of matches that were all played to the end; arrays of shape (rounds, matches, seats)."""
    import polars as pl

    rounds, matches, _ = done.shape
    points = rules.points_in_columns(done, done[:, :, ::-1])
    totals = points.sum(axis=0)  # (matches, seats)
    # 0: a draw, 1: the first agent leads, 2: the second
    leader = np.select([totals[:, 0] > totals[:, 1], totals[:, 0] < totals[:, 1]], [1, 2], 0)
    winners = pl.Series([None, *parameters.agent_ids], dtype=pl.String)
    runs = {
        "ending": [Ending.COMPLETED] * matches,
        "end_reason": [f"all {rounds} rounds played"] * matches,
        "rounds": [rounds] * matches,
        "winner": winners.gather(leader),
        "turn_records": [2 * rounds] * matches,
    }

    def by_turn(array: np.ndarray) -> np.ndarray:  # (rounds, matches, seats) -> one value a turn, in order of play
        return array.transpose(1, 0, 2).ravel()

    turns = matches * rounds * 2
    in_match = np.arange(matches).repeat(rounds * 2)
    names = pl.Series([name for pairing in batch for name in pairing.players], dtype=pl.String)
    seat = np.tile([0, 1], matches * rounds)
    choices = pl.Series([Choice.DEFECT, Choice.COOPERATE], dtype=pl.String)
    actions = pl.Series([_ACTIONS[Choice.DEFECT], _ACTIONS[Choice.COOPERATE]], dtype=pl.String)
    turn_values = {
        "run_id": pl.Series([_run_id(shard, pairing) for pairing in batch], dtype=pl.String).gather(in_match),
        "round": np.tile(np.arange(1, rounds + 1).repeat(2), matches),
        "phase": pl.repeat("choose", turns, eager=True),
        "agent": pl.Series(parameters.agent_ids, dtype=pl.String).gather(seat),
        "player": names.gather(2 * in_match + seat),
        "action": actions.gather(by_turn(submitted).astype(np.int64)),
        "status": pl.repeat(Status.MOVED.value, turns, eager=True),
        "fallback": np.zeros(turns, bool),
        "attempts": np.ones(turns, np.int64),
        "choice": choices.gather(by_turn(done).astype(np.int64)),
        "flipped": by_turn(done != submitted),
        "payoff": by_turn(points),
    }
    return {
        "runs": _runs_frame(shard, parameters, batch, runs),
        "turns": records.frame(GAME, "turns", turn_values),
    }


def _frames_of_matches(
    shard: Shard, parameters: Parameters, batch: Sequence[Pairing], played: Sequence[Played]
) -> dict[str, pl.DataFrame]:
    """Frames of refereed matches, which may have ended in any way."""
    results = [game.match.result for game in played if game.match.result]
    runs = {
        "ending": [result.ending for result in results],
        "end_reason": [result.reason for result in results],
        "rounds": [len(game.match.history) for game in played],
        "winner": [result.winner for result in results],
        "turn_records": [2 * len(game.turns) for game in played],
    }
    rows = [
        row
        for pairing, game in zip(batch, played, strict=True)
        for row in _turn_rows(_run_id(shard, pairing), pairing, game)
    ]
    turns = {name: [row[name] for row in rows] for name in records.schema(GAME, "turns")}
    return {"runs": _runs_frame(shard, parameters, batch, runs), "turns": records.frame(GAME, "turns", turns)}


def _turn_rows(run_id: str, pairing: Pairing, game: Played) -> Iterator[dict[str, Any]]:
    for resolved, (moves, flips) in enumerate(zip(game.turns, game.flips, strict=True)):
        scored = game.match.history[resolved] if resolved < len(game.match.history) else None
        for agent, player in zip(game.match.agents, pairing.players, strict=True):
            move = moves[agent]
            resign = json.dumps({"type": rules.RESIGN}) if move.status is Status.RESIGNED else None
            yield {
                "run_id": run_id,
                "round": resolved + 1,
                "phase": "choose",
                "agent": agent,
                "player": player,
                "action": _ACTIONS[move.choice] if move.choice else resign,
                "status": move.status,
                "fallback": False,
                "attempts": 1,
                "choice": scored.choices[agent] if scored else None,
                "flipped": bool(scored and flips[agent]),
                "payoff": scored.points[agent] if scored else None,
            }
