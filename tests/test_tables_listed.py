"""`fishpool sql --tables`, and questions before there is a database and while one is replaced."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from fishpool import ask, cli, database, records

ROOT = Path(__file__).resolve().parents[1]


def fishpool(capsys, *arguments):
    code = cli.main(arguments)
    out, err = capsys.readouterr()
    return code, out, err.splitlines()


@pytest.fixture
def unfinished(built, tmp_path):
    """A results folder whose database is not made yet, with a file that is just being written."""
    shutil.copytree(built / "parquet", tmp_path / "results" / "parquet")
    half = tmp_path / "results" / "parquet" / "runs" / "pool" / "free.parquet.123-0123abcd.part"
    half.write_bytes(b"PAR1 half of it")
    (tmp_path / "results" / "secret.csv").write_text("a,b\n1,2\n")
    return tmp_path / "results" / "fishpool.duckdb"


def test_all_tables_are_listed_with_their_rows_and_what_a_row_is(built, capsys):
    file = built / "fishpool.duckdb"
    code, out, _ = fishpool(capsys, "sql", "--tables", "--json", "--database", str(file))
    listed = {one["table"]: one for one in json.loads(out)}
    with duckdb.connect(str(file), read_only=True) as connection:
        names = [name for (name,) in connection.sql("SELECT table_name FROM duckdb_tables()").fetchall()]
        rows = {name: connection.table(name).count("*").fetchall()[0][0] for name in names}
    assert code == 0
    assert {table: one["rows"] for table, one in listed.items()} == rows
    assert listed["runs"]["a row is"].startswith("one game from start to end")
    assert all(one["a row is"] for one in listed.values())
    code, out, _ = fishpool(capsys, "sql", "--tables", "--database", str(file))
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")][1:] == sorted(rows)
    assert max(map(len, out.splitlines())) <= 100


def test_a_table_is_shown_with_its_columns_types_and_comments(built, capsys):
    arguments = ("--database", str(built / "fishpool.duckdb"))
    code, out, _ = fishpool(capsys, "sql", "--tables", "replies", *arguments)
    assert code == 0
    assert out.startswith("replies: a row is ")
    _, out, _ = fishpool(capsys, "sql", "--tables", "replies", "--json", *arguments)
    described = {one["column"]: one for one in json.loads(out)}
    assert {name: one["comment"] for name, one in described.items()} == records.comments("replies")
    assert described["latency_ms"]["type"] == "DOUBLE"
    _, out, _ = fishpool(capsys, "sql", "--tables", "commons_lies", "--json", *arguments)
    keys = {one["column"]: one["comment"] for one in json.loads(out) if one["comment"]}
    assert set(keys) == {"run_id", "study", "condition", "seed", "agent", "player"}


def test_an_unknown_table_is_one_sentence_with_the_nearest(built, capsys):
    code, out, err = fishpool(capsys, "sql", "--tables", "rns", "--database", str(built / "fishpool.duckdb"))
    assert (code, out, err) == (2, "", ["there is no table rns; did you mean runs?"])


def test_before_there_is_a_database_the_finished_tables_answer(unfinished, built, capsys):
    for arguments in (
        ("--tables", "--csv"),
        ("--tables", "turns"),
        ("SELECT study, count(*) FROM turns JOIN runs USING (run_id) GROUP BY ALL ORDER BY ALL",),
    ):
        code, out, err = fishpool(capsys, "sql", *arguments, "--database", str(unfinished))
        assert (code, len(err)) == (0, 1)
        assert "is not made yet" in err[0]
        assert (0, out, []) == fishpool(capsys, "sql", *arguments, "--database", str(built / "fishpool.duckdb"))


@pytest.mark.parametrize(
    "query",
    [
        "FROM read_csv('{folder}/secret.csv')",
        "FROM read_text('{folder}/parquet/../secret.csv')",
        "FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/parquet/new.csv'",
        "SET enable_external_access = true",
        "CREATE TABLE t (a INTEGER)",
    ],
)
def test_the_finished_tables_are_all_that_is_read_and_nothing_is_written(query, unfinished, capsys):
    before = sorted(unfinished.parent.rglob("*"))
    query = query.format(folder=unfinished.parent)
    code, out, err = fishpool(capsys, "sql", query, "--database", str(unfinished))
    assert (code, out) == (2, "")
    assert "1,2" not in "".join(err)
    assert sorted(unfinished.parent.rglob("*")) == before


def test_a_database_is_replaced_under_a_reader_who_keeps_the_old_one(built, tmp_path):
    file = shutil.copy(built / "fishpool.duckdb", tmp_path / "fishpool.duckdb")
    tables = database.tables_in(built / "parquet")
    other = [sys.executable, "-m", "fishpool.cli", "sql", "--tables", "--csv", "--database", str(file)]
    with ask.opened(file) as old:
        database.build({"runs": tables["runs"]}, {}, file)
        done = subprocess.run(other, capture_output=True, text=True, check=True, cwd=ROOT)
        assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["table", "runs"]
        assert set(ask.comments_of(old)) == set(tables)
        with ask.ask(old, "SELECT count(*) FROM turns") as answer:
            assert next(answer.rows)[0] > 0
