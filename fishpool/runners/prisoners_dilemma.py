"""Plays a shard of the iterated prisoner's dilemma: every pair of players, self-play included, for every seed.

Scripted pairs are played many matches at a time in columns; whatever cannot be (a model, a bot, a strategy that raises)
goes through the referee match by match, with the same draws, so that both ways give the same records. The rules are in
`fishpool.games.prisoners_dilemma`.
"""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from itertools import combinations_with_replacement, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fishpool import __version__, records
from fishpool.games import prisoners_dilemma as rules
from fishpool.games.prisoners_dilemma import Choice, Match, Move, Parameters
from fishpool.players.scripted import STRATEGIES, History, Strategy, no_luck
from fishpool.records import Ending, Status
from fishpool.referee import Player, Turn, ask
from fishpool.runners.replies import replies_frame, reply_rows
from fishpool.seats import SCRIPTED, Seat, Table, outsiders, side_by_side
from fishpool.seeds import draw, name_key, uniforms
from fishpool.shards import Shard, Site

if TYPE_CHECKING:
    import polars as pl

GAME = "prisoners_dilemma"
_MATCHES_AT_ONCE = 10_000  # bounds the memory of a job whatever the size of its shard
_MATCHES_WITH_OUTSIDERS = 50  # between two words of progress
_ANYWHERE = Site()


class Pairing(NamedTuple):
    """One match to be played: two players in seat order and the seed of its draws."""

    seed: int
    players: tuple[str, str]


@dataclass(frozen=True)
class Played:
    """A match with, for each round that was begun, what the referee made of both turns."""

    match: Match
    turns: Sequence[Mapping[str, Turn]]
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


def play(shard: Shard, site: Site = _ANYWHERE) -> Iterator[dict[str, pl.DataFrame]]:
    """Play all matches; yields frames of `runs` and `turns` (and `replies`, with a model), in canonical order."""
    return play_pairings(shard, pairings(shard), site)


def play_pairings(shard: Shard, todo: Sequence[Pairing], site: Site = _ANYWHERE) -> Iterator[dict[str, pl.DataFrame]]:
    """The same for some matches between a shard's players, in their order."""
    strategies = {
        player.name: STRATEGIES[player.settings["strategy"]] for player in shard.players if player.kind == SCRIPTED
    }
    parameters = _parameters(shard)
    outside = outsiders(shard)
    met = [pairing for pairing in todo if not outside.isdisjoint(pairing.players)]
    refereed = side_by_side(shard, site, met, partial(_referee_outsiders, shard, strategies, parameters))
    at_once = _MATCHES_WITH_OUTSIDERS if met else _MATCHES_AT_ONCE
    with closing(refereed) as matches:
        for start in range(0, len(todo), at_once):
            yield _play_batch(shard, parameters, strategies, todo[start : start + at_once], matches)


def _parameters(shard: Shard) -> Parameters:
    """The parameters of the rules; others, such as labels, only say how models are asked."""
    values = {field.name: shard.parameters[field.name] for field in fields(Parameters)}
    return Parameters(**{**values, "agent_ids": tuple(values["agent_ids"])})


