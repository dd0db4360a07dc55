"""What the arena must not forget: its agents, its queue, its matches, and every turn that was taken in them.

One SQLite file in WAL mode. A match is stored as its turns alone, and whatever else is true of it follows from them by
the rules. A method has committed when it returns, so that a killed server has lost nothing that it said it accepted
(a power cut may cost the last moments: commits are not forced to the disk). Every row has a checksum, and a file in
which one is wrong is not opened.
"""

from __future__ import annotations

import fcntl
import json
import platform
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fishpool import __version__
from fishpool.games.prisoners_dilemma import RESIGN, Choice
from fishpool.records import Ending, Status
from fishpool.referee import Turn
from fishpool.sqlite import drops_commits, fault_of, one_line

_FORMAT = 2  # SQLite's user_version
_TABLES = """
CREATE TABLE arena (
  rounds INTEGER NOT NULL
);
CREATE TABLE agents (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  model TEXT,
  key_sha256 BLOB NOT NULL,
  created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE queue (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  agent INTEGER NOT NULL UNIQUE REFERENCES agents,
  lane TEXT NOT NULL
);
CREATE TABLE matches (
  number INTEGER PRIMARY KEY,
  lane TEXT NOT NULL,
  first INTEGER NOT NULL REFERENCES agents,
  second INTEGER NOT NULL REFERENCES agents CHECK (second <> first),
  ending TEXT,  -- empty while the match is live
  fishpool_version TEXT NOT NULL,
  versions TEXT NOT NULL,
  created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX live_matches ON matches (number) WHERE ending IS NULL;
CREATE TABLE turns (
  match INTEGER NOT NULL REFERENCES matches,
  round INTEGER NOT NULL,
  seat INTEGER NOT NULL CHECK (seat IN (0, 1)),
  status TEXT NOT NULL,
  action TEXT,
  fault TEXT NOT NULL,
  taken TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (match, round, seat)
) WITHOUT ROWID;
"""

# table -> (what identifies a row, all that its checksum is of: when it was written says nothing of a match)
_CHECKED = {
    "arena": ("rounds", "rounds"),
    "agents": ("number", "number, name, model, key_sha256"),
    "queue": ("place", "place, agent, lane"),
    "matches": ("number", "number, lane, first, second, ending, fishpool_version, versions"),
    "turns": ("match, round, seat", "match, round, seat, status, action, fault"),
}


def _to_format_2() -> str:
    """SQL that gives every row a checksum, which the database itself keeps right from then on."""
    written = [(table, f"INSERT ON {table}") for table in _CHECKED] + [("matches", "UPDATE OF ending ON matches")]
    columns = (f"ALTER TABLE {table} ADD COLUMN checksum INTEGER;" for table in _CHECKED)
    values = (f"UPDATE {table} SET checksum = checksum({_CHECKED[table][1]});" for table in _CHECKED)
    triggers = (
        f"CREATE TRIGGER checksum_{number} AFTER {event} BEGIN UPDATE {table} SET checksum ="
        f" checksum({_CHECKED[table][1]}) WHERE ({_CHECKED[table][0]}) = ({_new(_CHECKED[table][0])}); END;"
        for number, (table, event) in enumerate(written)
    )
    return "\n".join((*columns, *values, *triggers, f"PRAGMA user_version = {_FORMAT};"))


def _new(names: str) -> str:
    return ", ".join(f"NEW.{name}" for name in names.split(", "))


class StoreError(Exception):
    """The database cannot be used; the message is one sentence."""


@dataclass(frozen=True)
class StoredAgent:
    number: int
    name: str
    model: str | None
    key_sha256: bytes


@dataclass(frozen=True)
class StoredMatch:
    """A match as its turns, each with its seat (0 or 1), in the order of rounds; `agents` are two agents' numbers."""

    number: int
    lane: str
    agents: tuple[int, int]
    ending: Ending | None
    fishpool_version: str
    versions: str
    turns: tuple[tuple[int, Turn], ...]


