"""A run as it was played, round by round: who said and did what, and what the referee made of it.

It puts together what the record tables hold and computes nothing but the stock that is left after a catch; it draws
nothing and knows no terminal and no page. Its source is any DuckDB connection with the tables `runs` and `turns`, and
where there are such `claims` and `replies`; run ids reach it as values, never as text of a query.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishpool import records

if TYPE_CHECKING:
    import duckdb

Row = Mapping[str, Any]

_PHASE_OF_CLAIM = {"promise": "pledge", "report": "report", "announcement": "discuss"}
_PHASES = ("pledge", "catch", "report", "discuss")  # as they follow each other; other games have one phase
_COMMON = frozenset(column.name for column in records.columns("", "turns"))  # the columns that every game has


class UnknownRun(LookupError):
    """There is no run of that name; the message is one sentence that names the nearest."""


@dataclass(frozen=True)
class Claim:
    """What was claimed in a turn. `actual` and `broken` are None where nothing was done that could be judged."""

    kind: str  # "promise", "report" or "announcement"
    claimed: int
    actual: int | None
    broken: bool | None


@dataclass(frozen=True)
class Reply:
    """One call of a model in a turn: what it saw, what came back as received, and what was read in it."""

    attempt: int  # counted from 1; those after the first ask for repair
    replicate: int
    messages: tuple[tuple[str, str], ...]  # (role, content), in full
    text: str
    thinking: str
    reading: str  # a word of `referee.Verdict`
    fault: str  # why it is no action; "" if it is one
    finish_reason: str
    model: str
    model_digest: str
    prompt_sha256: str
    tokens_in: int | None
    tokens_out: int | None
    latency_ms: float
    from_journal: bool


@dataclass(frozen=True)
class Turn:
    """One agent in one phase. `values` are the game's own columns that say something, in the order of the table.

    `action` is the decoded action as accepted, or with `fallback` what the rules put in its place; None where there is
    neither.
    """

    agent: str
    player: str
    action: Any
    status: str  # a word of `records.Status`
    fallback: bool
    attempts: int
    values: Mapping[str, Any]
    claims: tuple[Claim, ...] = ()
    replies: tuple[Reply, ...] = ()

    @property
    def message(self) -> str:
        """What the agent said to the others; "" if nothing."""
        said = self.action.get("message") if isinstance(self.action, dict) else None
        return said if isinstance(said, str) else ""

    @property
    def fault(self) -> str:
        """Why the last reply is no action, where that is on record (replies of models); "" otherwise."""
        return self.replies[-1].fault if self.replies else ""

    @property
    def lies(self) -> tuple[Claim, ...]:
        """The promises that were broken and the reports that are untrue."""
        return tuple(claim for claim in self.claims if claim.broken)


@dataclass(frozen=True)
class Phase:
    name: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Round:
    """A round; of the fish pool also the `stock` (tons) before anybody fished, and what was left `remaining`."""

    number: int  # counted from 1
    phases: tuple[Phase, ...]
    stock: int | None = None
    remaining: int | None = None

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(turn for phase in self.phases for turn in phase.turns)


@dataclass(frozen=True)
class Replay:
    """A run: its row of `runs` (JSON columns decoded, an absent `outsiders` as {}), and its rounds in order of play."""

    run: Mapping[str, Any]
    rounds: tuple[Round, ...]

    @property
    def run_id(self) -> str:
        run_id: str = self.run["run_id"]
        return run_id

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(turn for played in self.rounds for turn in played.turns)


def load_run(database: Path, run_id: str) -> Replay:
    """One run of a database file, which is opened read-only; raises UnknownRun, or duckdb.Error for no database."""
    import duckdb

    with duckdb.connect(str(database), read_only=True) as connection:
        return load_runs(connection, [run_id])[0]


def load_runs(connection: duckdb.DuckDBPyConnection, run_ids: Sequence[str]) -> list[Replay]:
    """The runs in the order of their ids, in one query a table. Raises UnknownRun for the first that is not there."""
    found = {row["run_id"]: row for row in _rows(connection, "runs", run_ids)}
    for run_id in run_ids:
        if run_id not in found:
            raise UnknownRun(unknown(connection, run_id))
    claims = _by(_rows(connection, "claims", run_ids), "run_id", "round", "agent")
    replies = _by(_rows(connection, "replies", run_ids), "run_id", "round", "phase", "agent")
    turns = _by(_rows(connection, "turns", run_ids), "run_id")
    return [_replay(_run(found[run_id]), turns.get((run_id,), []), claims, replies) for run_id in run_ids]


def unknown(connection: duckdb.DuckDBPyConnection, run_id: str) -> str:
    """The sentence about a run that is not there, with the name of the nearest that is."""
    nearest = connection.execute(
        "SELECT run_id FROM runs ORDER BY jaro_winkler_similarity(run_id, ?) DESC, run_id LIMIT 1", [run_id]
    ).fetchone()
    meant = f"did you mean {nearest[0]}?" if nearest else "the database holds no run at all"
    return f"{run_id}: there is no such run; {meant}"


Groups = Mapping[tuple[Any, ...], Sequence[Row]]


def _rows(connection: duckdb.DuckDBPyConnection, table: str, run_ids: Sequence[str]) -> list[Row]:
    """The rows of one of our tables that belong to the runs; none where there is no such table."""
    there = connection.execute("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [table])
    if there.fetchone() is None:
        return []
    cursor = connection.execute(f"SELECT * FROM {table} WHERE run_id IN (SELECT unnest(?))", [list(run_ids)])
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _by(rows: Iterable[Row], *keys: str) -> Groups:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def _run(row: Row) -> dict[str, Any]:
    decoded = {name: json.loads(row[name]) for name in ("agents", "parameters", "versions")}
    return {**row, **decoded, "outsiders": json.loads(row.get("outsiders") or "{}")}


def _replay(run: Row, turns: Sequence[Row], claims: Groups, replies: Groups) -> Replay:
    agents = list(run["agents"])

    def order(row: Row) -> tuple[int, int, int]:  # a query promises none
        phase, agent = row["phase"], row["agent"]
        return row["round"], _PHASES.index(phase) if phase in _PHASES else 0, agents.index(agent)

    rounds = []
    for number, in_round in groupby(sorted(turns, key=order), key=itemgetter("round")):
        phases = tuple(
            Phase(name, tuple(_turn(row, claims, replies) for row in in_phase))
            for name, in_phase in groupby(in_round, key=itemgetter("phase"))
        )
        fished = [turn.values for phase in phases for turn in phase.turns if "stock" in turn.values]
        stock = fished[0]["stock"] if fished else None
        remaining = stock - sum(values["catch"] for values in fished) if fished else None
        rounds.append(Round(number, phases, stock, remaining))
    return Replay(run, tuple(rounds))


def _turn(row: Row, claims: Groups, replies: Groups) -> Turn:
    run_id, number, phase, agent = row["run_id"], row["round"], row["phase"], row["agent"]
    said = replies.get((run_id, number, phase, agent), ())
    return Turn(
        agent=agent,
        player=row["player"],
        action=None if row["action"] is None else json.loads(row["action"]),
        status=row["status"],
        fallback=row["fallback"],
        attempts=row["attempts"],
        values={name: value for name, value in row.items() if name not in _COMMON and value is not None},
        claims=tuple(
            Claim(claim["kind"], claim["claimed"], claim["actual"], claim["broken"])
            for claim in claims.get((run_id, number, agent), ())
            if _PHASE_OF_CLAIM.get(claim["kind"]) == phase
        ),
        replies=tuple(_reply(reply) for reply in sorted(said, key=itemgetter("attempt"))),
    )


def _reply(row: Row) -> Reply:
    return Reply(
        attempt=row["attempt"],
        replicate=row["replicate"],
        messages=tuple((message["role"], message["content"]) for message in json.loads(row["request"])["messages"]),
        text=row["reply"],
        thinking=row["thinking"] or "",
        reading=row["reading"],
        fault=row["fault"] or "",
        finish_reason=row["finish_reason"],
        model=row["model"],
        model_digest=row["model_digest"],
        prompt_sha256=row["prompt_sha256"],
        tokens_in=row["tokens_in"],
        tokens_out=row["tokens_out"],
        latency_ms=row["latency_ms"],
        from_journal=row["from_journal"],
    )
