"""From JSONL to Parquet, under a strict schema: what was written is converted, or the step stops and says which line.

A shard's checksums prove that its files are what was written, and one streaming pass converts them. Where they do not,
and for games that were played elsewhere, the files are read line by line to find a fault.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fishpool import records
from fishpool.files import FileFault
from fishpool.screen import is_text
from fishpool.seals import sealing
from fishpool.shards import CHECKSUMS, RECORDED, line_checksums, line_checksums_of


class FaultyRecords(FileFault):
    """A record file is not what its play wrote; the message is one sentence with the file and, if known, the line."""


def tabulate(game: str, table: str, shards: Sequence[Path], output: Path) -> None:
    """Convert one table's JSONL of all `shards` (directories), in order, to the Parquet file `output`."""
    import polars as pl

    files = [shard / f"{table}.jsonl" for shard in shards]
    for file in files:
        if _checksum_of(file) != _checksum_expected(file):
            raise FaultyRecords(find_fault(file, game, table))
        # Polars passes over unknown keys and empty lines, and makes text of numbers. Play writes no such thing, and its
        # checksums prove that this is what it wrote; who made those of games that were played elsewhere, nobody knows.
        if (file.parent / RECORDED).exists() and (fault := find_fault(file, game, table, changed=False)):
            raise FaultyRecords(fault)
    rows = pl.scan_ndjson(files, schema=records.schema(game, table))
    try:
        with sealing(output) as part:
            rows.sink_parquet(part, compression="zstd", compression_level=3, row_group_size=100_000)
    except FileFault:
        raise
    except Exception as error:  # polars names neither file nor line
        faults = [fault for file in files if (fault := find_fault(file, game, table, changed=False))]
        raise FaultyRecords(faults[0] if faults else f"{output}: could not be written ({error})") from error


def find_fault(file: Path, game: str, table: str, *, changed: bool = True) -> str:
    """The first line that is not a record of the table, in one sentence; what else can be said if every line is one."""
    columns = {column.name: column for column in records.columns(game, table)}
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            fault = _fault_of_line(line, columns)
            if fault:
                return f"{file} line {number}: {fault}; {_remedy(file)}"
    return _changed_line(file) if changed else ""


def _remedy(file: Path, what: str = "file") -> str:
    if (file.parent / RECORDED).exists():
        return "put back a copy, or have the arena write its matches again (fishpool arena export)"
    return f"delete the {what} and run snakemake"


def _changed_line(file: Path) -> str:
    """Which line of a file of good records is not the one that was written."""
    with file.open("rb") as lines:
        found = line_checksums(lines)
    try:
        written = line_checksums_of(file).read_bytes()
    except OSError:
        written = b""
    if not written or found == written:
        return f"{file}: changed after it was written (its checksum is not the one in {CHECKSUMS}); {_remedy(file)}"
    if written.startswith(found):
        return f"{file}: ends after line {len(found) // 4}, but {len(written) // 4} lines were written; {_remedy(file)}"
    same = next((i for i in range(0, len(written), 4) if found[i : i + 4] != written[i : i + 4]), len(written))
    return f"{file} line {same // 4 + 1}: changed after it was written; {_remedy(file)}"


def _fault_of_line(line: bytes, columns: dict[str, records.Column]) -> str:
    if not line.endswith(b"\n"):
        return "cut short"
    try:
        record = json.loads(
            line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_fraction
        )
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}"
    except ValueError as error:
        return f"not JSON ({error})"
    except RecursionError:
        return "not JSON (nested too deeply)"
    if not isinstance(record, dict):
        return f"a JSON object was expected, found {_shown(record)}"
    for key in record:
        if key not in columns:
            return f"unknown key {_shown(key)}; the keys are {', '.join(columns)}"
    for name, column in columns.items():
        if name not in record:
            return f"key {name!r} is missing"
        value = record[name]
        if value is None and column.required:
            return f"{name!r} is empty, {_a(column.type)} was expected"
        if value is not None and not _is(value, column.type):
            return f"{name!r} is {_shown(value)}, {_a(column.type)} was expected"
    return ""


def _is(value: Any, kind: str) -> bool:
    """Whether a JSON value is one that a column of this type can hold without a change."""
    match value:
        case bool():
            return kind == "boolean"
        case str():
            return kind == "string" and is_text(value)
        case int():
            return (kind == "integer" and -(2**63) <= value < 2**63) or (kind == "number" and abs(value) <= 2**53)
        case float():
            return kind == "number" and math.isfinite(value)
    return False


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "integer" else f"a {kind}"


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        return "a value that is nested too deeply"
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _fraction(digits: str) -> float:
    if re.search(r"[eE][+-]?\d{5}", digits):  # which Polars cannot read, even if it is zero
        raise ValueError(f"the number {digits[:40]} has too long an exponent")
    return float(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return record


def _checksum_of(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise FaultyRecords(f"{file}: cannot be read ({error.strerror}); {_remedy(file)}") from None


def _checksum_expected(file: Path) -> str:
    sums = file.with_name(CHECKSUMS)
    try:
        lines = [line.split() for line in sums.read_text(encoding="utf-8").splitlines()]
        return {line[1]: line[0] for line in lines}[file.name]
    except (OSError, ValueError, IndexError, KeyError):
        raise FaultyRecords(f"{sums}: holds no checksum of {file.name}; {_remedy(file, 'folder')}") from None
