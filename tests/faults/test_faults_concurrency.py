"""Several at once: runs in one folder, readers of what is written, processes on one journal; and clocks that jump.

Killed runs are in test_faults_kill.py; what the arena does with many agents at once is in tests/arena.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import duckdb
import model_study
import pytest
from effort import EFFORT
from workflow_checkout import POOL, REPOSITORY, Checkout, contents

from fishpool import cli, database
from fishpool.models import publishing
from fishpool.models.calls import Reply, Request
from fishpool.models.journal import Entry, Journal, Sort
from fishpool.records import Status

sys.path.insert(0, str(REPOSITORY / "tests" / "arena"))
from arena_process import ArenaProcess
from clients import COOPERATE, HttpAgent, always

pytestmark = pytest.mark.faults

ASK_MANY = REPOSITORY / "tests" / "models" / "ask_many.py"


def in_the_background(*command, **more):
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


# ── Runs and their readers ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def half(pool, tmp_path):
    """A copy of a finished run that lacks its tables, its database, its figures and half of its games."""
    checkout = Checkout(shutil.copytree(pool.root, tmp_path / "checkout"))
    for path in ("parquet", "figures", "jsonl/pool/free/seeds-2", "jsonl/pool/forced_truth/seeds-0"):
        shutil.rmtree(checkout.results / path)
    (checkout.results / "fishpool.duckdb").unlink()
    return checkout


@pytest.mark.workflow
def test_readers_of_a_run_that_is_writing_find_whole_tables_and_a_second_run_is_refused(
    half, pool, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(half.root)
    where = ["--configfile", "tests/config/tiny.yaml", "--config", "only=pool"]
    readings = [
        ["sql", "SELECT condition, count(*) AS runs, count(DISTINCT seed) AS seeds FROM runs GROUP BY ALL", "--json"],
        ["sql", "--tables"],
        ["replay", "pool:free:3"],
        ["status", *where],
        ["journal"],
    ]
    codes = []
    with (tmp_path / "log").open("w") as output, half.start(config=POOL, output=output) as process:
        while not (half.root / ".snakemake" / "locks").is_dir() or not any(half.root.glob(".snakemake/locks/*")):
            time.sleep(0.05)
        second = half.snakemake(config=POOL)
        assert process.poll() is None
        while process.poll() is None:
            for reading in readings:
                codes.append((reading[0], cli.main(reading)))
                out, err = capsys.readouterr()
                assert "Traceback" not in out + err
                if codes[-1][1] == 0 and "--json" in reading:
                    assert all(row["runs"] == row["seeds"] == 4 for row in json.loads(out)), out
                if codes[-1][1]:
                    assert (codes[-1][1], err.count("\n")) == (2, 1), (reading, err)
            if (half.results / "fishpool.duckdb").exists():
                with duckdb.connect("results/fishpool.duckdb", read_only=True) as connection:
                    assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(8,)]
    assert process.returncode == 0, (tmp_path / "log").read_text()
    assert second.code != 0
    assert "Traceback" not in second.text
    assert "cannot be locked" in second.text
    assert not second.jobs
    assert contents(half.results) == contents(pool.results)
    print({name: sum(one == (name, 0) for one in codes) for name in dict(codes)}, "of", len(codes))


@pytest.mark.skipif(EFFORT < 2, reason="takes a minute; FISHPOOL_FAULTS=2 or more asks for it")
@pytest.mark.workflow
def test_two_runs_in_one_folder_whose_lock_was_removed_too_early_end_with_the_same_bytes(half, pool, tmp_path):
    """Against the manual's advice; what one run takes away from the other is made again by the next."""
    running = []
    for number in range(2):
        log = (tmp_path / f"{number}.log").open("w")
        running.append((half.start(config=POOL, output=log), log))
        time.sleep(4)
        assert half.snakemake("--unlock", config=POOL).code == 0
    for process, log in running:
        process.wait(timeout=300)
        log.close()
    outcome = half.snakemake(config=POOL)
    assert outcome.code == 0, outcome.text
    assert contents(half.results) == contents(pool.results)


