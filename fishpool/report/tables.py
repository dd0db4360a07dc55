"""Rows as the page shows them: what a query gives, with its cells as text and its numbers aligned.

It decides how values read and nothing about what is asked. Queries run on a connection that is open for reading.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

NOTHING = "–"


@dataclass(frozen=True)
class Cell:
    """What a cell says; `shade` is a class of the style sheet, `strength` that of a cell's colour from 0 to 1."""

    text: str
    numeric: bool = False
    shade: str = ""
    strength: float | None = None


@dataclass(frozen=True)
class Table:
    """A caption, the names of the columns, and rows of cells; the first `heads` cells of a row name it."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    heads: int = 1
    left_off: int = 0
    numbers: frozenset[int] = frozenset()  # columns of numbers
    square: bool = False  # whether columns are the same things as rows


class Tables:
    """The database's tables, asked in SQL with parameters."""

    def __init__(self, connection: duckdb.DuckDBPyConnection):
        self.connection = connection

    def rows(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        """The rows of a query, whose parameters are written `$name`."""
        cursor = self.connection.execute(sql, parameters) if parameters else self.connection.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def has(self, table: str) -> bool:
        return bool(self.rows("SELECT 1 FROM information_schema.tables WHERE table_name = $table", table=table))

    def columns(self, table: str) -> set[str]:
        there = self.rows("SELECT column_name FROM information_schema.columns WHERE table_name = $table", table=table)
        return {row["column_name"] for row in there}


def table(
    caption: str,
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, str] | None = None,
    heads: int = 1,
    most: int | None = None,
) -> Table:
    """A table of rows by column name; `names` says how columns are called, those left out by their own name."""
    shown = rows if most is None else rows[:most]
    columns = list(rows[0]) if rows else list(names or ())
    forms = {column: _decimals([row[column] for row in shown]) for column in columns}
    numbers = frozenset(i for i, column in enumerate(columns) if _are_numbers([row[column] for row in shown]))
    return Table(
        caption,
        tuple((names or {}).get(column, column.replace("_", " ")) for column in columns),
        tuple(
            tuple(Cell(text(row[column], forms[column]), i in numbers) for i, column in enumerate(columns))
            for row in shown
        ),
        heads,
        len(rows) - len(shown),
        numbers,
    )


def made(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], heads: int = 1) -> Table:
    """A table of rows whose cells are texts already, or whole numbers; a column of numbers is aligned as such."""
    cells = [[Cell(value if isinstance(value, str) else text(value)) for value in row] for row in rows]
    numbers = frozenset(i for i in range(len(columns)) if cells and all(_is_number(row[i].text) for row in cells))
    aligned = tuple(tuple(Cell(cell.text, i in numbers) for i, cell in enumerate(row)) for row in cells)
    return Table(caption, tuple(columns), aligned, heads, 0, numbers)


def _is_number(text: str) -> bool:
    return text == NOTHING or all(part[:1].isdigit() or part[:1] in "−%" for part in text.split() if part not in _WORDS)


_WORDS = ("to", "none:", "nothing", "varies", "a", "single", "run", "over", "under")  # of an interval, and of a share


def text(value: Any, decimals: int = 2) -> str:
    """A value as a reader sees it; a dash where there is none."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float | Decimal):
        written = f"{value:,.{decimals}f}"
        return written.removeprefix("-") if not written.strip("-0.,") else written.replace("-", "−")
    if isinstance(value, list | tuple):
        return ", ".join(text(item, decimals) for item in value) or NOTHING
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _are_numbers(values: Sequence[Any]) -> bool:
    there = [value for value in values if value is not None]
    return bool(there) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in there
    )


def _decimals(values: Sequence[Any]) -> int:
    """As many decimals as a column needs, the same in each of its cells."""
    there = [abs(float(value)) for value in values if isinstance(value, float | Decimal)]
    if not there or all(value == round(value) for value in there):
        return 0 if there else 2
    most = max(there)
    return 3 if most <= 1 else 2 if most < 100 else 1
