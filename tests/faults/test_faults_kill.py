"""SIGKILL to the whole pipeline at random moments: the documented recovery completes, with the bytes of a run that
nobody disturbed, and no reply of a model is asked for twice.

Moments that chance seldom hits, between two steps of one writer, are those of test_faults_writers.py.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from workflow_checkout import Checkout, contents

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

FAULTS = int(os.environ.get("FISHPOOL_FAULTS", "1"))
DEFAULT_STUDY = ("--configfile", "config/config.yaml")


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


LONG = pytest.mark.skipif(FAULTS < 10, reason="takes an hour; FISHPOOL_FAULTS=10 or more asks for it")


@pytest.mark.parametrize("study", ["small", pytest.param("default", marks=LONG)])
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(study, sources, tmp_path, request):
    """After each kill the lock is removed, as the manual says; after a chain of them a run completes; then anew.

    The default study is killed ten times as often as FISHPOOL_FAULTS says.
    """
    if study == "small":
        options, config = (), ("only=tiny",)
        undisturbed = contents(request.getfixturevalue("finished").results)
        kills, chain, most_jobs, most_seconds = 6 * FAULTS, 6, 12, 1.0
    else:
        options, config = DEFAULT_STUDY, ()
        first = Checkout(shutil.copytree(sources, tmp_path / "undisturbed"))
        outcome = first.snakemake(*options, config=config, timeout=3_000)
        assert outcome.code == 0, outcome.text
        undisturbed = contents(first.results)
        shutil.rmtree(first.root)
        kills, chain, most_jobs, most_seconds = 10 * FAULTS, 25, 8, 12.0
    chance = random.Random(9)
    made = Counter()
    while made["kills"] < kills:
        made["chains"] += 1
        root = tmp_path / f"chain-{made['chains']}"
        checkout = Checkout(shutil.copytree(sources, root))
        for number in range(chain):
            log = tmp_path / "log"
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
        shutil.rmtree(root)
