"""Studies with a model, from its server to the tables: no reply is paid for twice, and a replay is the run again.

The server is tests/models/misbehaving.py in a process of its own: it counts what it is asked, whatever happens to the
pipeline.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
import yaml
from workflow_checkout import REPOSITORY, Checkout

pytestmark = pytest.mark.workflow

SERVER = REPOSITORY / "tests" / "models" / "misbehaving.py"
SHARDS = (
    "match/plain/seeds-0",
    "match/plain/seeds-2",
    "match/letters/seeds-0",
    "match/letters/seeds-2",
    "pool/mixed/seeds-0",
    "oracle/test/seeds-0",
)
RECORDS = [f"results/jsonl/{shard}/{table}.jsonl" for shard in SHARDS for table in ("runs", "turns", "replies")]
OF_THIS_PLAY = {"from_journal", "latency_ms"}


class Server:
    """The counting server; it may be stopped and started again at the same place."""

    def __init__(self, folder: Path, latency: float):
        self.count_file, self._port_file, self._latency = folder / "count", folder / "port", latency
        self._process: subprocess.Popen | None = None
        self.start()

    def start(self) -> None:
        self._port_file.unlink(missing_ok=True)
        options = ["--port-file", self._port_file, "--count-file", self.count_file, "--latency", str(self._latency)]
        self._process = subprocess.Popen([sys.executable, SERVER, *map(str, options)])
        while not self._port_file.exists() or not self._port_file.read_text().strip():
            assert self._process.poll() is None
            time.sleep(0.05)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port_file.read_text().strip()}"

    @property
    def calls(self) -> Counter:
        lines = self.count_file.read_text().splitlines() if self.count_file.exists() else []
        return Counter(lines)


@contextmanager
def serving(folder: Path, latency: float = 0.0):
    server = Server(folder, latency)
    try:
        yield server
    finally:
        server.stop()


def place(checkout: Checkout, address: str, **keys) -> Checkout:
    """A checkout whose models are asked at an address."""
    server = {"kind": "ollama", "endpoints": [address], "concurrency": 4, "retries": 1}
    where = {"servers": {"ollama": server}, **keys}
    (checkout.root / "where.yaml").write_text(yaml.safe_dump(where))
    return checkout


def options(*more: str) -> tuple[str, ...]:
    return ("--configfile", "tests/config/models.yaml", "where.yaml", *more)


def play(checkout: Checkout, *more: str):
    return checkout.snakemake(*options(*more), "--", *RECORDS, config=())


def records(checkout: Checkout) -> dict[str, list]:
    """All records but for what says when and whence replies came."""
    return {
        file: [
            {key: value for key, value in json.loads(line).items() if key not in OF_THIS_PLAY}
            for line in (checkout.root / file).read_text().splitlines()
        ]
        for file in RECORDS
    }


@pytest.fixture(scope="module")
def played(sources, tmp_path_factory):
    """An undisturbed run of all that models play, its server's count, and its records."""
    folder = tmp_path_factory.mktemp("models")
    checkout = Checkout(shutil.copytree(sources, folder / "checkout"))
    with serving(folder) as server:
        outcome = play(place(checkout, server.address))
        assert outcome.code == 0, outcome.text
        return checkout, server.calls, records(checkout)


def test_every_reply_is_recorded_with_what_it_cost(played):
    _, calls, made = played
    replies = [row for file, rows in made.items() if file.endswith("replies.jsonl") for row in rows]
    assert len(replies) == calls.total() > 200
    assert len({row["request_sha256"] for row in replies}) == len(replies)
    assert all(row["tokens_in"] and row["tokens_out"] for row in replies)
    asked = [row for row in made["results/jsonl/oracle/test/seeds-0/replies.jsonl"] if row["attempt"] == 1]
    assert len(asked) == 81 * 3
    runs = made["results/jsonl/match/letters/seeds-0/runs.jsonl"]
    assert json.loads(runs[-1]["outsiders"])["test"]["digest"]
    assert "choose.txt" in json.loads(runs[-1]["outsiders"])["test"]["prompts"]


