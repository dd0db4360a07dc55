"""JSON as strictly as fishpool means it, by parsers that share no code with its own: an oracle for tests.

They are Python's `json` in strict settings, and the parser in Rust that pydantic brings. No test is here.
"""

import json
import math
from typing import Any

from pydantic_core import from_json


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _refuse(word: str) -> None:
    raise ValueError(word)


STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)


def sound(value: Any) -> bool:
    """Whether a file of ours can hold a value: finite numbers, of at most 309 digits, and whole characters."""
    if isinstance(value, dict):
        return all(map(sound, value)) and all(map(sound, value.values()))
    if isinstance(value, list):
        return all(map(sound, value))
    if isinstance(value, str):
        return not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or len(str(value)) < 310


def strictly(text: str) -> list[Any]:
    """The one JSON value that a text is, in a list; none if it is anything else."""
    try:
        value = STRICT.decode(text)
    except (ValueError, RecursionError):
        return []
    return [value] if sound(value) else []


def in_rust(text: str) -> list[Any]:
    """The same by the other parser, which lets a key through that stands twice, and numbers that are too large."""
    try:
        return [from_json(text.encode(), allow_inf_nan=False)]
    except ValueError:  # half a surrogate pair too
        return []


def same(one: Any, other: Any) -> bool:
    """Equal in type too, which 1, 1.0 and true are not."""
    return repr(one) == repr(other)
