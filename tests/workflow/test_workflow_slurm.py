"""The profile for SLURM on a real cluster of one node: the same files as on one machine, and no fault goes unheard."""

import os
import subprocess

import pytest
import slurm_cluster
from workflow_checkout import Checkout, contents

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing())]

# The profile as it is, but for a cluster that answers at once.
PROFILE = ("--workflow-profile", "workflow/profiles/slurm", "--slurm-init-seconds-before-status-checks", "1")


@pytest.fixture
def on_cluster(fresh):
    with slurm_cluster.cluster() as environment:
        yield Checkout(fresh.root, environment)


def test_a_study_through_slurm_makes_the_same_as_on_one_machine(on_cluster, sources, tmp_path):
    outcome = on_cluster.snakemake(*PROFILE, config=("only=pool",))
    assert outcome.code == 0, outcome.text
    assert outcome.text.count("has been submitted with SLURM jobid") >= 5, outcome.text
    assert on_cluster.snakemake("-n", config=("only=pool",)).had_nothing_to_do
    here = Checkout(on_cluster.root)
    assert here.snakemake(config=("only=pool", "results=here")).code == 0
    assert contents(on_cluster.results) == contents(here.root / "here")


@pytest.mark.skipif(
    os.environ.get("FISHPOOL_SLURM") != "default",
    reason="takes 20 minutes; FISHPOOL_SLURM=default runs it",
)
def test_the_default_studies_through_slurm_make_the_same_as_on_one_machine(on_cluster):
    default = ("--configfile", "config/config.yaml")
    with on_cluster.start(*PROFILE, *default, config=(), output=subprocess.PIPE) as process:
        text, _ = process.communicate()
    assert process.returncode == 0, text
    assert on_cluster.snakemake("-n", *default, config=()).had_nothing_to_do
    here = Checkout(on_cluster.root)
    with here.start(*default, config=("results=here",), output=subprocess.PIPE) as process:
        text, _ = process.communicate()
    assert process.returncode == 0, text
    assert contents(on_cluster.results) == contents(here.root / "here")


def test_a_job_that_fails_on_a_node_fails_the_run_and_says_why(on_cluster):
    on_cluster.append("workflow/sql/commons/commons_rounds.sql", "\nno SQL at all\n")
    table = "results/parquet/commons_rounds/pool/free.parquet"
    outcome = on_cluster.snakemake(*PROFILE, "--", table, config=("only=pool",))
    assert outcome.code != 0
    assert "Error in group condition" in outcome.text
    assert 'syntax error at or near "no"' in outcome.text
    assert not (on_cluster.root / table).exists()
