"""The page itself: what the other modules of this package give, put into its templates and written whole or not at all.

It asks nothing and decides no wording. Whatever comes from a study (names, messages, replies) has its unseen characters
written out, as on a terminal, and goes through Jinja's escaping or into JSON that cannot end its script; the page's
own policy lets no other script run and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fishpool import __version__
from fishpool.database import opened
from fishpool.files import FileFault, replacing
from fishpool.replay import Replay, Reply, load_runs
from fishpool.report import charts, dictator, pool, quality
from fishpool.report.questions import QUESTIONS, Asked, answers
from fishpool.report.sample import Sampled, choose
from fishpool.report.tables import Table, Tables, table, text
from fishpool.screen import visible

ROWS_SHOWN = 40  # of the rows behind a figure

GAMES = {
    "prisoners_dilemma": "The iterated prisoner’s dilemma",
    "commons": "The fish pool",
    "dictator": "The open-strategy dictator game",
}


@dataclass(frozen=True)
class Figure:
    """A figure twice: as a picture that is there at once, and as the specification that makes it react."""

    key: str
    picture: str  # a data URL
    width: int
    height: int
    description: str
    filters: bool  # whether a legend of it can be clicked


@dataclass(frozen=True)
class Section:
    """What the page says about one question."""

    key: str
    title: str
    asked: Asked
    runs: str
    findings: list[str | Table]
    matrices: list[Table]
    figure: Figure
    sql: str
    rows: Table
    replays: list[tuple[int, Sampled]]


def build(
    database: Path,
    figures: Path,
    asked: Mapping[str, Asked],
    output: Path,
    runs: str | Sequence[str] = "sample",
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write the report.

    `figures` is the folder of `rqNN.svg` and `rqNN.json`; `asked` holds, by question, the conditions by study that it
    is asked of; `runs` is "sample", "all" or a list of run ids to replay besides the sample; `notes` are the
    studies' own, by name.
    """
    with opened(database) as connection:
        html = render(Tables(connection), figures, asked, runs, notes or {})
    with replacing(output) as part:
        part.write_text(html, encoding="utf-8")


def render(
    tables: Tables,
    figures: Path,
    asked: Mapping[str, Asked],
    runs: str | Sequence[str],
    notes: Mapping[str, str],
) -> str:
    """The page as text."""
    sampled = choose(tables, runs)
    replays = load_runs(tables.connection, [one.run_id for one in sampled])
    specifications = {key: charts.with_filters(_specification(figures / f"{key}.json")) for key in asked}
    sections = {key: _section(key, tables, here, figures, specifications[key], sampled) for key, here in asked.items()}
    scripts = {
        "vega": f"(function () {{{charts.bundle()}\n}})();",
        "page": _template_text("report.js"),
    }
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts.values())
    return (
        _environment()
        .get_template("report.html")
        .render(
            policy=f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:",
            style=_template_text("report.css"),
            scripts=scripts,
            version=__version__,
            summary=quality.summary(tables),
            notes=notes,
            quality=list(quality.sections(tables)),
            games={
                game: (title, [section for key, section in sections.items() if QUESTIONS[key].game == game])
                for game, title in GAMES.items()
                if any(QUESTIONS[key].game == game for key in sections)
            },
            specifications={key: charts.script_safe(one) for key, one in specifications.items()},
            sampled=list(enumerate(sampled)),
            replays=list(zip(sampled, replays, strict=True)),
            anchors=charts.script_safe({one.run_id: number for number, one in enumerate(sampled)}),
        )
    )


def _section(
    key: str, tables: Tables, asked: Asked, figures: Path, specification: Mapping[str, Any], sampled: Sequence[Sampled]
) -> Section:
    question = QUESTIONS[key]
    sql = question.query(asked)
    rows = tables.rows(sql)
    places = {study: list(conditions) for study, conditions in asked.items()}
    return Section(
        key=key,
        title=specification["title"]["text"],
        asked=asked,
        runs=_runs(tables, asked),
        findings=answers(key, tables, asked),
        matrices=list(dictator.matrices(key, tables, asked)) if question.game == "dictator" else [],
        figure=_figure(key, figures, specification),
        sql=sql,
        rows=table("The first rows" if len(rows) > ROWS_SHOWN else "The rows", rows, most=ROWS_SHOWN),
        replays=[(number, one) for number, one in enumerate(sampled) if one.condition in places.get(one.study, ())],
    )


def _runs(tables: Tables, asked: Asked) -> str:
    """How much was played for a question."""
    (row,) = tables.rows(
        "SELECT count(*) AS runs, count(DISTINCT (study, condition)) AS conditions, count(DISTINCT seed) AS seeds "
        "FROM runs WHERE study IN (SELECT unnest($studies))",
        studies=list(asked),
    )
    return (
        f"{row['runs']:,} run{'s'[: row['runs'] != 1]} under {row['conditions']} "
        f"condition{'s'[: row['conditions'] != 1]}, {row['seeds']:,} seed{'s'[: row['seeds'] != 1]}"
    )


def _opening(svg: bytes) -> bytes:
    """The opening tag, whose description may be of any length; quotes and angle brackets in it are entities."""
    start = svg.index(b"<svg ")
    return svg[start : svg.index(b">", start)]


def _specification(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise FileFault(f"{file}: not the JSON that was written; delete it and run snakemake") from error


def _figure(key: str, figures: Path, specification: Mapping[str, Any]) -> Figure:
    svg = (figures / f"{key}.svg").read_bytes()
    width, height = (round(float(found)) for found in re.findall(rb' (?:width|height)="([\d.]+)', _opening(svg))[:2])
    picture = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    return Figure(key, picture, width, height, specification.get("description", ""), "params" in specification)


def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fishpool.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": text, "stock_chart": pool.stock_chart, "lines": _lines, "fragment": _fragment}
    environment.globals |= {"messages": messages, "points": points}
    return environment


def _visible(value: Any) -> Any:
    """What is put into the page: texts in which nothing but line ends and tabs is unseen, and markup of our own."""
    from markupsafe import Markup

    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return re.sub(r"[^\n\t]+", lambda line: visible(line[0]), value)


def _lines(values: Mapping[str, Any]) -> str:
    """One line a key."""
    return "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())


def _fragment(run_id: str) -> str:
    """A run id as a page's address holds it."""
    return quote(run_id, safe=":")


def _template_text(name: str) -> str:
    return Path(__file__).with_name("templates").joinpath(name).read_text(encoding="utf-8")


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@dataclass(frozen=True)
class Shown:
    """A message of a request; `seen` says where the same one has been shown already."""

    role: str
    content: str
    seen: str


def messages(replay: Replay) -> Callable[[Reply], list[Shown]]:
    """What a model saw before a reply; a message that was shown before is not repeated."""
    seen: dict[tuple[str, str], str] = {}
    made: dict[int, list[Shown]] = {}  # by identity: two replies may be equal
    for played in replay.rounds:
        for phase in played.phases:
            for turn in phase.turns:
                for reply in turn.replies:
                    made[id(reply)] = [Shown(*message, seen.get(message, "")) for message in reply.messages]
                    here = f"round {played.number}, {phase.name}, request {reply.attempt} of {turn.agent}"
                    for message in reply.messages:
                        seen.setdefault(message, here)
    return lambda reply: made[id(reply)]


def points(replay: Replay, agent: str) -> int:
    """The points of an agent of a match; a round that was not scored gives none."""
    return sum(turn.values.get("payoff", 0) for turn in replay.turns if turn.agent == agent)
