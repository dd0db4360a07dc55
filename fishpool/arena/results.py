"""The arena's finished matches as records: shards of JSONL like those that a play writes, from the database alone.

They are a recorded study of the config. Each lane is a condition, and a match's number is its seed (nothing is drawn in
it). The same database gives the same files; a block of matches that has grown is written anew, and a file that would
not change is not touched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from fishpool import shards
from fishpool.arena.matches import LANES, agent_id, replay
from fishpool.arena.store import Store, StoredAgent, StoredMatch
from fishpool.games.prisoners_dilemma import Parameters
from fishpool.runners.prisoners_dilemma import GAME, Pairing, Played, frames_of_matches
from fishpool.shards import Shard

if TYPE_CHECKING:
    import polars as pl

BLOCK = 50  # numbers of matches that share a shard, as the default of the config's seeds_per_job


def export(database: Path, results: Path, study: str = "arena") -> list[Path]:
    """Write all finished matches below `results`/jsonl/`study`; the folders of their shards, in order.

    Raises store.StoreError if the database cannot be read.
    """
    store = Store(database)
    try:
        agents = {agent.number: agent for agent in store.agents()}
        directories = []
        for shard, matches in _blocks(study, store):
            directory = results / "jsonl" / study / shard.condition / shard.name
            frames = _frames(shard, matches, agents)
            if not _is_written(directory, frames):
                shards.mark_recorded(directory)
                shards.write(directory, shard.tables, [frames])
            directories.append(directory)
        return directories
    finally:
        store.close()


def _blocks(study: str, store: Store) -> Iterator[tuple[Shard, list[StoredMatch]]]:
    by_block = sorted(store.finished(), key=lambda match: (match.lane, match.number))
    for (lane, block), matches in groupby(by_block, lambda match: (match.lane, match.number // BLOCK)):
        some = list(matches)
        parameters = Parameters(rounds=store.rounds, lane=lane)
        yield (
            Shard(
                study=study,
                condition=lane,
                name=f"seeds-{block * BLOCK}",
                game=GAME,
                parameters={
                    "rounds": parameters.rounds,
                    "noise": parameters.noise,
                    "lane": lane,
                    "agent_ids": list(parameters.agent_ids),
                },
                players=(),
                turn_timeout=LANES[lane],
                seeds=tuple(match.number for match in some),
            ),
            some,
        )


def _frames(shard: Shard, matches: Iterable[StoredMatch], agents: Mapping[int, StoredAgent]) -> dict[str, pl.DataFrame]:
    """The matches with their agents under the ids of the parameters; `outsiders` says who they were in the arena."""
    import polars as pl

    parameters = Parameters(shard.parameters["rounds"], lane=shard.condition)
    matches = list(matches)
    pairings, played, outsiders = [], [], {}
    for match in matches:
        game = replay(match, parameters.agent_ids, parameters.rounds)
        first, second = (agents[number] for number in match.agents)
        pairings.append(Pairing(match.number, (first.name, second.name)))
        unchanged = dict.fromkeys(parameters.agent_ids, False)
        played.append(Played(game.match, game.turns, [unchanged] * len(game.turns)))
        for agent in (first, second):
            model = {"model": agent.model} if agent.model else {}
            outsiders[agent.name] = {"arena": agent_id(agent.number), **model}
    frames = frames_of_matches(shard, parameters, pairings, played, outsiders)
    frames["runs"] = frames["runs"].with_columns(  # what played them, not what writes them down
        pl.Series("fishpool_version", [match.fishpool_version for match in matches]),
        pl.Series("versions", [match.versions for match in matches]),
    )
    return frames


def _is_written(directory: Path, frames: Mapping[str, pl.DataFrame]) -> bool:
    """Whether a shard of just these records is there, with its checksums."""
    digests = {}
    for table, frame in frames.items():
        file, text = directory / f"{table}.jsonl", BytesIO()
        frame.write_ndjson(text)
        digests[table] = hashlib.sha256(text.getvalue()).hexdigest()
        sums = shards.line_checksums(BytesIO(text.getvalue()))
        if not (_holds(file, text.getvalue()) and _holds(shards.line_checksums_of(file), sums)):
            return False
    written = _holds(directory / shards.CHECKSUMS, shards.checksums(digests).encode())
    return written and (directory / shards.RECORDED).is_file()


def _holds(file: Path, content: bytes) -> bool:
    return file.is_file() and file.read_bytes() == content
