"""Plays a shard of the iterated prisoner's dilemma: every pair of players, self-play included, for every seed.

Scripted pairs are played many matches at a time in columns; whatever cannot be (a model, a bot, a strategy that raises)
goes through the referee match by match, with the same draws, so that both ways give the same records. The rules are in
`fishpool.games.prisoners_dilemma`.
"""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain, combinations_with_replacement, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fishpool import __version__, records
from fishpool.games import prisoners_dilemma as rules
from fishpool.games.prisoners_dilemma import Choice, Match, Move, Parameters
from fishpool.players.scripted import STRATEGIES, History, Strategy, no_luck
from fishpool.records import Ending, Status
from fishpool.referee import Player, Turn, ask
from fishpool.runners.replies import reply_rows, with_replies
from fishpool.seats import SCRIPTED, Seat, Table, outsiders, side_by_side
from fishpool.seeds import draw, draws, happens, name_key, streams
from fishpool.shards import ANYWHERE, Shard, Site

if TYPE_CHECKING:
    import polars as pl

GAME = "prisoners_dilemma"
_MATCHES_AT_ONCE = 10_000  # bounds the memory of a job whatever the size of its shard
_MATCHES_WITH_OUTSIDERS = 50  # between two words of progress


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


def pairings(seeds: Sequence[int], pairs: Sequence[tuple[str, str]]) -> list[Pairing]:
    """All matches in their canonical order: by seed, then by pair."""
    return [Pairing(seed, pair) for seed in seeds for pair in pairs]


def number_of_runs(shard: Shard) -> int:
    return len(shard.seeds) * len(shard.players) * (len(shard.players) + 1) // 2


def play(shard: Shard, site: Site = ANYWHERE) -> Iterator[dict[str, pl.DataFrame]]:
    """Play all matches; yields frames of `runs` and `turns` (and `replies`, with a model), in canonical order."""
    return play_pairs(shard, list(combinations_with_replacement([player.name for player in shard.players], 2)), site)


def play_pairs(
    shard: Shard, pairs: Sequence[tuple[str, str]], site: Site = ANYWHERE
) -> Iterator[dict[str, pl.DataFrame]]:
    """The same for some pairs of a shard's players, in their order."""
    strategies = {
        player.name: STRATEGIES[player.settings["strategy"]] for player in shard.players if player.kind == SCRIPTED
    }
    parameters = _parameters(shard)
    outside = outsiders(shard)
    met = pairings(shard.seeds, [pair for pair in pairs if not outside.isdisjoint(pair)])
    refereed = side_by_side(shard, site, met, partial(_referee_outsiders, shard, strategies, parameters))
    with closing(refereed) as matches:
        for seeds, some in _batches(shard.seeds, pairs, _MATCHES_WITH_OUTSIDERS if met else _MATCHES_AT_ONCE):
            yield _play_batch(shard, parameters, strategies, seeds, some, matches)


