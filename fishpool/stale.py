"""Result files that no study of a config names any more: what they are, and their removal.

It knows the two trees that a run writes by condition, `jsonl` and `parquet`, and nothing else below the results folder;
it never follows a link. A file with a name that no run would give is left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fishpool.files import PART
from fishpool.shards import RECORDED
from fishpool.study import Config

_RECORDS = re.compile(rf"(?:(?:runs|turns|claims|twins|replies)\.jsonl(?:\.crc32)?|SHA256SUMS)(?:{PART})?")
_TABLE = re.compile(rf"([A-Za-z0-9][A-Za-z0-9_-]*)\.parquet(?:{PART})?")


def stale_files(results: Path, config: Config) -> list[Path]:
    """The files below `results` whose study, condition or shard is not in the config, in the order of their names.

    Records are `jsonl/STUDY/CONDITION/SHARD/..`, tables `parquet/TABLE/STUDY/CONDITION.parquet` or
    `parquet/TABLE/STUDY.parquet`; `only` has no influence. Shards that were recorded and cannot be made again stay.
    """
    studies = {study.name for study in config.configured}
    conditions = {(study.name, condition.name) for study in config.configured for condition in study.conditions}
    shards: set[tuple[str, ...]] = {
        (study.name, condition.name, shard.name)
        for study in config.configured
        for condition in study.conditions
        for shard in study.shards(condition)
    }
    stale = []
    written = list(_files(results / "jsonl"))
    shards |= {names[:3] for names in written if names[3:] == (RECORDED,)}
    for names in written:
        if len(names) == 4 and _RECORDS.fullmatch(names[3]) and names[:3] not in shards:
            stale.append(results.joinpath("jsonl", *names))
    for names in _files(results / "parquet"):
        table = _TABLE.fullmatch(names[-1])
        if not table:
            continue
        by_study, by_condition = len(names) == 2, len(names) == 3
        if (by_study and table[1] not in studies) or (by_condition and (names[1], table[1]) not in conditions):
            stale.append(results.joinpath("parquet", *names))
    return sorted(stale)


def remove(files: Sequence[Path], results: Path) -> None:
    """Remove the files, and the folders below `results` that this leaves empty."""
    keep = {results / "jsonl", results / "parquet"}
    for file in files:
        file.unlink(missing_ok=True)
        for folder in file.parents:
            if folder in keep or next(os.scandir(folder), None):
                break
            folder.rmdir()


def _files(folder: Path) -> Iterator[tuple[str, ...]]:
    """Names from `folder` down to each ordinary file; links are neither followed nor given."""
    if folder.is_symlink() or not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from ((entry.name, *names) for names in _files(folder / entry.name))
            elif entry.is_file(follow_symlinks=False):
                yield (entry.name,)
