"""Parquet files that carry a checksum of their own bytes, so that a flipped bit is found and never read as a number.

It reads and writes no table: a seal is put on a file that is whole. The format has room for checksums of its pages, but
neither Polars nor DuckDB writes or asks for them, and DuckDB reads one flipped bit in ten as other numbers.

The seal is a SHA-256 between the columns and the footer, where no reader looks: the footer, found from the file's end,
says where each column is (Apache Parquet, "File Format").
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fishpool.files import FileFault, replacing

_END = 8  # bytes: the footer's length, little-endian, and the format's own name


@contextmanager
def sealing(path: Path) -> Iterator[Path]:
    """`files.replacing` for a Parquet file, which is sealed before it has its name."""
    with replacing(path) as part:
        yield part
        with part.open("r+b") as file:
            at = _footer(file)
            file.seek(at)
            footer = file.read()
            seal = _digest(file, at, at)
            file.seek(at)
            file.write(seal + footer)


def check(files: Iterable[Path]) -> None:
    """Raise FileFault for the first Parquet file that is not what was written."""
    for path in files:
        try:
            with path.open("rb") as file:
                at = _footer(file)
                start = at - hashlib.sha256().digest_size
                file.seek(max(start, 0))
                intact = start > 0 and file.read(at - start) == _digest(file, start, at)
        except OSError as error:
            raise FileFault(f"{path}: cannot be read ({error.strerror}); delete it and run snakemake") from error
        if not intact:
            raise FileFault(
                f"{path}: changed after it was written (its bytes are not those of its checksum);"
                " delete the file and run snakemake"
            )


def _footer(file: BinaryIO) -> int:
    """Where the footer begins; 0 or less where there is none."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _END, 0))
    return size - _END - int.from_bytes(file.read(4), "little")


def _digest(file: BinaryIO, until: int, after: int) -> bytes:
    """The SHA-256 of what is before `until` and from `after` on."""
    digest = hashlib.sha256()
    file.seek(0)
    while until and (some := file.read(min(until, 1 << 20))):
        digest.update(some)
        until -= len(some)
    file.seek(after)
    while some := file.read(1 << 20):
        digest.update(some)
    return digest.digest()
