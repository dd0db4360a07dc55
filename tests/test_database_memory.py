"""A query that needs more memory than it may have gives what it gives with more, and leaves nothing behind."""

import tempfile

import polars as pl
import pytest

from fishpool import database


@pytest.mark.parametrize("memory", ["60MB", "1GB"])
def test_what_a_query_cannot_hold_waits_on_the_disk(monkeypatch, tmp_path, memory):
    rows, waiting = 400_000, tmp_path / "waiting"
    waiting.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(waiting))
    monkeypatch.setattr(database, "_MEMORY", memory)
    turns = pl.DataFrame({"n": range(rows)}).with_columns(run_id=pl.format("a run with a long name {}", "n"))
    database.write(turns, tmp_path / "turns.parquet")
    query, output = tmp_path / "sorted.sql", tmp_path / "sorted.parquet"
    query.write_text("SELECT a.run_id, b.n FROM turns AS a JOIN turns AS b USING (run_id) ORDER BY b.n DESC")
    database.query_in_turn({query: output}, {"turns": [tmp_path / "turns.parquet"]})
    assert pl.read_parquet(output)["n"].to_list() == list(range(rows - 1, -1, -1))
    assert not list(waiting.iterdir())
