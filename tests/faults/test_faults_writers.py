"""A writer that is killed between any two of its steps, or in the middle of a file: readers find the old or the new.

Every writer is the real one, in a process of its own that gives itself SIGKILL just before it opens, renames, removes
or makes something for the n-th time, or runs its n-th SQL statement, for n = 1, 2, .. until it gets to its end; and one
that the system kills as soon as a file of it grows beyond a size. Kills of pipelines are in test_faults_kill.py.
"""

import multiprocessing
import os
import re
import resource
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import duckdb
import pytest
from effort import EFFORT
from workflow_checkout import contents

from fishpool import cli, database, records, study
from fishpool.arena import results as arena_results
from fishpool.arena.matches import Arena
from fishpool.arena.store import Store
from fishpool.files import PART
from fishpool.games.prisoners_dilemma import Choice
from fishpool.models import publishing
from fishpool.models.calls import Reply, Request
from fishpool.models.journal import Entry, Journal, Sort
from fishpool.records import Status
from fishpool.referee import Turn
from fishpool.runners import prisoners_dilemma
from fishpool.shards import Player, Shard, write
from fishpool.tabulate import FaultyRecords, tabulate

pytestmark = pytest.mark.faults

SIZES = 4 * EFFORT  # at which a writer is killed
STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}  # audit events

# Libraries are imported once; each writer is a fork of the process that has them, before they start threads.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "pytest",
        "duckdb",
        "polars",
        "yaml",
        "jsonschema",
        "fishpool.cli",
        "fishpool.play",
        "fishpool.database",
        "fishpool.models.publishing",
        "fishpool.arena.results",
        "fishpool.runners.prisoners_dilemma",
    ]
)


@dataclass(frozen=True)
class Writer:
    """`old` makes what is there before, `new` is the writer; both get a folder, and write in its folder `results`.

    `read` is what a reader finds there; where it is a mixture, it raises FaultyRecords.
    """

    old: Callable[[Path], Any]
    new: Callable[[Path], Any]
    read: Callable[[Path], Any]


# ── The writers ──────────────────────────────────────────────────────────────────────────────────────────────────

SHARD = Shard(
    study="duel",
    condition="plain",
    name="seeds-0",
    game="prisoners_dilemma",
    parameters={"rounds": 5, "noise": 0.0, "lane": "standard", "agent_ids": ["agent_1", "agent_2"]},
    players=tuple(Player(name, "scripted", {"strategy": name}) for name in ("TitForTat", "Random")),
    turn_timeout=30,
    seeds=(0,),
)
SHARD_FOLDER = Path("results/jsonl/duel/plain/seeds-0")


def played(seeds):
    shard = Shard(**{**vars(SHARD), "seeds": tuple(range(seeds))})
    return list(prisoners_dilemma.play(shard))


def write_records(folder, seeds):
    write(folder / SHARD_FOLDER, SHARD.tables, played(seeds))


def write_tables(folder):
    """From the records that are elsewhere."""
    for table in SHARD.tables:
        output = folder / "results" / "parquet" / table / "duel" / "plain.parquet"
        tabulate(SHARD.game, table, [folder / "elsewhere" / SHARD_FOLDER], output)


def prepare_tables(folder):
    write_records(folder / "elsewhere", 2)
    write_tables(folder)
    write_records(folder / "elsewhere", 60)


def write_database(folder):
    """Of the tables that are elsewhere."""
    tables = database.tables_in(folder / "tables" / "results" / "parquet")
    database.build(tables, {"runs": "runs: a row is a game"}, folder / "results" / "fishpool.duckdb")


def prepare_database(folder):
    prepare_tables(folder / "tables")
    write_database(folder)
    write_tables(folder / "tables")


def write_journal(folder, replies):
    """Replies of a model and its digest, as a journal in SQLite."""
    with closing(Journal(folder / "journal.sqlite")) as journal:
        journal.keep_all(kept(number) for number in range(replies))
        journal.note_digest("lab", "tiny", f"{replies}")


def kept(number):
    model = {"backend": "ollama", "model": "tiny", "digest": "d", "options": {"seed": number}, "thinking": None}
    turn = {"run_id": f"duel:plain:{number}", "agent": "a", "round": 1, "phase": "choose", "attempt": 1}
    request = Request(messages=({"role": "user", "content": "Well?"},), schema=None, **model, **turn)
    text = "".join(chr(97 + (number * k) % 26) for k in range(500))
    return request.key, request.to_json(), Entry(Sort.ANSWER, Reply(text, "", "stop", 1, 2, 3.0))


def publish(folder):
    with closing(Journal(folder / "journal.sqlite", read_only=True)) as journal:
        publishing.export(journal, folder / "results" / "replies.jsonl.xz")


def prepare_publishing(folder):
    write_journal(folder, 3)
    publish(folder)
    write_journal(folder, 60)