def test_a_database_that_somebody_wrote_into_and_was_killed_is_replaced_with_its_log(pool, tmp_path):
    """Else nobody could open the new one: its log would be that of another."""
    file = tmp_path / "fishpool.duckdb"
    tables = database.tables_in(pool.results / "parquet")
    database.build(tables, {}, file)
    program = (
        "import duckdb, os; c = duckdb.connect(os.sys.argv[1]); c.execute('CREATE TABLE mine AS SELECT 1 AS x');"
        " c.execute('DELETE FROM runs'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, file], check=False)
    assert file.with_name("fishpool.duckdb.wal").exists()
    database.build(tables, {}, file)
    assert sorted(tmp_path.iterdir()) == [file]
    with duckdb.connect(str(file), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(8,)]


def test_who_reads_a_database_keeps_it_while_it_is_replaced(pool, tmp_path):
    file = tmp_path / "fishpool.duckdb"
    tables = database.tables_in(pool.results / "parquet")
    database.build(tables, {}, file)
    with duckdb.connect(str(file), read_only=True) as connection:
        database.build({"runs": tables["runs"]}, {}, file)
        assert connection.execute("SELECT count(*) FROM turns").fetchall()[0][0] > 0
    with duckdb.connect(str(file), read_only=True) as connection:
        assert connection.sql("SHOW TABLES").fetchall() == [("runs",)]


# ── Processes on one journal ─────────────────────────────────────────────────────────────────────────────────────


def test_of_many_processes_on_one_journal_some_are_killed_and_the_others_agree(tmp_path):
    chance, keys = random.Random(5), 500
    for attempt in range(EFFORT):
        journal, calls = tmp_path / f"{attempt}.sqlite", tmp_path / f"{attempt}.calls"
        running = [in_the_background(ASK_MANY, journal, calls, keys, 0.002) for _ in range(8)]
        killed = running[:3]
        for process in killed:
            wanted = chance.randint(1, 3 * keys)
            while process.poll() is None and (len(calls.read_bytes().split()) if calls.exists() else 0) < wanted:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
        said = [process.communicate(timeout=120) for process in running]
        texts = {out for process, (out, _) in zip(running, said, strict=True) if process not in killed}
        assert all(process.returncode == 0 for process in running[3:]), said
        assert len({tuple(json.loads(text)["texts"]) for text in texts}) == 1
        last = tmp_path / f"{attempt}.last"
        out, err = in_the_background(ASK_MANY, journal, last, keys, 0).communicate(timeout=60)
        assert json.loads(out)["from_journal"] == keys, err
        assert json.loads(out)["texts"] == json.loads(texts.pop())["texts"]
        assert not last.exists()
        with closing(sqlite3.connect(journal)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert connection.execute("SELECT count(*), count(DISTINCT key) FROM replies").fetchone() == (keys, keys)
        print(
            f"{sum(process.returncode < 0 for process in killed)} of 8 killed, {len(calls.read_text().split())} calls"
        )


def published(folder, numbers):
    """A published journal of some replies, all of one study."""
    folder.mkdir()
    with closing(Journal(folder / "journal.sqlite")) as journal:
        journal.keep_all(kept(number) for number in numbers)
        journal.note_digest("lab", "tiny", "d")
        publishing.export(journal, folder / "replies.jsonl.xz")
    return folder / "replies.jsonl.xz"


def kept(number):
    model = {"backend": "ollama", "model": "tiny", "digest": "d", "options": {"seed": number}, "thinking": None}
    turn = {"run_id": f"duel:plain:{number}", "agent": "a", "round": 1, "phase": "choose", "attempt": 1}
    request = Request(messages=({"role": "user", "content": "Well?"},), schema=None, **model, **turn)
    return request.key, request.to_json(), Entry(Sort.ANSWER, Reply(f"{number}", "", "stop", 1, 2, 3.0))


def test_imports_and_exports_of_one_journal_at_once_add_up(tmp_path):
    files = [published(tmp_path / f"{n}", range(n * 300, n * 300 + 600)) for n in range(3)]
    whole = published(tmp_path / "whole", range(1200))
    journal, exported = tmp_path / "journal.sqlite", tmp_path / "exported.jsonl.xz"
    with closing(Journal(journal)) as empty:
        empty.note_digest("lab", "tiny", "d")
    commands = [("import", file) for file in files] + [("export", exported)] * 2
    running = [in_the_background("-m", "fishpool.cli", "journal", *c, "--journal", journal) for c in commands]
    said = [process.communicate(timeout=60) for process in running]
    assert all(process.returncode == 0 for process in running), said
    new = [int(out.split(" replies, ")[1].split(" ")[0]) for out, _ in said[:3]]
    assert sum(new) == 1200
    assert publishing.contents(exported).total() in {0, *(sum(new[i] for i in some) for some in subsets(range(3)))}
    with closing(Journal(journal, read_only=True)) as all_of_them:
        publishing.export(all_of_them, exported)
    assert exported.read_bytes() == whole.read_bytes()


def subsets(numbers):
    found = [[]]
    for number in numbers:
        found += [[*some, number] for some in found]
    return found


# ── Clocks that jump ─────────────────────────────────────────────────────────────────────────────────────────────

JUMPING = """
import random, time
_true, _luck = time.time, random.Random()
time.time = lambda: _true() + _luck.uniform(-86_400, 86_400)
"""


@pytest.mark.workflow
def test_files_from_the_past_and_the_future_are_not_made_again(pool, tmp_path):
    checkout = Checkout(shutil.copytree(pool.root, tmp_path / "checkout"))
    chance, now = random.Random(3), time.time()
    for folder in ("fishpool", "scripts", "workflow", "config", "tests", "results"):
        for file in sorted((checkout.root / folder).rglob("*")):
            moment = now + chance.uniform(-3e7, 3e7)
            os.utime(file, (moment, moment))
    outcome = checkout.snakemake("-n", config=POOL)
    assert outcome.had_nothing_to_do, outcome.text


@pytest.mark.workflow
def test_a_clock_that_jumps_a_day_back_and_forth_changes_no_record(fresh, played, tmp_path):
    """The wall clock of every process of the run; what is timed, is by the clock that only goes forward."""
    _, calls, undisturbed = played
    (fresh.root / "sitecustomize.py").write_text(JUMPING)  # which Python imports from PYTHONPATH when it starts
    jumping = Checkout(fresh.root, {"PYTHONPATH": str(fresh.root)})
    with model_study.serving(tmp_path) as server:
        outcome = model_study.play(model_study.place(jumping, server.address))
        assert outcome.code == 0, outcome.text
        assert server.calls == calls
    assert model_study.records(fresh) == undisturbed
    replies = [file for file in model_study.RECORDS if file.endswith("replies.jsonl")]
    lines = [json.loads(line) for file in replies for line in (fresh.root / file).read_text().splitlines()]
    assert all(0 <= line["latency_ms"] < 60_000 for line in lines)


def test_an_arena_whose_clock_jumps_lets_nobody_s_time_run_out(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(JUMPING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def match(url):
        agents = [HttpAgent(url, always(COOPERATE)) for _ in range(2)]
        try:
            return await asyncio.gather(*(agent.play() for agent in agents))
        finally:
            await asyncio.gather(*(agent.http.aclose() for agent in agents))

    with ArenaProcess(tmp_path, "--rounds=5") as arena:
        ends = asyncio.run(match(arena.url))
        assert arena.stop() == 130
    assert all(end["status"] == "game_over" for end in ends)
    [turns] = arena.results.rglob("turns.jsonl")
    turns = [json.loads(line) for line in turns.read_text().splitlines()]
    assert [turn["status"] for turn in turns] == [Status.MOVED] * 10
