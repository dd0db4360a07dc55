"""The command `fishpool`: check, see how far it is, play yourself, ask and replay, publish, clean up, an arena.

It plays no study (that is `snakemake`'s), and each command imports what it needs when it runs. Exit codes: 0, 2 for
whatever the user can put right (one sentence a fault on standard error), 130 when interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fishpool import __version__
from fishpool.files import FileFault, sentence
from fishpool.screen import aligned, visible

if TYPE_CHECKING:
    import duckdb

    from fishpool.study import Config


RESULTS, DATABASE = Path("results"), "fishpool.duckdb"


def main(arguments: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # whatever the terminal's encoding, text is shown somehow
    parsed = _parser().parse_args(arguments)
    try:
        code: int = parsed.command(parsed)
        print(end="", flush=True)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has gone, as `head` does; there is nothing to say and nobody to say it to
        _drop_output()
        return 141
    except FileFault as fault:
        return _fail(str(fault))
    except OSError as error:
        if error.filename is not None:
            return _fail(sentence(error))
        _drop_output()
        return _fail(f"standard output: {error.strerror}")
    return code


def check(arguments: argparse.Namespace) -> int:
    from fishpool import costs

    config = _config(arguments)
    if config is None:
        return 2
    rows: list[tuple[str, ...]] = [("study", "game", "conditions", "seeds", "runs", "jobs", "model calls")]
    totals = [0, 0, 0]
    for study in config.studies:
        seeds = len(study.seeds)
        counts = (
            sum(condition.runs_per_seed * seeds for condition in study.conditions),
            sum(len(study.shards(condition)) for condition in study.conditions),
            sum(0 if condition.replay else condition.model_calls_per_seed * seeds for condition in study.conditions),
        )
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        names = textwrap.shorten(", ".join(condition.name for condition in study.conditions), 60, placeholder=" ..")
        rows.append((study.name, study.game, names, f"{seeds:,}", *(f"{count:,}" for count in counts)))
    rows.append(("total", "", "", "", *(f"{total:,}" for total in totals)))
    for line in aligned(rows, left=3):
        print(line)
    for cost in costs.estimate(config):
        print(cost.words)
    return 0


def doctor(arguments: argparse.Namespace) -> int:
    config = _config(arguments)
    if config is None:
        return 2
    from fishpool import doctor

    return 0 if doctor.examine(config) else 2


def sql(arguments: argparse.Namespace) -> int:
    from fishpool import ask

    show = ask.show_csv if arguments.csv else ask.show_json if arguments.json else None
    try:
        with _opened(arguments.database) as connection:
            if arguments.tables is None:
                with ask.ask(connection, arguments.query) as answer:
                    (show or ask.show_table)(answer, sys.stdout)
            elif not arguments.tables:
                (show or ask.show_list)(ask.tables_of(connection), sys.stdout)
            else:
                comment, answer = ask.columns_of(connection, arguments.tables)
                if not show and comment:
                    ask.show_comment(f"{comment}\n", sys.stdout)
                (show or ask.show_list)(answer, sys.stdout)
    except ask.QueryError as error:
        return _fail(str(error))
    return 0


def replay(arguments: argparse.Namespace) -> int:
    from fishpool import ask
    from fishpool import replay as replays
    from fishpool.screen import screen
    from fishpool.transcript import transcript

    try:
        with _opened(arguments.database or arguments.results / DATABASE) as connection:
            (run,) = replays.load_runs(connection, [arguments.run_id])
    except (ask.QueryError, replays.UnknownRun) as error:
        return _fail(str(error))
    for line in transcript(run, screen(sys.stdout), arguments.prompts):
        print(line)
    return 0


def status(arguments: argparse.Namespace) -> int:
    from fishpool import status as states
    from fishpool.models.faults import Stop

    config = _config(arguments)
    if config is None:
        return 2
    try:
        for line in states.report(config, Path()):
            print(line)
    except Stop as stop:
        return _fail(str(stop))
    return 0


def journal(arguments: argparse.Namespace) -> int:
    from fishpool.models import publishing
    from fishpool.models.faults import Stop

    try:
        path = getattr(arguments, "journal", Path("results/journal.sqlite"))
        publishing.command(arguments.action, path, arguments.file, arguments.study)
    except Stop as stop:
        return _fail(str(stop))
    return 0


def play(arguments: argparse.Namespace) -> int:
    from fishpool import play as people
    from fishpool.models.faults import Stop
    from fishpool.study import ConfigError

    try:
        people.play(arguments)
    except ConfigError as error:
        for fault in error.faults:
            _fail(fault)
        return 2
    except Stop as stop:
        return _fail(str(stop))
    return 0


def clean(arguments: argparse.Namespace) -> int:
    from fishpool import stale

    config = _config(arguments)
    if config is None:
        return 2
    results = arguments.results or Path(config.results)
    files = stale.stale_files(results, config)
    if not arguments.dry_run:
        stale.remove(files, results)
    for file in files:
        print(visible(str(file)))
    verb = "would be removed" if arguments.dry_run else "removed"
    print(f"{len(files)} stale file{'' if len(files) == 1 else 's'} {verb}", file=sys.stderr)
    return 0


def arena(arguments: argparse.Namespace) -> int:
    from fishpool.arena.matches import LANES
    from fishpool.arena.store import StoreError

    try:
        from fishpool.arena import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "fishpool":
            raise
        return _fail(f"fishpool arena: {error.name} is not installed; install the extra: pip install 'fishpool[arena]'")
    try:
        server.serve(
            arguments.database,
            arguments.results,
            arguments.study,
            arguments.host,
            arguments.port,
            arguments.rounds,
            {**LANES, **dict(arguments.turn_timeout)},
        )
    except StoreError as error:
        return _fail(str(error))
    return 0


def arena_export(arguments: argparse.Namespace) -> int:
    from fishpool.arena.results import export
    from fishpool.arena.store import StoreError

    try:
        for directory in export(arguments.database, arguments.results, arguments.study):
            print(visible(str(directory)))
    except StoreError as error:
        return _fail(str(error))
    return 0


@contextmanager
def _opened(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """`ask.opened`, with a word on standard error where the database is not made yet."""
    from fishpool import ask

    with ask.opened(database) as connection:
        if note := ask.unfinished(database):
            print(visible(note), file=sys.stderr)
        yield connection


def _config(arguments: argparse.Namespace) -> Config | None:
    """The config that the options name; None, after one sentence a fault, if there is something wrong with it."""
    from fishpool import study

    try:
        return study.load_files(arguments.configfile, study.overrides(arguments.config))
    except study.ConfigError as error:
        for fault in error.faults:
            _fail(fault)
        return None


def _drop_output() -> None:
    """Let Python's last flush of standard output go nowhere, since it would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _fail(sentence: str) -> int:
    print(visible(sentence), file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fishpool", description="A laboratory for social dilemmas between agents.")
    parser.add_argument("--version", action="version", version=f"fishpool {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    configured = argparse.ArgumentParser(add_help=False)
    configured.add_argument(
        "--configfile",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
        metavar="FILE",
        help="config files, merged over the default one (config/config.yaml) in this order",
    )
    configured.add_argument(
        "--config",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="values that override those of the files, as in `snakemake --config`",
    )

    command = commands.add_parser(
        "check", parents=[configured], help="validate the config and count runs, jobs and model calls; writes nothing"
    )
    command.set_defaults(command=check)

    command = commands.add_parser(
        "doctor",
        parents=[configured],
        help="ask the servers of the models a little: are they there, do they keep to context and form, how fast",
    )
    command.set_defaults(command=doctor)

    command = commands.add_parser(
        "status", parents=[configured], help="what is done, what is running, and what is still to be played and paid"
    )
    command.set_defaults(command=status)

    command = commands.add_parser("sql", help="ask the database in SQL (read-only)")
    asked = command.add_mutually_exclusive_group(required=True)
    asked.add_argument("query", nargs="?", help='such as "SELECT player, mean_score FROM pd_ranking ORDER BY rank"')
    asked.add_argument(
        "--tables", nargs="?", const="", metavar="TABLE", help="what there is to ask: the tables, or a table's columns"
    )
    command.add_argument("--database", type=Path, default=RESULTS / DATABASE, metavar="FILE")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="all rows as comma-separated values")
    form.add_argument("--json", action="store_true", help="all rows as a JSON list of objects")
    command.set_defaults(command=sql)

    command = commands.add_parser("replay", help="a run as it was played, round by round")
    command.add_argument("run_id", metavar="RUN_ID", help="such as talk:both:0, from the column run_id of any table")
    place = command.add_mutually_exclusive_group()
    place.add_argument("--database", type=Path, metavar="FILE", help="the database that holds the run")
    place.add_argument("--results", type=Path, default=RESULTS, metavar="DIR", help="the results folder it is in")
    command.add_argument("--prompts", action="store_true", help="show whole what each model was shown")
    command.set_defaults(command=replay)

    journaled = argparse.ArgumentParser(add_help=False)
    journaled.add_argument(
        "--journal",
        type=Path,
        default=argparse.SUPPRESS,
        metavar="PATH",
        help="the journal (default: results/journal.sqlite)",
    )
    command = commands.add_parser("journal", parents=[journaled], help="count, export or import the models' replies")
    command.set_defaults(command=journal, action=None, file=None, study=None)
    actions = command.add_subparsers(metavar="ACTION")
    action = actions.add_parser("export", parents=[journaled], help="write the replies to a file that can be published")
    action.add_argument("file", type=Path, metavar="FILE", help="such as replies.jsonl.xz")
    action.add_argument("--study", metavar="NAME", help="only the replies of this study")
    action.set_defaults(action="export")
    action = actions.add_parser("import", parents=[journaled], help="add the replies of a published file")
    action.add_argument("file", type=Path, metavar="FILE", help="what export wrote")
    action.set_defaults(action="import")

    command = commands.add_parser(
        "play", parents=[configured], help="play a game yourself in the terminal; it is recorded as any run"
    )
    command.add_argument("game", choices=("prisoners_dilemma", "commons"), metavar="GAME", help="%(choices)s")
    command.add_argument(
        "--against",
        nargs="+",
        action="extend",
        required=True,
        metavar="PLAYER",
        help="a scripted player, axelrod:NAME, process:COMMAND, model:NAME, or a mapping as in a config ({model: NAME, "
        "temperature: 0}); in the commons several, also 4*PLAYER",
    )
    command.add_argument("--rounds", type=int, help="how many; the game's own default otherwise")
    command.add_argument("--noise", type=float, help="the game's parameter of this name")
    command.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="further parameters of the game"
    )
    command.add_argument(
        "--seed", type=_whole(0, 2**63 - 1), help="of all draws; the first that was not played yet otherwise"
    )
    command.add_argument("--condition", metavar="NAME", help="in the records; made of the parameters otherwise")
    command.add_argument("--lane", help="the clock that counts for you too; without it you have all the time you want")
    command.add_argument("--name", default="person", help="what you are called in the records (%(default)s)")
    command.add_argument("--results", type=Path, metavar="DIR", help="the results folder, if not that of the config")
    command.set_defaults(command=play)

    command = commands.add_parser(
        "clean", parents=[configured], help="remove records and tables that no study of the config names"
    )
    command.add_argument("--stale", action="store_true", required=True, help="what is removed: files no config names")
    command.add_argument("--results", type=Path, metavar="DIR", help="the results folder, if not that of the config")
    command.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    command.set_defaults(command=clean)

    _add_arena(commands.add_parser("arena", help="serve the prisoner's dilemma to agents over HTTP and WebSocket"))
    return parser


