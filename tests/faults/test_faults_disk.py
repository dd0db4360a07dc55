"""A disk that is full, read-only, or holds no large file, at each step: one sentence, nothing half, and then the same.

The steps are the jobs of the workflow, as it starts them itself, and the commands that write. Each is run where there
is no room for it, or not enough; what it says names the file and what to do. Then there is room, and it is run again.
"""

import os
import random
import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from effort import EFFORT
from kept_files import ask_all, play_matches
from small_disk import Disk, forked, on_disk, run, script
from workflow_checkout import CONFIG, Checkout, contents

from fishpool import cli
from fishpool import play as people
from fishpool.arena import results as arena_results
from fishpool.arena.store import Store, StoreError
from fishpool.files import FileFault, sentence
from fishpool.models import publishing
from fishpool.models.faults import Stop
from fishpool.models.journal import Journal
from fishpool.terminal import Console

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

SEED = 1
MEGABYTES = 64
DRAWING = ("scripts/draw.py", "scripts/report.py")
FAULTY = ("full", "read-only", "no large files")
REFUSALS = (
    r"cannot be opened|No space left on device|Read-only file system|File too large|disk is full|readonly database"
    r"|may not be written|refuses the journal|disk I/O error"
)
REMEDIES = (
    "make room|let its folder be written|allow larger files|once there is room|name another file"
    "|see that its folder is there and may be written"
)


@dataclass(frozen=True)
class Step:
    """`prepare` makes in `results` what is there before, `program` is the step, `read` what has come of it.

    All get the folder `results`, which is the disk.
    """

    prepare: Callable[[Path], Any]
    program: Callable[[Path], Any]
    read: Callable[[Path], Any] = contents


# ── The commands that write ──────────────────────────────────────────────────────────────────────────────────────


def fishpool(*arguments: Any) -> int:
    return cli.main([str(argument) for argument in arguments])


def nothing(results: Path) -> None:
    pass


def ask(results: Path) -> None:
    try:
        ask_all(results / "journal.sqlite", lambda request: f"To {request.round}")
    except Stop as stop:
        sys.exit(str(stop))


def in_journal(results: Path) -> Any:
    with closing(Journal(results / "journal.sqlite")) as journal:
        return list(journal.entries()), journal.digests()


def export_journal(results: Path) -> int:
    file = results / "replies.jsonl.xz"
    return fishpool("journal", "export", file, "--journal", results / "journal.sqlite")


def published(results: Path) -> bytes:
    return (results / "replies.jsonl.xz").read_bytes()


def prepare_import(results: Path) -> None:
    ask(results / "elsewhere")
    with closing(Journal(results / "elsewhere" / "journal.sqlite")) as journal:
        publishing.export(journal, results / "replies.jsonl.xz")
    shutil.rmtree(results / "elsewhere")


def import_journal(results: Path) -> int:
    return fishpool("journal", "import", results / "replies.jsonl.xz", "--journal", results / "journal.sqlite")


def play_in_arena(results: Path) -> None:
    try:
        with closing(Store(results / "arena.sqlite", 3)) as store:
            play_matches(store)
    except StoreError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(sentence(error))


def in_arena(results: Path) -> Any:
    """Whether all that was accepted can be exported; who plays under which number depends on when the disk was full."""
    with closing(Store(results / "arena.sqlite")) as store:
        assert all(len(match.turns) == 6 for match in store.finished())
    return bool(arena_results.export(results / "arena.sqlite", results))


def export_arena(results: Path) -> int:
    return fishpool("arena", "export", "--database", results / "arena.sqlite", "--results", results)


def play(results: Path) -> int:
    """A person's three choices, typed."""
    typed, into = os.pipe()
    os.write(into, b"c\nd\nc\n")
    os.close(into)
    os.dup2(typed, 0)
    options = ["--against", "TitForTat", "--rounds", 3, "--seed", 1, "--condition", "short", "--results", results]
    return fishpool("play", "prisoners_dilemma", *options)


def prepare_stale(results: Path) -> None:
    play(results)
    for folder in ("gone", "tiny"):
        shutil.copytree(results / "jsonl/played_prisoners_dilemma/short/seeds-1", results / f"jsonl/{folder}/a/seeds-9")
        (results / f"jsonl/{folder}/a/seeds-9/RECORDED").unlink()


def clean(results: Path) -> int:
    return fishpool("clean", "--stale", "--configfile", CONFIG, "--results", results)


