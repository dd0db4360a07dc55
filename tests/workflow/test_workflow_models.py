"""Studies with a model, from its server to the tables: no reply is paid for twice, and a replay is the run again."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from model_study import RECORDS, options, place, play, records, replay, serving
from workflow_checkout import Checkout

pytestmark = pytest.mark.workflow


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
        replay(copy, checkout.root / "results" / "journal.sqlite")
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
