"""Files with a flipped bit, files cut short and empty files: found and named, or read as if nothing were wrong; never
read as something else.

Every kind of file that a study keeps is made by its own writer, damaged at random places, and read by its own readers.
What they then say is one sentence with the name of the file. What a disk refuses to write is in test_faults_disk.py.
"""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from effort import EFFORT
from kept_files import ask_all, play_matches
from scripted_backend import MODEL

from fishpool import ask, database
from fishpool.arena import results as arena_results
from fishpool.arena.store import Store, StoreError
from fishpool.files import FileFault
from fishpool.models import publishing
from fishpool.models.faults import Stop
from fishpool.models.journal import Journal
from fishpool.records import GAME_TABLES
from fishpool.runners import prisoners_dilemma
from fishpool.shards import Player, Shard, write
from fishpool.tabulate import tabulate

pytestmark = pytest.mark.faults

SEED = 1
SENTENCES = (FileFault, Stop, StoreError, ask.QueryError)  # what the commands and jobs show as one sentence


@dataclass(frozen=True)
class Kind:
    """`make` writes files into a folder and gives those that are to be damaged; `read` is all that is made of them.

    Of `flips` files a bit is flipped, `cuts` are cut short. Where something `anew` may be made of an empty file, that
    says how it is told from what was there.
    """

    make: Callable[[Path], list[Path]]
    read: Callable[[Path], Any]
    flips: int
    cuts: int
    anew: Callable[[Any], bool] = lambda read: False


# ── What is written and read ─────────────────────────────────────────────────────────────────────────────────────

SHARD = Shard(
    study="duel",
    condition="noisy",
    name="seeds-0",
    game="prisoners_dilemma",
    parameters={"rounds": 10, "noise": 0.1, "lane": "standard", "agent_ids": ["agent_1", "agent_2"]},
    players=tuple(Player(name, "scripted", {"strategy": name}) for name in ("TitForTat", "Random", "Defector")),
    turn_timeout=1.0,
    seeds=(0, 1),
)
RECORD_TABLES = GAME_TABLES[SHARD.game]


def make_records(folder: Path) -> list[Path]:
    write(folder / "shard", SHARD.tables, prisoners_dilemma.play(SHARD))
    return sorted((folder / "shard").iterdir())


def read_records(folder: Path) -> Any:
    for table in RECORD_TABLES:
        tabulate(SHARD.game, table, [folder / "shard"], folder / f"{table}.parquet")
    return [database.read([folder / f"{table}.parquet"]) for table in RECORD_TABLES]


def make_tables(folder: Path) -> list[Path]:
    """By both writers: the records by Polars, a metric by DuckDB."""
    make_records(folder)
    read_records(folder)
    tables = {table: [folder / f"{table}.parquet"] for table in RECORD_TABLES}
    sql = Path(__file__).parents[2] / "workflow" / "sql" / "prisoners_dilemma" / "pd_individual.sql"
    database.query_in_turn({sql: folder / "pd_individual.parquet"}, tables)
    return sorted(folder.glob("*.parquet"))


def read_tables(folder: Path) -> Any:
    """In the ways of figures and solvers, of queries, of the database, and of `fishpool sql` before there is one."""
    tables = {file.stem: [file] for file in sorted(folder.glob("*.parquet"))}
    frames = [database.read(files) for files in tables.values()]
    with database.connect(tables, str(folder)) as connection:
        rows = [connection.table(table).fetchall() for table in tables]
    with closing(database.views(tables, folder)) as connection:
        assert rows == [connection.table(table).fetchall() for table in tables]
    return frames, rows


def make_database(folder: Path) -> list[Path]:
    make_tables(folder)
    tables = {file.stem: [file] for file in sorted(folder.glob("*.parquet"))}
    database.build(tables, {}, folder / "fishpool.duckdb")
    for file in folder.glob("*.parquet"):  # beside a database, `fishpool sql` looks at nothing else
        file.unlink()
    return [folder / "fishpool.duckdb"]


def read_database(folder: Path) -> Any:
    with ask.opened(folder / "fishpool.duckdb") as connection:
        tables = [row[0] for row in ask.tables_of(connection).rows]
        found = {}
        for table in tables:
            with ask.ask(connection, f"SELECT * FROM {table} ORDER BY ALL") as answer:
                found[table] = [tuple(row) for row in answer.rows]
    return found


def asking(path: Path, first: str, *, offline: bool = False) -> list[str]:
    """The replies to all questions of a model that says something else each time."""
    numbers = count(1)
    return ask_all(path, lambda request: f"{first} {next(numbers)} to {request.round}", offline=offline)


def make_journal(folder: Path) -> list[Path]:
    asking(folder / "journal.sqlite", "First")
    return [folder / "journal.sqlite"]


def read_journal(folder: Path) -> Any:
    return asking(folder / "journal.sqlite", "Again")


def read_journal_offline(folder: Path) -> Any:
    return asking(folder / "journal.sqlite", "Never", offline=True)


def read_journal_to_publish(folder: Path) -> Any:
    with closing(Journal(folder / "journal.sqlite", read_only=True)) as journal:
        publishing.export(journal, folder / "published.jsonl.xz")
    return (folder / "published.jsonl.xz").read_bytes()


def killed(folder: Path, name: str) -> list[Path]:
    """The write-ahead log that a process leaves which is killed, beside the database and the log's index."""
    for ending in ("", "-wal", "-shm"):
        shutil.copy(folder / "open" / f"{name}{ending}", folder / f"{name}{ending}")
    return [folder / f"{name}-wal"]


