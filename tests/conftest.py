"""Fish pools played in memory, with their metric tables by the workflow's SQL; copies of the checkout; a browser.

Of a finished run of the small study there is one, which is copied, with all times, for each test that edits something.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import model_study
import polars as pl
import pytest
from built_results import build
from hypothesis import settings
from workflow_checkout import POOL, REPOSITORY, SOURCES, Checkout, Outcome

from fishpool.analysis.inference import register
from fishpool.games.commons import Parameters, parameters_of
from fishpool.players import commons as commons_players
from fishpool.runners import commons as runner
from fishpool.shards import Shard

# A machine that others use too makes any example slow now and then; what must be quick has a limit of its own.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

SQL = Path(__file__).parents[1] / "workflow" / "sql"
# in the order in which they need each other
METRICS = (
    "agent_rounds", "lies", "deviations", "deviation_classes", "deviation_points", "individual", "rounds", "societal",
    "conditions", "observations", "estimates", "survival", "lies_rounds", "govsim",
)  # fmt: skip


def in_full(parameters: dict[str, Any]) -> dict[str, Any]:
    """Every parameter as the JSON value that a shard carries."""
    made = parameters_of(parameters)
    values = {field.name: getattr(made, field.name) for field in fields(Parameters)}
    return {**values, "agents": list(made.agents), "channels": sorted(made.channels)}


def fill(frames: dict[str, pl.DataFrame]) -> duckdb.DuckDBPyConnection:
    """A database of record frames, with every metric table of the fish pool and `validity` computed."""
    connection = duckdb.connect()
    register(connection)
    for table, frame in frames.items():
        connection.register("frame", frame.to_arrow())
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM frame")
        connection.unregister("frame")
    for metric in METRICS:
        text = (SQL / "commons" / f"commons_{metric}.sql").read_text(encoding="utf-8")
        connection.sql(text).create(f"commons_{metric}")
    connection.sql((SQL / "validity.sql").read_text(encoding="utf-8")).create("validity")
    return connection


def play(
    conditions: dict[str, dict[str, Any]], seeds: int = 1, players: dict[str, Callable[[Any], Any]] | None = None
) -> dict[str, pl.DataFrame]:
    """Record frames of the conditions of a study; `players` replaces scripted players by name."""
    replaced = {name: (lambda view, luck, act=act: act(view)) for name, act in (players or {}).items()}
    with pytest.MonkeyPatch.context() as patch:
        for name, act in replaced.items():
            patch.setitem(commons_players.PLAYERS, name, act)
        batches = [
            frames
            for name, parameters in conditions.items()
            for frames in runner.play(
                Shard("study", name, "seeds-0", "commons", in_full(parameters), (), 30, tuple(range(seeds)))
            )
        ]
    return {table: pl.concat([frames[table] for frames in batches]) for table in batches[0]}


@pytest.fixture
def pools() -> Callable[..., duckdb.DuckDBPyConnection]:
    """`pools(condition={...}, .., seeds=1)`: the database of a study that was just played."""

    def played(seeds: int = 1, **conditions: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        return fill(play(conditions, seeds))

    return played


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished results folder of small studies, see `built_results`; not to be changed."""
    results = tmp_path_factory.mktemp("built") / "results"
    with pytest.MonkeyPatch.context() as patch:
        build(results, patch)
    return results


@pytest.fixture
def playing() -> SimpleNamespace:
    """`playing.play(..)` and `playing.fill(..)`, for tests that change what was played before it is tabulated."""
    return SimpleNamespace(play=play, fill=fill)


# ── Copies of the checkout ───────────────────────────────────────────────────────────────────────────────────────


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


@pytest.fixture(scope="session")
def pool(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A finished run of the small pool; not to be changed."""
    checkout = Checkout(shutil.copytree(sources, tmp_path_factory.mktemp("pool") / "checkout"))
    outcome = checkout.snakemake(config=POOL)
    assert outcome.code == 0, outcome.text
    return checkout


@pytest.fixture(scope="session")
def played(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, Counter[str], dict[str, Any]]:
    """An undisturbed run of all that models play, its server's count, and its records; not to be changed."""
    folder = tmp_path_factory.mktemp("models")
    checkout = Checkout(shutil.copytree(sources, folder / "checkout"))
    with model_study.serving(folder) as server:
        outcome = model_study.play(model_study.place(checkout, server.address))
        assert outcome.code == 0, outcome.text
        return checkout, server.calls, model_study.records(checkout)


@pytest.fixture(scope="module")  # its event loop runs as long as it does, and others begin their own
def chromium() -> Iterator[Any]:
    """A real browser of the system's, for pages that must run no script of others and ask the network for nothing."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium here")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
