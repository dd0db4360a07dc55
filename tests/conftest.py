"""Plays fish pools in memory and answers with their metric tables, computed by the SQL that the workflow runs."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import polars as pl
import pytest
from built_results import build

from fishpool.analysis.inference import register
from fishpool.games.commons import Parameters, parameters_of
from fishpool.players import commons as commons_players
from fishpool.runners import commons as runner
from fishpool.shards import Shard

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