def make_journal_log(folder: Path) -> list[Path]:
    with closing(Journal(folder / "open" / "journal.sqlite")):
        asking(folder / "open" / "journal.sqlite", "First")
        made = killed(folder, "journal.sqlite")
    shutil.rmtree(folder / "open")
    return made


def make_published(folder: Path) -> list[Path]:
    make_journal(folder)
    read_journal_to_publish(folder)
    return [folder / "published.jsonl.xz"]


def read_published(folder: Path) -> Any:
    published = publishing.Published(folder / "published.jsonl.xz", [MODEL.name])
    return vars(published)


def make_arena(folder: Path) -> list[Path]:
    with closing(Store(folder / "arena.sqlite", 3)) as store:
        play_matches(store)
    return [folder / "arena.sqlite"]


def make_arena_log(folder: Path) -> list[Path]:
    with closing(Store(folder / "open" / "arena.sqlite", 3)) as store:
        play_matches(store)
        made = killed(folder, "arena.sqlite")
    shutil.rmtree(folder / "open")
    return made


def read_arena(folder: Path) -> Any:
    """What a server goes on with, and what is exported."""
    with closing(Store(folder / "arena.sqlite", 3)) as store:
        kept = [store.agents(), store.queue(), store.live()]
    exported = arena_results.export(folder / "arena.sqlite", folder / "results")
    return kept, {file.name: file.read_bytes() for shard in exported for file in shard.iterdir()}


KINDS = {
    "records": Kind(make_records, read_records, 150, 30),
    "tables": Kind(make_tables, read_tables, 150, 30),
    "database": Kind(make_database, read_database, 20, 6),
    # An empty file is a journal that nobody has written yet: every model is asked again.
    "journal, asking": Kind(make_journal, read_journal, 60, 10, lambda read: all("First" not in one for one in read)),
    "journal, offline": Kind(make_journal, read_journal_offline, 60, 10),
    "journal, publishing": Kind(make_journal, read_journal_to_publish, 60, 10),
    "log of a journal": Kind(make_journal_log, read_journal, 60, 10),
    "published journal": Kind(make_published, read_published, 150, 30),
    "arena": Kind(make_arena, read_arena, 60, 10, lambda read: read == ([[], [], []], {})),
    "log of an arena": Kind(make_arena_log, read_arena, 60, 10),
}


# ── Damage ───────────────────────────────────────────────────────────────────────────────────────────────────────


def damages(sizes: dict[Path, int], kind: Kind, chance: random.Random) -> Iterator[tuple[Path, int, bool]]:
    """(file, place, whether it is cut there or the bit is flipped), the larger files more often."""
    files, weights = list(sizes), list(sizes.values())
    for _ in range(kind.flips * EFFORT):
        (file,) = chance.choices(files, weights)
        yield file, chance.randrange(8 * sizes[file]), False
    for number in range(kind.cuts * EFFORT):
        file = files[number % len(files)]
        yield file, 0 if number < len(files) else chance.randrange(sizes[file]), True


def damage(content: bytes, place: int, cut: bool) -> bytes:
    if cut:
        return content[:place]
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def restore(folder: Path, contents: dict[Path, bytes]) -> None:
    for file in list(folder.rglob("*")):
        if file.is_file() and file not in contents:
            file.unlink()
    for file, content in contents.items():
        file.write_bytes(content)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, pl.DataFrame):
        return one.equals(other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


@pytest.fixture
def no_waiting(monkeypatch):
    """Nobody else has the file open, so there is nobody to wait for."""
    monkeypatch.setattr("fishpool.sqlite._TRIES", 1)


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_named_or_reads_as_if_nothing_were_wrong(name, tmp_path, no_waiting):
    kind, folder = KINDS[name], tmp_path / "place"
    folder.mkdir()
    damaged = kind.make(folder)
    contents = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    undisturbed = kind.read(folder)
    restore(folder, contents)
    assert equal(kind.read(folder), undisturbed)
    found: Counter[str] = Counter()
    for file, place, cut in damages({file: len(contents[file]) for file in damaged}, kind, random.Random(SEED)):
        restore(folder, contents)
        file.write_bytes(damage(contents[file], place, cut))
        where = f"{file.name} {'cut at byte' if cut else 'with the other bit'} {place}"
        try:
            read = kind.read(folder)
        except SENTENCES as sentence:
            said = str(sentence)
            assert "\n" not in said, (where, said)
            assert file.name in said or file.parent.name in said, (where, said)
            found["named"] += 1
        else:
            if cut and place == 0 and kind.anew(read):
                found["begun anew"] += 1
                continue
            assert equal(read, undisturbed), f"{where} is read as something else"
            found["harmless"] += 1
    print(f"{name}: {found.total()} damaged, {dict(found)}, 0 read otherwise")
    assert found["named"]


def test_a_log_that_is_cut_short_costs_its_last_replies_and_no_others(tmp_path, no_waiting):
    """As after the loss of power: whole transactions are kept from the start on, and what is not is asked for again."""
    (log,) = make_journal_log(tmp_path)
    log.with_name("journal.sqlite-shm").unlink()  # which lies in memory
    contents = {file: file.read_bytes() for file in tmp_path.iterdir()}
    first = read_journal(tmp_path)
    chance, kept = random.Random(SEED), Counter()
    for _ in range(30 * EFFORT):
        restore(tmp_path, contents)
        log.write_bytes(contents[log][: chance.randrange(len(contents[log]))])
        again = read_journal(tmp_path)
        assert all(
            one == other or one.startswith("Reply(text='Again ") for one, other in zip(again, first, strict=True)
        )
        kept[sum(one == other for one, other in zip(again, first, strict=True))] += 1
    assert len(kept) > 1
