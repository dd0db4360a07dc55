"""Snakemake passes over a rule that a profile names and the workflow does not have: a misspelt one would do nothing."""

import pytest
import yaml
from workflow_checkout import REPOSITORY

pytestmark = pytest.mark.workflow

PROFILES = {
    file.parent.name: yaml.safe_load(file.read_text()) for file in REPOSITORY.glob("workflow/profiles/*/config.yaml")
}


def test_the_profiles_name_rules_of_the_workflow(fresh):
    listed = fresh.snakemake("--list-rules", config=("only=[round_robin,govsim,tournament9]",))
    assert listed.code == 0, listed.text
    for name, profile in PROFILES.items():
        named = {entry.split("=")[0] for entry in profile.get("groups", [])} | set(profile.get("set-resources", {}))
        assert named <= set(listed.text.split()), name


def test_every_profile_lets_one_job_at_a_time_ask_models_and_says_the_same_otherwise():
    """--workflow-profile replaces the default profile, so what is in it must be in the others too."""
    assert set(PROFILES) == {"default", "slurm", "kubernetes"}
    common = {key: value for key, value in PROFILES["default"].items() if key != "cores"}
    assert common["resources"] == ["model=1"]
    for profile in PROFILES.values():
        assert {key: profile.get(key) for key in common} == common
