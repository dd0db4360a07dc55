"""The queries of docs/cookbook.md are run as they stand there, on records of every game, and find what they say."""

import json
import re
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from fishpool import ask

TEXT = (Path(__file__).parents[1] / "docs" / "cookbook.md").read_text(encoding="utf-8")
QUERIES = dict(re.findall(r"^### (.+)\n(?:(?!###|```sql).*\n)*```sql\n([\s\S]+?)```", TEXT, re.MULTILINE))


def answer(built, title):
    with ask.opened(built / "fishpool.duckdb") as connection, ask.ask(connection, QUERIES[title]) as given:
        return [dict(zip(given.columns, row, strict=True)) for row in given.rows]


def records(built, table):
    """The records as they were written, not as the database has them."""
    files = sorted((built / "jsonl").rglob(f"{table}.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_query_of_the_cookbook_is_found():
    assert len(QUERIES) == TEXT.count("```sql") >= 12


@pytest.mark.parametrize("title", QUERIES)
def test_a_query_has_an_answer(title, built):
    assert answer(built, title)


def test_who_lies_most_is_counted_from_the_claims(built):
    claims = [one for one in records(built, "claims") if one["kind"] == "report" and one["broken"] is not None]
    players = {(run["run_id"], a): p for run in records(built, "runs") for a, p in json.loads(run["agents"]).items()}
    judged = Counter(players[one["run_id"], one["agent"]] for one in claims)
    lies = Counter(players[one["run_id"], one["agent"]] for one in claims if one["broken"])
    found = answer(built, "Who lies most?")
    assert {row["player"]: (row["lies"], row["reports"]) for row in found} == {
        player: (lies[player], judged[player]) for player in judged
    }
    rates = [row["misreport_rate"] for row in found]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 0


def test_every_unreadable_reply_is_shown_as_it_was_received(built):
    written = [(one["run_id"], one["reply"]) for one in records(built, "replies") if one["fault"]]
    found = answer(built, "Show every reply that could not be read")
    assert sorted((row["run_id"], row["reply"]) for row in found) == sorted(written)
    assert any("\x1b" in row["reply"] for row in found)


def test_runs_that_differ_are_those_with_another_winner(built):
    runs = {one["run_id"]: one["winner"] for one in records(built, "runs")}
    differ = {
        (plain, plain.replace(":plain:", ":noisy:"))
        for plain, winner in runs.items()
        if ":plain:" in plain and runs[plain.replace(":plain:", ":noisy:")] != winner
    }
    found = answer(built, "Which runs differ between two conditions at the same seed?")
    assert {(row["run_a"], row["run_b"]) for row in found} == differ


def test_the_contaminated_pools_are_among_those_to_be_looked_at(built):
    with duckdb.connect(str(built / "fishpool.duckdb"), read_only=True) as connection:
        contaminated = connection.sql("SELECT run_id FROM commons_societal WHERE contaminated").fetchall()
    found = answer(built, "Which games are to be looked at before any number is believed?")
    assert {row["run_id"] for row in found} == {run_id for (run_id,) in contaminated} != set()
