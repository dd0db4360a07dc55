"""`fishpool replay`: every turn is shown, lies and faults are marked, and no text of others can pass for ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from built_results import ESCAPES, LONG

from fishpool import cli, replay
from fishpool.screen import Screen, screen, visible, wrapped
from fishpool.transcript import transcript

ROOT = Path(__file__).resolve().parents[1]
POOL, MATCH = "pool:model:0", "match:plain:0:TitForTat:canned"


def lines_of(built, run_id, width=100, prompts=False, **screen):
    run = replay.load_run(built / "fishpool.duckdb", run_id)
    return list(transcript(run, Screen(width, **screen), prompts))


def shown(capsys, *arguments):
    code = cli.main(("replay", *arguments))
    out, err = capsys.readouterr()
    return code, out.splitlines(), err.splitlines()


def run_ids(built):
    with duckdb.connect(str(built / "fishpool.duckdb"), read_only=True) as connection:
        return [run_id for (run_id,) in connection.sql("SELECT run_id FROM runs").fetchall()]


def test_every_round_phase_and_turn_of_every_run_is_shown(built):
    for run_id in run_ids(built):
        run = replay.load_run(built / "fishpool.duckdb", run_id)
        lines = list(transcript(run, Screen()))
        assert sum(line.startswith("Round ") for line in lines) == len(run.rounds)
        agents = sum(bool(re.match(r"    \S", line)) for line in lines if "│" not in line)
        assert agents >= len(run.turns)
        assert lines[0] == run_id


def test_lies_are_marked_in_words_where_they_were_told(built):
    lines = lines_of(built, POOL)
    first = lines[lines.index("  pledge") :]
    said = next(i for i, line in enumerate(first) if "agent_1  promises 5, means to take 20" in line)
    assert first[said + 1] == "      LIE: promised 5, asked for 20"
    report = next(i for i, line in enumerate(first) if "agent_1  reports 5" in line)
    assert first[report + 1] == "      LIE: said 5, caught 20"
    run = replay.load_run(built / "fishpool.duckdb", POOL)
    told = [lie.kind for turn in run.turns for lie in turn.lies]
    assert sum("LIE: " in line for line in lines) == len(told)
    assert f"{told.count('report')} in reports, {told.count('promise')} in promises" in lines[3]


def test_the_stock_is_drawn_in_proportion(built):
    bars = [line for line in lines_of(built, POOL) if line.startswith("Round ")]
    assert len(bars) == 4
    for line in bars:
        stock, caught, left = map(int, re.search(r"(\d+) tons, (\d+) caught, (\d+) left", line).groups())
        assert stock == caught + left
        bar = re.search(r"[█▒░]+", line)[0]
        assert len(bar) == 24
        assert abs(bar.count("█") - 24 * left / 100) <= 1
        assert abs(24 - bar.count("░") - 24 * stock / 100) <= 1


def test_a_model_is_shown_with_what_it_saw_said_and_what_was_read(built):
    lines = lines_of(built, MATCH)
    text = "\n".join(lines)
    assert '│ {"round": 3}' in text
    assert "│ I will cooperate." in text
    assert "read as invalid: the reply is not JSON" in text
    assert "the referee: repaired, asked 2 times" in text
    assert "You play a game" not in text
    assert "You play a game" in "\n".join(lines_of(built, MATCH, prompts=True))


def test_a_fallback_is_said_to_be_the_rules(built):
    text = "\n".join(lines_of(built, POOL))
    assert "agent_1  asks for 0, catches 0 (by the rules, not by the agent)" in text
    assert "the referee: invalid, asked 2 times (the reply holds no JSON object" in text


@pytest.mark.parametrize("width", [40, 61, 100])
@pytest.mark.parametrize("prompts", [False, True])
def test_lines_fit_and_hold_nothing_that_moves_a_terminal(width, prompts, built):
    for run_id in (POOL, MATCH):
        for line in lines_of(built, run_id, width, prompts):
            assert line.isprintable(), line
            assert len(line) <= width or line.startswith("Round "), line


def test_what_others_wrote_stands_behind_a_line_and_is_whole(built):
    lines = lines_of(built, POOL)
    assert "      │   agent_2  promises 50 " + visible(ESCAPES) in lines
    assert not [line for line in lines if "promises 50" in line and "│" not in line]
    start = next(i for i, line in enumerate(lines) if '"message": "word' in line)
    end = next(i for i in range(start, len(lines)) if "│" not in lines[i])
    whole = "".join(line.removeprefix("      │ ") for line in lines[start:end])
    assert LONG in whole


def test_without_a_terminal_there_is_no_colour_and_with_one_there_is(built):
    assert not [line for line in lines_of(built, POOL) if "\x1b" in line]
    coloured = lines_of(built, POOL, colour=True)
    assert [re.sub(r"\x1b\[[\d;]*m", "", line) for line in coloured] == lines_of(built, POOL)
    assert [line for line in coloured if "\x1b[1;31m" in line and "LIE" in line]


class Stream:
    encoding = "utf-8"

    def __init__(self, terminal):
        self.isatty = lambda: terminal


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert screen(Stream(True)).colour
    assert not screen(Stream(False)).colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not screen(Stream(True)).colour
    monkeypatch.setenv("NO_COLOR", "")
    assert screen(Stream(True)).colour
    monkeypatch.setenv("TERM", "dumb")
    assert not screen(Stream(True)).colour


def test_a_terminal_that_knows_only_ascii_gets_ascii(built):
    command = [sys.executable, "-m", "fishpool.cli", "replay", POOL, "--results", str(built)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    assert b"#" in done.stdout
    assert b"| Trust me." in done.stdout
    assert rb"\u2588" not in done.stdout
    assert done.stderr == b""


def test_wrapping_loses_no_character_and_counts_wide_ones_twice():
    text = "鱼" * 30 + " and 🐟 " * 9 + "x" * 50
    for width in (7, 20, 33):
        lines = wrapped(text, width)
        assert "".join(lines) == text
        assert max(len(line) + sum(line.count(c) for c in "鱼🐟") for line in lines) <= width
    assert wrapped("a\n\nb\x1b", 10) == ["a", "", "b\\x1b"]


def test_an_unknown_run_is_one_sentence_that_names_the_nearest(built, capsys):
    code, out, err = shown(capsys, "pool:model:O\x1b", "--results", str(built))
    assert (code, out) == (2, [])
    assert len(err) == 1
    assert err[0].startswith(r"pool:model:O\x1b: there is no such run; did you mean pool:model:0")


def test_a_run_can_be_replayed_before_there_is_a_database(built, capsys, tmp_path):
    (tmp_path / "parquet").symlink_to(built / "parquet")
    code, out, err = shown(capsys, POOL, "--results", str(tmp_path))
    assert (code, len(err)) == (0, 1)
    assert "is not made yet" in err[0]
    assert out == shown(capsys, POOL, "--database", str(built / "fishpool.duckdb"))[1]


def test_no_results_at_all_is_one_sentence(capsys, tmp_path):
    code, out, err = shown(capsys, POOL, "--results", str(tmp_path))
    assert (code, out, len(err)) == (2, [], 1)
    assert "run `snakemake` to make it" in err[0]
