"""Snakemake's own linter and formatter have nothing to say about the workflow."""

import subprocess
import sys
from pathlib import Path

import pytest
from workflow_checkout import REPOSITORY

pytestmark = pytest.mark.workflow


def test_lint_is_clean(fresh):
    outcome = fresh.snakemake("--lint", config=())
    assert outcome.code == 0, outcome.text
    assert "Congratulations, your workflow is in a good condition!" in outcome.text


def test_the_rules_are_formatted():
    done = subprocess.run(
        [Path(sys.executable).with_name("snakefmt"), "--check", "workflow"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