class Store:
    """The database of one arena. Only one server may have it open; whoever only reads may read beside it."""

    def __init__(self, path: Path, rounds: int | None = None):
        """Open the database to serve matches of `rounds` rounds, making it if there is none; None: open it to read.

        Raises StoreError if it is no arena's, another server's, or one of matches of other lengths.
        """
        self._path = path
        self._lock = None
        if rounds is None and not path.is_file():
            raise StoreError(f"{path}: there is no such file; expected the database of an arena")
        if path.is_dir():
            raise StoreError(f"{path}: is a folder; expected the database of an arena, or the name of a new one")
        if drops_commits(path):
            raise StoreError(
                f"{path}-wal: damaged, so that the last turns cannot be read; put back a copy, or give them up"
                f' (sqlite3 {path} "PRAGMA wal_checkpoint(TRUNCATE)")'
            )
        if rounds is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = path.with_name(path.name + ".lock").open("w")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._lock.close()
                raise StoreError(
                    f"{path}: another arena serves this database; stop it, or give another --database"
                ) from None
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.create_function("checksum", -1, _checksum, deterministic=True)
        try:
            self.rounds = self._prepare(rounds)
        except sqlite3.OperationalError as error:
            self.close()
            raise StoreError(
                f"{path}: cannot be opened ({one_line(error)}); make room on its disk, let it and its folder be"
                " written, or give another --database"
            ) from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            self.close()
            raise StoreError(f"{path}: cannot be used as the database of an arena ({one_line(error)})") from None
        except StoreError:
            self.close()
            raise

    def _prepare(self, rounds: int | None) -> int:
        found = self._db.execute("PRAGMA user_version").fetchone()[0]
        empty = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        if not (found in (1, _FORMAT) or (found == 0 and empty and rounds is not None)):
            raise StoreError(f"{self._path}: is no database of an arena of this version; give another --database")
        if found == 1:
            self._db.executescript(f"BEGIN; {_to_format_2()} COMMIT;")
        if not empty:
            self._examine()
        if rounds is None:
            return int(self._db.execute("SELECT rounds FROM arena").fetchone()[0])
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")  # FULL would take some ms an action, on one thread
        self._db.execute("PRAGMA foreign_keys = ON")
        if found == 0:
            self._db.executescript(
                f"BEGIN; {_TABLES} {_to_format_2()} INSERT INTO arena (rounds) VALUES ({int(rounds)}); COMMIT;"
            )
        stored = int(self._db.execute("SELECT rounds FROM arena").fetchone()[0])
        if stored != rounds:
            raise StoreError(
                f"{self._path}: holds matches of {stored} rounds, not {rounds}; "
                f"start with --rounds {stored}, or give another --database"
            )
        return stored

    def _examine(self) -> None:
        """Raise StoreError if anything in the file is not what was written."""
        fault = fault_of(self._db)
        for table, (_, columns) in _CHECKED.items():
            wrong = f"SELECT count(*) FROM {table} WHERE checksum IS NOT checksum({columns})"
            if not fault and (rows := self._db.execute(wrong).fetchone()[0]):
                fault = f"{rows} rows of {table} are not what was written"
        if fault:
            raise StoreError(f"{self._path}: is damaged ({fault}); put back a copy, or give another --database")

    def close(self) -> None:
        self._db.close()
        if self._lock:
            self._lock.close()

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────

    def agents(self) -> list[StoredAgent]:
        query = "SELECT number, name, model, key_sha256 FROM agents ORDER BY number"
        return [StoredAgent(*row) for row in self._db.execute(query)]

    def queue(self) -> list[tuple[int, str]]:
        """(agent's number, lane) in the order in which they queued."""
        return self._db.execute("SELECT agent, lane FROM queue ORDER BY place").fetchall()

    def live(self) -> list[StoredMatch]:
        return list(self._matches("ending IS NULL"))

    def finished(self) -> Iterator[StoredMatch]:
        """All matches that are over, in the order in which they were made."""
        return self._matches("ending IS NOT NULL")

    def match(self, number: int) -> StoredMatch | None:
        return next(self._matches("number = ?", number), None)

    def _matches(self, where: str, *values: int) -> Iterator[StoredMatch]:
        columns = "number, lane, first, second, ending, fishpool_version, versions"
        rows = self._db.execute(f"SELECT {columns} FROM matches WHERE {where} ORDER BY number", values).fetchall()
        for number, lane, first, second, ending, version, versions in rows:
            turns = self._db.execute(
                "SELECT seat, status, action, fault FROM turns WHERE match = ? ORDER BY round, seat", (number,)
            )
            yield StoredMatch(
                number,
                lane,
                (first, second),
                Ending(ending) if ending else None,
                version,
                versions,
                tuple((seat, _turn(status, action, fault)) for seat, status, action, fault in turns),
            )

    # ── Writing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def add_agent(self, name: str, model: str | None, key_sha256: bytes) -> StoredAgent:
        """Raises ValueError if there is an agent of this name."""
        try:
            with self._writing():
                added = self._db.execute(
                    "INSERT INTO agents (name, model, key_sha256) VALUES (?, ?, ?)", (name, model, key_sha256)
                )
        except sqlite3.IntegrityError:
            raise ValueError("the name is taken") from None
        return StoredAgent(added.lastrowid or 0, name, model, key_sha256)

    def enqueue(self, agent: int, lane: str) -> None:
        with self._writing():
            self._db.execute("INSERT INTO queue (agent, lane) VALUES (?, ?)", (agent, lane))

    def dequeue(self, agent: int) -> None:
        with self._writing():
            self._db.execute("DELETE FROM queue WHERE agent = ?", (agent,))

    def add_match(self, lane: str, first: int, second: int) -> int:
        """A new match of two agents, who leave the queue; its number."""
        versions = json.dumps({"python": platform.python_version()})
        with self._transaction():
            self._db.execute("DELETE FROM queue WHERE agent IN (?, ?)", (first, second))
            added = self._db.execute(
                "INSERT INTO matches (lane, first, second, fishpool_version, versions) VALUES (?, ?, ?, ?, ?)",
                (lane, first, second, __version__, versions),
            )
        return added.lastrowid or 0

    def add_turns(self, match: int, round_number: int, turns: Mapping[int, Turn], ending: Ending | None) -> None:
        """Turns of one round by seat; with the ending, if the match ends by them."""
        rows: Iterable[tuple[Any, ...]] = (
            (match, round_number, seat, turn.status, turn.action, turn.fault) for seat, turn in turns.items()
        )
        with self._transaction():
            self._db.executemany(
                "INSERT INTO turns (match, round, seat, status, action, fault) VALUES (?, ?, ?, ?, ?, ?)", rows
            )
            if ending:
                self._db.execute("UPDATE matches SET ending = ? WHERE number = ?", (ending, match))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._writing():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:  # a full disk, say
            raise StoreError(
                f"{self._path}: cannot be written ({one_line(error)}); nothing that was accepted is lost, and the arena"
                " goes on by itself once there is room on the disk and the file may be written"
            ) from error


def _turn(status: str, action: str | None, fault: str) -> Turn:
    legal = None if action is None else RESIGN if action == RESIGN else Choice(action)
    return Turn(Status(status), legal, fault)


def _checksum(*values: Any) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))
