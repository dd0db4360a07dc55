"""From JSONL to Parquet: what was written comes through exactly, and what was not stops with file, line and fault."""

import hashlib
import json
import re

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from fishpool import records
from fishpool.runners import prisoners_dilemma as runner
from fishpool.shards import CHECKSUMS, Player, Progress, Shard, line_checksums_of, mark_recorded, write
from fishpool.tabulate import FaultyRecords, tabulate

GAME = "prisoners_dilemma"


@pytest.fixture
def shards(tmp_path):
    """The directories of two small shards on disk."""
    directories = []
    for first in (0, 2):
        shard = Shard(
            "study",
            "noisy",
            f"seeds-{first}",
            GAME,
            {"rounds": 4, "noise": 0.1, "lane": "standard", "agent_ids": ["ann", "bob"]},
            (
                Player("TitForTat", "scripted", {"strategy": "TitForTat"}),
                Player('Quote"ñ', "scripted", {"strategy": "Random"}),
            ),
            5.0,
            (first, first + 1),
        )
        directory = tmp_path / shard.name
        write(directory, records.GAME_TABLES[GAME], runner.play(shard), Progress("play", runner.number_of_runs(shard)))
        directories.append((shard, directory))
    return directories


def convert(shards, table="turns"):
    output = shards[0][1].parent / "out" / f"{table}.parquet"
    tabulate(GAME, table, [directory for _, directory in shards], output)
    return pl.read_parquet(output)


@pytest.mark.parametrize("table", records.GAME_TABLES[GAME])
def test_what_was_played_comes_through(shards, table):
    played = pl.concat([batch[table] for shard, _ in shards for batch in runner.play(shard)])
    assert_frame_equal(convert(shards, table), played)


def test_every_line_is_one_record_and_ends_with_a_newline(shards):
    for _, directory in shards:
        for table in records.GAME_TABLES[GAME]:
            text = (directory / f"{table}.jsonl").read_bytes()
            assert text.endswith(b"\n")
            for line in text.splitlines():
                assert list(json.loads(line)) == list(records.schema(GAME, table))
        assert not list(directory.glob("*.part"))


def edit(file, number, change):
    lines = file.read_bytes().splitlines(keepends=True)
    lines[number - 1] = change(lines[number - 1])
    file.write_bytes(b"".join(lines))


def replaced(old, new):
    def change(line):
        assert old in line
        return line.replace(old, new)

    return change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda line: line[:40] + b"\n", "not JSON"),
        (lambda line: b"\n", "not JSON"),
        (lambda line: b"\xff" + line, "not UTF-8"),
        (lambda line: b"[1, 2]\n", "a JSON object was expected, found [1, 2]"),
        (lambda line: b"[" * 100_000 + b"\n", "not JSON (nested too deeply)"),
        (replaced(b'"payoff"', b'"payof"'), 'unknown key "payof"'),
        (replaced(b'"round":1', b'"round":1.7'), "'round' is 1.7, an integer was expected"),
        (replaced(b'"round":1', b'"round":"1"'), "'round' is \"1\", an integer was expected"),
        (replaced(b'"round":1', b'"round":true'), "'round' is true, an integer was expected"),
        (replaced(b'"round":1', b'"round":NaN'), "not JSON (NaN is not JSON)"),
        (replaced(b'"round":1,', b""), "key 'round' is missing"),
        (replaced(b'"status":"moved"', b'"status":null'), "'status' is empty, a string was expected"),
        (lambda line: b"\xef\xbb\xbf" + line, "not JSON"),
        (lambda line: line.decode().removesuffix("\n").encode("utf-16") + b"\n", "not UTF-8 at byte 0"),
        (lambda line: b'{"round":' + b"[" * 400 + b"]" * 400 + b"}\n", "key 'run_id' is missing"),
        (replaced(b'"payoff":', b'"payoff":0,"payoff":'), "not JSON (a key stands twice in one object)"),
        (replaced(b'"round":1', b'"round":9223372036854775808'), "'round' is 9223372036854775808, an integer was"),
        (replaced(b'"status":"moved"', b'"status":"\\ud800"'), "'status' is \"\\ud800\", a string was expected"),
        (
            replaced(b'"payoff":', b'"payoff":-1e-099999999999999999997,"x":'),
            "not JSON (the number -1e-0999",
        ),
        (replaced(b'"status":"moved"', b'"status":5'), "'status' is 5, a string was expected"),
        (lambda line: b"\n" + line, "not JSON"),
    ],
)
@pytest.mark.parametrize("checksums", ["of play", "made elsewhere"])
def test_a_faulty_line_is_named(shards, change, fault, checksums):
    file = shards[1][1] / "turns.jsonl"
    edit(file, 2, change)
    if checksums == "made elsewhere":
        mark_recorded(file.parent)
        sums = file.with_name(CHECKSUMS)
        written = f"{hashlib.sha256(file.read_bytes()).hexdigest()}  turns.jsonl\n"
        sums.write_text(re.sub(".*  turns.jsonl\n", written, sums.read_text()))
    with pytest.raises(FaultyRecords) as raised:
        convert(shards)
    assert str(raised.value).startswith(f"{file} line 2: {fault}")
    remedy = {"of play": "; delete the file and run snakemake", "made elsewhere": "(fishpool arena export)"}
    assert str(raised.value).endswith(remedy[checksums])
    assert "\n" not in str(raised.value)


