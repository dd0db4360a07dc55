"""The journal: an SQLite file with every reply that a model gave, so that none is ever paid for twice.

It asks no model and publishes nothing (that is `client` and `publishing`); it keeps what it is given under the SHA-256
of the request, and the first answer stays. WAL mode: https://sqlite.org/wal.html.

A reply is on the disk before anybody uses it: with `synchronous = FULL` each commit waits for the disk, so that it
outlives kill -9 of the process and the loss of power alike (NORMAL would lose the last commits with the power). That
wait, some milliseconds, is spent in a thread, and replies that come meanwhile share the next commit.

Nor is a damaged file believed: a reply is taken only with its checksum, and that there is none only from a file that
was examined as a whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from fishpool import __version__
from fishpool.models.calls import Reply, key_of
from fishpool.models.faults import Stop
from fishpool.sqlite import drops_commits, fault_of, one_line

FORMAT = 2  # SQLite's user_version
_APPLICATION = 0x66697368  # SQLite's application_id, "fish": no other database is taken for a journal
_PATIENCE = 60.0  # seconds that a process waits for others that write

_REPLIES = """
CREATE TABLE replies (
    key TEXT NOT NULL PRIMARY KEY, -- SHA-256 of the request
    sort TEXT NOT NULL, -- answer, empty or fault
    request TEXT NOT NULL, -- canonical JSON
    text TEXT, -- from here to latency_ms: the reply; NULL for a fault
    thinking TEXT,
    finish_reason TEXT,
    tokens_in INTEGER,
    tokens_out INTEGER,
    latency_ms REAL,
    fault TEXT, -- why there was no reply; NULL unless a fault
    written TEXT NOT NULL, -- UTC
    version TEXT NOT NULL, -- of the fishpool that asked
    checksum TEXT NOT NULL DEFAULT '' -- SHA-256 of all that is said of a reply: `_checksum`
)
"""

# What the checksums of the two tables are of.
_CHECKED = {
    "replies": "key, sort, text, thinking, finish_reason, tokens_in, tokens_out, latency_ms, fault, version",
    "digests": "server, model, digest",
}

# A row is a digest that a server gave for a model; the last row of the two is the latest.
_DIGESTS = """
CREATE TABLE digests (
    id INTEGER PRIMARY KEY,
    server TEXT NOT NULL, -- its name in the config
    model TEXT NOT NULL,
    digest TEXT NOT NULL,
    checksum TEXT NOT NULL DEFAULT '', -- of the three
    UNIQUE (server, model, digest)
)
"""

_LOOK_UP = """
SELECT rowid, sort, text, thinking, finish_reason, tokens_in, tokens_out, latency_ms, fault, version, checksum
FROM replies
WHERE key = ?
"""

_KEEP = """
INSERT INTO replies
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    sort = excluded.sort,
    text = excluded.text,
    thinking = excluded.thinking,
    finish_reason = excluded.finish_reason,
    tokens_in = excluded.tokens_in,
    tokens_out = excluded.tokens_out,
    latency_ms = excluded.latency_ms,
    fault = excluded.fault,
    written = excluded.written,
    version = excluded.version,
    checksum = excluded.checksum
WHERE replies.sort <> 'answer'
"""

# A row is a digest that a server gave for a model: the latest of those that requests were made with. A journal holds
# two where a model was changed on its server under the same name.
_LATEST_DIGESTS = """
SELECT server, model, digest, checksum, MAX(id)
FROM digests
WHERE :study IS NULL OR (model, digest) IN (
    SELECT DISTINCT request ->> '$.model', request ->> '$.digest'
    FROM replies
    WHERE substr(request ->> '$.run_id', 1, length(:study) + 1) = :study || ':'
)
GROUP BY server, model
ORDER BY server, model
"""

_REPLIES_IN_ORDER = """
SELECT
    request, key, rowid,
    sort, text, thinking, finish_reason, tokens_in, tokens_out, latency_ms, fault, version, checksum
FROM replies
WHERE :study IS NULL OR substr(request ->> '$.run_id', 1, length(:study) + 1) = :study || ':'
ORDER BY key
"""

# A row is a study and a model with its digest; counts are replies, sums are tokens as the servers counted them.
_COUNTS = """
SELECT
    substr(request ->> '$.run_id', 1, instr(request ->> '$.run_id', ':') - 1) AS study,
    request ->> '$.model' AS model,
    request ->> '$.digest' AS digest,
    COUNT(*) FILTER (WHERE sort = 'answer') AS answers,
    COUNT(*) FILTER (WHERE sort = 'empty') AS empty,
    COUNT(*) FILTER (WHERE sort = 'fault') AS faults,
    SUM(tokens_in) AS tokens_in,
    SUM(tokens_out) AS tokens_out
