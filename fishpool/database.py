"""DuckDB over the Parquet files: one metric query, or the database of all tables that people ask in SQL.

SQL texts come from `workflow/sql/` alone; paths and table names reach DuckDB as values or quoted identifiers, never as
text spliced into a query by a config or a record.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fishpool import records
from fishpool.files import replacing

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_MEMORY = "1GB"


def connect(tables: Mapping[str, Sequence[Path]], threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A database in memory in which each table is a view over its Parquet files; knows `bootstrap_interval`.

    What a query needs beyond `_MEMORY` waits on the disk, so that the memory of a job does not grow with its games.
    """
    import duckdb

    from fishpool.analysis.inference import register

    waiting = Path(tempfile.gettempdir(), f"fishpool-{os.getpid()}")  # made if needed, and removed, by DuckDB
    connection = duckdb.connect(config={"threads": threads, "memory_limit": _MEMORY, "temp_directory": str(waiting)})
    register(connection)
    for table, files in tables.items():
        connection.read_parquet([str(file) for file in files], union_by_name=True).create_view(table)
    return connection


def query_in_turn(metrics: Mapping[Path, Path], tables: Mapping[str, Sequence[Path]], threads: int = 1) -> None:
    """Run metric queries (SQL file to Parquet file) in turn; each may read the tables and the metrics before it."""
    with connect(tables, threads) as connection:
        for file, output in metrics.items():
            connection.sql(file.read_text(encoding="utf-8")).create(file.stem)
            with replacing(output) as part:
                connection.table(file.stem).write_parquet(str(part), compression="zstd")


def read(table_files: Sequence[Path]) -> pl.DataFrame:
    """The rows of one table from its Parquet files, in order."""
    import polars as pl

    return pl.concat([pl.read_parquet(file) for file in table_files], how="diagonal")


def build(tables: Mapping[str, Sequence[Path]], comments: Mapping[str, str], output: Path, threads: int = 1) -> None:
    """Write the database of all tables, whole or not at all; readers of an older one keep it until they close it."""
    import duckdb

    with replacing(output) as part, duckdb.connect(str(part), config={"threads": threads}) as connection:
        for table, files in tables.items():
            connection.read_parquet([str(file) for file in files], union_by_name=True).create(table)
            if table in comments:
                connection.execute(f"COMMENT ON TABLE {_quoted(table)} IS {_literal(comments[table])}")
            for column, comment in records.comments(table).items():
                if column in connection.table(table).columns:
                    connection.execute(f"COMMENT ON COLUMN {_quoted(table)}.{_quoted(column)} IS {_literal(comment)}")


def header(sql: str) -> str:
    """The comment that opens a SQL file, as one text."""
    lines = sql.splitlines()
    opening = lines[: next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))]
    return " ".join(line.removeprefix("--").strip() for line in opening)


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
