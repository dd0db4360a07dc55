"""The small studies with a model (tests/config/models.yaml), and the server that they ask, which counts its calls.

It is the machinery of tests and holds none. The server is tests/models/misbehaving.py in a process of its own: it goes
on counting whatever happens to the pipeline.
"""

import hashlib
import json
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml
from workflow_checkout import REPOSITORY, Checkout

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
CONCURRENCY = 4
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
    def lines(self) -> list[str]:
        """What it was asked, in order."""
        return self.count_file.read_text().splitlines() if self.count_file.exists() else []

    @property
    def calls(self) -> Counter:
        return Counter(self.lines)


@contextmanager
def serving(folder: Path, latency: float = 0.0):
    server = Server(folder, latency)
    try:
        yield server
    finally:
        server.stop()


def place(checkout: Checkout, address: str, **keys) -> Checkout:
    """A checkout whose models are asked at an address."""
    server = {"kind": "ollama", "endpoints": [address], "concurrency": CONCURRENCY, "retries": 1}
    where = {"servers": {"ollama": server}, **keys}
    (checkout.root / "where.yaml").write_text(yaml.safe_dump(where))
    return checkout


def replay(checkout: Checkout, journal: Path) -> Checkout:
    """A checkout whose models' replies are those of a journal, once it is published."""
    exported = checkout.fishpool("journal", "export", "config/journals/test.jsonl.xz", "--journal", str(journal))
    assert exported.code == 0, exported.text
    replayed = {"replay": "config/journals/test.jsonl.xz"}
    return place(checkout, "http://127.0.0.1:9", studies=dict.fromkeys(("match", "pool", "oracle"), replayed))


def options(*more: str) -> tuple[str, ...]:
    return ("--configfile", "tests/config/models.yaml", "where.yaml", *more)


def play(checkout: Checkout, *more: str):
    return checkout.snakemake(*options(*more), "--", *RECORDS, config=())


def start(checkout: Checkout, output: Any) -> subprocess.Popen[str]:
    return checkout.start(*options(), "--", *RECORDS, config=(), output=output)


def kept(checkout: Checkout) -> set[str]:
    """The calls whose answers a checkout's journal holds, as the server counts them."""
    journal = checkout.results / "journal.sqlite"
    if not journal.exists():
        return set()
    with closing(sqlite3.connect(journal)) as connection:
        try:
            rows = connection.execute("SELECT request FROM replies WHERE sort = 'answer'").fetchall()
        except sqlite3.OperationalError:  # its tables were not made yet
            return set()
    requests = [json.loads(request) for (request,) in rows]
    return {call(request["messages"], request["options"]["seed"]) for request in requests}


def call(messages: Any, seed: int) -> str:
    prompt = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()
    return json.dumps({"prompt": prompt, "seed": seed})


def records(checkout: Checkout) -> dict[str, list]:
    """All records but for what says when and whence replies came."""
    return {
        file: [
            {key: value for key, value in json.loads(line).items() if key not in OF_THIS_PLAY}
            for line in (checkout.root / file).read_text().splitlines()
        ]
        for file in RECORDS
    }
