"""Questions in SQL to the database: `ask` gives the answer's columns and rows, `show_*` write them as text.

It cannot change anything: the database is opened read-only, DuckDB is shut off from all other files and from the
network, and only statements that read are let through. Where there is no database yet, the same tables are views over
the Parquet files that a run has finished so far; both come from `fishpool.database`.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from difflib import get_close_matches
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fishpool.files import FileFault
from fishpool.screen import is_text, one_line, screen, visible, wrapped

if TYPE_CHECKING:
    import duckdb

_SHUT: dict[str, str | bool | int | float | list[str]] = {  # in an order in which they can be set one by one
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # a table name never means a Python variable
    "temp_directory": "",  # nothing is spilt to disk
    "enable_external_access": False,
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
def opened(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that reads the database, or the tables that are to be in it; QueryError if there is neither."""
    with _sentences(), _connection(database) as connection:
        connection.execute("SET enable_progress_bar = false")  # which would be drawn into the answer
        connection.execute("SET lock_configuration = true")
        yield connection


def _connection(database: Path) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """The database, or views over the tables that are to be in it, shut off from all else."""
    from fishpool import database as databases

    if database.is_file():
        return databases.opened(database, _SHUT)
    tables = databases.tables_in(_parquet(database))
    if not tables:
        raise QueryError(
            f"{database}: there is no such database, nor any finished table beside it;"
            " run `snakemake` to make it, or wait until its first tables are done"
        )
    connection = databases.views(tables, _parquet(database))
    for setting, value in _SHUT.items():
        connection.execute(f"SET {setting} = {value!r}")
    return connection


def unfinished(database: Path) -> str:
    """What an answer is about where there is no database yet, in one sentence; "" where there is one."""
    if database.is_file():
        return ""
    return f"{database} is not made yet; this is about the tables in {_parquet(database)} that are finished so far"


