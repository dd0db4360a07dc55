"""A journal as a file that others can replay: compressed JSONL, a header, then digests, then replies by their keys.

It is no second journal: nothing is ever added to such a file. The same replies always give the same bytes (no time,
no order of arrival), and a reader takes no line whose key is not the SHA-256 of its request.
"""

from __future__ import annotations

import gzip
import json
import lzma
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from fishpool.files import replacing
from fishpool.models.calls import Reply, Request, canonical
from fishpool.models.faults import Stop
from fishpool.models.journal import Counts, Entry, Journal, Sort
from fishpool.screen import aligned, visible

_FORMAT = 1  # of the file; the journal's own is another
_HEADER = {"format": "fishpool journal", "version": _FORMAT}
_LONGEST_LINE = 64 * 2**20  # bytes; a file from elsewhere may unpack to anything
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a character that UTF-16 writes as two
_REQUEST: dict[str, tuple[type, ...]] = {
    "backend": (str,),
    "model": (str,),
    "digest": (str,),
    "messages": (list,),
    "schema": (dict, type(None)),
    "options": (dict,),
    "thinking": (bool, type(None)),
    "run_id": (str,),
    "agent": (str,),
    "round": (int,),
    "phase": (str,),
    "attempt": (int,),
    "replicate": (int,),
}
_REPLY: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "thinking": (str,),
    "finish_reason": (str,),
    "tokens_in": (int, type(None)),
    "tokens_out": (int, type(None)),
    "latency_ms": (float, int),
}


def export(journal: Journal, file: Path, study: str | None = None) -> int:
    """Write a journal, or what it holds of one study, as .jsonl.xz, whole or not at all; the number of replies."""
    replies = 0
    journal.examine()
    with replacing(file) as part, lzma.open(part, "wb") as packed, journal.snapshot():
        packed.write(_line(_HEADER))
        for server, model, digest in journal.digests(study):
            packed.write(_line({"server": server, "model": model, "digest": digest}))
        for key, request, entry in journal.entries(study):
            packed.write(_line({"key": key, "request": json.loads(request), **asdict(entry)}))
            replies += 1
        if study is not None and not replies:
            raise Stop(f'{journal.path}: the journal has no reply of a study "{study}" (fishpool journal lists them)')
    return replies


def import_into(journal: Journal, file: Path) -> tuple[int, int]:
    """Add a published journal's replies and digests, all or none: how many replies it holds, and how many were new.

    Answers that the journal has already stay as they are.
    """
    read = 0

    def entries() -> Iterator[tuple[str, str, Entry]]:
        nonlocal read
        for key, request, entry in _entries(file, digests):
            yield key, request.to_json(), entry
            read += 1

    digests: list[tuple[str, str, str]] = []
    new = journal.keep_all(entries(), digests)
    return read, new


