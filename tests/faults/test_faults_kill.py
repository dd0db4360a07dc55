"""SIGKILL to the whole pipeline at random moments: the bytes of an undisturbed run, and no reply paid for twice.

The recovery is the manual's. Moments that chance seldom hits, between two steps of one writer, are those of
test_faults_writers.py.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import model_study
import pytest
from effort import EFFORT
from model_study import CONCURRENCY
from workflow_checkout import POOL, Checkout, contents

pytestmark = [pytest.mark.faults, pytest.mark.workflow]


def kill(process: subprocess.Popen[str], *, alone: bool = False) -> bool:
    """Kill a run with all its jobs, or alone, so that they go on writing; whether it was still running."""
    running = process.poll() is None
    if running:
        (os.kill if alone else os.killpg)(process.pid, signal.SIGKILL)
        process.wait()
    return running


def wait_for_jobs(process: subprocess.Popen[str], log: Path, number: int) -> None:
    """Until so many jobs of a run have begun, or it has ended."""
    while process.poll() is None and log.read_text().count("\nJob ") < number:
        time.sleep(0.05)


def kill_again_and_again(sources, folder, undisturbed, kills, chain, most_jobs, most_seconds, *options, config):
    """Kill runs until there were so many `kills`, each at most `most_seconds` after at most `most_jobs` have begun.

    After each kill the lock is removed, as the manual says; after a chain of kills in one checkout a run completes and
    is compared; then it is begun anew.
    """
    chance, made = random.Random(9), Counter()
    while made["kills"] < kills:
        made["chains"] += 1
        checkout = Checkout(shutil.copytree(sources, folder / f"chain-{made['chains']}"))
        for number in range(chain):
            log = folder / "log"
            with log.open("w") as output, checkout.start(*options, config=config, output=output) as process:
                wait_for_jobs(process, log, chance.randint(0, most_jobs))
                time.sleep(chance.uniform(0, most_seconds))
                killed = kill(process, alone=number % 2 == 1)
            if not killed:
                assert process.returncode == 0, log.read_text()
                made["completed before the kill"] += 1
                break
            made["kills"] += 1
            unlocked = checkout.snakemake("--unlock", *options, config=config)
            assert unlocked.code == 0, unlocked.text
        outcome = checkout.snakemake(*options, config=config, timeout=3_000)
        assert outcome.code == 0, outcome.text
        assert contents(checkout.results) == undisturbed
        assert checkout.snakemake("-n", *options, config=config).had_nothing_to_do
        print(dict(made), flush=True)
        shutil.rmtree(checkout.root)


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(sources, pool, tmp_path):
    kill_again_and_again(sources, tmp_path, contents(pool.results), 6 * EFFORT, 6, 4, 1.5, config=POOL)


@pytest.mark.skipif(EFFORT < 10, reason="takes hours; FISHPOOL_FAULTS=10 or more asks for it")
def test_the_default_study_that_is_killed_again_and_again_ends_with_the_same_bytes(sources, tmp_path):
    """Ten times as often as FISHPOOL_FAULTS says."""
    options = ("--configfile", "config/config.yaml")
    first = Checkout(shutil.copytree(sources, tmp_path / "undisturbed"))
    outcome = first.snakemake(*options, config=(), timeout=3_000)
    assert outcome.code == 0, outcome.text
    kill_again_and_again(sources, tmp_path, contents(first.results), 10 * EFFORT, 25, 8, 12.0, *options, config=())


def test_a_live_model_study_that_is_killed_again_and_again_pays_for_no_reply_twice(fresh, played, tmp_path):
    """Nobody asks again for what the journal has; a kill costs no more than the requests that were under way."""
    _, calls, undisturbed = played
    chance, kills = random.Random(7), 4 * EFFORT
    log, after = tmp_path / "log", []  # each kill: how often the server had been asked, what the journal held
    with model_study.serving(tmp_path, latency=0.03) as server:
        model_study.place(fresh, server.address)
        for _ in range(kills):
            wanted = len(server.lines) + chance.randint(1, 2 * calls.total() // (kills + 1))
            with log.open("w") as output, model_study.start(fresh, output) as process:
                while process.poll() is None and len(server.lines) < wanted:
                    time.sleep(0.01)
                time.sleep(chance.uniform(0, 0.1))
                killed = kill(process)
            if not killed:
                assert process.returncode == 0, log.read_text()
                break
            after.append((len(server.lines), model_study.kept(fresh)))
            unlocked = fresh.snakemake(*model_study.options(), "--unlock", config=())
            assert unlocked.code == 0, unlocked.text
        outcome = model_study.play(fresh)
        assert outcome.code == 0, outcome.text
        for asked, kept in after:
            assert not kept & set(server.lines[asked:])
        assert server.calls.keys() == calls.keys()
        assert server.calls.total() - calls.total() <= CONCURRENCY * len(after)
        assert model_study.kept(fresh) == calls.keys()
    assert model_study.records(fresh) == undisturbed
    assert len(after) > kills / 2
    print({"kills": len(after), "replies": calls.total(), "asked twice": server.calls.total() - calls.total()})


def test_a_replayed_model_study_that_is_killed_again_and_again_is_the_same(fresh, played, tmp_path):
    other, _, undisturbed = played
    model_study.replay(fresh, other.root / "results" / "journal.sqlite")
    chance, kills, log, made = random.Random(8), 3 * EFFORT, tmp_path / "log", 0
    for _ in range(kills):
        with log.open("w") as output, model_study.start(fresh, output) as process:
            wait_for_jobs(process, log, chance.randint(0, 3))
            time.sleep(chance.uniform(0, 1))
            made += kill(process)
        unlocked = fresh.snakemake(*model_study.options(), "--unlock", config=())
        assert unlocked.code == 0, unlocked.text
    outcome = model_study.play(fresh)
    assert outcome.code == 0, outcome.text
    assert model_study.records(fresh) == undisturbed
    assert made > kills / 2
    print({"kills": made})