COMMANDS = {
    "ask models": Step(nothing, ask, in_journal),
    "fishpool journal export": Step(ask, export_journal, published),
    "fishpool journal import": Step(prepare_import, import_journal, in_journal),
    "play in an arena": Step(nothing, play_in_arena, in_arena),
    "fishpool arena export": Step(play_in_arena, export_arena),
    "fishpool play": Step(nothing, play),
    "fishpool clean": Step(prepare_stale, clean),
}


# ── The jobs of the workflow ─────────────────────────────────────────────────────────────────────────────────────


def jobs(checkout: Checkout) -> dict[str, list[str]]:
    """The commands of all jobs of a full run by their messages, as a dry run prints them."""
    said = checkout.snakemake("-n", "-p", "-F").text
    found = re.findall(r"^Job \d+: (.+)\n(?:.+\n)*?Shell command: python (.+) 2>&1 \| tee ", said, re.MULTILINE)
    return {message: [_evaluated(argument) for argument in shlex.split(command)] for message, command in found}


def _evaluated(argument: str) -> str:
    return re.sub(r"^\$\(dirname (\S+)\)", lambda of: str(Path(of[1]).parent), argument)


def one_of_each_program(commands: dict[str, list[str]]) -> dict[str, list[str]]:
    chosen = {arguments[0]: message for message, arguments in reversed(commands.items())}
    return {message: commands[message] for message in chosen.values()}


def copy_results(results: Path, finished: Path, program: str) -> None:
    """What a job needs of a finished run; the report needs all."""
    folders = ["jsonl", "parquet"] + ["figures"] * (program == "scripts/report.py")
    for folder in folders:
        shutil.copytree(finished / folder, results / folder)
    if program == "scripts/report.py":
        shutil.copy(finished / "fishpool.duckdb", results)


# ── Trials ───────────────────────────────────────────────────────────────────────────────────────────────────────


def try_step(disk: Disk, step: Step, faults: Sequence[str]) -> Counter[str]:
    """Run a step on the disk as it should be, then under every kind of refusal; how often which refused it."""
    results, chance = disk.root, random.Random(SEED)
    forked(step.prepare, results)
    before = forked(contents, results)
    copies = {name: (results / name).read_bytes() for name in before}
    there = stamps(results)
    code, text = run(partial(step.program, results))
    assert code == 0, text
    expected = forked(step.read, results)
    whole = forked(contents, results)
    written = {name: size for name, (time, size) in stamps(results).items() if there.get(name, (0, 0))[0] != time}
    counted: Counter[str] = Counter()
    for fault in faults:
        renew(results, copies)
        free = chance.randrange(max(sum(written.values()), 1))
        place = disk.room(free) if fault == "full" else disk.read_only() if fault == "read-only" else nullcontext()
        largest = chance.randrange(1, max(written.values(), default=2)) if fault == "no large files" else 0
        with place:
            code, text = run(partial(step.program, results), largest)
        where = f"{fault}, {free if fault == 'full' else largest} bytes: {text}"
        assert "Traceback" not in text, where
        if code:
            [sentence] = [line for line in text.splitlines() if re.search(REFUSALS, line)]
            assert text.rstrip().endswith(sentence), where
            assert re.search(rf"{re.escape(results.name)}/.+({REFUSALS}).+({REMEDIES})", sentence), where
            counted[fault] += 1
        for name, content in forked(contents, results).items():
            if "sqlite" not in name:
                assert content in (before.get(name), whole.get(name)), f"{where}: {name} is half written"
        code, text = run(partial(step.program, results))
        assert code == 0, f"{where}, then {text}"
        assert forked(step.read, results) == expected, where
    return counted


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """(time of the last change, size) of every file."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {file.relative_to(folder).as_posix(): (file.stat().st_mtime_ns, file.stat().st_size) for file in files}


def renew(folder: Path, copies: dict[str, bytes]) -> None:
    """Have nothing in the folder but these files."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, content in copies.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def try_command(disk: Disk, name: str, faults: Sequence[str]) -> Counter[str]:
    return try_step(disk, COMMANDS[name], faults)


def try_job(disk: Disk, root: Path, finished: Path, arguments: list[str], faults: Sequence[str]) -> Counter[str]:
    def prepare(results: Path) -> None:
        copy_results(results, finished, arguments[0])
        for name in outputs(arguments):
            (root / name).unlink(missing_ok=True)

    return try_step(disk, Step(prepare, lambda results: script(root, arguments)), faults)


