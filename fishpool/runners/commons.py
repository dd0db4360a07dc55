"""Plays a shard of the fish pool: one condition, one run a seed, with its counterfactual twins, and writes them down.

It decides nothing about the game; the rules are in `fishpool.games.commons`, the twins and the deviation classes in
`fishpool.analysis.commons`, the meaning of each column in `fishpool.records`.
"""

from __future__ import annotations

import gc
import json
import platform
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fishpool import __version__, records
from fishpool.analysis.commons import TwinKind, deviations, optimum, twins
from fishpool.games import commons as rules
from fishpool.games.commons import Channel, Parameters, Phase, Run
from fishpool.players.commons import seat
from fishpool.records import Ending
from fishpool.shards import Shard

if TYPE_CHECKING:
    import polars as pl

GAME = "commons"
_RUNS_AT_ONCE = 100  # bounds the memory of a job whatever the size of its shard

Row = tuple[Any, ...]


def number_of_runs(shard: Shard) -> int:
    return len(shard.seeds)


def play(shard: Shard) -> Iterator[dict[str, pl.DataFrame]]:
    """Play a shard; yields frames of `runs`, `turns`, `claims` and `twins`, some hundred runs at a time, by seed."""
    import polars as pl

    parameters = rules.parameters_of(shard.parameters)
    kinds = {TwinKind(kind) for kind in shard.parameters.get("twins", list(TwinKind))}
    everywhere = {
        "study": shard.study,
        "game": GAME,
        "condition": shard.condition,
        "agents": json.dumps(dict(zip(parameters.names, parameters.agents, strict=True))),
        "parameters": json.dumps(shard.parameters, sort_keys=True),
        "fishpool_version": __version__,
        "outsiders": None,
        "versions": json.dumps({"python": platform.python_version(), "polars": pl.__version__}),
        **characteristics(parameters),
    }
    for start in range(0, len(shard.seeds), _RUNS_AT_ONCE):
        rows: dict[str, list[Row]] = {table: [] for table in records.GAME_TABLES[GAME]}
        with _no_collection():
            for seed in shard.seeds[start : start + _RUNS_AT_ONCE]:
                run_id = f"{shard.study}:{shard.condition}:{seed}"
                run = rules.play(parameters, seat(parameters, seed), seed, run_id)
                turns = list(turn_rows(run_id, run))
                rows["turns"] += turns
                rows["runs"].append(run_row(run_id, run, len(turns), everywhere))
                rows["claims"] += claim_rows(run_id, run)
                rows["twins"] += twin_rows(run_id, run, kinds)
        yield {table: _frame(table, some) for table, some in rows.items()}


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


def run_row(run_id: str, run: Run, turns: int, everywhere: Mapping[str, Any]) -> Row:
    last = run.rounds[-1]
    reason = f"all {last.number} rounds played"
    if run.ending is Ending.COLLAPSED:
        reason = f"collapsed in round {last.number}: {last.remaining} tons left, {run.parameters.collapse} are needed"
    values = {
        **everywhere,
        "run_id": run_id,
        "seed": run.seed,
        "ending": run.ending,
        "end_reason": reason,
        "rounds": last.number,
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