def _play_batch(
    shard: Shard,
    parameters: Parameters,
    strategies: Mapping[str, Strategy],
    batch: Sequence[Pairing],
    matches: Iterator[tuple[Played, Table]],
) -> dict[str, pl.DataFrame]:
    """Scripted pairs in columns; if a strategy raises there, its matches are refereed, so that only those end void.

    `matches` gives the matches of all other pairs in their order.
    """
    import polars as pl

    met = [pairing for pairing in batch if not all(name in strategies for name in pairing.players)]
    scripted = [pairing for pairing in batch if all(name in strategies for name in pairing.players)]
    broken: set[str] = set()
    while True:
        alone = [pairing for pairing in scripted if not broken.isdisjoint(strategies[p].name for p in pairing.players)]
        together = [pairing for pairing in scripted if broken.isdisjoint(strategies[p].name for p in pairing.players)]
        try:
            done, submitted = play_in_columns(together, strategies, parameters)
            break
        except StrategyError as error:
            broken.add(error.strategy.name)
    frames = [_frames_of_columns(shard, parameters, together, done, submitted)]
    if alone:
        played = asyncio.run(_referee_all(alone, strategies, parameters, shard.turn_timeout))
        frames.append(frames_of_matches(shard, parameters, alone, played))
    if met:
        results, tables = zip(*islice(matches, len(met)), strict=True)
        frames.append(frames_of_matches(shard, parameters, met, results, tables[0].versions()))
    if len(frames) == 1:
        return frames[0]
    canonical = pl.DataFrame({"run_id": [_run_id(shard, pairing) for pairing in batch]})
    return {
        table: canonical.join(pl.concat([some[table] for some in frames]), on="run_id", maintain_order="left_right")
        for table in shard.tables
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


class ScriptedPlayer(Player):
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
    turns: list[Mapping[str, Turn]] = []
    flipped: list[Mapping[str, bool]] = []
    try:
        while match.result is None:
            asked = await asyncio.gather(
                *(
                    ask(players[agent], rules.view(match, agent), rules.read_action, turn_timeout)
                    for agent in match.agents
                )
            )
            turns.append(dict(zip(match.agents, asked, strict=True)))
            flips = {agent: flip(seat, len(match.history)) for seat, agent in enumerate(match.agents)}
            match = rules.settle(match, {agent: as_move(turn) for agent, turn in turns[-1].items()}, flips)
            flipped.append(flips)
    finally:
        for player in players.values():
            await player.close()
    return Played(match, turns, flipped)


def as_move(turn: Turn) -> Move:
    """What the game's rules need to know of a turn; a legal action is a choice or `rules.RESIGN`."""
    if turn.status not in (Status.MOVED, Status.REPAIRED):
        return Move(turn.status, fault=turn.fault)
    if turn.action == rules.RESIGN:
        return Move(Status.RESIGNED)
    return Move(turn.status, choice=turn.action)


async def _referee_all(
    batch: Sequence[Pairing], strategies: Mapping[str, Strategy], parameters: Parameters, turn_timeout: float
) -> list[Played]:
    return [
        await referee_match(
            {
                agent: _scripted(pairing, strategies[name], seat)
                for seat, (agent, name) in enumerate(zip(parameters.agent_ids, pairing.players, strict=True))
            },
            parameters,
            turn_timeout,
            partial(_flip, pairing, parameters.noise),
        )
        for pairing in batch
    ]


async def _referee_outsiders(
    shard: Shard, strategies: Mapping[str, Strategy], parameters: Parameters, table: Table, pairing: Pairing
) -> Played:
    """A match in which at least one player is not scripted."""
    players = {}
    for number, (agent, name) in enumerate(zip(parameters.agent_ids, pairing.players, strict=True)):
        seat = Seat(_run_id(shard, pairing), pairing.seed, agent, number, pairing.players)
        strategy = strategies.get(name)
        players[agent] = _scripted(pairing, strategy, number) if strategy else table.seat(name, seat)
    return await referee_match(players, parameters, shard.turn_timeout, partial(_flip, pairing, parameters.noise))


def _scripted(pairing: Pairing, strategy: Strategy, seat: int) -> ScriptedPlayer:
    return ScriptedPlayer(strategy, lambda resolved: np.array([_luck(pairing, "policy", seat, resolved)]))


def _flip(pairing: Pairing, noise: float, seat: int, resolved: int) -> bool:
    return _luck(pairing, "noise", seat, resolved) < noise


def _luck(pairing: Pairing, stream: str, seat: int, resolved: int) -> float:
    return draw(pairing.seed, stream, *pairing.players, seat, counter=resolved)


# ── Writing down ─────────────────────────────────────────────────────────────────────────────────────────────────


def _run_id(shard: Shard, pairing: Pairing) -> str:
    return ":".join((shard.study, shard.condition, str(pairing.seed), *pairing.players))


_ACTIONS = {choice: json.dumps({"type": "choose", "choice": choice}) for choice in Choice}


def _runs_frame(
    shard: Shard,
    parameters: Parameters,
    batch: Sequence[Pairing],
    values: Mapping[str, Any],
    versions: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """The `runs` frame: what all matches of a shard have in common, beside the `values` that differ.

    `versions` identify the players that are not scripted, by name.
    """
    known = versions or {}
    outside = [{name: known[name] for name in pairing.players if name in known} for pairing in batch]
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
            "outsiders": [json.dumps(some, sort_keys=True) if some else None for some in outside],
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
    return _with_replies(
        shard, {"runs": _runs_frame(shard, parameters, batch, runs), "turns": records.frame(GAME, "turns", turn_values)}
    )


def frames_of_matches(
    shard: Shard,
    parameters: Parameters,
    batch: Sequence[Pairing],
    played: Sequence[Played],
    versions: Mapping[str, Any] | None = None,
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
    replies = (
        row
        for pairing, game in zip(batch, played, strict=True)
        for asked in game.turns
        for agent, player in zip(game.match.agents, pairing.players, strict=True)
        for row in reply_rows(player, asked[agent].replies)
    )
    return _with_replies(
        shard,
        {
            "runs": _runs_frame(shard, parameters, batch, runs, versions),
            "turns": records.frame(GAME, "turns", turns),
        },
        replies,
    )


def _with_replies(
    shard: Shard, frames: dict[str, pl.DataFrame], rows: Iterable[Mapping[str, Any]] = ()
) -> dict[str, pl.DataFrame]:
    return {**frames, "replies": replies_frame(GAME, rows)} if "replies" in shard.tables else frames


def _turn_rows(run_id: str, pairing: Pairing, game: Played) -> Iterator[dict[str, Any]]:
    for resolved, (turns, flips) in enumerate(zip(game.turns, game.flips, strict=True)):
        scored = game.match.history[resolved] if resolved < len(game.match.history) else None
        for agent, player in zip(game.match.agents, pairing.players, strict=True):
            turn = turns[agent]
            move = as_move(turn)
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
                "attempts": turn.attempts,
                "choice": scored.choices[agent] if scored else None,
                "flipped": bool(scored and flips[agent]),
                "payoff": scored.points[agent] if scored else None,
            }
