"""Broken text in great numbers: seeds from a kept corpus, and mutations that are the same in every run.

It knows no reader and judges nothing. `corpus/` holds the seeds, one file each: the shapes that models' replies have,
and every input that once made a reader fail.
"""

import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

CORPUS = Path(__file__).parent / "corpus"

# What readers of JSON, of fences and of thinking take as a sign, and what no text should hold.
TOKENS = (
    *'{}[]":,\\`\'<>/-+.eE019 \n\r\t',
    "{}", "[]", "{{", "}}", '""', '":', '\\"', "\\\\", "\\u", "\\ud800", "\\udc00", "\\u0000", "\\x", "/*", "*/", "//",
    "```", "```json", "```JSON\r\n", "<think>", "</think>", "<thinking>", "</THINKING>", "null", "true", "false",
    "NaN", "Infinity", "-Infinity", "1e999", "-0", "-0.0", "1e5", "5.0", "01", "+1", ".5", "5.", "1" * 400, "9" * 19,
    str(2**53 + 1), str(2**63), str(-(2**63)), "0x10", "1_0", "１", "\ufeff", "\x00", "\x1b[31m", "\u202e", "\u2028",
    "\ud800", "\udfff", "é", "😀", "\x85", "\xa0", "None", "True", "undefined", "sorry, ", "I can't help with that.",
)  # fmt: skip


class Held(PurePosixPath):
    """A file in memory: a disk would take most of the time."""

    content = b""

    def open(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self.content)

    def exists(self) -> bool:
        return False


def seeds(folder: str) -> list[bytes]:
    """The corpus of one reader, in the order of the files' names."""
    found = [file.read_bytes() for file in sorted((CORPUS / folder).iterdir())]
    assert found, f"the corpus of {folder} is not there"
    return found


def mutated(corpus: list[str], number: int, seed: int = 0, tokens: tuple[str, ...] = TOKENS) -> Iterator[str]:
    """So many texts, each a seed with one to six mutations; the first are the seeds themselves."""
    yield from corpus
    luck = random.Random(seed)
    for _ in range(max(0, number - len(corpus))):
        text = luck.choice(corpus)
        for _ in range(luck.choice((1, 1, 1, 2, 2, 3, 6))):
            text = luck.choice(_MUTATIONS)(luck, text, corpus, tokens)[:20_000]
        yield text


def _span(luck: random.Random, text: str) -> tuple[int, int]:
    start = luck.randrange(len(text) + 1)
    return start, min(len(text), start + luck.choice((0, 1, 1, 2, 3, 8, 40)))


def _insert(luck: random.Random, text: str, corpus: list[str], tokens: tuple[str, ...]) -> str:
    at = luck.randrange(len(text) + 1)
    return text[:at] + luck.choice(tokens) + text[at:]


def _replace(luck: random.Random, text: str, corpus: list[str], tokens: tuple[str, ...]) -> str:
    start, end = _span(luck, text)
    return text[:start] + luck.choice(tokens) + text[end:]


def _delete(luck: random.Random, text: str, corpus: list[str], tokens: tuple[str, ...]) -> str:
    start, end = _span(luck, text)
    return text[:start] + text[end:]


def _repeat(luck: random.Random, text: str, corpus: list[str], tokens: tuple[str, ...]) -> str:
    start, end = _span(luck, text)
    return text[:end] + text[start:end] * luck.choice((1, 1, 2, 5, 60)) + text[end:]


def _swap(luck: random.Random, text: str, corpus: list[str], tokens: tuple[str, ...]) -> str:
    a, b, c = sorted(luck.randrange(len(text) + 1) for _ in range(3))
    return text[:a] + text[b:c] + text[a:b] + text[c:]


def _splice(luck: random.Random, text: str, corpus: list[str], tokens: tuple[str, ...]) -> str:
    other = luck.choice(corpus)
    return text[: luck.randrange(len(text) + 1)] + other[luck.randrange(len(other) + 1) :]


def _join(luck: random.Random, text: str, corpus: list[str], tokens: tuple[str, ...]) -> str:
    return text + luck.choice(("", " ", "\n", " or ", ", ")) + luck.choice(corpus)


def _wrap(luck: random.Random, text: str, corpus: list[str], tokens: tuple[str, ...]) -> str:
    before, after = luck.choice(_AROUND)
    return before + text + after


def _character(luck: random.Random, text: str, corpus: list[str], tokens: tuple[str, ...]) -> str:
    at = luck.randrange(len(text) + 1)
    return (
        text[:at]
        + chr(luck.choice((luck.randrange(128), luck.randrange(0x3000), luck.randrange(0x110000))))
        + text[at + 1 :]
    )


_AROUND = (
    ("{", "}"), ("[", "]"), ('"', '"'), ("'", "'"), ("**", "**"), ("\\boxed{", "}"), ('{"answer": ', "}"),
    ("```json\n", "\n```"), ("```", "```"), ("<think>", "</think>"), ("<think>", ""), ("", "</think>"),
    ("My answer: ", "."), ("\ufeff", ""),
)  # fmt: skip
_MUTATIONS: tuple[Callable[[random.Random, str, list[str], tuple[str, ...]], str], ...] = (
    _insert, _insert, _replace, _replace, _delete, _delete, _repeat, _swap, _splice, _join, _wrap, _character,
)  # fmt: skip