class Published:
    """A published journal, open for replay: the replies of some models (names on their servers), held in memory."""

    def __init__(self, path: Path | str, models: Sequence[str]):
        self.path = Path(path)
        digests: list[tuple[str, str, str]] = []
        self._entries = {key: entry for key, request, entry in _entries(self.path, digests) if request.model in models}
        self._digests = {(server, model): digest for server, model, digest in digests}

    def look_up(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def digest(self, server: str, model: str) -> str | None:
        return self._digests.get((server, model))

    def close(self) -> None:
        """Nothing is open: the file was read to its end."""


def contents(file: Path) -> Counter[tuple[str, str]]:
    """How many replies a published journal holds, by (model, digest)."""
    return Counter((request.model, request.digest) for _, request, _ in _entries(file, []))


def command(action: str | None, path: Path, file: Path | None, study: str | None) -> None:
    """`fishpool journal`: export to or import from `file`; without an action, print what the journal holds."""
    with closing(Journal(path, read_only=action != "import")) as journal:
        if action == "export" and file:
            print(visible(f"{file}: {export(journal, file, study):,} replies"))
        elif action == "import" and file:
            read, new = import_into(journal, file)
            print(visible(f"{file}: {read:,} replies, {new:,} of them new in {path}"))
        else:
            journal.examine()
            _show(journal.counts())


def _show(counts: Sequence[Counts]) -> None:
    rows: list[tuple[str, ...]] = [("study", "model", "digest", "answers", "empty", "faults", "in", "out")]
    for row in counts:
        numbers = (row.answers, row.empty, row.faults, row.tokens_in, row.tokens_out)
        shown = ("" if number is None else f"{number:,}" for number in numbers)
        named = (row.study, row.model, row.digest.removeprefix("sha256:")[:12])
        rows.append((*map(visible, named), *shown))
    for line in aligned(rows, left=3):
        print(line.rstrip())


def _line(fields: Mapping[str, Any]) -> bytes:
    return canonical(fields).encode() + b"\n"


def _entries(file: Path, digests: list[tuple[str, str, str]]) -> Iterator[tuple[str, Request, Entry]]:
    """(key, request, entry) of each reply, one under a key; digests (server, model, digest) are added on the way."""
    seen: dict[str, int] = {}
    for number, fields in _lines(file):
        if "key" not in fields:
            digests.append(_digest(file, number, fields))
            continue
        key, request, entry = _checked(file, number, fields)
        if (first := seen.setdefault(key, number)) != number:
            raise _refusal(
                file, number, f"a second reply under the key of line {first}, so nobody can tell which counts"
            )
        yield key, request, entry


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a published journal after its header, each with its line number; Stop on anything else."""
    number = 0
    try:
        with file.open("rb") as raw, _unpacked(raw) as lines:
            while line := lines.readline(_LONGEST_LINE):
                number += 1
                if not line.endswith(b"\n"):
                    raise _refusal(file, number, "the line has no end; the file is cut off, so get it again")
                fields = json.loads(line, parse_constant=_refuse_constant)
                if not isinstance(fields, dict):
                    raise ValueError("no object")
                if _HALF.search(line):
                    canonical(fields).encode()
                if number > 1:
                    yield number, fields
                elif fields.get("format") != _HEADER["format"]:
                    raise _refusal(file, number, "this is no published journal; name one (fishpool journal export)")
                elif fields.get("version") != _FORMAT:
                    found = str(fields.get("version"))[:20]
                    raise _refusal(file, number, f"format {found} is not {_FORMAT}, which this fishpool reads")
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile):
        raise _refusal(file, number + 1, "the file is cut off or damaged here, so get it again") from None
    except UnicodeEncodeError:
        raise _refusal(file, number, "the line holds half a character (a lone surrogate), which is no text") from None
    except (ValueError, RecursionError):
        raise _refusal(file, number, "this is no JSON object, so get the file again") from None
    except OSError as error:
        raise Stop(f"{file}: the published journal cannot be read: {error.strerror}") from error
    if not number:
        raise Stop(f"{file}: the file is empty; name a published journal (fishpool journal export)")


def _unpacked(raw: IO[bytes]) -> IO[bytes] | gzip.GzipFile | lzma.LZMAFile:
    """xz, gzip or neither, by the file's first bytes."""
    start = raw.read(6)
    raw.seek(0)
    if start == b"\xfd7zXZ\0":
        return lzma.open(raw)
    return gzip.open(raw) if start.startswith(b"\x1f\x8b") else raw


def _checked(file: Path, number: int, fields: Mapping[str, Any]) -> tuple[str, Request, Entry]:
    """(key, request, entry) of a line, if its key is its request's and it holds a reply or a fault."""
    try:
        _check_types(fields["request"], _REQUEST)
        request = Request(**fields["request"])
    except (KeyError, TypeError):
        raise _refusal(file, number, "the line holds no request as fishpool makes them") from None
    key = request.key
    if key != fields["key"]:
        raise _refusal(file, number, "the key is not the SHA-256 of the request, so one of the two was changed")
    try:
        entry = _entry(fields)
    except (KeyError, TypeError, ValueError):
        raise _refusal(file, number, "the line holds no reply as fishpool writes them") from None
    return key, request, entry


def _entry(fields: Mapping[str, Any]) -> Entry:
    sort, reply, fault, version = Sort(fields["sort"]), fields["reply"], fields["fault"], fields["version"]
    if not isinstance(version, str):
        raise TypeError(version)
    if sort is Sort.FAULT:
        if reply is not None or not isinstance(fault, str):
            raise TypeError(fault)
        return Entry(sort, None, fault, version)
    if fault is not None:
        raise TypeError(fault)
    _check_types(reply, _REPLY)
    latency = float(reply["latency_ms"])
    if not math.isfinite(latency):
        raise ValueError(latency)
    return Entry(sort, Reply(**{**reply, "latency_ms": latency}), None, version)


def _check_types(values: Any, types: Mapping[str, tuple[type, ...]]) -> None:
    """Raises TypeError unless it is a mapping of just these keys, each with a value of its type, numbers in 64 bits."""
    if not isinstance(values, dict) or values.keys() != types.keys():
        raise TypeError(values)
    for name, value in values.items():
        if type(value) not in types[name] or (isinstance(value, int) and not 0 <= value < 2**63):
            raise TypeError(name)


def _digest(file: Path, number: int, fields: Mapping[str, Any]) -> tuple[str, str, str]:
    if fields.keys() != {"server", "model", "digest"} or not all(isinstance(value, str) for value in fields.values()):
        raise _refusal(file, number, "the line is neither a reply nor a model's digest")
    return fields["server"], fields["model"], fields["digest"]


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _refusal(file: Path, number: int, what: str) -> Stop:
    return Stop(f"{file} line {number}: {what}")
