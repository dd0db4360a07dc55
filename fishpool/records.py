"""The record types: the one schema from which JSONL, Parquet and the SQL tables follow.

A table is a tuple of columns, each with a type, whether it may be empty, and a sentence that says what it holds; a game
adds typed columns of its own. Nothing is ever inferred from data. Polars is imported only where a frame is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


class Status(StrEnum):
    """What became of one agent's turn. Only `moved` and `repaired` turns carry a move."""

    MOVED = "moved"
    REPAIRED = "repaired"
    INVALID = "invalid"
    TIMEOUT = "timeout"
    RESIGNED = "resigned"
    INFRASTRUCTURE = "infrastructure"

    @property
    def moves(self) -> bool:
        """Whether a move was made."""
        return self in (Status.MOVED, Status.REPAIRED)

    @property
    def faulted(self) -> bool:
        """Whether the player itself failed to make one; what that costs is the game's own rule."""
        return self in (Status.INVALID, Status.TIMEOUT)


class Ending(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    COLLAPSED = "collapsed"
    RESIGNED = "resigned"
    FORFEITED = "forfeited"
    VOID = "void"


@dataclass(frozen=True)
class Column:
    name: str
    type: str  # "string", "integer", "number", "boolean"
    comment: str
    required: bool = True


_TABLES: dict[str, tuple[Column, ...]] = {
    "runs": (
        Column("run_id", "string", "one game from start to end: study:condition:seed:players"),
        Column("study", "string", "the study in the config"),
        Column("game", "string", "commons, prisoners_dilemma or dictator"),
        Column("condition", "string", "the condition of the study"),
        Column("seed", "integer", "the seed of every random draw of the run; conditions share it"),
        Column("ending", "string", "completed, collapsed, resigned, forfeited or void"),
        Column("end_reason", "string", "the ending in words; for a void run what went wrong"),
        Column("rounds", "integer", "rounds that were resolved"),
        Column("winner", "string", "agent id of the winner; empty for a draw, a void run or a game without one", False),
        Column("agents", "string", "JSON: player by agent id"),
        Column("parameters", "string", "JSON: the game's parameters in full"),
        Column("turn_records", "integer", "how many rows of turns the run has"),
        Column("fishpool_version", "string", "version of fishpool that played the run"),
        Column("versions", "string", "JSON: versions of Python and of the libraries the play depends on"),
        Column(
            "outsiders", "string", "JSON by player: what identifies those not scripted (model, digest, prompts)", False
        ),
    ),
    "turns": (
        Column("run_id", "string", "the run"),
        Column("round", "integer", "round, counted from 1"),
        Column("phase", "string", "phase of the round"),
        Column("agent", "string", "agent id"),
        Column("player", "string", "who acts under that id: the player's name in the config"),
        Column("action", "string", "JSON: the action as accepted; empty where none could be read", False),
        Column("status", "string", "moved, repaired, invalid, timeout, resigned or infrastructure"),
        Column("fallback", "boolean", "whether the game's own rule stood in for an action that could not be read"),
        Column("attempts", "integer", "how often the player was asked"),
    ),
    "claims": (
        Column("run_id", "string", "the run"),
        Column("round", "integer", "round, counted from 1"),
        Column("agent", "string", "agent id of who claims"),
        Column("kind", "string", "promise, report or announcement"),
        Column("claimed", "integer", "what was claimed"),
        Column("actual", "integer", "what was done; empty if nothing was done that could be judged", False),
        Column("broken", "boolean", "whether the claim was untrue; empty if it cannot be judged", False),
    ),
    "replies": (
        Column("run_id", "string", "the run"),
        Column("agent", "string", "agent id"),
        Column("player", "string", "the player's or oracle's name in the config"),
        Column("round", "integer", "round, counted from 1"),
        Column("phase", "string", "phase of the round"),
        Column(
            "attempt", "integer", "which request of this turn, counted from 1; those after the first ask for repair"
        ),
        Column("replicate", "integer", "which of several answers to the same question, counted from 1"),
        Column("backend", "string", "ollama, openai or llamacpp"),
        Column("model", "string", "the model as the server calls it"),
        Column("model_digest", "string", "what identifies the weights"),
        Column("prompt_sha256", "string", "SHA-256 of the messages: equal prompts have it in common"),
        Column("request_sha256", "string", "SHA-256 of the request: what the journal knows the reply by"),
        Column("request", "string", "JSON: the request in full"),
        Column("reply", "string", "the reply as received, without the model's thinking"),
        Column("thinking", "string", "the model's thinking where the server gave it apart; empty if none", False),
        Column("finish_reason", "string", "why the model stopped, in the server's word"),
        Column("reading", "string", "moved, repaired (one action among other words), invalid, truncated or refusal"),
        Column("fault", "string", "why the reply is no action; empty if it is one", False),
        Column("tokens_in", "integer", "tokens of the prompt, as the server counted them", False),
        Column("tokens_out", "integer", "tokens of the reply, as the server counted them", False),
        Column("latency_ms", "number", "from request to the end of the reply, without queueing, retries and loading"),
        Column("from_journal", "boolean", "whether the reply was read in the journal, not asked for in this play"),
    ),
    "twins": (
        Column("run_id", "string", "the run that was replayed under its own seed"),
        Column("twin", "string", "forced_truth, binding_promise or honest (one agent replaced by honest_sustainable)"),
        Column("agent", "string", "agent id of who was replaced; empty if nobody was", False),
        Column("rounds", "integer", "last round of the twin"),
        Column("welfare", "number", "sum of all payoffs in the twin"),
        Column("payoff", "number", "payoff of the replaced agent in the twin; empty if nobody was", False),
    ),
}

_GAME_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("prisoners_dilemma", "turns"): (
        Column("choice", "string", "cooperate or defect as carried out, after noise; empty if none", False),
        Column("flipped", "boolean", "whether noise turned the submitted choice into its opposite"),
        Column("payoff", "integer", "points of the round; empty if the round was not scored", False),
    ),
    ("dictator", "turns"): (
        Column("recipient", "string", "the strategy that the dictator (agent) decides about"),
        Column("family", "string", "the dictator's family, from its document"),
        Column("replicate", "integer", "which of the oracle's answers about this pair, counted from 1"),
        Column("decision", "string", "SHARE or TAKE; empty if the oracle gave no readable answer", False),
        Column("reasoning", "string", "why, in the oracle's words; empty if it gave no reason", False),
        Column("dictator_value", "number", "what the dictator receives; empty if undecided", False),
        Column("recipient_value", "number", "what the recipient receives; empty if undecided", False),
        Column("chosen", "boolean", "formal oracle: whether no finite regress decides it; empty for others", False),
    ),
    ("commons", "runs"): (
        Column("n", "integer", "agents at the pool"),
        Column("horizon", "integer", "rounds until the game ends if the pool does not collapse"),
        Column("price", "number", "payoff of a ton"),
        Column("sustainable_yield", "integer", "F(s1): tons that can be caught in the first round and regrow"),
        Column("escapement", "integer", "S*: the least remaining stock (tons) that regrows to the capacity"),
        Column("optimum", "integer", "most tons that can be caught in all rounds together, by dynamic programming"),
    ),
    ("commons", "turns"): (
        Column("stock", "integer", "catch: stock (tons) before anybody fished", False),
        Column("fair", "integer", "catch: fair share (tons) of that stock", False),
        Column("intention", "integer", "pledge: private intention (tons), if asked for", False),
        Column("promise", "integer", "pledge: public promise (tons), if one was made", False),
        Column("demand", "integer", "catch: demand (tons), capped where promises bind", False),
        Column("catch", "integer", "catch: catch (tons) after rationing", False),
        Column(
            "report",
            "integer",
            "report: public claim about the catch (tons), the catch itself where truth is forced",
            False,
        ),
        Column("audited", "boolean", "report: whether the true catch was published by an audit", False),
        Column("fine", "number", "report: fine paid", False),
        Column("refund", "number", "report: share received of redistributed fines", False),
        Column("accuse", "string", "discuss: JSON list of the agent ids accused", False),
        Column("trust", "string", "discuss: JSON, trust from 0 to 100 by agent id", False),
        Column("du", "number", "catch: what departing from the promise changed for the agent; empty if kept", False),
        Column("dw", "number", "catch: what departing from the promise changed for everyone; empty if kept", False),
        Column("deviation", "string", "catch: class of the departure from the promise; empty if kept", False),
    ),
}

