"""Plays a shard of the fish pool: one condition, one run a seed, with its counterfactual twins, and writes them down.

It decides nothing about the game; the rules are in `fishpool.games.commons`, the twins and the deviation classes in
`fishpool.analysis.commons`, the meaning of each column in `fishpool.records`.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import platform
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fishpool import __version__, records
from fishpool.analysis.commons import TwinKind, deviations, optimum, twins
from fishpool.games import commons as rules
from fishpool.games.commons import Action, Channel, Move, Parameters, Phase, Run, View
from fishpool.players.commons import seat, seat_one
from fishpool.records import Ending, Status
from fishpool.referee import Player, Turn, ask
from fishpool.runners.replies import reply_rows, with_replies
from fishpool.seats import Seat, Table, outsiders, side_by_side
from fishpool.shards import ANYWHERE, Shard, Site

if TYPE_CHECKING:
    import polars as pl

GAME = "commons"
_RUNS_AT_ONCE = 100  # bounds the memory of a job whatever the size of its shard

Row = tuple[Any, ...]


def number_of_runs(shard: Shard) -> int:
    return len(shard.seeds)


def play(shard: Shard, site: Site = ANYWHERE) -> Iterator[dict[str, pl.DataFrame]]:
    """Play a shard; yields frames of `runs`, `turns`, `claims` and `twins` (and `replies`, with a model), by seed."""
    parameters = rules.parameters_of(shard.parameters)
    common = _common(shard, parameters)
    if outsiders(shard):
        yield from _play_with_outsiders(shard, site, parameters, common)
        return
    kinds = {TwinKind(kind) for kind in shard.parameters.get("twins", list(TwinKind))}
    for start in range(0, len(shard.seeds), _RUNS_AT_ONCE):
        rows = _no_rows(shard)
        with _no_collection():
            for seed in shard.seeds[start : start + _RUNS_AT_ONCE]:
                run_id = _run_id(shard, seed)
                run = rules.play(parameters, seat(parameters, seed), seed, view_id(run_id))
                turns = list(turn_rows(run_id, run))
                rows["turns"] += turns
                rows["runs"].append(run_row(run_id, run, len(turns), common))
                rows["claims"] += claim_rows(run_id, run)
                rows["twins"] += twin_rows(run_id, run, kinds)
        yield {table: _frame(table, some) for table, some in rows.items()}


def _no_rows(shard: Shard) -> dict[str, list[Row]]:
    return {table: [] for table in shard.tables}


def _run_id(shard: Shard, seed: int) -> str:
    return f"{shard.study}:{shard.condition}:{seed}"


def view_id(run_id: str) -> str:
    """What a run is called in the views of its agents, whom the names of study and condition would tell too much."""
    return hashlib.sha256(run_id.encode()).hexdigest()[:16]


def _common(shard: Shard, parameters: Parameters) -> dict[str, Any]:
    """What all runs of a shard have in common."""
    import polars as pl

    return {
        "study": shard.study,
        "game": GAME,
        "condition": shard.condition,
        "agents": json.dumps(dict(zip(parameters.names, parameters.agents, strict=True))),
        "parameters": json.dumps(shard.parameters, sort_keys=True),
        "fishpool_version": __version__,
        "versions": json.dumps({"python": platform.python_version(), "polars": pl.__version__}),
        "outsiders": None,
        **characteristics(parameters),
    }


# ── With players that are not scripted ───────────────────────────────────────────────────────────────────────────


class Taken(NamedTuple):
    """One turn of an outsider: the round, the phase, the agent's number, and what the referee made of it."""

    number: int
    phase: Phase
    agent: int
    turn: Turn


@dataclass(frozen=True)
class Refereed:
    """A run with all turns of those who are not scripted, in order of play."""

    run: Run
    taken: tuple[Taken, ...]

    @property
    def unfinished(self) -> tuple[Taken, ...]:
        """The turns of the round in which a void run broke off."""
        return tuple(taken for taken in self.taken if taken.number > len(self.run.rounds))

    @property
    def fault(self) -> str:
        """Why a void run broke off."""
        names = self.run.parameters.names
        return "; ".join(
            f"{names[taken.agent]} in round {taken.number}, {taken.phase}: {taken.turn.fault}"
            for taken in self.taken
            if taken.turn.status is Status.INFRASTRUCTURE
        )


Seated = Player | Callable[[View], Action]  # whom the referee asks, or a scripted player