def _add_arena(command: argparse.ArgumentParser) -> None:
    command.add_argument("--host", default="127.0.0.1", help="where to listen; the default admits this machine only")
    command.add_argument("--port", type=_whole(0, 65_535), default=8765, help="0: any free one")
    command.add_argument("--rounds", type=_whole(1, 10_000), default=20, help="of every match")
    command.add_argument(
        "--turn-timeout",
        type=_turn_timeout,
        action="append",
        default=[],
        metavar="LANE=SECONDS",
        help="another clock for a lane; they are fast=30 and standard=120",
    )
    command.set_defaults(command=arena)
    kept = {"database": Path("results/arena.sqlite"), "results": Path("results"), "study": "arena"}
    command.set_defaults(**kept)
    export = command.add_subparsers(metavar="[export]").add_parser(
        "export", help="write the finished matches of a database as records, as the server does when it stops"
    )
    export.set_defaults(command=arena_export)
    for parser in (command, export):  # no defaults here, or those of `export` would replace what came before it
        parser.add_argument(
            "--database", type=Path, default=argparse.SUPPRESS, metavar="FILE", help=f"SQLite; {kept['database']}"
        )
        parser.add_argument(
            "--results", type=Path, default=argparse.SUPPRESS, metavar="DIR", help="the folder that records are below"
        )
        parser.add_argument(
            "--study", type=_study_name, default=argparse.SUPPRESS, help="what the matches are recorded as; arena"
        )


def _whole(least: int, most: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"expected a whole number from {least} to {most}, found {text[:60]!r}")
        return int(text)

    return whole


def _turn_timeout(text: str) -> tuple[str, float]:
    lane, _, seconds = text.partition("=")
    try:
        if lane in ("fast", "standard") and 0 < float(seconds) <= 86_400:
            return lane, float(seconds)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected fast=SECONDS or standard=SECONDS, up to 86400, found {text[:60]!r}")


def _study_name(text: str) -> str:
    from fishpool import study

    if not study.is_name(text):
        raise argparse.ArgumentTypeError(
            f"expected at most 64 letters, digits, _ and -, the first a letter or a digit, found {text[:60]!r}"
        )
    return text


if __name__ == "__main__":
    sys.exit(main())