def test_a_file_cut_short_is_named_with_its_last_line(shards):
    file = shards[0][1] / "turns.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines)[:-20])
    with pytest.raises(FaultyRecords, match=rf"turns.jsonl line {len(lines)}: cut short; delete the file"):
        convert(shards)


@pytest.mark.parametrize("keep", [0, 1, -1])
def test_a_file_torn_at_a_line_end_is_found_too(shards, keep):
    file = shards[0][1] / "turns.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:keep]))
    kept = len(lines[:keep])
    with pytest.raises(FaultyRecords, match=rf"jsonl: ends after line {kept}, but {len(lines)} lines were written"):
        convert(shards)


@pytest.mark.parametrize("number", [1, 2, 40])
def test_a_plausible_edit_is_found_too(shards, number):
    file = shards[0][1] / "turns.jsonl"
    edit(file, number, replaced(b'"attempts":1', b'"attempts":2'))
    with pytest.raises(FaultyRecords, match=rf"turns.jsonl line {number}: changed after it was written; delete the"):
        convert(shards)


def test_a_line_more_is_found_too(shards):
    file = shards[0][1] / "turns.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines, lines[0]]))
    with pytest.raises(FaultyRecords, match=rf"turns.jsonl line {len(lines) + 1}: changed after it was written"):
        convert(shards)


def test_without_its_line_checksums_a_changed_file_is_still_found(shards):
    file = shards[0][1] / "turns.jsonl"
    edit(file, 1, replaced(b'"attempts":1', b'"attempts":2'))
    line_checksums_of(file).unlink()
    with pytest.raises(FaultyRecords, match=r"turns.jsonl: changed after it was written \(its checksum"):
        convert(shards)


def test_missing_files_and_checksums_are_sentences(shards):
    (shards[0][1] / "turns.jsonl").unlink()
    with pytest.raises(FaultyRecords, match="cannot be read"):
        convert(shards)
    (shards[0][1] / CHECKSUMS).write_text("nonsense\n")
    (shards[0][1] / "turns.jsonl").touch()
    with pytest.raises(FaultyRecords, match=r"holds no checksum of turns\.jsonl"):
        convert(shards)


def test_numbers_may_be_written_otherwise_by_whoever_makes_the_checksums_too(shards):
    file = shards[0][1] / "runs.jsonl"
    mark_recorded(file.parent)
    file.write_bytes(file.read_bytes().replace(b'"seed":', b' "seed" : '))
    file.with_name(CHECKSUMS).write_text(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  runs.jsonl\n")
    played = pl.concat([batch["runs"] for shard, _ in shards for batch in runner.play(shard)])
    assert_frame_equal(convert(shards, "runs"), played)


def test_nothing_faulty_reaches_parquet(shards):
    (shards[1][1] / "turns.jsonl").write_bytes(b"")
    with pytest.raises(FaultyRecords):
        convert(shards)
    assert not list(shards[0][1].parent.glob("out/*.parquet"))
