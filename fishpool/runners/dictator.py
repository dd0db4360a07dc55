"""Plays the open-strategy dictator game: one tournament of all documents of a folder, decided by one oracle.

A run is the tournament, a round is one answer of the oracle about one ordered pair; the rules are in
`fishpool.games.dictator`, the oracles in `fishpool.oracles`. Nothing here is random, so a shard has the one seed 0.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from fishpool import __version__, records
from fishpool.documents import locate, read_documents
from fishpool.games.dictator import (
    UTILITIES,
    Decision,
    Document,
    Oracle,
    Tournament,
    Votes,
    allocation,
    scores,
    stakes,
)
from fishpool.games.dictator import play as play_tournament
from fishpool.oracles.decisions import decisions_file, published
from fishpool.oracles.formal import formal, resolve
from fishpool.records import Ending, Status
from fishpool.referee import Turn, ask
from fishpool.runners.replies import reply_rows, with_replies
from fishpool.seats import Seat, Table, side_by_side
from fishpool.shards import ANYWHERE, Shard, Site

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

GAME = "dictator"
PHASE = "dictate"


def number_of_runs(shard: Shard) -> int:
    return len(shard.seeds)


class Answer(NamedTuple):
    """One answer of an oracle about one ordered pair; without a decision where none could be read."""

    decision: Decision | None
    status: Status = Status.MOVED
    attempts: int = 1
    reasoning: str | None = None


@dataclass(frozen=True)
class Cell:
    """One answer to be asked of a model: dictators and recipients are counted from 0, replicates from 1."""

    dictator: int
    recipient: int
    replicate: int


Answers = Mapping[tuple[int, int], Sequence[Answer]]  # by (dictator, recipient)


def play(shard: Shard, site: Site = ANYWHERE) -> Iterator[dict[str, pl.DataFrame]]:
    """Play the tournament; yields frames of `runs` and `turns` (and `replies`, of a model), by pair of documents."""
    documents = read_documents(locate(shard.parameters["strategies"]))
    run_id = _run_id(shard)
    (player,) = shard.players
    if player.kind == "model":
        asked, versions = _ask_model(shard, site, documents)
        answers: Answers = _by_pair(asked)
        tournament = play_tournament(documents, _voted(documents, answers), self_play=shard.parameters["self_play"])
        chosen, replies = None, list(_reply_rows(player.name, asked.values()))
    else:
        oracle, chosen = _oracle(shard.parameters, documents)
        tournament = play_tournament(documents, oracle, self_play=shard.parameters["self_play"])
        answers, versions, replies = _answers(tournament), None, []
    turns = _turns(run_id, shard, tournament, answers, chosen)
    lost = sum(status == Status.INFRASTRUCTURE for status in turns["status"])
    frames = {
        "runs": _run(run_id, shard, tournament, len(turns["round"]), versions, lost),
        "turns": records.frame(GAME, "turns", turns),
    }
    yield with_replies(shard, frames, replies)


def _run_id(shard: Shard) -> str:
    return f"{shard.study}:{shard.condition}:0"


# ── A model as the oracle ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Said:
    """A decision with its reasons; two are the same answer if they decide the same."""

    decision: Decision
    reasoning: str | None = field(compare=False)


def read_answer(value: Any) -> Said:
    """A decoded answer; ValueError in one sentence for any other JSON value."""
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object with the keys reasoning and decision")
    unknown = value.keys() - {"reasoning", "decision"}
    if unknown:
        raise ValueError(f"found {len(unknown)} unknown keys; expected reasoning and decision")
    if value.get("decision") not in tuple(Decision):
        raise ValueError("decision: expected SHARE or TAKE")
    reasoning = value.get("reasoning")
    if not (reasoning is None or isinstance(reasoning, str)):
        raise ValueError("reasoning: expected text")
    return Said(Decision(value["decision"]), reasoning)


def view(dictator: Document, recipient: Document, replicate: int) -> dict[str, Any]:
    """What the oracle sees: two documents and nothing else. Every pair is a first round, whichever pool it is in."""
    return {
        "round": 1,
        "phase": PHASE,
        "replicate": replicate,
        "dictator": dictator.text,
        "recipient": recipient.text,
        "error": None,
    }


def _ask_model(
    shard: Shard, site: Site, documents: Sequence[Document]
) -> tuple[dict[Cell, Turn], dict[str, Any] | None]:
    """The model's answers about every pair, replicate by replicate, in the order of the documents."""
    (player,) = shard.players
    everyone = range(len(documents))
    cells = [
        Cell(i, j, replicate)
        for i, j in product(everyone, everyone)
        if i != j or shard.parameters["self_play"]
        for replicate in range(1, player.settings["replicates"] + 1)
    ]

    async def answer(table: Table, cell: Cell) -> Turn:
        dictator, recipient = documents[cell.dictator], documents[cell.recipient]
        seat = Seat(_run_id(shard), shard.seeds[0], dictator.name, 0, (player.name,))
        asked = table.seat(player.name, seat)
        return await ask(asked, view(dictator, recipient, cell.replicate), read_answer, math.inf)

    turns, versions = {}, None
    with closing(side_by_side(shard, site, cells, answer)) as answers:
        for cell, (turn, table) in zip(cells, answers, strict=True):
            turns[cell], versions = turn, versions or table.versions()
    return turns, versions


