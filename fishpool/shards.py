"""A shard: one condition and one block of seeds, the unit of work; and the writing down of what its play gives.

A shard travels to its job as one JSON text that holds all that the job needs and nothing else, so that an edit of the
config's machinery replays nothing. Records are written beside their final names and renamed at the end, with their
checksums last, so that a job killed at any moment leaves the whole shard or nothing that could be mistaken for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishpool import records
from fishpool.files import replacing

if TYPE_CHECKING:
    import polars as pl

CHECKSUMS = "SHA256SUMS"  # in the format of sha256sum, so that `sha256sum -c` checks a shard
RECORDED = "RECORDED"  # marks a shard that no config can make again, since people or others' agents played it
LINE_CHECKSUMS = ".crc32"  # beside each JSONL file, so that a changed line can be named


@dataclass(frozen=True)
class Player:
    """Who plays: a name that is unique in its study, and what acts under it.

    `kind` is "scripted", a module of `fishpool.players` that makes it ("model", "process", ..), or in the dictator game
    the oracle's kind; `settings` is what belongs to the kind, as JSON values: {"strategy": name} of a scripted player.
    """

    name: str
    kind: str
    settings: dict[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Shard:
    """One condition and some of its seeds; `parameters` holds every parameter of the game as JSON values.

    `turn_timeout` is the number of seconds that the condition's lane gives a player for one turn. `replay` names a
    published journal: the models' replies are read in it and nobody is called.
    """

    study: str
    condition: str
    name: str
    game: str
    parameters: dict[str, Any]
    players: tuple[Player, ...]
    turn_timeout: float
    seeds: tuple[int, ...]
    replay: str | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        """The record tables that its play writes."""
        return records.tables(self.game, models=any(player.kind == "model" for player in self.players))

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Shard:
        """The shard that `to_json` wrote; ValueError on any other text."""
        try:
            fields = json.loads(text)
            players = tuple(Player(**player) for player in fields.pop("players"))
            return Shard(players=players, seeds=tuple(fields.pop("seeds")), **fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"expected a shard as Shard.to_json writes it, found {text[:60]!r}") from error


@dataclass(frozen=True)
class Site:
    """Where a shard is played: what no record depends on, so that moving it elsewhere replays nothing.

    `servers` are those of the config by name, `journal` is the SQLite file of the models' replies; `offline` answers
    from it alone. `logs` is a folder for what players write to standard error.
    """

    servers: dict[str, Any] = field(default_factory=dict, hash=False)
    journal: str | None = None
    offline: bool = False
    logs: str | None = None


ANYWHERE = Site()  # enough for games in which nobody needs a server, a journal or a log


def write(
    directory: Path,
    tables: Sequence[str],
    batches: Iterable[Mapping[str, pl.DataFrame]],
    progress: Progress | None = None,
) -> None:
    """Write a shard's frames as one JSONL file a table, in `directory`, and their checksums; whole or not at all."""
    names = {table: directory / f"{table}.jsonl" for table in tables}
    digests = {table: hashlib.sha256() for table in tables}
    with ExitStack() as stack:
        parts = {table: stack.enter_context(replacing(name)) for table, name in names.items()}
        files = {table: stack.enter_context(part.open("wb")) for table, part in parts.items()}
        sums = {table: stack.enter_context(replacing(line_checksums_of(name))) for table, name in names.items()}
        lines = {table: stack.enter_context(part.open("wb")) for table, part in sums.items()}
        for frames in batches:
            for table, file in files.items():
                buffer = BytesIO()
                frames[table].write_ndjson(buffer)
                digests[table].update(buffer.getbuffer())
                file.write(buffer.getbuffer())
                buffer.seek(0)
                lines[table].write(line_checksums(buffer))
            if progress:
                progress.add(len(frames["runs"]), frames.get("replies"))
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
    with replacing(directory / CHECKSUMS) as part:
        part.write_text(checksums({table: digests[table].hexdigest() for table in tables}))
    if progress:
        progress.end()


def mark_recorded(directory: Path) -> None:
    """Say that the shard cannot be played again, so that nothing removes it as stale."""
    with replacing(directory / RECORDED) as part:
        part.touch()


def checksums(digests: Mapping[str, str]) -> str:
    """The text of SHA256SUMS; `digests` are those of the JSONL files by table, in order."""
    return "".join(f"{digest}  {table}.jsonl\n" for table, digest in digests.items())


def line_checksums(lines: Iterable[bytes]) -> bytes:
    """CRC-32 of each line, four bytes a line, little-endian."""
    sums = [zlib.crc32(line) for line in lines]
    return struct.pack(f"<{len(sums)}I", *sums)


def line_checksums_of(file: Path) -> Path:
    return file.with_name(file.name + LINE_CHECKSUMS)


class Progress:
    """Tells standard error how far a job is, at most every two seconds, and once at the end.

    Where models play it also counts their calls, and the tokens of those that were not read in the journal.
    """

    def __init__(self, what: str, total: int, unit: str = "games"):
        self._what, self._total, self._unit = what, total, unit
        self._done = self._calls = self._journalled = self._tokens = 0
        self._started = self._told = time.monotonic()

    def add(self, number: int, replies: pl.DataFrame | None = None) -> None:
        """So many more are done; `replies` are the rows of that table that came with them."""
        self._done += number
        if replies is not None:
            asked = replies.filter(~replies["from_journal"])
            self._calls += len(replies)
            self._journalled += len(replies) - len(asked)
            self._tokens += sum(int(asked[name].sum()) for name in ("tokens_in", "tokens_out"))
        now = time.monotonic()
        if now - self._told >= 2 and self._done < self._total:
            self._told = now
            seconds = now - self._started
            left = _duration((self._total - self._done) * seconds / self._done) if self._done else "unknown time"
            self._say(
                f"{self._done:,} of {self._total:,} {self._unit}, {_rate(self._done, seconds)}"
                f"{self._models(seconds)}, {left} left"
            )

    def end(self) -> None:
        seconds = time.monotonic() - self._started
        self._say(f"{self._done:,} {self._unit} in {_duration(seconds)}{self._models(seconds)}")

    def _models(self, seconds: float) -> str:
        if not self._calls:
            return ""
        calls = f", {self._calls:,} calls ({self._journalled:,} from the journal)"
        return f"{calls}, {self._tokens:,} tokens ({_rate(self._tokens, seconds)})" if self._tokens else calls

    def _say(self, text: str) -> None:
        print(f"{self._what}: {text}", file=sys.stderr, flush=True)


def _rate(number: int, seconds: float) -> str:
    rate = number / max(seconds, 1e-3)
    return (
        f"{rate:,.0f} a second" if rate >= 1 else f"{60 * rate:,.0f} a minute" if rate >= 1 / 60 else "under 1 a minute"
    )


def _duration(seconds: float) -> str:
    """As people say it: 0.4 s, 40 s, 12 min, 3 h 20 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
