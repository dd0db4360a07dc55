"""The command line with arguments that make no sense: a sentence and exit code 2, never a traceback and never a hang.

Commands are called in this process, in a folder of their own with files that are not what they seem. The arena is
called for its export only, since it serves until it is stopped; `tests/arena` has its hostile clients.
"""

import contextlib
import io
import os
import random
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from effort import EFFORT

from fishpool import cli, study

pytestmark = pytest.mark.faults

FILES = (
    "empty",
    "text",
    "junk.duckdb",
    "one.duckdb",
    "sqlite",
    "folder",
    "folder/../text",
    "nowhere/x",
    "my.yaml",
    "a b",
)
# No absolute path, and none above this folder: some commands write, and `clean` removes.
WORDS = (
    *FILES, "", " ", "-", "--", "-x", "--x", "-h", "--help", "--version", "--csv", "--json", "--tables", "--prompts",
    "--dry-run", "--stale", "--configfile", "--config", "--database", "--results", "--journal", "--study",
    "--against", "--rounds", "--noise", "--set", "--seed", "--condition", "--lane", "--name", "5", "0", "-1",
    "1e400", "nan", "9" * 400, "a=b", "only=", "only=x", "studies=5", "studies={x: {game: commons}}", "results=out",
    "results=a;b", "journal=text", "journal=folder", "offline=maybe", "=", "a=" + "[" * 3000, "SELECT 1", "SELECT",
    "SELECT 1; SELECT 2", "DROP TABLE t", "COPY t TO 'x'", "SELECT * FROM t", "SELECT * FROM read_csv('text')",
    "SELECT x FROM t", "\udcff", "é\u202e\x1b[2J\n", "x" * 300, "x" * 100_000, "'; --",
    "%s {0} $(ls) `ls`", "t", "a:b:0", "commons", "prisoners_dilemma", "chess", "TitForTat", "3*salami",
    "9999999*salami", "0*salami", "axelrod:", "axelrod:Nobody", "process:", "process:'", "process:nowhere/bot",
    "model:", "model:x", "{model: x}", "{", "{process: 5}", "{model: x, name: a b}", "[", "export", "import",
    "noise=2", "rounds=1", "labels=[a]", "agents=[x]",
)  # fmt: skip
COMMANDS = (
    ["check"], ["status"], ["sql"], ["sql", "SELECT * FROM t"], ["sql", "--tables"], ["replay"], ["replay", "a:b:0"],
    ["journal"], ["journal", "export"], ["journal", "import"],
    ["journal", "--journal", "sqlite", "export", "out.jsonl.xz"], ["play"],
    ["play", "commons", "--against", "salami"],
    ["play", "prisoners_dilemma", "--against", "TitForTat", "--rounds", "1"], ["clean"], ["clean", "--stale"],
    ["arena", "export"], ["doctor", "--configfile", "my.yaml"], [],
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that commands may be given, most of them wrong."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "text").write_text("no database\n")
    (folder / "a b").write_bytes(bytes(range(256)))
    (folder / "junk.duckdb").write_bytes(b"\x00" * 8 + b"DUCK" + b"\xff" * 4096)
    (folder / "my.yaml").write_text("only: nobody\n")
    with duckdb.connect(str(folder / "one.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    with contextlib.closing(sqlite3.connect(folder / "sqlite")) as connection:
        connection.execute("CREATE TABLE replies (x)")
        connection.commit()
    (folder / "default.yaml").write_text(
        "studies: {s: {game: commons, seeds: 1, conditions: {c: {rounds: 1, twins: []}}}}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "DEFAULT_CONFIG", folder / "default.yaml")
        patch.chdir(folder)
        yield folder


def called(arguments: list[str]) -> tuple[int, str]:
    """The exit code, and what was said."""
    said = io.StringIO()
    with (
        Path(os.devnull).open() as nobody,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", nobody)
        patch.setattr(cli, "_drop_output", lambda: None)  # which is for a process that ends then
        try:
            return cli.main(arguments), said.getvalue()
        except SystemExit as stop:  # argparse
            return stop.code, said.getvalue()


def test_any_arguments_are_answered_with_a_sentence(folder):
    luck, codes = random.Random(0), Counter()
    for _ in range(400 * EFFORT):
        words = list(luck.choice(COMMANDS))
        for _ in range(luck.randrange(4)):
            words.insert(luck.randrange(len(words) + 1), luck.choice(WORDS))
        if words[:1] == ["arena"] and "export" not in words:
            continue
        try:
            code, said = called(words)
        except BaseException as error:
            raise AssertionError(f"{words}: {type(error).__name__}: {error}") from error
        assert code in (0, 2), (words, code, said)
        assert code == 0 or said.strip(), words
        assert "Traceback" not in said, words
        codes[code] += 1
    print(f"\ncommands: {dict(codes)}")
    assert min(codes.values()) > 0
