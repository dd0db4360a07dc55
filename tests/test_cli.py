"""The command `fishpool`: what it prints, what it refuses, what it leaves alone, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fishpool import cli, stale, study

ROOT = Path(__file__).resolve().parents[1]
TINY = str(ROOT / "tests" / "config" / "tiny.yaml")


def fishpool(capsys: Any, *arguments: str) -> tuple[int, list[str], list[str]]:
    code = cli.main(arguments)
    out, err = capsys.readouterr()
    return code, out.splitlines(), err.splitlines()


def start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen([sys.executable, "-m", "fishpool.cli", *arguments], cwd=ROOT, **pipes)


@pytest.fixture
def database(tmp_path):
    import duckdb

    file = tmp_path / "results" / "fishpool.duckdb"
    file.parent.mkdir()
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE runs (run_id VARCHAR, seed BIGINT, score DOUBLE)")
        connection.execute("INSERT INTO runs VALUES ('a', 0, 1.25), ('b', 1, NULL), ('x\n\x1b[31mred', 2, 'nan')")
        connection.execute("CREATE TABLE turns AS SELECT range AS round FROM range(1000)")
    return file


# ── check ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_check_counts_runs_jobs_and_model_calls(capsys):
    code, out, err = fishpool(capsys, "check", "--configfile", TINY)
    assert (code, err) == (0, [])
    # 3 players are 6 pairs with self-play, times 4 seeds and 2 conditions; 2 seeds a job.
    assert out[1].split() == ["tiny", "prisoners_dilemma", "plain,", "noisy", "4", "48", "4", "0"]
    assert out[-1].split() == ["total", "48", "4", "0"]


def test_check_counts_what_only_leaves(capsys):
    _, out, _ = fishpool(capsys, "check", "--configfile", TINY, "--config", "only=[tiny, round_robin]")
    assert [line.split()[0] for line in out] == ["study", "round_robin", "tiny", "total"]
    pairs = 22 * 23 // 2
    assert out[-1].split()[1] == f"{pairs * 200 * 2 + 48:,}"


def test_check_says_one_sentence_a_fault_and_writes_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text("studies: {round_robin: {seeds: 0, base: {noise: 7}}}\n")
    code, out, err = fishpool(capsys, "check", "--configfile", "my.yaml", "--config", "results=x")
    assert (code, out) == (2, [])
    assert [line.split(" is ")[0] for line in err] == [
        "my.yaml: studies.round_robin.seeds",
        "my.yaml: studies.round_robin.base.noise",
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["my.yaml"]


def test_an_override_that_is_none_gets_one_sentence(capsys):
    code, _, err = fishpool(capsys, "check", "--config", "only")
    assert (code, err) == (2, ["--config: found 'only'; expected KEY=VALUE, such as only=round_robin"])


# ── sql ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_is_a_table_that_can_be_read(capsys, database):
    code, out, _ = fishpool(
        capsys, "sql", "SELECT seed, run_id, score FROM runs ORDER BY seed", "--database", str(database)
    )
    assert code == 0
    assert out == [
        "seed  run_id          score",
        "────  ──────────────  ─────",
        "   0  a                1.25",
        "   1  b                NULL",
        r"   2  x\n\x1b[31mred    nan",
    ]


def test_a_long_answer_is_cut_with_a_word_about_it(capsys, database):
    _, out, _ = fishpool(capsys, "sql", "SELECT * FROM turns", "--database", str(database))
    assert len(out) == 203
    assert out[-1] == ".. the first 200 rows; --csv and --json give all"


def test_csv_and_json_hold_every_row_and_value(capsys, database):
    query = "SELECT run_id, score, [seed] AS seeds, seed = 0 AS first, 1.5 AS d, DATE '2024-01-02' AS day FROM runs"
    _, out, _ = fishpool(capsys, "sql", query, "--json", "--database", str(database))
    rows = json.loads("\n".join(out))
    assert rows[0] == {"run_id": "a", "score": 1.25, "seeds": [0], "first": True, "d": 1.5, "day": "2024-01-02"}
    assert [row["score"] for row in rows] == [1.25, None, None]
    assert rows[2]["run_id"] == "x\n\x1b[31mred"
    cli.main(["sql", query, "--csv", "--database", str(database)])
    lines = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert lines[0] == ["run_id", "score", "seeds", "first", "d", "day"]
    assert lines[1] == ["a", "1.25", "[0]", "true", "1.5", "2024-01-02"]
    assert lines[3] == ["x\n\x1b[31mred", "", "[2]", "false", "1.5", "2024-01-02"]
    _, out, _ = fishpool(capsys, "sql", "SELECT 1 AS a, 2 AS a, 3 AS a_1", "--json", "--database", str(database))
    assert json.loads("".join(out)) == [{"a": 1, "a_2": 2, "a_1": 3}]
    digits = "SELECT 12345678901234567.10::DECIMAL(20, 2) AS d"
    for form, lines in {
        "--csv": ["d", "12345678901234567.10"],
        "--json": ["[", '{"d": 1.2345678901234568e+16}', "]"],
    }.items():
        assert fishpool(capsys, "sql", digits, form, "--database", str(database))[1] == lines
    _, out, _ = fishpool(capsys, "sql", "SELECT * FROM turns", "--csv", "--database", str(database))
    assert len(out) == 1001
    _, out, _ = fishpool(capsys, "sql", "SELECT * FROM turns WHERE round < 0", "--json", "--database", str(database))
    assert json.loads("".join(out)) == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM rns", "there is no table rns; did you mean runs?"),
        ("SELECT * FROM nothing_like_it", "there is no table nothing_like_it; `fishpool sql --tables` lists those"),
        ("SELECT scor FROM runs", "there is no column scor; did you mean score"),
        ("SELECT r.scor FROM runs r", "there is no column scor in r; did you mean score"),
        ("SELECT * EXCLUDE (scor) FROM runs", "there is no column scor; did you mean score"),
        (
            "SELECT * FROM runs JOIN runs r USING (runid)",
            "no column runid on both sides of the join; did you mean run_id?",
        ),
        ("SELECT rns.seed FROM runs", "the query names no table rns after FROM; did you mean runs?"),
        ('SELECT "x\n\x1b[31my" FROM runs', r"there is no column x \x1b[31my"),
        ("SELEC 1", "syntax error"),
        ("SELECT 'a'::INTEGER", "Could not convert string 'a'"),
        ("", "expected one query, found none"),
        ("SELECT 1; SELECT 2", "expected one query, found 2"),
        ("SELECT ?", "parameters"),
        ("SELECT to_days(2147483647)", "the answer holds a value that cannot be shown (days=2147483647;"),
        (f"SELECT {'[' * 700}1{']' * 700}", "the answer holds a value that cannot be shown (maximum recursion depth"),
        ("SELECT 'a\udcff'", "the query is not UTF-8 text"),
    ],
)
def test_a_wrong_query_gets_one_sentence(query, said, capsys, database):
    code, out, err = fishpool(capsys, "sql", query, "--database", str(database))
    assert (code, out) == (2, [])
    assert len(err) == 1
    assert said in err[0]


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE runs",
        "INSERT INTO runs VALUES ('c', 3, 0)",
        "UPDATE runs SET seed = 9",
        "CREATE TABLE more AS SELECT 1",
        "COPY runs TO 'secret.csv'",
        "COPY runs TO 'results/fishpool.duckdb'",
        "EXPORT DATABASE 'secret'",
        "ATTACH 'secret.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "EXPLAIN ANALYZE COPY runs TO 'secret.csv'",
        "SELECT * FROM 'secret.txt'",
        "SELECT * FROM read_text('secret.txt')",
        "SELECT * FROM read_csv('secret.txt')",
        "SELECT * FROM glob('*')",
        "SELECT * FROM sniff_csv('secret.txt')",
        "FROM (PIVOT (SELECT * FROM read_text('secret.txt')) ON filename USING count(*))",
        "SELECT * FROM database",
    ],
)
def test_sql_reaches_nothing_but_the_tables_of_the_database(query, capsys, database, monkeypatch):
    monkeypatch.chdir(database.parents[1])
    Path("secret.txt").write_text("secret")
    before, bytes_before = sorted(Path.cwd().rglob("*")), database.read_bytes()
    code, out, err = fishpool(capsys, "sql", query)
    assert (code, out) == (2, [])
    assert len(err) == 1
    assert sorted(Path.cwd().rglob("*")) == before
    assert database.read_bytes() == bytes_before


def test_a_pivot_and_a_description_are_queries_too(capsys, database):
    for query in ("PIVOT runs ON seed USING count(*)", "DESCRIBE runs", "SHOW TABLES", "FROM turns LIMIT 1"):
        assert fishpool(capsys, "sql", query, "--database", str(database))[0] == 0


def test_nothing_is_drawn_into_the_answer(database):
    """In a Python without a main file DuckDB draws a progress bar on standard output after two seconds."""
    call = "import sys; from fishpool import cli; sys.exit(cli.main(sys.argv[1:]))"
    query = "SELECT current_setting('enable_progress_bar') AS bar"
    command = [sys.executable, "-c", call, "sql", query, "--csv", "--database", str(database)]
    assert subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout == "bar\nfalse\n"


def test_a_damaged_table_where_no_database_is_made_yet_is_why_there_is_no_answer(tmp_path):
    from fishpool import ask, remarks

    table = tmp_path / "parquet" / "runs.parquet"
    table.parent.mkdir()
    table.write_bytes(b"no table")
    with pytest.raises(ask.QueryError, match=r"runs\.parquet"), ask.opened(tmp_path / "fishpool.duckdb"):
        pass
    assert remarks.remarks(tmp_path / "fishpool.duckdb") == []


def test_a_table_that_is_no_file_is_no_table(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results/parquet").mkdir(parents=True)
    os.mkfifo("results/parquet/runs.parquet")  # opening it would wait for ever
    code, _, [err] = fishpool(capsys, "sql", "SELECT 1")
    assert code == 2
    assert "there is no such database, nor any finished table beside it" in err


def test_a_database_that_is_missing_or_is_none_gets_one_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fishpool(capsys, "sql", "SELECT 1") == (
        2,
        [],
        [
            "results/fishpool.duckdb: there is no such database, nor any finished table beside it;"
            " run `snakemake` to make it, or wait until its first tables are done"
        ],
    )
    Path("some.txt").write_text("no database")
    code, _, err = fishpool(capsys, "sql", "SELECT 1", "--database", "some.txt")
    assert (code, len(err)) == (2, 1)
    assert "not a valid DuckDB database" in err[0]


# ── clean ────────────────────────────────────────────────────────────────────────────────────────────────────────


def results_of(folder: Path) -> tuple[set[str], set[str]]:
    """A results folder for the config tiny.yaml: (files that it names or that are not ours, stale files)."""
    fresh, old = set(), set()
    for condition in ("plain", "noisy"):
        fresh |= {
            f"jsonl/tiny/{condition}/seeds-{first}/{name}.jsonl" for first in (0, 2) for name in ("runs", "turns")
        }
        fresh |= {f"jsonl/tiny/{condition}/seeds-0/SHA256SUMS", f"parquet/pd_rounds/round_robin/{condition}.parquet"}
        old |= {
            f"jsonl/tiny/{condition}/seeds-4/{name}"
            for name in ("runs.jsonl", "SHA256SUMS", "turns.jsonl.71-0123abcd.part")
        }
    fresh |= {"parquet/runs/tiny/plain.parquet", "parquet/pd_ranking/tiny.parquet"}
    fresh |= {"jsonl/tiny/old/seeds-0/notes.txt", "jsonl/readme.md", "jsonl/tiny/runs.jsonl", "parquet/gone.parquet"}
    fresh |= {"fishpool.duckdb", "figures/rq09.svg", "parquet/runs/gone/deeper/plain.parquet", "logs/gone.log"}
    old |= {
        "jsonl/gone/plain/seeds-0/runs.jsonl",
        "jsonl/tiny/old/seeds-0/runs.jsonl",
        "parquet/runs/gone/plain.parquet",
    }
    old |= {"parquet/runs/tiny/old.parquet", "parquet/pd_ranking/gone.parquet"}
    for name in fresh | old:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return fresh, old


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_clean_removes_what_no_study_names_and_nothing_else(capsys, tmp_path):
    fresh, old = results_of(tmp_path)
    code, out, err = fishpool(capsys, "clean", "--stale", "--configfile", TINY, "--results", str(tmp_path), "--dry-run")
    assert (code, set(out)) == (0, {str(tmp_path / name) for name in old})
    assert err == [f"{len(old)} stale files would be removed"]
    assert files_in(tmp_path) == fresh | old
    code, out, err = fishpool(capsys, "clean", "--stale", "--configfile", TINY, "--results", str(tmp_path))
    assert (code, set(out)) == (0, {str(tmp_path / name) for name in old})
    assert files_in(tmp_path) == fresh
    assert not (tmp_path / "jsonl" / "gone").exists()
    assert (tmp_path / "jsonl" / "tiny" / "old" / "seeds-0" / "notes.txt").exists()
    assert fishpool(capsys, "clean", "--stale", "--configfile", TINY, "--results", str(tmp_path))[1] == []


def test_clean_follows_no_link(capsys, tmp_path):
    outside, results = tmp_path / "outside", tmp_path / "results"
    results_of(outside)
    results.mkdir()
    (results / "jsonl").mkdir()
    (results / "jsonl" / "gone").symlink_to(outside / "jsonl" / "gone")
    (results / "parquet").symlink_to(outside / "parquet")
    linked = results / "jsonl" / "tiny" / "plain" / "seeds-8"
    linked.mkdir(parents=True)
    (linked / "runs.jsonl").symlink_to(outside / "fishpool.duckdb")
    before = files_in(outside)
    assert fishpool(capsys, "clean", "--stale", "--configfile", TINY, "--results", str(results))[:2] == (0, [])
    assert files_in(outside) == before
    assert (linked / "runs.jsonl").is_symlink()


def test_clean_takes_no_notice_of_only(capsys, tmp_path):
    fresh, _ = results_of(tmp_path)
    fishpool(
        capsys, "clean", "--stale", "--configfile", TINY, "--config", "only=round_robin", "--results", str(tmp_path)
    )
    assert files_in(tmp_path) == fresh


def test_clean_with_a_wrong_config_removes_nothing(capsys, tmp_path):
    fresh, old = results_of(tmp_path)
    options = ("--configfile", TINY, "--config", "only=nothing", "--results", str(tmp_path))
    assert fishpool(capsys, "clean", "--stale", *options)[0] == 2
    assert files_in(tmp_path) == fresh | old


def test_clean_where_there_are_no_results_has_nothing_to_do(tmp_path):
    assert stale.stale_files(tmp_path / "none", study.load_files([])) == []


# ── How it ends ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_command_or_option_is_the_users_fault():
    for arguments in ((), ("chekc",), ("clean",), ("sql",), ("sql", "SELECT 1", "--csv", "--json")):
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 2


def test_control_c_ends_a_running_query_at_once_and_quietly(database):
    endless = "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000) c WHERE a.range * b.range % 7 = 3"
    process = start("sql", endless, "--database", str(database))
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_reader_that_has_had_enough_is_no_error(database):
    process = start("sql", "SELECT * FROM turns a, turns b", "--csv", "--database", str(database))
    assert process.stdout.readline() == b"round,round_1\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=20) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_gets_one_sentence():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        process = start("check", stdout=full)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (2, b"standard output: No space left on device\n")


def test_any_terminal_can_show_the_answer(database):
    process = start(
        "sql", "SELECT 'ü' AS u", "--database", str(database), env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, b"")
    assert b"\\xfc" in out


def test_the_command_starts_without_heavy_libraries():
    heavy = "{'numpy', 'polars', 'duckdb', 'altair', 'scipy', 'snakemake', 'jsonschema', 'yaml'}"
    subprocess.run(
        [sys.executable, "-c", f"import fishpool.cli, sys; assert not {heavy} & set(sys.modules)"], check=True
    )