FROM replies
GROUP BY study, model, digest
ORDER BY study, model, digest
"""

# A row is a run; what is counted are the answers to first requests, so without those that ask for repair.
_ANSWERED = """
SELECT request ->> '$.run_id' AS run_id, COUNT(*)
FROM replies
WHERE sort = 'answer' AND request ->> '$.attempt' = 1
GROUP BY run_id
ORDER BY run_id
"""


class Sort(StrEnum):
    """What came of a request. While models can be asked, only an answer counts; offline, all three do."""

    ANSWER = "answer"
    EMPTY = "empty"  # neither text nor thinking
    FAULT = "fault"  # no reply in all tries


@dataclass(frozen=True)
class Entry:
    """What the journal holds under a key: `reply` unless it is a fault, else `fault`, a sentence."""

    sort: Sort
    reply: Reply | None = None
    fault: str | None = None
    version: str = __version__


@dataclass(frozen=True)
class Counts:
    """How many replies of each sort a study has of a model, and its tokens; None where no server counted them."""

    study: str
    model: str
    digest: str
    answers: int
    empty: int
    faults: int
    tokens_in: int | None
    tokens_out: int | None


class Journal:
    """An open journal. Many processes may have the same one open; within a process it belongs to one thread.

    It is made if it is not there, unless it is `read_only`. Everything raises Stop with one sentence that names the
    file: it cannot be opened, is no journal or a newer one, is damaged, or the disk is full.
    """

    def __init__(self, path: Path | str, *, read_only: bool = False):
        self.path = Path(path)
        self._waiting: list[tuple[str, str, Entry, asyncio.Future[Entry]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._examination: asyncio.Future[None] | None = None
        if read_only and not self.path.exists():
            raise Stop(f"{self.path}: there is no journal to read replies in; import one (fishpool journal import)")
        if self.path.is_dir():
            raise Stop(f"{self.path}: is a folder; expected the file of a journal, or the name of a new one")
        with self._faults():
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._check_log()
            self._reading = self._connect("ro" if read_only else "rwc")
            try:
                if not read_only:
                    self._create()
                self._check_format()
                self._bring_up_to_date()
                self._writing = None if read_only else self._connect("rw")
            except BaseException:
                self._reading.close()
                raise

    def close(self) -> None:
        """Close the file; nothing may be waiting to be kept (see `written`)."""
        self._reading.close()
        if self._writing:
            self._writing.close()

    def look_up(self, key: str) -> Entry | None:
        """What is kept under a key; some ten microseconds, whoever else is writing."""
        with self._faults():
            return _look_up(self._reading, key)

    async def examined(self) -> None:
        """Wait until the file was examined, once; before a reply that it does not seem to hold is paid for."""
        if self._examination is None:
            self._examination = asyncio.ensure_future(asyncio.to_thread(self.examine))
        await asyncio.shield(self._examination)

    def examine(self) -> None:
        """Stop if the file is damaged, so that it may seem not to hold what it holds; a second for some 500 MB."""
        with self._faults(), closing(self._connect("ro")) as connection:
            if fault := fault_of(connection):
                raise _Damaged(f"the journal is damaged ({fault}); {_RESTORE}")

    async def keep(self, key: str, request: str, entry: Entry) -> Entry:
        """What the journal holds under the key from now on, on the disk: `entry`, or the answer that was first.

        `request` is the canonical JSON. Whoever waits here may be cancelled; the entry is kept whole or not at all.
        """
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[Entry] = loop.create_future()
        self._waiting.append((key, request, entry, kept))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write())
        return await kept

    async def written(self) -> None:
        """Wait until everything that was given to `keep` is on the disk."""
        if self._writer is not None:
            await self._writer

    def keep_all(self, entries: Iterable[tuple[str, str, Entry]], digests: Iterable[tuple[str, str, str]] = ()) -> int:
        """Keep (key, request, entry) and (server, model, digest), all or none of them; the number of new replies here.

        `digests` are read after the last entry, so that whoever gives the one may find the other on the way.
        """
        assert self._writing, "a journal opened for reading is written"
        with self._faults(), _transaction(self._writing) as connection:
            before = connection.total_changes
            connection.executemany(_KEEP, (_row(*entry) for entry in entries))
            new = connection.total_changes - before
            for digest in digests:
                _note_digest(connection, *digest)
            return new

    def digest(self, server: str, model: str) -> str | None:
        """The latest digest that a server of this name gave for a model; None if none ever did."""
        with self._faults():
            return _latest_digest(self._reading, server, model)

    def note_digest(self, server: str, model: str, digest: str) -> None:
        """Keep the digest that a server gives for a model now, so that it is known offline."""
        if self.digest(server, model) == digest:  # most often; nobody is kept from writing
            return
        assert self._writing, "a journal opened for reading is written"
        with self._faults(), _transaction(self._writing) as connection:
            _note_digest(connection, server, model, digest)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read inside is of one moment, whoever writes meanwhile."""
        with self._faults():
            self._reading.execute("BEGIN")
        try:
            yield
        finally:
            self._reading.execute("ROLLBACK")

    def digests(self, study: str | None = None) -> list[tuple[str, str, str]]:
        """(server, model, digest): the latest of each server and model, or of those that a study was played with."""
        with self._faults():
            return [_digest(*row[:4]) for row in self._reading.execute(_LATEST_DIGESTS, {"study": study})]

    def entries(self, study: str | None = None) -> Iterator[tuple[str, str, Entry]]:
        """(key, request, entry) in the order of the keys, one at a time."""
        with self._faults():
            for request, key, row, *columns in self._reading.execute(_REPLIES_IN_ORDER, {"study": study}):
                entry = _entry(key, row, columns)
                if key_of(request) != key:
                    raise _changed(row)
                yield key, request, entry

    def counts(self) -> list[Counts]:
        with self._faults():
            return [Counts(*row) for row in self._reading.execute(_COUNTS)]

    def answered(self) -> list[tuple[str, int]]:
        """(run id, how many first requests of its turns are answered); requests for repair do not count."""
        with self._faults():
            return self._reading.execute(_ANSWERED).fetchall()

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                stored = await asyncio.to_thread(
                    self._store, [(key, request, entry) for key, request, entry, _ in batch]
                )
            except Exception as error:  # whatever it is, those who wait must hear of it
                for *_, kept in batch:
                    if not kept.done():
                        kept.set_exception(error)
            else:
                for (*_, kept), entry in zip(batch, stored, strict=True):
                    if not kept.done():
                        kept.set_result(entry)

    def _store(self, entries: Sequence[tuple[str, str, Entry]]) -> list[Entry]:
        assert self._writing, "a journal opened for reading is written"
        with self._faults(), _transaction(self._writing) as connection:
            connection.executemany(_KEEP, [_row(*entry) for entry in entries])
            found = [_look_up(connection, key) for key, _, _ in entries]
            return [entry for entry in found if entry]

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,  # one thread at a time: the loop's to read, the writer's to write
        )
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _create(self) -> None:
        if self._format() == (0, 0) and not self._reading.execute("SELECT 1 FROM sqlite_schema").fetchone():
            with _transaction(self._reading) as connection:
                if self._format() == (0, 0):  # nobody else made it meanwhile
                    connection.execute(_REPLIES)
                    connection.execute(_DIGESTS)
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
        if self._format()[0] == _APPLICATION:
            self._use_wal()

    def _check_log(self) -> None:
        if drops_commits(self.path):
            raise Stop(
                f"{self.path}-wal: damaged, so that the last replies cannot be read; put back a copy, or give them up"
                f' (sqlite3 {self.path} "PRAGMA wal_checkpoint(TRUNCATE)") and the models are asked again'
            )

    def _bring_up_to_date(self) -> None:
        """Give the replies of a journal of format 1 their checksums."""
        if self._format()[1] == FORMAT:
            return
        with closing(self._connect("rw")) as writing, _transaction(writing) as connection:
            if connection.execute("PRAGMA user_version").fetchone() == (FORMAT,):
                return  # another process did so meanwhile
            connection.create_function("checksum", -1, _checksum, deterministic=True)
            for table, columns in _CHECKED.items():
                connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum TEXT NOT NULL DEFAULT ''")
                connection.execute(f"UPDATE {table} SET checksum = checksum({columns})")
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _use_wal(self) -> None:
        """SQLite does not wait for others here as it does elsewhere, so we do."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                (mode,) = self._reading.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                    raise
                time.sleep(0.01)
                continue
            if mode != "wal":
                raise Stop(
                    f"{self.path}: this file system does not hold an SQLite file that several processes write"
                    " (WAL mode); put the journal on a local disk"
                )
            return

    def _check_format(self) -> None:
        application, version = self._format()
        if application != _APPLICATION:
            raise Stop(f"{self.path}: this is an SQLite database but no journal of fishpool; name another file")
        if version > FORMAT:
            raise Stop(
                f"{self.path}: this journal has format {version} and fishpool {__version__} reads up to {FORMAT};"
                " use the newer fishpool that wrote it"
            )

    def _format(self) -> tuple[int, int]:
        (application,) = self._reading.execute("PRAGMA application_id").fetchone()
        (version,) = self._reading.execute("PRAGMA user_version").fetchone()
        return application, version

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            what = next(
                (said for code, said in _SAID.items() if name.startswith(code)),
                f"the journal failed: {one_line(error)}",
            )
            if "decode" in str(error):  # text that is none any more
                what = _SAID["SQLITE_CORRUPT"]
            raise Stop(f"{self.path}: {what}") from error
        except UnicodeDecodeError as error:  # of SQLite's own words, where they quote what is damaged
            raise Stop(f"{self.path}: {_SAID['SQLITE_CORRUPT']}") from error
        except _Damaged as damage:
            raise Stop(f"{self.path}: {damage}") from damage
        except OSError as error:
            raise Stop(f"{self.path}: the journal cannot be made: {error.strerror}") from error


_RESTORE = "put back a copy, or save what can be read with sqlite3's .recover"
_SAID = {
    "SQLITE_FULL": "the disk is full and the last replies are not kept; make room and run again, all else is kept",
    "SQLITE_IOERR": "the disk refuses the journal (full, or failing) and the last replies are not kept; make room and"
    " run again, all else is kept",
    "SQLITE_NOTADB": "this is no journal of fishpool (not an SQLite database); name another file",
    "SQLITE_CORRUPT": f"the journal is damaged; {_RESTORE}",
    "SQLITE_BUSY": f"another process kept the journal to itself for {_PATIENCE:g} s; end it and run again",
    "SQLITE_READONLY": "the journal may not be written; change its permissions or name another file",
    "SQLITE_PERM": "the journal may not be opened; change its permissions or name another file",
    "SQLITE_CANTOPEN": "the journal cannot be opened; see that its folder is there and may be written",
}


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _look_up(connection: sqlite3.Connection, key: str) -> Entry | None:
    with closing(connection.execute(_LOOK_UP, (key,))) as rows:
        row = rows.fetchone()
    if row is None:
        return None
    number, *columns = row
    return _entry(key, number, columns)


def _latest_digest(connection: sqlite3.Connection, server: str, model: str) -> str | None:
    row = connection.execute(
        "SELECT digest, checksum FROM digests WHERE server = ? AND model = ? ORDER BY id DESC LIMIT 1", (server, model)
    ).fetchone()
    return row and _digest(server, model, *row)[2]


def _digest(server: str, model: str, digest: str, checksum: str) -> tuple[str, str, str]:
    if checksum != _checksum(server, model, digest):
        raise _Damaged(f"the digest of a model is not what was written; {_RESTORE}")
    return server, model, digest


def _note_digest(connection: sqlite3.Connection, server: str, model: str, digest: str) -> None:
    if _latest_digest(connection, server, model) != digest:
        given = (server, model, digest)
        connection.execute("DELETE FROM digests WHERE server = ? AND model = ? AND digest = ?", given)
        columns = (*given, _checksum(*given))
        connection.execute("INSERT INTO digests (server, model, digest, checksum) VALUES (?, ?, ?, ?)", columns)


class _Damaged(Exception):
    """What was found and what to do, in one sentence that still lacks the name of the file."""


def _changed(row: int) -> _Damaged:
    return _Damaged(
        f'the reply in row {row} is not what was written; put back a copy, or remove it ("DELETE FROM replies WHERE'
        f' rowid = {row}" in sqlite3) and the model is asked again'
    )


def _entry(key: str, row: int, columns: Sequence[Any]) -> Entry:
    """The entry of a row's columns from `sort` on, if they are what was written under the key."""
    sort, *reply, fault, version, checksum = columns
    if checksum != _checksum(key, *columns[:-1]):
        raise _changed(row)
    return Entry(Sort(sort), None if sort == Sort.FAULT else Reply(*reply), fault, version)


def _checksum(*columns: Any) -> str:
    """SHA-256 of a row's key and of all its columns but the request, which the key is of, and when it was written."""
    return hashlib.sha256(json.dumps(columns, default=repr).encode()).hexdigest()


def _row(key: str, request: str, entry: Entry) -> tuple[Any, ...]:
    reply = entry.reply
    fields = (
        (reply.text, reply.thinking, reply.finish_reason, reply.tokens_in, reply.tokens_out, float(reply.latency_ms))
        if reply
        else (None,) * 6
    )
    written = datetime.now(UTC).isoformat(timespec="seconds")
    checksum = _checksum(key, entry.sort.value, *fields, entry.fault, entry.version)
    return (key, entry.sort.value, request, *fields, entry.fault, written, entry.version, checksum)
