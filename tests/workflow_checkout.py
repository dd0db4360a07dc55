"""Real runs of the workflow, each in a copy of the sources: nothing is mocked, and the checkout itself is left alone.

It is the machinery of tests and holds none. What Snakemake did is read from the messages of its jobs
(`play tiny/plain/seeds-0`) and from the files themselves.
"""

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = ["config", "workflow", "scripts", "fishpool", "tests/config"]
CONFIG = "tests/config/tiny.yaml"
POOL = ("only=pool",)  # --config for the other study in it


@dataclass(frozen=True)
class Outcome:
    """What a command said and did."""

    code: int
    text: str

    @property
    def jobs(self) -> set[str]:
        """The messages of the jobs that ran, or would have run."""
        return set(re.findall(r"^Job \d+: (.+)$", self.text, re.MULTILINE))

    @property
    def had_nothing_to_do(self) -> bool:
        return self.code == 0 and "Nothing to be done" in self.text and not self.jobs


@dataclass(frozen=True)
class Checkout:
    """A copy of the sources, and what runs in it make."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def results(self) -> Path:
        return self.root / "results"

    def start(self, *options: str, config: tuple[str, ...] = ("only=tiny",), output: Any) -> subprocess.Popen[str]:
        """Start snakemake on the small study, in a process group of its own."""
        given = ("--config", *config) if config else ()
        cores = () if "--cores" in options else ("--cores", "2")
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--configfile", CONFIG, *given, *cores, *options],
            cwd=self.root,
            env=_environment() | self.environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def snakemake(self, *options: str, config: tuple[str, ...] = ("only=tiny",), timeout: float = 300) -> Outcome:
        with self.start(*options, config=config, output=subprocess.PIPE) as process:
            try:
                text, _ = process.communicate(timeout=timeout)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return Outcome(process.returncode, text)

    def fishpool(self, *arguments: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "fishpool.cli", *arguments],
            cwd=self.root,
            env=_environment() | {"PYTHONPATH": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )
        return Outcome(done.returncode, done.stdout + done.stderr)

    def configure(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change the study in the config file."""
        config = yaml.safe_load((self.root / CONFIG).read_text())
        change(config["studies"]["tiny"])
        (self.root / CONFIG).write_text(yaml.safe_dump(config, sort_keys=False))

    def append(self, path: str, text: str) -> None:
        file = self.root / path
        file.write_text(file.read_text() + text)

    def replace(self, path: str, old: str, new: str) -> None:
        file = self.root / path
        text = file.read_text()
        assert text.count(old) == 1, f"{path} has changed; this test replaces {old!r} in it"
        file.write_text(text.replace(old, new))

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.results / "fishpool.duckdb"), read_only=True) as connection:
            return connection.sql(sql).fetchall()


def _environment() -> dict[str, str]:
    """This process's environment without what would lead to other sources, or compile every module in every job."""
    unwanted = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def stamps(results: Path) -> dict[str, tuple[int, str]]:
    """(time of the last change, checksum) of every result file, logs left out."""
    return {name: (file.stat().st_mtime_ns, _checksum(file)) for name, file in _result_files(results)}


def contents(results: Path) -> dict[str, Any]:
    """What a run has made: a checksum of every result file, logs left out; of the database one of every table's rows.

    The database is compared by its rows because DuckDB's own files differ from one writing to the next.
    """
    return {name: _rows(file) if file.suffix == ".duckdb" else _checksum(file) for name, file in _result_files(results)}


def _result_files(results: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(results.rglob("*")):
        name = file.relative_to(results).as_posix()
        if file.is_file() and not name.startswith("logs/"):
            yield name, file


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _rows(database: Path) -> dict[str, tuple[int, int]]:
    """Of each table the number of its rows, and a checksum of them in their order."""
    checksum = "bit_xor(hash(concat_ws(' ', rowid, hash(t))))"
    with duckdb.connect(str(database), read_only=True) as connection:
        tables = [table for (table,) in connection.sql("SELECT table_name FROM duckdb_tables()").fetchall()]
        return {
            table: connection.sql(f'SELECT count(*), {checksum} FROM "{table}" AS t').fetchall()[0]
            for table in sorted(tables)
        }