GAME_TABLES: dict[str, tuple[str, ...]] = {
    "prisoners_dilemma": ("runs", "turns"),
    "commons": ("runs", "turns", "claims", "twins"),
    "dictator": ("runs", "turns"),
}


MODEL_TABLES = ("replies",)  # what a game with a model in it has besides


def tables(game: str, *, models: bool) -> tuple[str, ...]:
    """The record tables of a game; `models` says whether a language model plays in it."""
    return GAME_TABLES[game] + (MODEL_TABLES if models else ())


def columns(game: str, table: str) -> tuple[Column, ...]:
    """The columns of a record table for one game, in the order in which they are written."""
    return _TABLES[table] + _GAME_COLUMNS.get((game, table), ())


def schema(game: str, table: str) -> dict[str, pl.DataType]:
    """The Polars schema of a record table for one game."""
    import polars as pl

    types = {"string": pl.String(), "integer": pl.Int64(), "number": pl.Float64(), "boolean": pl.Boolean()}
    return {column.name: types[column.type] for column in columns(game, table)}


def frame(game: str, table: str, values: Mapping[str, Any]) -> pl.DataFrame:
    """Columns of equal length as a frame of the table's schema; a missing, unknown or empty required column raises."""
    import polars as pl

    expected = schema(game, table)
    if values.keys() != expected.keys():
        raise ValueError(f"{game} {table}: columns {sorted(values.keys() ^ expected.keys())} are missing or unknown")
    made = pl.DataFrame(
        {name: pl.Series(name, values[name], dtype=kind, strict=True) for name, kind in expected.items()}
    )
    for column in columns(game, table):
        if column.required and made[column.name].null_count():
            raise ValueError(f"{game} {table}: required column {column.name} is empty in some row")
    return made


def comments(table: str) -> dict[str, str]:
    """What each column of a record table holds, over all games; empty for a metric table."""
    games = (columns for (_, name), columns in _GAME_COLUMNS.items() if name == table)
    return {column.name: column.comment for group in (_TABLES.get(table, ()), *games) for column in group}