@contextmanager
def ask(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[Answer]:
    """The answer to one query, row by row for as long as the context lasts; QueryError if there is none."""
    import duckdb

    from fishpool.database import is_damage

    try:
        cursor = _execute(connection, _one_reading_statement(connection, sql))
        yield Answer(_different([column[0] for column in cursor.description or ()]), _rows(cursor))
    except duckdb.Error as error:
        if is_damage(error):
            raise
        raise QueryError(_sentence(error, connection)) from None
    except (OverflowError, RecursionError) as error:  # of an interval that Python has no days for, of endless brackets
        raise QueryError(_one_line(f"the answer holds a value that cannot be shown ({error})")) from None


def comments_of(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The comment of each table, or view that stands for one, by name."""
    return dict(
        connection.execute(
            "SELECT table_name, coalesce(comment, '') FROM duckdb_tables()"
            " UNION ALL SELECT view_name, coalesce(comment, '') FROM duckdb_views() WHERE NOT internal ORDER BY 1"
        ).fetchall()
    )


def tables_of(connection: duckdb.DuckDBPyConnection) -> Answer:
    """All tables, with how many rows each has and what a row is."""
    said = comments_of(connection)
    rows = [(name, connection.table(_quoted(name)).count("*").fetchall()[0][0], said[name]) for name in said]
    return Answer(("table", "rows", "a row is"), iter([(name, rows, _row_of(comment)) for name, rows, comment in rows]))


def columns_of(connection: duckdb.DuckDBPyConnection, table: str) -> tuple[str, Answer]:
    """What is said about a table, and its columns with types and comments; QueryError if there is no such table."""
    said = comments_of(connection)
    if table not in said:
        raise QueryError(_no_table(table, connection))
    found = connection.execute(
        "SELECT column_name, data_type, coalesce(comment, '') FROM duckdb_columns()"
        " WHERE table_name = ? ORDER BY column_index",
        [table],
    ).fetchall()
    return said[table], Answer(("column", "type", "comment"), iter(found))


def show_comment(comment: str, out: TextIO) -> None:
    for line in wrapped(" ".join(comment.split()), screen(out).width):
        print(line.rstrip(), file=out)


def show_list(answer: Answer, out: TextIO) -> None:
    """All rows, the last column on as many lines as it needs."""
    rows = [[_cell(value) for value in row] for row in answer.rows]
    short = [max(map(len, column)) for column in zip(answer.columns, *rows, strict=True)][:-1]
    indent = sum(short) + 2 * len(short)
    room = max(screen(out).width - indent, 30)
    for *cells, last in [answer.columns, *rows]:
        start = "  ".join(cell.ljust(width) for cell, width in zip(cells, short, strict=True))
        first, *rest = wrapped(last, room)
        print(f"{start}  {first}".rstrip(), file=out)
        for line in rest:
            print(f"{' ' * indent}{line}".rstrip(), file=out)


def show_table(answer: Answer, out: TextIO) -> None:
    """The first rows as aligned text: numbers to the right, NULL where there is no value."""
    rows = list(islice(answer.rows, ROWS_SHOWN))
    cells = [list(map(visible, answer.columns)), *([_cell(value) for value in row] for row in rows)]
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
    """Comma-separated values with a header; an empty field where there is no value, lists and structures as JSON.

    Decimal numbers have all their digits.
    """
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        values = (_digits(value) if isinstance(value, Decimal) else _json_value(value) for value in row)
        writer.writerow(json.dumps(value) if isinstance(value, bool | list | dict) else value for value in values)


def show_json(answer: Answer, out: TextIO) -> None:
    """A JSON list of one object a row; null where there is no value or no finite one.

    Decimal numbers are the nearest double, which readers of JSON would make of them too.
    """
    end = "["
    for row in answer.rows:
        record = dict(zip(answer.columns, map(_json_value, row), strict=True))
        out.write(f"{end}\n{json.dumps(record, ensure_ascii=False, allow_nan=False)}")
        end = ","
    out.write("[]\n" if end == "[" else "\n]\n")


def _one_reading_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    if not is_text(sql):  # what a terminal sends that is not UTF-8
        raise QueryError("the query is not UTF-8 text")
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"expected one query, found {len(statements) or 'none'}")
    try:
        kind = statements[0].type.name
    except ValueError:  # the package has no name for every kind that DuckDB knows
        kind = "OTHER"
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


@contextmanager
def _sentences() -> Iterator[None]:
    """Why a database cannot be opened or read, as QueryError."""
    import duckdb

    try:
        yield
    except (duckdb.Error, FileFault) as error:  # one that is being written, or damaged, or a table that is gone again
        raise QueryError(_one_line(str(error))) from None


def _parquet(database: Path) -> Path:
    return database.parent / "parquet"


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _row_of(comment: str) -> str:
    """From a comment that opens "TABLE: a row is ..", what a row is."""
    return re.split(r"[.;:](?: |$)", comment.partition(": a row is ")[2] or comment, maxsplit=1)[0]


_UNKNOWN_TABLE = re.compile(r'Catalog Error: Table with name "?(.*?)"? does not exist', re.DOTALL)
_UNKNOWN_COLUMN = re.compile(
    r'Binder Error: (?:Referenced column|Table "(?P<table>.*)" does not have a column named|Column)'
    r' "(?P<column>.*)"[^"]*\n+Candidate bindings:(?P<near>.*)',
    re.DOTALL,
)
_UNKNOWN_JOINED = re.compile(r'Binder Error: Column "(.*)" does not exist on (?:left|right) side of join', re.DOTALL)
_UNKNOWN_ALIAS = re.compile(r'Binder Error: Referenced table "(.*)" not found!\nCandidate tables:(.*)', re.DOTALL)


def _sentence(error: duckdb.Error, connection: duckdb.DuckDBPyConnection) -> str:
    """What is wrong in one line: the nearest column or table for one that is unknown, else DuckDB's own words."""
    text = str(error).split("\n\nLINE ")[0]
    if unknown := _UNKNOWN_TABLE.match(text):
        return _no_table(unknown[1], connection)
    if unknown := _UNKNOWN_COLUMN.match(text):
        where = f" in {unknown['table']}" if unknown["table"] else ""
        return _one_line(f"there is no column {unknown['column']}{where}{_did_you_mean(unknown['near'])}")
    if unknown := _UNKNOWN_JOINED.match(text):
        columns = connection.execute("SELECT DISTINCT column_name FROM duckdb_columns() ORDER BY 1").fetchall()
        near = " ".join(f'"{name}"' for name in get_close_matches(unknown[1], [name for (name,) in columns], n=1))
        return _one_line(f"there is no column {unknown[1]} on both sides of the join{_did_you_mean(near)}")
    if unknown := _UNKNOWN_ALIAS.match(text):
        return _one_line(f"the query names no table {unknown[1]} after FROM{_did_you_mean(unknown[2])}")
    return _one_line(text)


_LIST_THEM = "`fishpool sql --tables` lists those that there are"


def _no_table(name: str, connection: duckdb.DuckDBPyConnection) -> str:
    near = get_close_matches(name, comments_of(connection), n=1)
    return _one_line(f"there is no table {name}; {f'did you mean {near[0]}?' if near else _LIST_THEM}")


def _did_you_mean(candidates: str) -> str:
    """From DuckDB's quoted candidates, nearest first."""
    near = re.findall(r'"([^"]*)"', candidates)[:3]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _one_line(text: str) -> str:
    return one_line(text, 600)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Decimal):
        return _digits(value)
    value = _json_value(value)
    return visible(json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value))


def _digits(value: Decimal) -> str:
    return f"{value:f}"


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
