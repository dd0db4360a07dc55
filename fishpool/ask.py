"""Questions in SQL to the finished database: `ask` gives the answer's columns and rows, `show_*` write them as text.

It cannot change anything: the database is opened read-only, DuckDB is shut off from all other files and from the
network, and only statements that read are let through. It makes no tables; those come from `fishpool.database`.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from difflib import get_close_matches
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fishpool.terminal import visible

if TYPE_CHECKING:
    import duckdb

_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # a table name never means a Python variable
    "temp_directory": "",  # nothing is spilt to disk
    "lock_configuration": True,
}
_READING = ("SELECT", "MULTI")  # MULTI is PIVOT; SHOW, DESCRIBE, SUMMARIZE, FROM and VALUES are SELECT
ROWS_SHOWN = 200


class QueryError(ValueError):
    """Why there is no answer, in one sentence on one line."""


@dataclass(frozen=True)
class Answer:
    columns: tuple[str, ...]
    rows: Iterator[Sequence[Any]]


@contextmanager
def ask(database: Path, sql: str) -> Iterator[Answer]:
    """The answer to one query, row by row for as long as the context lasts; QueryError if there is none."""
    import duckdb

    if not database.is_file():
        raise QueryError(f"{database}: there is no such database; run `snakemake` to make it")
    try:
        with duckdb.connect(str(database.resolve()), read_only=True, config=_LOCKED) as connection:
            try:
                cursor = _execute(connection, _one_reading_statement(connection, sql))
                yield Answer(_different([column[0] for column in cursor.description or ()]), _rows(cursor))
            except duckdb.Error as error:
                raise QueryError(_sentence(error, connection)) from None
    except duckdb.IOException as error:  # not a database, or one that is being written
        raise QueryError(_one_line(str(error))) from None


def show_table(answer: Answer, out: TextIO) -> None:
    """The first rows as aligned text: numbers to the right, NULL where there is no value."""
    rows = list(islice(answer.rows, ROWS_SHOWN))
    cells = [list(answer.columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [
        all(isinstance(row[i], int | float | Decimal | None) and not isinstance(row[i], bool) for row in rows)
        for i in range(len(widths))
    ]
    cells.insert(1, ["─" * width for width in widths])
    for line in cells:
        aligned = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        )
        print("  ".join(aligned).rstrip(), file=out)
    if next(answer.rows, None) is not None:
        print(f".. the first {ROWS_SHOWN} rows; --csv and --json give all", file=out)


def show_csv(answer: Answer, out: TextIO) -> None:
    """Comma-separated values with a header; an empty field where there is no value, lists and structures as JSON."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        values = map(_json_value, row)
        writer.writerow(json.dumps(value) if isinstance(value, bool | list | dict) else value for value in values)


def show_json(answer: Answer, out: TextIO) -> None:
    """A JSON list of one object a row; null where there is no value or no finite one."""
    end = "["
    for row in answer.rows:
        record = dict(zip(answer.columns, map(_json_value, row), strict=True))
        out.write(f"{end}\n{json.dumps(record, ensure_ascii=False, allow_nan=False)}")
        end = ","
    out.write("[]\n" if end == "[" else "\n]\n")


def _one_reading_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"expected one query, found {len(statements) or 'none'}")
    kind = statements[0].type.name
    if kind not in _READING:
        raise QueryError(f"found a statement of the kind {kind}; only queries that read are allowed, such as SELECT")
    return statements[0]


def _execute(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> duckdb.DuckDBPyConnection:
    """In a thread of its own, because DuckDB does not hear Ctrl-C while it works."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(connection.execute, statement)
        try:
            return answer.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _different(names: Sequence[str]) -> tuple[str, ...]:
    """The names of columns, those that came before with a number: an object in JSON cannot hold two of a name."""
    free = (f"_{number}" for number in count(1))
    different: list[str] = []
    for name in names:
        if name in different:
            name = next(name + end for end in free if name + end not in {*names, *different})
        different.append(name)
    return tuple(different)


def _rows(cursor: duckdb.DuckDBPyConnection) -> Iterator[Sequence[Any]]:
    while batch := cursor.fetchmany(1000):
        yield from batch


def _sentence(error: duckdb.Error, connection: duckdb.DuckDBPyConnection) -> str:
    """DuckDB's own words on one line, without the quoted query; for an unknown table the tables that there are."""
    text = str(error).split("\n\nLINE ")[0]
    unknown = re.match(r'Catalog Error: Table with name "?(.*?)"? does not exist', text)
    if unknown:
        tables = [
            name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        ]
        near = get_close_matches(unknown[1], tables, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        text = f"there is no table {unknown[1]}; expected one of {', '.join(tables)}{meant}"
    return _one_line(text)


def _one_line(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= 600 else f"{line[:598]}.."


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    value = _json_value(value)
    return visible(json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value))


def _json_value(value: Any) -> Any:
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    return value.total_seconds() if isinstance(value, timedelta) else str(value)
