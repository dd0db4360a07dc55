"""The same bytes in every file, wherever and however a study is run: another place, order of jobs, number of cores and
threads, hash seed, time zone and language.

Of the database the rows are compared, because DuckDB's own files differ from one writing to the next. The default
study, which takes minutes, is run where FISHPOOL_FAULTS asks for ten times as much or more.
"""

import shutil
from pathlib import Path

import pytest
from effort import EFFORT
from workflow_checkout import Checkout, contents

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

LONG = pytest.mark.skipif(EFFORT < 10, reason="takes minutes; FISHPOOL_FAULTS=10 or more asks for it")
ONE = {"PYTHONHASHSEED": "0", "TZ": "America/New_York", "LC_ALL": "C.UTF-8"}
OTHER = {"PYTHONHASHSEED": "12345", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}


def checkout(sources: Path, root: Path, environment: dict[str, str], threads: tuple[int, int]) -> Checkout:
    """A copy of the sources whose jobs let Polars and OpenMP have so many threads."""
    made = Checkout(shutil.copytree(sources, root), environment)
    for name, shipped, number in zip(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), (2, 1), threads, strict=True):
        made.replace("workflow/rules/common.smk", f"{name}={shipped}", f"{name}={number}")
    return made


def test_another_place_order_and_hash_seed_give_the_same_bytes(sources, finished, tmp_path):
    """`results` moves the whole tree, also to an absolute path with a space in it; `only` may be a list."""
    other = checkout(sources, tmp_path / "checkout", OTHER, (1, 2))
    results = tmp_path / "other results"
    config = ("only=[tiny]", f"results={results}")
    before = {file for file in other.root.rglob("*") if "__pycache__" not in file.parts}
    outcome = other.snakemake("--cores", "1", config=config)
    assert outcome.code == 0, outcome.text
    assert contents(results) == contents(finished.results)
    made = {file for file in other.root.rglob("*") if not {"__pycache__", ".snakemake"} & set(file.parts)} - before
    assert not made, "something was written outside the results folder"
    assert other.snakemake("-n", config=config).had_nothing_to_do


@pytest.mark.parametrize(
    "configfile",
    ["tests/config/every_game.yaml", pytest.param("config/config.yaml", marks=LONG)],
    ids=["small", "default"],
)
def test_two_runs_of_a_study_give_the_same_bytes(configfile, sources, tmp_path):
    """Pools, a tournament and, in the default study, matches as well, each with a model that is replayed."""
    found = []
    for name, environment, cores, threads in (("one", ONE, "1", (1, 2)), ("the other", OTHER, "2", (2, 1))):
        run = checkout(sources, tmp_path / name, environment, threads)
        outcome = run.snakemake("--configfile", configfile, "--cores", cores, config=(), timeout=7_200)
        assert outcome.code == 0, outcome.text
        found.append(contents(run.results))
    assert len(found[0]) > 100
    assert found[0] == found[1]
