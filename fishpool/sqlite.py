"""What SQLite does not say of a damaged file by itself: of its structure, and of a write-ahead log that it cuts short.

It writes nothing and repairs nothing. SQLite keeps no checksum of a row, so those who need one keep it
(`models.journal`, `arena.store`). Sources: https://sqlite.org/pragma.html#pragma_integrity_check,
https://sqlite.org/fileformat2.html#the_write_ahead_log and https://sqlite.org/walformat.html.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
import time
from pathlib import Path

from fishpool import screen

_HEADER, _FRAME = 32, 24  # bytes of a log before its frames, and of a frame before its page
_PAGE = 4096  # bytes, unless the log says something else
_TRIES, _WAIT = 20, 0.05  # for another process that is writing just now; seconds


def fault_of(connection: sqlite3.Connection) -> str:
    """The first fault of the structure, and of indices against their tables, in SQLite's words; "" if it is sound."""
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return "" if said == "ok" else one_line(said)


def one_line(said: object) -> str:
    """SQLite's words on one line and not too long: where a schema is damaged it quotes all of it."""
    return screen.one_line(said, 200)


def drops_commits(path: Path) -> bool:
    """Whether SQLite would drop from the write-ahead log what was committed, because the log is damaged.

    It reads a log as far as the checksums of its frames are right, and whatever comes after that is gone without a
    word at the next write. To be asked before the file is opened, since whoever opens it forgets what was committed.
    """
    log = Path(f"{path}-wal")
    for left in reversed(range(_TRIES)):
        if not log.is_file():
            return False
        committed, salts = _in_index(path)
        content = log.read_bytes()
        kept, later = _frames(content)
        # An index of another log says nothing, and of one that is gone too much to be told by its salts.
        lost = committed > kept and (len(content) <= _HEADER or _of_one_log(salts, content[16:24]))
        if not lost and later <= 1:  # the last transaction may be one that was killed before its end
            return False
        if left:
            time.sleep(_WAIT)
    return True


def _in_index(path: Path) -> tuple[int, bytes]:
    """How many frames of the log are committed, by the index that all processes share, and the log's salts."""
    try:
        header = Path(f"{path}-shm").read_bytes()[:48]
    except OSError:
        return 0, b""
    return int.from_bytes(header[16:20], sys.byteorder), header[32:40]


def _frames(log: bytes) -> tuple[int, int]:
    """How many frames SQLite takes from a log, and how many after them end a transaction too."""
    header = log[:_HEADER]
    order = ">" if header[3:4] == b"\x83" else "<"
    page = int.from_bytes(header[8:12], "big")
    sums = _sums(header[:24], order, (0, 0))
    right = header[24:32] == struct.pack(">2I", *sums)
    if not right:
        page = _PAGE
    kept = later = 0
    for number, start in enumerate(range(_HEADER, len(log) - _FRAME - page + 1, _FRAME + page), start=1):
        frame = log[start : start + _FRAME]
        if right:
            sums = _sums(frame[:8] + log[start + _FRAME : start + _FRAME + page], order, sums)
            right = frame[8:16] == header[16:24] and frame[16:24] == struct.pack(">2I", *sums)
        if any(frame[4:8]) and right:
            kept = number
        elif any(frame[4:8]):
            later += _of_one_log(frame[8:16], header[16:24])
    return kept, later


def _sums(content: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    one, other = sums
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + other) & 0xFFFFFFFF
        other = (other + second + one) & 0xFFFFFFFF
    return one, other


def _of_one_log(salts: bytes, others: bytes) -> bool:
    """Whether one of the two salts is the same: of another log neither is, of a damaged one a bit."""
    return salts[:4] == others[:4] or salts[4:] == others[4:]
