"""Writing a file whole or not at all, whoever else is writing it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it becomes `path` when the block ends well, and vanishes when it raises.

    The process id in its name keeps two writers apart (a job that outlived its killed workflow, and the one that
    replaces it); what a killed writer left behind is removed by the next.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for leftover in path.parent.glob(f"{path.name}.*.part"):
        leftover.unlink(missing_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.replace(path)
