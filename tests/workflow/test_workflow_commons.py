"""The fish pool through the whole pipeline: its tables, its contrasts, what an edit makes again, what is refused."""

import shutil

import pytest
from workflow_checkout import POOL, Checkout

from fishpool import records

pytestmark = pytest.mark.workflow


def test_everything_is_made_and_a_second_run_makes_nothing(pool):
    for condition in ("free", "forced_truth"):
        for shard in ("seeds-0", "seeds-2"):
            folder = pool.results / "jsonl" / "pool" / condition / shard
            assert {file.name for file in folder.iterdir()} == {
                "SHA256SUMS",
                *(f"{table}.jsonl{end}" for table in records.GAME_TABLES["commons"] for end in ("", ".crc32")),
            }
        assert (pool.results / "parquet" / "commons_societal" / "pool" / f"{condition}.parquet").is_file()
    assert {file.name for file in (pool.results / "figures").iterdir()} == {
        f"rq05.{ending}" for ending in ("svg", "png", "html", "json")
    }
    assert pool.snakemake("-n", config=POOL).had_nothing_to_do


def test_the_price_of_lying_can_be_asked_in_sql(pool):
    assert pool.ask("SELECT DISTINCT condition, price_of_lying FROM commons_societal ORDER BY ALL") == [
        ("forced_truth", 0),
        ("free", -336),
    ]
    assert pool.ask("SELECT count(*), min(seed), max(seed) FROM runs WHERE study = 'pool'") == [(8, 0, 3)]
    assert pool.ask("SELECT DISTINCT validity_rate FROM validity") == [(1,)]


def test_contrasts_are_those_that_were_declared(pool):
    found = pool.ask("SELECT question, metric, condition_a, condition_b, pairs, mean_difference, low, p FROM contrasts")
    assert found == [
        ("rq05", "welfare", "forced_truth", "free", 4, -336, None, None)
    ]  # nothing varies: no interval, no p


def test_the_published_fishery_is_there_whoever_played(pool):
    assert pool.ask("SELECT source, count(*) FROM commons_govsim GROUP BY ALL") == [("published", 10)]


@pytest.fixture
def changed(pool, tmp_path):
    return Checkout(shutil.copytree(pool.root, tmp_path / "checkout"))


def test_an_edited_metric_plays_and_tabulates_nothing(changed):
    changed.append("workflow/sql/commons/commons_survival.sql", "-- a remark\n")
    jobs = changed.snakemake("-n", config=POOL).jobs
    assert {"query all metrics of pool/free", "query all metrics of pool/forced_truth"} <= jobs
    assert not [job for job in jobs if job.startswith(("play", "tabulate"))]


def test_an_edited_rule_of_the_pool_replays_it_and_a_further_seed_plays_one_shard_a_condition(changed):
    jobs = "\n    seeds_per_job: 2\n    questions"
    changed.replace("tests/config/tiny.yaml", f"seeds: 4{jobs}", f"seeds: 5{jobs}")
    played = {job for job in changed.snakemake("-n", config=POOL).jobs if job.startswith("play")}
    assert played == {"play pool/free/seeds-4", "play pool/forced_truth/seeds-4"}
    changed.append("fishpool/games/commons.py", "# a remark\n")
    played = {job for job in changed.snakemake("-n", config=POOL).jobs if job.startswith("play")}
    assert len(played) == 6


def test_a_pool_that_cannot_be_is_refused_before_anything_starts(changed):
    changed.replace("tests/config/tiny.yaml", "free: {}", "free: {channels: [promise], fine: 2}")
    said = "tests/config/tiny.yaml: studies.pool.conditions.free.fine is 2 without reports that it could punish"
    checked = changed.fishpool("check", "--configfile", "tests/config/tiny.yaml")
    assert checked.code == 2
    assert said in checked.text
    started = changed.snakemake(config=POOL)
    assert started.code != 0
    assert said in started.text
    assert not started.jobs