def _batches(
    seeds: Sequence[int], pairs: Sequence[tuple[str, str]], at_once: int
) -> Iterator[tuple[Sequence[int], Sequence[tuple[str, str]]]]:
    """Some seeds with all pairs, or one seed with some pairs: at most `at_once` matches a time, in canonical order."""
    seeds_at_once = max(1, at_once // len(pairs))
    for seed in range(0, len(seeds), seeds_at_once):
        for pair in range(0, len(pairs), at_once):
            yield seeds[seed : seed + seeds_at_once], pairs[pair : pair + at_once]


def _parameters(shard: Shard) -> Parameters:
    """The parameters of the rules; others, such as labels, only say how models are asked."""
    values = {field.name: shard.parameters[field.name] for field in fields(Parameters)}
    return Parameters(**{**values, "agent_ids": tuple(values["agent_ids"])})


def _play_batch(
    shard: Shard,
    parameters: Parameters,
    strategies: Mapping[str, Strategy],
    seeds: Sequence[int],
    pairs: Sequence[tuple[str, str]],
    matches: Iterator[tuple[Played, Table]],
) -> dict[str, pl.DataFrame]:
    """Scripted pairs in columns; if a strategy raises there, its matches are refereed, so that only those end void.

    `matches` gives the matches of all other pairs in their order.
    """
    import polars as pl

    scripted = [pair for pair in pairs if all(name in strategies for name in pair)]
    broken: set[str] = set()
    while True:
        together = [pair for pair in scripted if broken.isdisjoint(strategies[name].name for name in pair)]
        try:
            done, submitted = play_in_columns(seeds, together, strategies, parameters)
            break
        except StrategyError as error:
            broken.add(error.strategy.name)
    frames = [_frames_of_columns(shard, parameters, pairings(seeds, together), done, submitted)]
    if alone := pairings(seeds, [pair for pair in scripted if pair not in together]):
        played = asyncio.run(_referee_all(alone, strategies, parameters, shard.turn_timeout))
        frames.append(frames_of_matches(shard, parameters, alone, played))
    if met := pairings(seeds, [pair for pair in pairs if pair not in scripted]):
        results, tables = zip(*islice(matches, len(met)), strict=True)
        frames.append(frames_of_matches(shard, parameters, met, results, tables[0].versions()))
    if len(frames) == 1:
        return frames[0]
    canonical = pl.DataFrame({"run_id": [_run_id(shard, pairing) for pairing in pairings(seeds, pairs)]})
    return {
        table: canonical.join(pl.concat([some[table] for some in frames]), on="run_id", maintain_order="left_right")
        for table in shard.tables
    }


# ── In columns ───────────────────────────────────────────────────────────────────────────────────────────────────


def play_in_columns(
    seeds: Sequence[int],
    pairs: Sequence[tuple[str, str]],
    strategies: Mapping[str, Strategy],
    parameters: Parameters,
) -> tuple[np.ndarray, np.ndarray]:
    """Choices (after noise, as submitted), bool of shape (rounds, seeds, pairs, seats), True is cooperate.

    A *side* is one seat of a pair, with a column a seed. Sides are sorted by player, so that each player's strategy is
    asked once a round for all its columns, which lie next to each other.
    """
    rounds, steps = parameters.rounds, np.arange(parameters.rounds)[:, None]
    by_side = (2 * len(pairs), len(seeds))
    names = list(dict.fromkeys(chain.from_iterable(pairs)))
    number = {name: i for i, name in enumerate(names)}
    player = np.array([number[players[seat]] for seat in (0, 1) for players in pairs], np.int64)
    order = np.argsort(player, kind="stable")  # which side (seat * pairs + pair) stands where
    place = np.argsort(order)  # where a side stands
    partner = np.roll(place, len(pairs))[order]

    def stream(of: str) -> np.ndarray:  # of each column
        keys = np.array([name_key(of, *players, seat) for seat in (0, 1) for players in pairs], np.uint64)
        return streams(np.array(seeds, np.uint64), keys[order, None]).ravel()

    policy, noise = stream("policy"), stream("noise")
    submitted = np.empty((rounds, len(policy)), bool)
    done = np.empty_like(submitted) if parameters.noise else submitted
    other = np.empty_like(submitted)
    askable = []
    bounds = len(seeds) * np.searchsorted(player[order], np.arange(len(names) + 1))
    for name, columns in zip(names, map(slice, bounds[:-1], bounds[1:]), strict=True):
        strategy = strategies[name]
        luck = draws(policy[columns], steps).__getitem__ if strategy.stochastic else no_luck
        askable.append((strategy, columns, History(done[:, columns], other[:, columns], rounds, luck)))
    for resolved in range(rounds):
        for strategy, columns, history in askable:
            history.resolved = resolved
            try:
                submitted[resolved, columns] = strategy.choose(history)
            except Exception as error:
                raise StrategyError(strategy) from error
        if parameters.noise:
            flips = happens(noise, resolved, parameters.noise)
            np.not_equal(submitted[resolved], flips, out=done[resolved])
        done[resolved].reshape(by_side).take(partner, axis=0, out=other[resolved].reshape(by_side), mode="clip")

    def by_match(choices: np.ndarray) -> np.ndarray:
        as_given = choices.reshape(rounds, *by_side).take(place, axis=1)
        return as_given.reshape(rounds, 2, len(pairs), len(seeds)).transpose(0, 3, 2, 1)

    return by_match(done), by_match(submitted)


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
    if not turn.status.moves:
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
    pairs = {pairing.players for pairing in batch}
    agents = {pair: json.dumps(dict(zip(parameters.agent_ids, pair, strict=True))) for pair in pairs}
    outside = {pair: {name: known[name] for name in pair if name in known} for pair in pairs}
    identified = {pair: json.dumps(some, sort_keys=True) if some else None for pair, some in outside.items()}
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
            "agents": [agents[pairing.players] for pairing in batch],
            "outsiders": [identified[pairing.players] for pairing in batch],
            **{name: [value] * len(batch) for name, value in everywhere.items()},
            **values,
        },
    )


def _frames_of_columns(
    shard: Shard, parameters: Parameters, batch: Sequence[Pairing], done: np.ndarray, submitted: np.ndarray
) -> dict[str, pl.DataFrame]:
    """Frames of matches that were all played to the end; arrays of shape (rounds, seeds, pairs, seats)."""
    import polars as pl

    rounds, matches = len(done), len(batch)
    points = rules.points_in_columns(done, done[..., ::-1])
    totals = points.sum(axis=0).reshape(matches, 2)
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

    def by_turn(array: np.ndarray) -> np.ndarray:  # one value a turn, in order of play
        return array.transpose(1, 2, 0, 3).ravel()

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
    return with_replies(
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
    return with_replies(
        shard,
        {
            "runs": _runs_frame(shard, parameters, batch, runs, versions),
            "turns": records.frame(GAME, "turns", turns),
        },
        replies,
    )


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