def outputs(arguments: list[str]) -> list[str]:
    """The files that a job's command makes, where they were made already."""
    made = [file for option, file in pairwise(arguments) if option == "--output"]
    made += [argument.removeprefix("--output=") for argument in arguments if argument.startswith("--output=")]
    if "--figures" in arguments and arguments[0] == "scripts/draw.py":
        made += arguments[arguments.index("--figures") + 1 : arguments.index("--question")]
    if "--directory" in arguments:
        folder = arguments[arguments.index("--directory") + 1]
        tables = [f"{table}.jsonl" for table in ("runs", "turns")]
        made += [f"{folder}/{name}" for name in (*tables, *(f"{table}.crc32" for table in tables), "SHA256SUMS")]
    return made


def tried(counted: Counter[str] | None, what: str) -> None:
    if counted is None:
        pytest.skip("no disk can be mounted here: neither root nor user namespaces")
    print(f"{what}: refused by a disk that is {dict(counted)}")
    assert counted


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_may_not_write_says_so_and_leaves_nothing_half(name, tmp_path):
    (tmp_path / "results").mkdir()
    counted = on_disk(tmp_path / "results", MEGABYTES, try_command, name, FAULTY * EFFORT)
    tried(counted, name)


def test_a_job_that_may_not_write_says_so_and_leaves_nothing_half(finished, tmp_path):
    root = Path(shutil.copytree(finished.root, tmp_path / "checkout", ignore=shutil.ignore_patterns("results")))
    (root / "results").mkdir()
    commands = jobs(finished)
    assert len({arguments[0] for arguments in commands.values()}) == 7
    for message, arguments in (one_of_each_program(commands) if EFFORT == 1 else commands).items():
        # Drawing takes seconds, and writes as the others do.
        faults = ("full",) if EFFORT == 1 and arguments[0] in DRAWING else FAULTY * EFFORT
        counted = on_disk(root / "results", MEGABYTES, try_job, root, finished.results, arguments, faults)
        tried(counted, message)


def try_pipeline(disk: Disk, checkout: Checkout, free: int, options: Sequence[str]) -> tuple[str, Any]:
    """What a run says for which the disk has no room, and what comes of it when there is some."""
    with disk.room(free):
        outcome = checkout.snakemake(*options)
    assert outcome.code != 0
    again = checkout.snakemake(*options)
    assert again.code == 0, again.text
    return outcome.text, contents(checkout.results)


def test_a_pipeline_on_a_full_disk_goes_on_when_there_is_room(fresh, finished):
    """To its tables of records; to its end where FISHPOOL_FAULTS asks for more."""
    options, folders = (("--until", "tabulate"), ("jsonl",)) if EFFORT == 1 else ((), ("jsonl", "parquet", "figures"))
    size = sum(file.stat().st_size for name in folders for file in (finished.results / name).rglob("*.*"))
    chance, whole = random.Random(SEED), contents(finished.results)
    fresh.results.mkdir()
    for _ in range(EFFORT):
        found = on_disk(fresh.results, MEGABYTES, try_pipeline, fresh, chance.randrange(size), options)
        if found is None:
            pytest.skip("no disk can be mounted here: neither root nor user namespaces")
        said, made = found
        assert "Traceback" not in said, said
        assert "No space left on device" in said
        assert made == (whole if EFFORT > 1 else {name: whole[name] for name in made})
        assert len(made) > 20
        shutil.rmtree(fresh.root / ".snakemake")


def test_a_game_waits_at_the_terminal_until_it_can_be_recorded(tmp_path, monkeypatch, capsys):
    """Whoever has played it makes room meanwhile; where there is no terminal nobody can, so the command ends."""
    refusals = [FileFault("turns.jsonl: cannot be written (No space left on device); make room")] * 2
    written = []

    def write(*given):
        if refusals:
            raise refusals.pop()
        written.append(given)

    monkeypatch.setattr("fishpool.shards.write", write)
    monkeypatch.setattr("fishpool.play._PATIENCE", 0.0)
    shard = SimpleNamespace(tables=("runs", "turns"))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: False))
    with pytest.raises(FileFault, match="make room"):
        people._record(Console(), tmp_path / "game", shard, {})
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    people._record(Console(), tmp_path / "game", shard, {})
    assert written == [(tmp_path / "game", ("runs", "turns"), [{}])]
    assert "make room. The game is kept meanwhile" in " ".join(capsys.readouterr().out.split())