def test_killed_in_the_middle_and_resumed_no_call_is_repeated(fresh, played, tmp_path):
    _, calls, undisturbed = played
    with serving(tmp_path, latency=0.05) as server:
        place(fresh, server.address)
        for wanted in (30, 120):
            with (tmp_path / "log").open("w") as log:
                process = fresh.start(*options(), "--", *RECORDS, config=(), output=log)
                deadline = time.monotonic() + 120
                while server.calls.total() < wanted and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.01)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            assert wanted <= server.calls.total() < calls.total()
            assert fresh.snakemake(*options(), "--unlock", config=()).code == 0
        outcome = play(fresh)
        assert outcome.code == 0, outcome.text
        # only calls that were under way when the pipeline was killed are made again: at most 4 at a time
        assert server.calls.total() - len(server.calls) <= 8
        assert server.calls.keys() == calls.keys()
    assert records(fresh) == undisturbed


def test_offline_the_journal_answers_everything_and_nobody_is_asked(sources, played, tmp_path):
    checkout, _, undisturbed = played
    again = Checkout(shutil.copytree(sources, tmp_path / "again"))
    journal = checkout.root / "results" / "journal.sqlite"
    outcome = play(place(again, "http://127.0.0.1:9", offline=True, journal=str(journal)))
    assert outcome.code == 0, outcome.text
    assert records(again) == undisturbed
    lines = (again.root / RECORDS[2]).read_text().splitlines()
    assert all(json.loads(line)["from_journal"] for line in lines)


def test_a_published_journal_replays_a_study_byte_for_byte_without_the_model(sources, played, tmp_path):
    checkout, _, undisturbed = played
    copies = []
    for name in ("one", "two"):
        copy = Checkout(shutil.copytree(sources, tmp_path / name))
        copies.append(copy)
        published = copy.root / "config" / "journals" / "test.jsonl.xz"
        journal = str(checkout.root / "results" / "journal.sqlite")
        exported = copy.fishpool("journal", "export", str(published), "--journal", journal)
        assert exported.code == 0, exported.text
        replay = {"replay": "config/journals/test.jsonl.xz"}
        place(copy, "http://127.0.0.1:9", studies=dict.fromkeys(("match", "pool", "oracle"), replay))
        outcome = play(copy)
        assert outcome.code == 0, outcome.text
    assert all((copies[0].root / file).read_bytes() == (copies[1].root / file).read_bytes() for file in RECORDS)

    assert records(copies[0]) == undisturbed


def test_a_server_that_is_not_there_is_one_sentence_and_leaves_nothing(fresh, tmp_path):
    outcome = play(place(fresh, "http://127.0.0.1:9"))
    assert outcome.code != 0
    assert "cannot be reached" in outcome.text
    assert "Traceback" not in outcome.text
    assert not list((fresh.root / "results" / "jsonl").rglob("*.jsonl"))


def test_two_pipelines_on_one_journal_tell_the_same_story(sources, played, tmp_path):
    _, calls, undisturbed = played
    with serving(tmp_path, latency=0.02) as server:
        pair = [Checkout(shutil.copytree(sources, tmp_path / name)) for name in ("left", "right")]
        running = []
        for one in pair:
            place(one, server.address, journal=str(tmp_path / "shared.sqlite"))
            log = (one.root / "log").open("w")
            running.append((one.start(*options(), "--", *RECORDS, config=(), output=log), log))
        for process, log in running:
            assert process.wait(timeout=300) == 0, Path(log.name).read_text()
            log.close()
        assert server.calls.keys() == calls.keys()
    assert records(pair[0]) == records(pair[1]) == undisturbed


def test_replies_reach_the_database(played):
    checkout, _, made = played
    outcome = checkout.snakemake(*options(), config=("only=match",))
    assert outcome.code == 0, outcome.text
    with duckdb.connect(checkout.root / "results" / "fishpool.duckdb", read_only=True) as database:
        (count,) = database.execute("SELECT count(*) FROM replies").fetchone()
        joined = database.execute(
            "SELECT count(*) FROM turns JOIN replies USING (run_id, agent, round, phase) WHERE turns.attempts = attempt"
        ).fetchone()
        asked = database.execute("SELECT count(*) FROM turns WHERE player = 'test'").fetchone()
    assert count == sum(len(rows) for file, rows in made.items() if "/match/" in file and "replies" in file)
    assert joined == asked
