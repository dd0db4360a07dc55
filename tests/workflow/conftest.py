"""Copies of the checkout for tests that run the workflow: with nothing run yet, or with a finished run.

One finished run of the small study is made once and copied, with all times, for each test that edits something.
"""

import shutil
from pathlib import Path

import pytest
from workflow_checkout import REPOSITORY, SOURCES, Checkout, Outcome


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as they were when the tests began."""
    root = tmp_path_factory.mktemp("sources") / "checkout"
    for name in SOURCES:
        shutil.copytree(REPOSITORY / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def fresh(sources: Path, tmp_path: Path) -> Checkout:
    """A copy in which nothing has run yet."""
    return Checkout(shutil.copytree(sources, tmp_path / "checkout"))


@pytest.fixture(scope="session")
def first_run(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, Outcome]:
    """An undisturbed run, and what it said; not to be changed."""
    checkout = Checkout(shutil.copytree(sources, tmp_path_factory.mktemp("finished") / "checkout"))
    outcome = checkout.snakemake()
    assert outcome.code == 0, outcome.text
    return checkout, outcome


@pytest.fixture(scope="session")
def finished(first_run: tuple[Checkout, Outcome]) -> Checkout:
    return first_run[0]


@pytest.fixture(scope="session")
def every_job(first_run: tuple[Checkout, Outcome]) -> set[str]:
    """The messages of all jobs of a full run."""
    return first_run[1].jobs


@pytest.fixture
def checkout(finished: Checkout, tmp_path: Path) -> Checkout:
    """A copy of the finished run, times included."""
    return Checkout(shutil.copytree(finished.root, tmp_path / "checkout"))
