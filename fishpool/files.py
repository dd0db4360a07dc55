"""Writing a file whole or not at all, whoever else is writing it."""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PART = r"\.(\d+)-[0-9a-f]{8}\.part"  # the end of the name that is written to, with the id of the process that writes


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it becomes `path` when the block ends well, and vanishes when it raises.

    No two writers have the same one (a job that outlived its killed workflow, and the one that replaces it): chance is
    in its name too, because machines that share a folder number their processes alike. What a killed writer left is
    removed by the next, with what a library put beside it, such as DuckDB's log.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for file in path.parent.glob(f"{glob.escape(path.name)}.*.part*"):
        if re.fullmatch(f"{re.escape(path.name)}{PART}.*", file.name) and not is_being_written(file):
            _remove(file)
    part = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        yield part
    except BaseException:
        for file in part.parent.glob(f"{glob.escape(part.name)}*"):
            _remove(file)
        raise
    part.replace(path)


def is_being_written(part: Path) -> bool:
    """Whether another process of this machine is still writing there."""
    found = re.search(PART, part.name)
    return found is not None and int(found[1]) != os.getpid() and _is_alive(int(found[1]))


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True  # no way to ask that does no harm
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _remove(file: Path) -> None:
    if file.is_dir():
        shutil.rmtree(file, ignore_errors=True)
    else:
        file.unlink(missing_ok=True)
