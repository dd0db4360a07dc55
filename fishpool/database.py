"""DuckDB over the Parquet files: one metric query, or the database of all tables that people ask in SQL.

SQL texts come from `workflow/sql/` alone; paths and table names reach DuckDB as values or quoted identifiers, never as
text spliced into a query by a config or a record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fishpool import records, seals
from fishpool.files import FileFault, replacing
from fishpool.seals import sealing

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_MEMORY = "1GB"  # of a query; what it needs beyond that waits on the disk, so that a job's memory has a bound
_KEYS = ("run_id", "study", "condition", "seed", "round", "agent", "player")  # mean the same in every table
_DAMAGED = re.compile("Corrupt database file|Could not read enough bytes|not a valid DuckDB database file")
_WORKFLOW = Path(__file__).parents[1] / "workflow"


def connect(tables: Mapping[str, Sequence[Path]], overflow: str, threads: int = 1) -> duckdb.DuckDBPyConnection:
    """An in-memory database in which each table is a view over its Parquet files; knows `bootstrap_interval`.

    `overflow` is a folder for what a query cannot hold in memory.
    """
    import duckdb

    from fishpool.analysis.inference import register

    for files in tables.values():
        seals.check(files)

    connection = duckdb.connect(config={"threads": threads, "memory_limit": _MEMORY, "temp_directory": overflow})
    register(connection)
    for table, files in tables.items():
        connection.read_parquet([str(file) for file in files], union_by_name=True).create_view(table)
    return connection


def query_in_turn(metrics: Mapping[Path, Path], tables: Mapping[str, Sequence[Path]], threads: int = 1) -> None:
    """Run metric queries (SQL file to Parquet file) in turn; each may read the tables and the metrics before it."""
    with TemporaryDirectory(prefix="fishpool-") as overflow, connect(tables, overflow, threads) as connection:
        for file, output in metrics.items():
            with sealing(output) as part:
                connection.sql(file.read_text(encoding="utf-8")).create(file.stem)
                connection.table(file.stem).write_parquet(str(part), compression="zstd")


def scan(table_files: Sequence[Path]) -> pl.LazyFrame:
    """The rows of one table in its Parquet files, in order, of which only what is asked for is read."""
    import polars as pl

    seals.check(table_files)
    return pl.concat([pl.scan_parquet(file) for file in table_files], how="diagonal")


def read(table_files: Sequence[Path]) -> pl.DataFrame:
    """The rows of one table from its Parquet files, in order."""
    return scan(table_files).collect()


def write(rows: pl.DataFrame, file: Path) -> None:
    """Write a table as Parquet, whole or not at all."""
    with sealing(file) as part:
        rows.write_parquet(part, compression="zstd")


def build(tables: Mapping[str, Sequence[Path]], comments: Mapping[str, str], output: Path, threads: int = 1) -> None:
    """Write the database of all tables, whole or not at all; readers of an older one keep it until they close it."""
    import duckdb

    with replacing(output) as part, duckdb.connect(str(part), config={"threads": threads}) as connection:
        for table, files in tables.items():
            seals.check(files)
            connection.read_parquet([str(file) for file in files], union_by_name=True).create(table)
            _comment(connection, "TABLE", table, comments)
        connection.execute("CHECKPOINT")  # closing would do so too, but say nothing of a disk that has no room for it
        # The log of a program that wrote into the older one and was killed: with it nobody could open the new one.
        output.with_name(f"{output.name}.wal").unlink(missing_ok=True)


@contextmanager
def opened(database: Path, config: Mapping[str, Any] | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that reads the database; FileFault where it is damaged, which DuckDB's own checksums tell."""
    import duckdb

    try:
        with duckdb.connect(str(database.resolve()), read_only=True, config=dict(config or {})) as connection:
            yield connection
    except duckdb.Error as error:
        if not is_damage(error):
            raise
        words = " ".join(str(error).split())
        raise FileFault(
            f"{database}: cannot be read ({words}); name another database, or delete this one and run snakemake"
        ) from error


def is_damage(error: duckdb.Error) -> bool:
    """Whether DuckDB says that the file, not the query, is wrong."""
    return bool(_DAMAGED.search(str(error)))


def tables_in(parquet: Path) -> dict[str, list[Path]]:
    """The finished Parquet files by table: TABLE/STUDY/CONDITION.parquet, TABLE/STUDY.parquet or TABLE.parquet."""
    tables: dict[str, list[Path]] = {}
    for file in filter(Path.is_file, sorted(parquet.rglob("*.parquet"))):
        tables.setdefault(file.relative_to(parquet).parts[0].removesuffix(".parquet"), []).append(file)
    return tables


def views(tables: Mapping[str, Sequence[Path]], folder: Path) -> duckdb.DuckDBPyConnection:
    """An in-memory database in which each table is a view, with its comments, over files that are there so far.

    All files are below `folder`; the settings that lock it to that folder are the caller's, once it has the views.
    """
    import duckdb

    comments = table_comments()
    connection = duckdb.connect()
    connection.execute(f"SET allowed_directories = [{_literal(str(folder.resolve()))}]")
    for table, files in tables.items():
        seals.check(files)
        connection.read_parquet([str(file.resolve()) for file in files], union_by_name=True).create_view(table)
        _comment(connection, "VIEW", table, comments)
    return connection


def table_comments() -> dict[str, str]:
    """What is said about each table where it is defined; nothing where fishpool is installed without its workflow."""
    import yaml

    said: dict[str, str] = {}
    if (_WORKFLOW / "schemas" / "tables.yaml").is_file():
        said |= yaml.safe_load((_WORKFLOW / "schemas" / "tables.yaml").read_text(encoding="utf-8"))
    return said | {file.stem: header(file.read_text(encoding="utf-8")) for file in _WORKFLOW.glob("sql/**/*.sql")}


def _comment(connection: duckdb.DuckDBPyConnection, kind: str, table: str, comments: Mapping[str, str]) -> None:
    """Set the comments of a table or view, and those of its columns."""
    if table in comments:
        connection.execute(f"COMMENT ON {kind} {_quoted(table)} IS {_literal(comments[table])}")
    there = connection.table(_quoted(table)).columns
    keys = {**records.comments("turns"), **records.comments("runs")}
    said = {name: keys[name] for name in _KEYS} | records.comments(table)
    for column, comment in said.items():
        if column in there:
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