def prepare_import(folder):
    prepare_publishing(folder / "elsewhere")
    publish(folder / "elsewhere")
    write_journal(folder, 10)


def import_journal(folder):
    with closing(Journal(folder / "journal.sqlite")) as journal:
        publishing.import_into(journal, folder / "elsewhere" / "results" / "replies.jsonl.xz")


def play_in_arena(folder, matches):
    with closing(Store(folder / "arena.sqlite", rounds=3)) as store:
        arena = Arena(store, lambda: 0.0)
        agents = [arena.register(f"{matches} {name}")[0] for name in ("ann", "bob")]
        for _ in range(matches):
            play_match(arena, agents)


def play_match(arena, agents, accepted=lambda turn: None):
    """A match between the two, or what is left of the one that they are in."""
    for agent in agents:
        arena.enqueue(agent, "fast")
    match = arena.standing(agents[0]).match
    game = arena.game(agents[0], match)
    for sequence in range(game.sequence, arena.rounds + 1):
        for agent in agents:
            arena.act(agent, match, sequence, Turn(Status.MOVED, Choice.COOPERATE))
            accepted(f"{match} {sequence} {agent.number}")


def serve_match(folder):
    """One more match between agents who know their keys; what was answered to them is written down."""
    with closing(Store(folder / "arena.sqlite", rounds=3)) as store, (folder / "answered").open("w") as answers:
        arena = Arena(store, lambda: 0.0)
        play_match(arena, store.agents()[:2], lambda turn: print(turn, file=answers, flush=True))


def export_arena(folder):
    arena_results.export(folder / "arena.sqlite", folder / "results")


def prepare_arena(folder):
    play_in_arena(folder, 2)
    export_arena(folder)
    play_in_arena(folder, 3)


