"""The arena's matches as records: the same files each time, and tables that the pipeline makes of any play."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import nullcontext
from pathlib import Path

import duckdb
import pytest

from fishpool import cli
from fishpool.arena.matches import Arena, Refused
from fishpool.arena.results import export
from fishpool.arena.store import Store
from fishpool.games import prisoners_dilemma as rules
from fishpool.games.prisoners_dilemma import Choice
from fishpool.records import Status
from fishpool.referee import Turn
from fishpool.tabulate import tabulate

SQL = Path(__file__).parents[2] / "workflow" / "sql" / "prisoners_dilemma"
C, D = (Turn(Status.MOVED, choice) for choice in Choice)
R, W = Turn(Status.MOVED, rules.RESIGN), Turn(Status.INVALID, fault="no action at all")
LATE = None


class Hall:
    def __init__(self, folder):
        self.now = 0.0
        self.store = Store(folder / "arena.sqlite", rounds=2)
        self.arena = Arena(self.store, lambda: self.now)
        self.a = self.arena.register("Ann 1", "llama3.1")[0]
        self.b = self.arena.register("Bob")[0]

    def play(self, *rounds, lane="fast"):
        self.arena.enqueue(self.a, lane)
        match = self.arena.enqueue(self.b, lane).match
        for number, turns in enumerate(rounds, start=1):
            for agent, turn in zip((self.a, self.b), turns, strict=True):
                with pytest.raises(Refused) if turn is W else nullcontext():
                    if turn is not LATE:
                        self.arena.act(agent, match, number, turn)
            if LATE in turns:
                self.now += 200
                self.arena.expire()


@pytest.fixture
def hall(tmp_path):
    made = Hall(tmp_path)
    yield made
    made.store.close()


def files(folder):
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_ending_is_recorded_as_the_referee_would_record_it(hall, tmp_path):
    hall.play((C, C), (D, C))
    hall.play((R, C))
    hall.play((C, C), (R, R))
    hall.play((LATE, C))
    hall.play((C, D), (W, C))
    hall.play((C, D), (LATE, R))
    (shard,) = export(tmp_path / "arena.sqlite", tmp_path / "results")
    assert shard == tmp_path / "results" / "jsonl" / "arena" / "fast" / "seeds-0"
    runs, turns = read(shard / "runs.jsonl"), read(shard / "turns.jsonl")
    told = [(run["seed"], run["ending"], run["winner"], run["rounds"], run["turn_records"]) for run in runs]
    assert told == [
        (1, "completed", "agent_1", 2, 4),
        (2, "resigned", "agent_2", 0, 2),
        (3, "resigned", None, 1, 4),
        (4, "void", None, 0, 2),
        (5, "forfeited", "agent_2", 1, 4),
        (6, "forfeited", None, 1, 4),
    ]
    assert runs[0]["run_id"] == "arena:fast:1:Ann 1:Bob"
    assert json.loads(runs[0]["outsiders"]) == {
        "Ann 1": {"arena": "agent-1", "model": "llama3.1"},
        "Bob": {"arena": "agent-2"},
    }
    assert json.loads(runs[0]["parameters"])["rounds"] == 2
    last = [(row["status"], row["action"], row["choice"], row["payoff"]) for row in turns[-2:]]
    assert last == [("timeout", None, None, None), ("resigned", '{"type": "resign"}', None, None)]
    assert [row["status"] for row in turns if row["run_id"].startswith("arena:fast:5:")][2:] == ["invalid", "moved"]


def test_the_records_become_tables(hall, tmp_path):
    hall.play((C, C), (D, C))
    hall.play((LATE, C))
    hall.play((D, C), (D, D), lane="standard")
    directories = export(tmp_path / "arena.sqlite", tmp_path / "results", "meeting")
    assert [directory.parent.name for directory in directories] == ["fast", "standard"]
    with duckdb.connect() as database:
        for table in ("runs", "turns"):
            tabulate("prisoners_dilemma", table, directories, tmp_path / f"{table}.parquet")
            database.execute(f"CREATE TABLE {table} AS FROM read_parquet('{tmp_path / table}.parquet')")
        query = (SQL / "pd_individual.sql").read_text()
        rows = database.sql(f"SELECT condition, player, score, outcome FROM ({query}) ORDER BY ALL").fetchall()
    assert rows == [
        ("fast", "Ann 1", 0, "void"),
        ("fast", "Ann 1", 8, "win"),
        ("fast", "Bob", 0, "void"),
        ("fast", "Bob", 3, "loss"),
        ("standard", "Ann 1", 6, "win"),
        ("standard", "Bob", 1, "loss"),
    ]


def test_exporting_again_touches_nothing_and_writes_again_what_was_damaged_or_has_grown(hall, tmp_path):
    database, results = tmp_path / "arena.sqlite", tmp_path / "results"
    hall.play((C, C), (C, C))
    hall.arena.enqueue(hall.a, "fast")
    hall.arena.enqueue(hall.b, "fast")  # a live match is not recorded
    export(database, results)
    written = files(results)
    export(database, results)
    assert files(results) == written
    runs = results / "jsonl/arena/fast/seeds-0/runs.jsonl"
    runs.write_text("")
    export(database, results)
    assert {name: content for name, (content, _) in files(results).items()} == {
        name: content for name, (content, _) in written.items()
    }
    for agent in (hall.a, hall.b):
        hall.arena.act(agent, "match-2", 1, R)
    export(database, results)
    assert [run["seed"] for run in read(runs)] == [1, 2]
    sums = runs.with_name("SHA256SUMS").read_text().split()
    assert sums[0] == hashlib.sha256(runs.read_bytes()).hexdigest()


def test_matches_are_blocked_by_their_number(hall, tmp_path):
    for _ in range(51):
        hall.play((R, R))
    names = [directory.name for directory in export(tmp_path / "arena.sqlite", tmp_path / "results")]
    assert names == ["seeds-0", "seeds-50"]


def test_without_the_extra_the_command_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in [name for name in sys.modules if name.startswith("fishpool.arena.server")]:
        monkeypatch.delitem(sys.modules, name)
    assert cli.main(["arena", "--port", "0"]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "uvicorn is not installed" in sentence
    assert "pip install 'fishpool[arena]'" in sentence


@pytest.mark.parametrize(
    "option",
    ["--port=-1", "--port=65536", "--rounds=0", "--rounds=1e3", "--turn-timeout=fast", "--turn-timeout=slow=3",
     "--turn-timeout=fast=0", "--turn-timeout=fast=nan", "--turn-timeout=fast=inf"],
)  # fmt: skip
def test_options_that_make_no_sense(option, capsys):
    with pytest.raises(SystemExit) as refused:
        cli.main(["arena", option])
    assert refused.value.code == 2
    assert "expected" in capsys.readouterr().err


def test_the_command_names_the_shards_or_says_what_is_wrong(hall, tmp_path, capsys):
    hall.play((R, C))
    database, results = str(tmp_path / "arena.sqlite"), str(tmp_path / "results")
    assert cli.main(["arena", "export", "--database", database, "--results", results, "--study", "x"]) == 0
    assert capsys.readouterr().out == f"{results}/jsonl/x/fast/seeds-0\n"
    assert cli.main(["arena", "--database", f"{tmp_path}/none", "export"]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert cli.main(["arena", "--port", "0", "--database", str(tmp_path)]) == 2
    assert f"{tmp_path}: is a folder; expected the database of an arena" in capsys.readouterr().err
    new = f"{tmp_path}/new.sqlite"
    assert cli.main(["arena", "--port", "0", "--database", new, "--host", "\udcff"]) == 2
    assert (
        capsys.readouterr().err
        == "\\udcff: no host can be called so; see that it is there and may be read and written\n"
    )
    for study in ("../x", "a/b", "", "-x"):
        with pytest.raises(SystemExit):
            cli.main(["arena", "export", f"--study={study}"])