async def referee_run(
    parameters: Parameters, players: Sequence[Seated], seed: int, name: str, turn_timeout: float
) -> Refereed:
    """Play one run with any players, one an agent; `name` is what views call it, the clock is in s for each turn."""
    taken: list[Taken] = []

    async def move(agent: int, view: View) -> Move | None:
        player = players[agent]
        if not isinstance(player, Player):
            return rules.ask(parameters, player, view)
        turn = await ask(player, view, partial(rules.read, parameters, view), turn_timeout)
        taken.append(Taken(view["round"], Phase(view["phase"]), agent, turn))
        if turn.status is Status.INFRASTRUCTURE:
            return None
        action = turn.action if turn.status.moves else dict(rules.FALLBACK[view["phase"]])
        return Move(action, turn.status, turn.attempts)

    game = rules.fish(parameters, seed, name)
    try:
        asked = next(game)
        while True:
            moves = await asyncio.gather(*(move(agent, view) for agent, view in asked))
            made = [one for one in moves if one is not None]
            asked = game.send(made) if len(made) == len(asked) else game.throw(rules.BrokenOff())
    except StopIteration as end:
        phases = list(Phase)
        taken.sort(key=lambda turn: (turn.number, phases.index(turn.phase), turn.agent))  # not as they came in
        return Refereed(end.value, tuple(taken))
    finally:
        for player in players:
            if isinstance(player, Player):
                await player.close()


def _play_with_outsiders(
    shard: Shard, site: Site, parameters: Parameters, common: Mapping[str, Any]
) -> Iterator[dict[str, pl.DataFrame]]:
    """The same frames; there are no twins, because who is not scripted cannot be asked what it would have done."""
    outside = outsiders(shard)

    async def play_one(table: Table, seed: int) -> Refereed:
        scripted = partial(seat_one, seed)
        players = [
            table.seat(name, Seat(_run_id(shard, seed), seed, agent, number, parameters.agents))
            if name in outside
            else scripted(number, name)
            for number, (agent, name) in enumerate(zip(parameters.names, parameters.agents, strict=True))
        ]
        return await referee_run(parameters, players, seed, view_id(_run_id(shard, seed)), shard.turn_timeout)

    with closing(side_by_side(shard, site, shard.seeds, play_one)) as results:
        for seed, (refereed, table) in zip(shard.seeds, results, strict=True):
            known = {**common, "outsiders": json.dumps(table.versions(), sort_keys=True)}
            yield refereed_frames(shard, _run_id(shard, seed), refereed, known)


def refereed_frames(
    shard: Shard, run_id: str, refereed: Refereed, common: Mapping[str, Any]
) -> dict[str, pl.DataFrame]:
    """The frames of one run with players that are not scripted."""
    run, rows = refereed.run, _no_rows(shard)
    rows["turns"] = [*turn_rows(run_id, run), *_unfinished_rows(run_id, refereed)]
    rows["runs"] = [run_row(run_id, run, len(rows["turns"]), common, refereed.fault)]
    rows["claims"] = list(claim_rows(run_id, run))
    replies = [
        row for taken in refereed.taken for row in reply_rows(run.parameters.agents[taken.agent], taken.turn.replies)
    ]
    frames = {table: _frame(table, some) for table, some in rows.items() if table != "replies"}
    return with_replies(shard, frames, replies)


def _unfinished_rows(run_id: str, refereed: Refereed) -> Iterator[Row]:
    """The turns of the outsiders in a round that was broken off; nothing came of them."""
    p = refereed.run.parameters
    for number, phase, agent, turn in refereed.unfinished:
        action = None if turn.action is None else json.dumps(turn.action)
        yield (
            run_id, number, phase, p.names[agent], p.agents[agent], action, turn.status, turn.status.faulted,
            turn.attempts, *_NOTHING,
        )  # fmt: skip


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the search for reference cycles, of which a run makes none: it would cost a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def characteristics(parameters: Parameters) -> dict[str, Any]:
    """What the metrics need to know of a condition: who fishes how long, and what could be had at best."""
    return {
        "n": parameters.n,
        "horizon": parameters.rounds,
        "price": parameters.price,
        "sustainable_yield": parameters.sustainable_yield,
        "escapement": parameters.escapement,
        "optimum": optimum(parameters),
    }


