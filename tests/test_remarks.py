"""What is said at the end of a run: what the tables hold and which jobs failed, and otherwise nothing."""

from __future__ import annotations

import shutil

import duckdb
import pytest

from fishpool.remarks import FAILURES_SHOWN, failures, remarks


def test_the_remarks_on_a_run_are_those_of_its_tables(built):
    said = remarks(built / "fishpool.duckdb")
    assert len(said) == 2
    assert said[0].startswith("3 of 9 fish pools are contaminated")
    assert "canned in pool/model" in said[1]


@pytest.fixture
def database(built, tmp_path):
    return shutil.copy(built / "fishpool.duckdb", tmp_path / "fishpool.duckdb")


def test_void_and_forfeited_games_and_cut_replies_are_remarked_on(database):
    with duckdb.connect(str(database)) as connection:
        connection.execute(
            "UPDATE runs SET ending = 'void', end_reason = 'x\ny\x1b[2J' WHERE run_id LIKE 'pool:free:%'"
        )
        connection.execute("UPDATE runs SET ending = 'forfeited', end_reason = 'z' WHERE run_id LIKE 'match:plain:0:%'")
        connection.execute("UPDATE replies SET reading = 'truncated' WHERE run_id = 'pool:model:1'")
    said = remarks(database)
    assert len(said) == 5
    assert said[0] == r"3 of 36 games are void and count in no result, such as pool:free:0 (x y\x1b[2J)"
    assert said[1].startswith("6 of 36 games ended in a forfeit, such as match:plain:0:")
    assert "were cut short at max_tokens" in said[4]


def test_nothing_to_say_is_nothing_said(database, tmp_path):
    with duckdb.connect(str(database)) as connection:
        connection.execute("UPDATE commons_societal SET contaminated = false")
        connection.execute("UPDATE validity SET validity_rate = 1")
    assert remarks(database) == []
    assert remarks(tmp_path / "none" / "fishpool.duckdb") == []
    (tmp_path / "broken.duckdb").write_text("no database")
    assert remarks(tmp_path / "broken.duckdb") == []


def job(number, rule, log):
    return (
        f"[Mon]\nError in rule {rule}:\n    message: None\n    jobid: {number}\n    input: a, b\n    output: c\n"
        f"    log: {log} (check log file(s) for error details)\n    shell:\n        python x\n"
        "        (command exited with non-zero exit code)\n"
    )


def test_failed_jobs_are_named_once_with_the_last_line_of_their_log(tmp_path):
    (tmp_path / "play.log").write_text("Traceback\nBoom: it \x1b[31mbroke\n\n")
    log = tmp_path / "snakemake.log"
    log.write_text(
        "Building DAG\n[Mon]\nJob 7: play a/b/c\n[Mon]\nJob 70: draw\n"
        + job(7, "play_commons", tmp_path / "play.log")
        + job(8, "solve", tmp_path / "none.log")
        + job(7, "play_commons", tmp_path / "play.log")
    )
    assert failures([log]) == [r"play a/b/c failed: Boom: it \x1b[31mbroke", "solve failed"]
    (tmp_path / "play.log").write_text("a/b/c: 3 of 50 games, 1.5 a second, 31 s left\n")
    assert failures([log])[0] == "play a/b/c was ended (3 of 50 games, 1.5 a second, 31 s left)"
    log.write_text("".join(f"Job {n}: play {n}\n" + job(n, "play", "no.log") for n in range(FAILURES_SHOWN + 3)))
    assert len(failures([log])) == FAILURES_SHOWN + 1
    assert failures([log])[-1] == "3 more jobs failed"
    log.write_text("nothing happened\n")
    assert failures([log]) == failures([]) == []
