"""What SQLite does not say of a damaged file by itself: of its structure, and of a write-ahead log that it cuts short.

It opens no file for writing and repairs nothing. SQLite keeps no checksum of a row, so those who need one keep it
(`models.journal`, `arena.store`). Sources: https://sqlite.org/pragma.html#pragma_integrity_check,
https://sqlite.org/fileformat2.html#the_write_ahead_log and https://sqlite.org/walformat.html.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

_HEADER, _FRAME = 32, 24  # bytes of a log before its frames, and of a frame before its page
_TRIES, _WAIT = 20, 0.05  # for another process that is writing just now; seconds


def fault_of(connection: sqlite3.Connection) -> str:
    """The first fault of the structure, and of indices against their tables, in SQLite's words; "" if it is sound."""
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return "" if said == "ok" else " ".join(str(said).split())


def drops_commits(path: Path) -> bool:
    """Whether SQLite would drop from the write-ahead log what was committed, because the log is damaged.

    It reads a log as far as the checksums of its frames are right, and whatever comes after that is gone without a
    word at the next write. To be asked before the file is opened for writing, since closing it removes the log.
    """
    log = Path(f"{path}-wal")
    for left in reversed(range(_TRIES)):
        if not log.is_file() or log.stat().st_size <= _HEADER:
            return False
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            (page,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # has the log read, if nobody has it open
            with Path(f"{path}-shm").open("rb") as index:
                index.seek(16)
                kept = int.from_bytes(index.read(4), sys.byteorder)
            dropped = _committed_after(log, kept, page)
        if not dropped:
            return False
        if left:
            time.sleep(_WAIT)
    return True


def _committed_after(log: Path, kept: int, page: int) -> bool:
    """Whether a frame after the first `kept` ends a transaction of this log.

    What is left of the log before has other numbers (salts), both of them; such frames are there as a rule.
    """
    with log.open("rb") as file:
        header = file.read(_HEADER)
        file.seek(_HEADER + kept * (_FRAME + page))
        while len(frame := file.read(_FRAME)) == _FRAME:
            ends = any(frame[4:8])
            if ends and (frame[8:12] == header[16:20] or frame[12:16] == header[20:24]):
                return True
            file.seek(page, 1)
    return False
