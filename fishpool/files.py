"""Writing a file whole or not at all, whoever else is writing it, and one sentence where the disk does not let it.

It knows no format. That a file is later what was written, checksums say: those of `shards` for records, those of
`seals` for tables, SQLite's and DuckDB's own besides.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fishpool.screen import visible

PART = r"\.(\d+)-[0-9a-f]{8}\.part"  # the end of the name that is written to, with the id of the process that writes

_MAKE_ROOM = "make room on its disk and give the command again"
_ALLOW = "let its folder be written and give the command again"
_REMEDIES = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "allow larger files (ulimit -f), or name a results folder on a disk that holds them",
    errno.EROFS: _ALLOW,
    errno.EACCES: _ALLOW,
    errno.EIO: "the disk may be failing: name a results folder on another one",
}


class FileFault(Exception):
    """A file cannot be written, or is not what was written: one sentence with its name and what to do."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it becomes `path` when the block ends well, and vanishes when it raises.

    No two writers have the same one (a job that outlived its killed workflow, and the one that replaces it): chance is
    in its name too, because machines that share a folder number their processes alike. What a killed writer left is
    removed by the next, with what a library put beside it, such as DuckDB's log. Raises FileFault if the disk is full
    or may not be written, whichever library was writing.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for file in path.parent.glob(f"{glob.escape(path.name)}.*.part*"):
            if re.fullmatch(f"{re.escape(path.name)}{PART}.*", file.name) and not is_being_written(file):
                _remove(file)
        yield part
        part.replace(path)
    except BaseException as error:
        for file in part.parent.glob(f"{glob.escape(part.name)}*"):
            _remove(file)
        if fault := _refusal(error, path, part):
            raise fault from error
        raise


def run(main: Callable[[], None]) -> None:
    """Run a program of `scripts/`: a fault of a file is one sentence on standard error and exit code 1."""
    try:
        main()
    except FileFault as fault:
        sys.exit(visible(str(fault)))
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(sentence(error))


def sentence(error: OSError) -> str:
    """A file that the system refuses, with what can be done."""
    remedy = _REMEDIES.get(error.errno or 0, "see that it is there and may be read and written")
    return f"{error.filename}: {error.strerror}; {remedy}"


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
    with suppress(OSError):  # of a disk that may not be written at all
        shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)


def _refusal(error: BaseException, path: Path, part: Path) -> FileFault | None:
    """The sentence for a disk that does not let itself be written; None for any other error.

    Polars and DuckDB give the number of the error in the system's words only, and DuckDB the file among its own.
    """
    number, named = 0, ""
    if isinstance(error, OSError) and error.errno:
        number, named = error.errno, str(error.filename or "")
    elif isinstance(error, OSError) or type(error).__module__.partition(".")[0] in ("polars", "_duckdb"):
        number = next((number for number in _REMEDIES if os.strerror(number) in str(error)), 0)
        if found := re.search(r'file \\?"([^"\\]+)', str(error)):
            named = found[1]
    if number not in _REMEDIES:
        return None
    if not named or part.name in named:
        named = str(path)
    return FileFault(f"{named}: cannot be written ({os.strerror(number)}); {_REMEDIES[number]}")
