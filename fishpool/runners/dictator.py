"""Plays the open-strategy dictator game: one tournament of all documents of a folder, decided by one oracle.

A run is the tournament, a round is one answer of the oracle about one ordered pair; the rules are in
`fishpool.games.dictator`, the oracles in `fishpool.oracles`. Nothing here is random, so a shard has the one seed 0.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fishpool import __version__, records
from fishpool.documents import locate, read_documents
from fishpool.games.dictator import (
    UTILITIES,
    Decision,
    Document,
    Oracle,
    Tournament,
    allocation,
    scores,
    stakes,
)
from fishpool.games.dictator import play as play_tournament
from fishpool.oracles.decisions import decisions_file, published
from fishpool.oracles.formal import formal, resolve
from fishpool.records import Ending, Status
from fishpool.shards import Shard, Site

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

GAME = "dictator"
_ANYWHERE = Site()


def number_of_runs(shard: Shard) -> int:
    return len(shard.seeds)


def play(shard: Shard, site: Site = _ANYWHERE) -> Iterator[dict[str, pl.DataFrame]]:
    """Play the tournament; yields its frames of `runs` and `turns`, rounds in the order of the documents."""
    documents = read_documents(locate(shard.parameters["strategies"]))
    oracle, chosen = _oracle(shard.parameters, documents)
    tournament = play_tournament(documents, oracle, self_play=shard.parameters["self_play"])
    run_id = f"{shard.study}:{shard.condition}:0"
    turns = _turns(run_id, shard, tournament, chosen)
    yield {"runs": _run(run_id, shard, tournament, len(turns["round"])), "turns": records.frame(GAME, "turns", turns)}


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


def _turns(run_id: str, shard: Shard, tournament: Tournament, chosen: np.ndarray | None) -> dict[str, list[Any]]:
    """One row an answer: of a pair's votes first those for SHARE; a pair without a readable answer has one row too."""
    rows: list[dict[str, Any]] = []
    endowment = shard.parameters["endowment"]
    (oracle,) = shard.players
    for i, dictator in enumerate(tournament.documents):
        for j, recipient in enumerate(tournament.documents):
            if not tournament.played[i, j]:
                continue
            share, replicates = int(tournament.share_votes[i, j]), int(tournament.replicates[i, j])
            answers = [Decision.SHARE] * share + [Decision.TAKE] * (replicates - share)
            for replicate, decision in enumerate(answers or (None,), start=1):
                values = allocation(decision, endowment) if decision else (None, None)
                rows.append(
                    {
                        "run_id": run_id,
                        "round": len(rows) + 1,
                        "phase": "dictate",
                        "agent": dictator.name,
                        "player": oracle.name,
                        "action": json.dumps({"decision": decision}) if decision else None,
                        "status": (Status.MOVED if decision else Status.INVALID).value,
                        "fallback": False,
                        "attempts": 1,
                        "recipient": recipient.name,
                        "family": dictator.family,
                        "replicate": replicate,
                        "decision": decision.value if decision else None,
                        "dictator_value": values[0],
                        "recipient_value": values[1],
                        "chosen": None if chosen is None else bool(chosen[i, j]),
                    }
                )
    return {name: [row[name] for row in rows] for name in records.schema(GAME, "turns")}


def _run(run_id: str, shard: Shard, tournament: Tournament, rounds: int) -> pl.DataFrame:
    import numpy as np

    missing = int((np.isnan(tournament.decisions) & tournament.played).sum())
    reason = f"{missing} decisions are missing" if missing else "every pair was decided"
    values = {
        "run_id": run_id,
        "study": shard.study,
        "game": GAME,
        "condition": shard.condition,
        "seed": shard.seeds[0],
        "ending": Ending.COMPLETED.value,
        "end_reason": reason,
        "rounds": rounds,
        "winner": _winner(shard, tournament),
        "agents": json.dumps({name: name for name in tournament.strategies}),
        "parameters": json.dumps(shard.parameters, sort_keys=True),
        "turn_records": rounds,
        "fishpool_version": __version__,
        "outsiders": None,
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
