"""Strategy documents on disk: one Markdown file a strategy, front matter (name, family) above, the strategy below.

Not a judge of what a document says: its text is opaque, hostile data, and only the body ever reaches an oracle.
The limit of 1000 tokens is that of section 2 of the paper (see `fishpool.games.dictator`); the fields are described in
`config/README.md`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from fishpool.games.dictator import Document
from fishpool.screen import is_text, visible

TOKEN_LIMIT = 1000
# What YAML's loader raises, besides errors of its own, at a value that it cannot make, such as 2024-13-40.
NO_VALUE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
_MOST_BYTES = 100_000  # of a file: more than the tokens need, however they are spaced

_TOKEN = re.compile(r"[A-Za-z0-9_]{1,8}|\S")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_CHECKOUT = Path(__file__).resolve().parents[1]
_FIELDS = {"name", "family", "rule", "kind"}


def count_tokens(text: str) -> int:
    """Tokens of a text, the same on every machine: up to eight ASCII letters or digits, or one other visible character.

    No model's own tokenizer: those differ from each other, and a limit should not depend on which one is installed.
    """
    return sum(1 for _ in _TOKEN.finditer(text))


def locate(path: str) -> Path:
    """A file or folder that a config names: below the working directory, else below this checkout."""
    here = Path(path)
    return here if here.exists() or here.is_absolute() else Path(os.path.relpath(_CHECKOUT)) / here


NOT_PLAIN = "holds a brace, which Snakemake would fill in, or is not UTF-8"


def is_plain(path: Path) -> bool:
    """Whether a file's name can be that of a job's input."""
    return is_text(str(path)) and not set("{}") & set(str(path))


def shown(text: str) -> str:
    """Text from a file as a sentence can hold it: in quotes, cut after 60 characters, what does not print escaped."""
    cut = text if len(text) <= 60 else f"{text[:58]}.."
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + '"'


def read_documents(folder: Path) -> tuple[Document, ...]:
    """All documents of a folder (`*.md`), in the order of their file names.

    Raises ValueError with one sentence a fault, each on its own line.
    """
    paths = sorted(folder.glob("*.md"))
    if not paths:
        raise ValueError(f"{folder}: no strategy document (*.md) is there; add one file a strategy")
    documents: list[Document] = []
    faults: list[str] = []
    first: dict[str, str] = {}
    for path in paths:
        source = visible(str(path))
        if not is_plain(path):
            faults.append(f"{source}: the name of the file {NOT_PLAIN}; rename it")
            continue
        try:
            document = parse_document(path.read_bytes(), source)
        except OSError as fault:
            faults.append(
                f"{source}: cannot be read ({fault.strerror}); every *.md of the folder is a strategy document"
            )
            continue
        except ValueError as fault:
            faults.append(str(fault))
            continue
        if document.name in first:
            faults.append(f'{source}: name "{document.name}" is taken by {first[document.name]}; rename one of them')
        first.setdefault(document.name, source)
        documents.append(document)
    if faults:
        raise ValueError("\n".join(faults))
    return tuple(documents)


def parse_document(content: bytes, source: str) -> Document:
    """One document from the bytes of its file; `source` names the file in the sentence of a ValueError."""
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{source}: the file has {len(content):,} bytes, at most {_MOST_BYTES:,} are read; shorten it")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as fault:
        raise ValueError(f"{source}: byte {fault.start} is not UTF-8; save the file as UTF-8") from None
    if not text.strip():
        raise ValueError(f"{source}: the file is empty; write the front matter (name, family) and the strategy")
    matter = _FRONT_MATTER.match(text)
    if matter is None:
        raise ValueError(f'{source}: front matter is missing; begin with "---", name: .., family: .., "---"')
    fields = _front_matter(matter.group(1), source)
    body = text[matter.end() :].strip("\n")
    if not body.strip():
        raise ValueError(f"{source}: nothing stands below the front matter; write the strategy there")
    if (tokens := count_tokens(body)) > TOKEN_LIMIT:
        raise ValueError(f"{source}: the strategy has {tokens} tokens, at most {TOKEN_LIMIT} are allowed; shorten it")
    return Document(text=body, **fields)


def _front_matter(text: str, source: str) -> dict[str, Any]:
    import yaml

    try:
        fields = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        where = getattr(fault, "problem_mark", None)
        line = f" (line {where.line + 2})" if where else ""
        raise ValueError(f"{source}: the front matter{line} is not YAML; write it as key: value") from None
    except (*NO_VALUE, RecursionError):
        raise ValueError(f"{source}: the front matter holds a value that YAML cannot make; write plain text") from None
    if not isinstance(fields, dict):
        raise ValueError(f"{source}: the front matter holds no keys; write name: .. and family: ..")
    for key in ("name", "family"):
        value = fields.get(key)
        if value is None:
            raise ValueError(f"{source}: the front matter has no {key}; add {key}: ..")
        if not (isinstance(value, str) and _NAME.fullmatch(value)):
            raise ValueError(
                f"{source}: {key} is {_value(value)}, expected up to 64 letters, digits, hyphens or underscores"
            )
    if unknown := sorted(map(_value, fields.keys() - _FIELDS)):
        raise ValueError(f"{source}: front matter key {unknown[0]} is unknown; known are {', '.join(sorted(_FIELDS))}")
    if not isinstance(fields.get("rule"), str | None):
        raise ValueError(f"{source}: rule is {_value(fields['rule'])}, expected the name of a decision rule")
    if not isinstance(fields.get("kind"), bool | None):
        raise ValueError(f"{source}: kind is {_value(fields['kind'])}, expected true or false")
    return fields


def _value(value: Any) -> str:
    """A value of YAML in a sentence. What is no text or short number is only named: aliases make endless ones of it."""
    if isinstance(value, str):
        return shown(value)
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63):
        return shown(str(value))
    return {list: "a list", dict: "a mapping", int: "a huge number"}.get(type(value), f"a {type(value).__name__}")