def play_person(folder):
    """The command itself, a person's three choices being typed."""
    typed = folder / "typed"
    typed.write_text("c\nd\nc\n")
    os.dup2(os.open(typed, os.O_RDONLY), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    options = ["--against", "TitForTat", "--rounds", "3", "--condition", "short", "--results", str(folder / "results")]
    assert cli.main(["play", "prisoners_dilemma", *options]) == 0


# ── Their readers ────────────────────────────────────────────────────────────────────────────────────────────────


def read_records(folder):
    """Each record table through the pipeline's reader."""
    return {table: tabulated(table, [folder / SHARD_FOLDER], folder) for table in SHARD.tables}


def tabulated(table, shards, folder):
    output = folder / f"{table}.parquet"
    tabulate("prisoners_dilemma", table, shards, output)
    return duckdb.read_parquet(str(output)).fetchall()


def read_tables(folder):
    return {
        file.stem: duckdb.read_parquet(str(file)).fetchall() for file in sorted((folder / "results").rglob("*.parquet"))
    }


def read_database(folder):
    return contents(folder / "results")["fishpool.duckdb"]


def read_published(folder):
    file = folder / "results" / "replies.jsonl.xz"
    return publishing.contents(file), publishing.Published(file, ["tiny"]).digest("lab", "tiny")


def read_journal(folder):
    with closing(Journal(folder / "journal.sqlite", read_only=True)) as journal:
        return list(journal.entries()), journal.digests()


def read_recorded(folder, name="arena"):
    """The shards that a config finds, through the pipeline's reader."""
    given = {"studies": {name: {"game": "prisoners_dilemma", "recorded": True}}, "only": name}
    [one] = study.load({**given, "results": str(folder / "results")}).studies
    found = {}
    for condition in one.conditions:
        shards = [folder / "results" / "jsonl" / name / condition.name / shard for shard in condition.recorded]
        found[condition.name] = {table: tabulated(table, shards, folder) for table in records.GAME_TABLES[one.game]}
    return found


WRITERS = {
    "records": Writer(partial(write_records, seeds=2), partial(write_records, seeds=60), read_records),
    "tables": Writer(prepare_tables, write_tables, read_tables),
    "database": Writer(prepare_database, write_database, read_database),
    "published journal": Writer(prepare_publishing, publish, read_published),
    "journal": Writer(prepare_import, import_journal, read_journal),
    "arena's records": Writer(prepare_arena, export_arena, read_recorded),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_whatever_step_or_size_a_writer_is_killed_at_readers_find_the_old_or_the_new(writer, tmp_path):
    """And the writer, run again, gives what it would have given had nobody killed it, and leaves nothing else."""
    old, new, read = vars(WRITERS[writer]).values()
    first = tmp_path / "undisturbed"
    old_files, old_found = made(old, first, read)
    assert run(new, first) == 0
    new_files, new_found = contents(first / "results"), read(first)
    assert new_found != old_found
    written = [*(first / "results").rglob("*")] or [*first.rglob("*")]
    largest = max(file.stat().st_size for file in written if file.is_file())
    sizes = [largest * number // (SIZES + 1) for number in range(1, SIZES + 1)]
    kills = [{"step": number} for number in range(1, steps_of(new, old, tmp_path / "counted") + 1)]
    kills += [{"size": size} for size in sizes]
    killed, refusals = 0, []
    for number, kill in enumerate(kills):
        folder = tmp_path / str(number)
        made(old, folder, read)
        killed += run(new, folder, **kill) < 0
        for name, content in contents(folder / "results").items():
            if not re.search(PART, name):
                assert content in (old_files.get(name), new_files.get(name)), (kill, name)
        try:
            assert read(folder) in (old_found, new_found), kill
        except FaultyRecords as fault:
            refusals.append(str(fault))
        assert run(new, folder) == 0
        assert contents(folder / "results") == new_files, kill
        assert read(folder) == new_found, kill
        shutil.rmtree(folder)
    print(writer, f"{killed} kills, {len(refusals)} mixtures refused")
    assert killed > len(kills) / 2
    # what nobody can play again is not to be deleted
    assert all(("delete" in refusal) == (writer == "records") for refusal in refusals), refusals


def test_a_person_s_game_that_is_killed_is_recorded_whole_or_not_at_all_and_the_next_one_is(tmp_path):
    killed = 0
    for step in range(1, steps_of(play_person, lambda folder: None, tmp_path / "counted") + 1):
        folder = tmp_path / str(step)
        folder.mkdir()
        killed += run(play_person, folder, step) < 0
        before = games_of_person(folder)
        assert before in (0, 1)
        assert run(play_person, folder) == 0
        assert games_of_person(folder) == before + 1
        shutil.rmtree(folder)
    print("play", killed, "kills")
    assert killed > 5


def games_of_person(folder):
    found = read_recorded(folder, "played_prisoners_dilemma")
    return len(found["short"]["runs"]) if found else 0


def test_an_arena_that_is_killed_has_every_turn_that_it_accepted_and_goes_on(tmp_path):
    killed = 0
    for step in range(1, steps_of(serve_match, prepare_arena, tmp_path / "counted") + 1, max(1, 4 // EFFORT)):
        folder = tmp_path / str(step)
        folder.mkdir()
        prepare_arena(folder)
        killed += run(serve_match, folder, step) < 0
        file = folder / "answered"
        answered = file.read_text().splitlines() if file.exists() else []
        with closing(Store(folder / "arena.sqlite", rounds=3)) as store:
            turns = [len(match.turns) for match in [*store.finished(), *store.live()] if match.number == 6]
        assert len(answered) <= sum(turns) <= len(answered) + 1
        if sum(turns) < 6:
            assert run(serve_match, folder) == 0
        with closing(Store(folder / "arena.sqlite", rounds=3)) as store:
            assert [len(match.turns) for match in store.finished()] == [6] * 6
            assert not store.queue()
        shutil.rmtree(folder)
    print("arena", killed, "kills")
    assert killed > 5


# ── Killing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def made(old: Callable[[Path], Any], folder: Path, read: Callable[[Path], Any]) -> tuple[dict[str, Any], Any]:
    """A folder with what is there before: its files, and what a reader finds in it."""
    folder.mkdir()
    old(folder)
    return contents(folder / "results"), read(folder)


def steps_of(new: Callable[[Path], Any], old: Callable[[Path], Any], folder: Path) -> int:
    """How many steps a writer has."""
    folder.mkdir()
    old(folder)
    receiving, sending = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=_counted, args=(new, folder, sending))
    process.start()
    process.join()
    assert receiving.poll(), "the writer did not get to its end"
    return int(receiving.recv())


def run(writer: Callable[[Path], Any], folder: Path, step: int = 0, size: int = 0) -> int:
    """Run a writer in a process of its own, killed before its n-th step or when a file is larger; the exit code."""
    process = SERVER.Process(target=_doomed, args=(writer, folder, step, size))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _doomed(writer: Callable[[Path], Any], folder: Path, step: int, size: int) -> None:
    if step:
        _at_each_step(folder, lambda number: number == step and os.kill(os.getpid(), signal.SIGKILL))
    if size:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    writer(folder)


def _counted(writer: Callable[[Path], Any], folder: Path, sending: Connection) -> None:
    last = 0

    def note(number: int) -> None:
        nonlocal last
        last = number

    _at_each_step(folder, note)
    writer(folder)
    sending.send(last)


def _at_each_step(folder: Path, do: Callable[[int], Any]) -> None:
    """Have something done before every step in a folder, and every SQL statement, from now on; steps are numbered."""
    numbers = count(1)

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in STEPS and str(arguments[0]).startswith(str(folder)):
            do(next(numbers))

    class Heard(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            do(next(numbers))
            return super().execute(*arguments)

        def executemany(self, *arguments: Any) -> sqlite3.Cursor:
            do(next(numbers))
            return super().executemany(*arguments)

    sqlite3.connect = partial(sqlite3.connect, factory=Heard)  # type: ignore[assignment]
    sys.addaudithook(hear)
