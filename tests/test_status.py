"""`fishpool status` and the progress of a job say what the files say, in every state of a run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time

import polars as pl
import pytest
from built_results import CONFIG

from fishpool import cli, shards, status, study
from fishpool.models.calls import Reply, Request
from fishpool.models.journal import Entry, Journal, Sort


@pytest.fixture
def results(built, tmp_path, monkeypatch):
    """A copy of the finished results, in a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(built, tmp_path / "results", copy_function=shutil.copy2)


def said(capsys, results):
    code = cli.main(["status", "--configfile", str(CONFIG), "--config", f"results={results}"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    head = lines[0].replace("calls left", "calls_left").split()
    rows = {line.split()[0]: dict(zip(head, line.split(), strict=True)) for line in lines[1 : lines.index("")]}
    return rows, "\n".join(lines[lines.index("") :])


def test_finished_studies_are_finished(results, capsys):
    rows, rest = said(capsys, results)
    assert {name: (row["shards"], row["runs"], row["calls_left"]) for name, row in rows.items()} == {
        "pool": ("6/6", "9/9", "0"),
        "match": ("2/2", "24/24", "0"),
        "documents": ("3/3", "3/3", "0"),
    }
    assert all(len(set(row["tables"].split("/"))) == 1 for row in rows.values())
    assert "fishpool.duckdb is there" in rest
    assert "no run is going on here" in rest
    assert "everything is played" in rest


def test_before_anything_is_played_all_is_to_be_played_and_paid(capsys, tmp_path):
    rows, rest = said(capsys, tmp_path / "none")
    assert {name: row["shards"] for name, row in rows.items()} == {"pool": "0/6", "match": "0/2", "documents": "0/3"}
    conditions = next(one for one in study.load_files([CONFIG]).studies if one.name == "pool").conditions
    (with_model,) = (one for one in conditions if "model" in one.kinds)
    assert rows["pool"]["calls_left"] == str(3 * with_model.model_calls_per_seed)
    assert rows["documents"]["calls_left"] == "0"
    assert "11 shards to play" in rest
    assert re.search(r"^in all, pool asks ollama/test up to 48 times, repairs aside: about \d", rest, re.MULTILINE)
    assert "no database yet" in rest
    assert not (tmp_path / "none").exists()


def test_a_shard_that_is_gone_is_missed_with_its_runs_its_tables_and_what_it_costs(results, capsys):
    (results / "jsonl" / "pool" / "model" / "seeds-2" / "SHA256SUMS").unlink()
    rows, rest = said(capsys, results)
    conditions = next(one for one in study.load_files([CONFIG]).studies if one.name == "pool").conditions
    (with_model,) = (one for one in conditions if "model" in one.kinds)
    assert (rows["pool"]["shards"], rows["pool"]["runs"]) == ("5/6", "8/9")
    assert rows["pool"]["calls_left"] == str(with_model.model_calls_per_seed)
    assert "1 shard to play" in rest
    there, of = map(int, rows["pool"]["tables"].split("/"))
    assert there == of - len(with_model.tables)


def test_a_database_that_is_older_than_a_table_is_said_to_be(results, capsys):
    later = time.time() + 5
    os.utime(results / "parquet" / "runs" / "pool" / "free.parquet", (later, later))
    assert "older than some table" in said(capsys, results)[1]


def request(run_id, attempt=1):
    return Request(
        backend="ollama",
        model="test",
        digest="d",
        messages=({"role": "user", "content": run_id},),
        schema=None,
        options={},
        thinking=None,
        run_id=run_id,
        agent="agent_1",
        round=1,
        phase="catch",
        attempt=attempt,
    )


def test_what_the_journal_answers_is_not_paid_again(results, capsys):
    (results / "jsonl" / "pool" / "model" / "seeds-2" / "SHA256SUMS").unlink()
    before = int(said(capsys, results)[0]["pool"]["calls_left"])
    journal = Journal(results / "journal.sqlite")
    answer = Entry(Sort.ANSWER, Reply("{}", "", "stop", 7, 3, 1.0))
    runs = [("pool:model:2", 1), ("pool:model:2", 2), ("pool:model:0", 1), ("match:plain:0:Defector:canned", 1)]
    for one in (request(*run) for run in runs):
        asyncio.run(journal.keep(one.key, one.to_json(), answer))
    lost = request("pool:model:2", 3)
    asyncio.run(journal.keep(lost.key, lost.to_json(), Entry(Sort.FAULT, fault="no reply")))
    journal.close()
    rows, rest = said(capsys, results)
    assert int(rows["pool"]["calls_left"]) == before - 1, "only a first request of a game that is missing saves a call"
    assert (rows["pool"]["replies"], rows["match"]["replies"]) == ("3", "1")
    assert "journal.sqlite" in rest


def test_a_file_that_is_no_journal_is_one_sentence(results, capsys):
    (results / "journal.sqlite").write_text("not a database, but long enough to be looked at" * 50)
    assert cli.main(["status", "--configfile", str(CONFIG), "--config", f"results={results}"]) == 2
    _, err = capsys.readouterr()
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1


def test_who_plays_is_told_from_who_was_killed(results, capsys):
    place = results / "jsonl" / "pool" / "free" / "seeds-0"
    log = results / "logs" / "play" / "pool" / "free" / "seeds-0.log"
    log.parent.mkdir(parents=True)
    log.write_text("pool/free/seeds-0: 1 of 2 games, 3 a second, 1 s left \x1b[2J\n")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as player:
        part = place / f"runs.jsonl.{player.pid}-0123abcd.part"
        part.touch()
        told = said(capsys, results)[1].splitlines()
    assert r"  pool/free/seeds-0: 1 of 2 games, 3 a second, 1 s left \x1b[2J" in told
    assert part.exists()
    assert "no run is going on here" in said(capsys, results)[1]


def test_a_lock_is_seen(results, capsys, tmp_path):
    locks = tmp_path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.input.lock").touch()
    assert "snakemake --unlock" in said(capsys, results)[1]


# ── Progress of a job ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(shards.time, "monotonic", lambda: now[0])
    return now


def replies(journalled, asked, tokens=10):
    return pl.DataFrame(
        {
            "from_journal": [True] * journalled + [False] * asked,
            "tokens_in": pl.Series([tokens] * (journalled + asked), dtype=pl.Int64),
            "tokens_out": pl.Series([tokens] * (journalled + asked), dtype=pl.Int64),
        }
    )


def test_progress_tells_games_rate_and_time_left(clock, capsys):
    progress = shards.Progress("a/b/c", 100)
    clock[0] += 1
    progress.add(5)
    assert capsys.readouterr().err == ""
    clock[0] += 9
    progress.add(5)
    assert capsys.readouterr().err == "a/b/c: 10 of 100 games, 1 a second, 90 s left\n"
    clock[0] += 90
    progress.add(90)
    progress.end()
    assert capsys.readouterr().err == "a/b/c: 100 games in 100 s\n"


def test_progress_of_models_tells_calls_and_tokens_that_were_asked_for(clock, capsys):
    progress = shards.Progress("a/b/c", 4)
    clock[0] += 60
    progress.add(1, replies(journalled=2, asked=3))
    assert capsys.readouterr().err == (
        "a/b/c: 1 of 4 games, 1 a minute, 5 calls (2 from the journal), 60 tokens (1 a second), 3 min left\n"
    )
    clock[0] += 10
    progress.add(3, replies(journalled=4, asked=0))
    progress.end()
    assert "4 games in 70 s, 9 calls (6 from the journal), 60 tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.42, "0.4 s"), (41, "41 s"), (119, "119 s"), (600, "10 min"), (5_400, "1 h 30 min"), (12_000, "3 h 20 min")],
)
def test_durations_are_said_as_people_do(seconds, words, clock, capsys):
    progress = shards.Progress("a/b/c", 1)
    clock[0] += seconds
    progress.add(1)
    progress.end()
    assert capsys.readouterr().err == f"a/b/c: 1 games in {words}\n"


def test_tokens_that_a_server_did_not_count_are_no_tokens(clock, capsys):
    progress = shards.Progress("a/b/c", 1)
    clock[0] += 3
    progress.add(1, replies(journalled=0, asked=2, tokens=None))
    progress.end()
    assert capsys.readouterr().err == "a/b/c: 1 games in 3.0 s, 2 calls (0 from the journal)\n"


def test_status_knows_no_heavy_library():
    code = "import fishpool.status, sys; assert not {'polars', 'duckdb', 'altair', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert status.__doc__