def _by_pair(asked: Mapping[Cell, Turn]) -> dict[tuple[int, int], list[Answer]]:
    answers: dict[tuple[int, int], list[Answer]] = {}
    for cell, turn in asked.items():
        said = turn.action
        answer = Answer(said and said.decision, turn.status, turn.attempts, said and said.reasoning)
        answers.setdefault((cell.dictator, cell.recipient), []).append(answer)
    return answers


def _voted(documents: Sequence[Document], answers: Answers) -> Oracle:
    """The answers as an oracle, which votes with those that could be read."""
    places = {document.name: place for place, document in enumerate(documents)}

    def oracle(dictator: Document, recipient: Document) -> Votes:
        decisions = [answer.decision for answer in answers[places[dictator.name], places[recipient.name]]]
        return Votes(decisions.count(Decision.SHARE), sum(decision is not None for decision in decisions))

    return oracle


def _reply_rows(oracle: str, turns: Iterable[Turn]) -> Iterator[dict[str, Any]]:
    """The rows of the answers' replies; their round is that of the answer, which the model has not been told."""
    for number, turn in enumerate(turns, start=1):
        for row in reply_rows(oracle, turn.replies):
            yield {**row, "round": number}


# ── Other oracles ────────────────────────────────────────────────────────────────────────────────────────────────


def _oracle(parameters: dict[str, Any], documents: tuple[Document, ...]) -> tuple[Oracle, np.ndarray | None]:
    """The oracle of a condition, and for a formal one the cells that it chooses, (dictators, recipients)."""
    names = [document.name for document in documents]
    match parameters["oracle"]:
        case "published":
            return published(names), None
        case "formal" | "formal_least" as which:
            resolution = resolve(documents)
            return formal(resolution, least=which == "formal_least"), resolution.chosen
        case _:
            return decisions_file(locate(parameters["decisions"]), names), None


def _answers(tournament: Tournament) -> Answers:
    """The votes as answers, first those for SHARE; a pair without a readable answer has one that is invalid."""
    answers = {}
    everyone = range(len(tournament.documents))
    for i, j in product(everyone, everyone):
        share, replicates = int(tournament.share_votes[i, j]), int(tournament.replicates[i, j])
        votes = [Answer(Decision.SHARE)] * share + [Answer(Decision.TAKE)] * (replicates - share)
        answers[i, j] = votes or [Answer(None, Status.INVALID)]
    return answers


# ── Writing down ─────────────────────────────────────────────────────────────────────────────────────────────────


def _turns(
    run_id: str, shard: Shard, tournament: Tournament, answers: Answers, chosen: np.ndarray | None
) -> dict[str, list[Any]]:
    """One row an answer."""
    rows: list[dict[str, Any]] = []
    endowment = shard.parameters["endowment"]
    (oracle,) = shard.players
    for i, dictator in enumerate(tournament.documents):
        for j, recipient in enumerate(tournament.documents):
            if not tournament.played[i, j]:
                continue
            for replicate, answer in enumerate(answers[i, j], start=1):
                decision = answer.decision
                values = allocation(decision, endowment) if decision else (None, None)
                rows.append(
                    {
                        "run_id": run_id,
                        "round": len(rows) + 1,
                        "phase": PHASE,
                        "agent": dictator.name,
                        "player": oracle.name,
                        "action": json.dumps({"decision": decision}) if decision else None,
                        "status": answer.status.value,
                        "fallback": False,
                        "attempts": answer.attempts,
                        "recipient": recipient.name,
                        "family": dictator.family,
                        "replicate": replicate,
                        "decision": decision.value if decision else None,
                        "reasoning": answer.reasoning,
                        "dictator_value": values[0],
                        "recipient_value": values[1],
                        "chosen": None if chosen is None else bool(chosen[i, j]),
                    }
                )
    return {name: [row[name] for row in rows] for name in records.schema(GAME, "turns")}


def _run(
    run_id: str, shard: Shard, tournament: Tournament, rounds: int, versions: dict[str, Any] | None, lost: int
) -> pl.DataFrame:
    import numpy as np

    missing = int((np.isnan(tournament.decisions) & tournament.played).sum())
    reason = f"decisions that are missing: {missing}" if missing else "every pair was decided"
    if lost:
        reason = f"answers that the server failed to give: {lost}"
    values = {
        "run_id": run_id,
        "study": shard.study,
        "game": GAME,
        "condition": shard.condition,
        "seed": shard.seeds[0],
        "ending": (Ending.VOID if lost else Ending.COMPLETED).value,
        "end_reason": reason,
        "rounds": rounds,
        "winner": None if lost else _winner(shard, tournament),
        "agents": json.dumps({name: name for name in tournament.strategies}),
        "parameters": json.dumps(shard.parameters, sort_keys=True),
        "turn_records": rounds,
        "fishpool_version": __version__,
        "outsiders": json.dumps(versions, sort_keys=True) if versions else None,
        "versions": json.dumps({"python": platform.python_version(), "numpy": np.__version__}, sort_keys=True),
    }
    return records.frame(GAME, "runs", {name: [value] for name, value in values.items()})


def _winner(shard: Shard, tournament: Tournament) -> str | None:
    """The one strategy with the highest score; none in a tie, or where a decision is missing."""
    import numpy as np

    game = stakes(shard.parameters["endowment"], UTILITIES[shard.parameters["utility"]])
    total = scores(tournament.decisions, game, self_play=tournament.self_play)
    if np.isnan(total).any():
        return None
    best = np.flatnonzero(total > total.max() - 1e-9)
    return tournament.strategies[best[0]] if len(best) == 1 else None
