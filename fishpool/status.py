"""How far the studies of a config are: what is done, what is being played, and what is still to be played and paid.

It looks at the files that a run leaves, and at the journal; it starts nothing and writes nothing. It does not know
which finished files an edit has made stale, as `snakemake -n` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fishpool.costs import estimate
from fishpool.files import is_being_written
from fishpool.remarks import last_line
from fishpool.screen import aligned, visible
from fishpool.shards import CHECKSUMS, Shard
from fishpool.study import Condition, Config, Study


@dataclass(frozen=True)
class Progress:
    """A study: how many of its shards, runs and record tables are there, of how many.

    `metrics` counts the files of its other tables. `replies` are those that the journal holds, `calls_left` the model
    calls of runs that are not there, without those the journal can answer and without requests for repair.
    """

    study: str
    game: str
    shards: tuple[int, int]
    runs: tuple[int, int]
    tables: tuple[int, int]
    metrics: int
    replies: int
    calls_left: int


def report(config: Config, folder: Path) -> Iterator[str]:
    """The state in lines; `folder` is where `snakemake` is run. Raises faults.Stop for a journal that is none."""
    results = Path(config.results)
    journal = Path(config.journal)
    replies, answered = _in_journal(journal)
    states = [progress(study, results, replies.get(study.name, 0), answered) for study in config.studies]
    rows = [("study", "game", "shards", "runs", "tables", "metrics", "replies", "calls left")]
    for one in states:
        counts = (_of(one.shards), _of(one.runs), _of(one.tables))
        rows.append((one.study, one.game, *counts, f"{one.metrics:,}", f"{one.replies:,}", f"{one.calls_left:,}"))
    yield from aligned(rows, left=2)
    yield ""
    yield from _products(results)
    yield from _running(config, results, folder)
    to_pay = {one.study for one in states if one.calls_left}
    for cost in estimate(config) if to_pay else ():
        if cost.study in to_pay:
            yield f"in all, {cost.words}"
    if to_pay:
        yield (
            "calls left: if every run lasts to its end and every reply can be read, without what"
            f" {visible(str(journal))} answers"
        )
    unplayed = sum(one.shards[1] - one.shards[0] for one in states)
    if unplayed:
        yield f"{unplayed:,} shard{'' if unplayed == 1 else 's'} to play: run `snakemake` with the same options"
    else:
        yield "everything is played; `snakemake -n` says whether an edit makes it play again"


def progress(study: Study, results: Path, replies: int, answered: Mapping[str, int]) -> Progress:
    """How far a study is; `answered` says for `study:condition:seed` how many first requests the journal answers."""
    shards = [(condition, shard) for condition in study.conditions for shard in study.shards(condition)]
    done = [(condition, shard) for condition, shard in shards if (_place(results, shard) / CHECKSUMS).is_file()]
    left = [(condition, shard) for condition, shard in shards if not (_place(results, shard) / CHECKSUMS).is_file()]
    tables = [
        results / "parquet" / table / study.name / f"{condition.name}.parquet"
        for condition in study.conditions
        for table in condition.tables
    ]
    others = {*results.glob(f"parquet/*/{study.name}/*.parquet")} - {*tables}
    names = {f"{condition.name}.parquet" for condition in study.conditions}
    return Progress(
        study=study.name,
        game=study.game,
        shards=(len(done), len(shards)),
        runs=(_runs(done), _runs(shards)),
        tables=(sum(_is_current(file, results, study) for file in tables), len(tables)),
        metrics=sum(file.name in names for file in others),
        replies=replies,
        calls_left=sum(_calls_left(condition, shard, answered) for condition, shard in left),
    )


def _runs(shards: list[tuple[Condition, Shard]]) -> int:
    return sum(condition.runs_per_seed * len(shard.seeds) for condition, shard in shards)


def _calls_left(condition: Condition, shard: Shard, answered: Mapping[str, int]) -> int:
    if condition.replay is not None:  # its replies are published; nobody is called
        return 0
    calls = condition.model_calls_per_seed
    known = (answered.get(f"{shard.study}:{shard.condition}:{seed}", 0) for seed in shard.seeds)
    return sum(max(0, calls - some) for some in known)


def _is_current(file: Path, results: Path, study: Study) -> bool:
    """Whether a table is there and no shard of its condition was written after it."""
    if not file.is_file():
        return False
    (condition,) = (one for one in study.conditions if one.name == file.stem)
    sums = [_place(results, shard) / CHECKSUMS for shard in study.shards(condition)]
    written = file.stat().st_mtime_ns
    return all(one.is_file() and one.stat().st_mtime_ns <= written for one in sums)


def _place(results: Path, shard: Shard) -> Path:
    return results / "jsonl" / shard.study / shard.condition / shard.name


def _products(results: Path) -> Iterator[str]:
    """A line about the figures, the report and the database."""
    figures = sorted(file.stem for file in results.glob("figures/rq*.svg"))
    drawn = f"{len(figures)} figure{'' if len(figures) == 1 else 's'}" if figures else "no figure yet"
    report = results / "report.html"
    drawn += f"; {visible(str(report))} is there" if report.is_file() else ""
    database = results / "fishpool.duckdb"
    if not database.is_file():
        yield f"{drawn}; no database yet (`fishpool sql` then asks the tables that are finished)"
        return
    written = database.stat().st_mtime_ns
    newer = any(file.stat().st_mtime_ns > written for file in results.glob("parquet/**/*.parquet"))
    yield f"{drawn}; {visible(str(database))} is there{', but older than some table' if newer else ''}"


def _running(config: Config, results: Path, folder: Path) -> Iterator[str]:
    """What is being played, and whether a `snakemake` holds the folder."""
    playing = [
        shard
        for study in config.studies
        for condition in study.conditions
        for shard in study.shards(condition)
        if _is_played(_place(results, shard))
    ]
    locks = folder / ".snakemake" / "locks"
    locked = locks.is_dir() and any(locks.iterdir())
    if playing:
        yield f"{len(playing)} shard{'' if len(playing) == 1 else 's'} being played:"
    elif locked:
        yield "snakemake is at work here, or was killed (if none is at work: `snakemake --unlock`)"
    else:
        yield "no run is going on here"
    for shard in playing:
        name = f"{shard.study}/{shard.condition}/{shard.name}"
        said = last_line(results / "logs" / "play" / f"{name}.log").removeprefix(f"{name}: ")
        yield f"  {name}{': ' if said else ''}{said}"


def _is_played(place: Path) -> bool:
    """Whether a process of this machine is writing the shard."""
    return any(is_being_written(part) for part in place.glob("*.jsonl.*.part"))


def _in_journal(journal: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Replies by study, and answered first requests by `study:condition:seed`."""
    if not journal.is_file():
        return {}, {}
    from fishpool.models.journal import Journal

    opened = Journal(journal, read_only=True)
    try:
        replies: dict[str, int] = {}
        for one in opened.counts():
            replies[one.study] = replies.get(one.study, 0) + one.answers
        answered: dict[str, int] = {}
        for run_id, first in opened.answered():
            game = ":".join(run_id.split(":")[:3])
            answered[game] = answered.get(game, 0) + first
    finally:
        opened.close()
    return replies, answered


def _of(counted: tuple[int, int]) -> str:
    return f"{counted[0]:,}/{counted[1]:,}"