def run_row(run_id: str, run: Run, turns: int, everywhere: Mapping[str, Any], fault: str = "") -> Row:
    """The run's row; `fault` says why a void one broke off."""
    number = len(run.rounds)
    reason = fault if run.ending is Ending.VOID else f"all {number} rounds played"
    if run.ending is Ending.COLLAPSED:
        last = run.rounds[-1]
        reason = f"collapsed in round {last.number}: {last.remaining} tons left, {run.parameters.collapse} are needed"
    values = {
        **everywhere,
        "run_id": run_id,
        "seed": run.seed,
        "ending": run.ending,
        "end_reason": reason,
        "rounds": number,
        "winner": None,
        "turn_records": turns,
    }
    return tuple(values[column.name] for column in records.columns(GAME, "runs"))


def turn_rows(run_id: str, run: Run) -> Iterator[Row]:
    """One row an agent in a phase of a round, in order of play, in the order of the table's columns."""
    p = run.parameters
    agents = list(zip(range(p.n), p.names, p.agents, strict=True))
    departures = {(departure.number, departure.agent): departure for departure in deviations(run)}
    for played in run.rounds:
        number = played.number
        for phase, moves in (
            (Phase.PLEDGE, played.pledges),
            (Phase.CATCH, played.catch_moves),
            (Phase.REPORT, played.report_moves),
            (Phase.DISCUSS, played.discuss_moves),
        ):
            if not moves:
                continue
            for agent, name, player in agents:
                move = moves[agent]
                assert move is not None
                action = move.action
                # stock, fair, intention, promise, demand, catch, report, audited, fine, refund, accuse, trust, du,
                # dw, deviation
                told: Row
                if phase is Phase.CATCH:
                    departure = departures.get((number, agent))
                    told = (
                        played.stock, p.fair[played.stock], None, None, played.demands[agent], played.catches[agent],
                        None, None, None, None, None, None,
                        *((departure.du, departure.dw, departure.kind) if departure else (None, None, None)),
                    )  # fmt: skip
                elif phase is Phase.PLEDGE:
                    told = (None, None, action["intention"], action["promise"], *_NOTHING[4:])
                elif phase is Phase.REPORT:
                    told = (
                        *_NOTHING[:6],
                        played.reports[agent], played.audited[agent], played.fines[agent], played.refunds[agent],
                        *_NOTHING[10:],
                    )  # fmt: skip
                elif Channel.DISCUSS in p.channels:
                    told = (*_NOTHING[:10], json.dumps(action["accuse"]), json.dumps(action["trust"]), None, None, None)
                else:
                    told = _NOTHING
                text = json.dumps(action) if phase is Phase.DISCUSS else _text(tuple(action.items()))
                turn = (run_id, number, phase, name, player, text, move.status, move.fallback, move.attempts)
                yield (*turn, *told)


_NOTHING: Row = (None,) * 15


@lru_cache(maxsize=65_536)
def _text(action: tuple[tuple[str, Any], ...]) -> str:
    """An action as JSON; few amounts are said over and over."""
    return json.dumps(dict(action))


def claim_rows(run_id: str, run: Run) -> Iterator[Row]:
    """One row a promise or report that was made; what it is held against is empty if the rules made that up."""
    p = run.parameters
    for played in run.rounds:
        judged = [not move.fallback for move in played.catch_moves]
        for agent, promise in enumerate(played.promises):
            if promise is not None:
                demand = played.demands[agent]
                truth = (demand, rules.broken(p, promise, demand)) if judged[agent] else (None, None)
                yield (run_id, played.number, p.names[agent], "promise", promise, *truth)
        for agent, report in enumerate(played.reports):
            if report is not None and not played.report_moves[agent].fallback:
                catch = played.catches[agent]
                truth = (catch, report != catch) if judged[agent] else (None, None)
                yield (run_id, played.number, p.names[agent], "report", report, *truth)


def twin_rows(run_id: str, run: Run, kinds: Collection[TwinKind]) -> Iterator[Row]:
    names = run.parameters.names
    for twin in twins(run, seat, kinds):
        agent = None if twin.agent is None else names[twin.agent]
        yield (run_id, twin.kind, agent, twin.rounds, twin.welfare, twin.payoff)


def _frame(table: str, rows: list[Row]) -> pl.DataFrame:
    names = [column.name for column in records.columns(GAME, table)]
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return records.frame(GAME, table, dict(zip(names, columns, strict=True)))
