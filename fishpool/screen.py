"""What a screen can show, and text made fit for it: hostile characters visible, lines no wider than the screen.

It reads nothing that is typed (that is `fishpool.terminal`) and knows nothing of games or tables. Colour follows
https://no-color.org and is never the only sign of anything; where no terminal reads, text is plain. Widths of
characters are those of Unicode's East Asian Width (UAX 11).
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

WIDTH = 100  # columns where no terminal says otherwise

_HALF = re.compile("[\ud800-\udfff]")
_CODES = {"bold": "1", "dim": "2", "red": "1;31", "yellow": "33"}


@dataclass(frozen=True)
class Screen:
    """Where text is shown: `width` in columns, whether it takes colour, and whether it shows more than ASCII."""

    width: int = WIDTH
    colour: bool = False
    unicode: bool = True

    def paint(self, text: str, style: str) -> str:
        """The text in "bold", "dim", "red" or "yellow", where there is colour."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour and text else text


def screen(stream: TextIO) -> Screen:
    """The screen behind a stream."""
    there = stream.isatty()
    colour = there and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return Screen(max(columns, 40), colour, encoding.startswith("utf"))


def is_text(text: str) -> bool:
    """Whether it has a form in UTF-8: a string can hold half a character (a lone surrogate), no file can."""
    return text.isascii() or not _HALF.search(text)


def visible(text: str) -> str:
    r"""Text in which whatever is no plain character is written out: line ends (\n), escapes, marks of direction."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: object, most: int) -> str:
    """What something says as one visible line of at most so many characters."""
    line = visible(" ".join(str(text).split()))
    return line if len(line) <= most else f"{line[: most - 2]}.."


def wrapped(text: str, width: int) -> list[str]:
    """Visible lines of at most `width` columns, with every character of the text; line ends begin a new line."""
    return [part for line in text.split("\n") for part in _cut(visible(line), width)]


def aligned(rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    """Rows of cells as lines: the first `left` columns begin under each other, the others end there."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(cells))


def _cut(line: str, width: int) -> list[str]:
    parts, start, filled, space = [], 0, 0, 0
    for i, c in enumerate(line):
        wide = _columns(c)
        if filled + wide > width:
            end = space or i
            parts.append(line[start:end])
            filled = sum(map(_columns, line[end:i]))
            start, space = end, 0
        filled += wide
        if c == " ":
            space = i + 1
    return [*parts, line[start:]]


def _columns(c: str) -> int:
    if c.isascii():
        return 1
    return 0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
