"""The manual is true: it builds, its links lead somewhere, its commands parse, its configs, SQL and Python run.

The tutorial is followed to the letter, but that its games are played in this process and not by Snakemake's; what the
how-tos add to the library is added to a copy of it, and Snakemake plans with it.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb
import polars as pl
import pytest
import yaml

from fishpool import cli, records, study
from fishpool.players import commons as commons_players
from fishpool.players import scripted

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
import generate  # noqa: E402

TUTORIAL = DOCS / "tutorial.md"
ADDED = {  # by the how-tos: the page that shows what is in the file, and the language
    "workflow/sql/prisoners_dilemma/pd_first_defections.sql": ("metric", "sql"),
    "fishpool/figures/rq15.py": ("question", "python"),
}
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.name != "cookbook.md")  # which has tests of its own


@dataclass(frozen=True)
class Fragment:
    """A fenced block; `file` is what its first line names, and `place` where in that file, if it says so."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def file(self) -> str:
        named = re.match(r"# ([\w./-]+\.(?:yaml|py|smk))(?:, in \w+)?\n", self.text)
        return named[1] if named else ""

    @property
    def place(self) -> str:
        named = re.match(r"# [\w./-]+, in (\w+)\n", self.text)
        return named[1] if named else ""

    @property
    def body(self) -> str:
        return self.text.partition("\n")[2] if self.file else self.text

    def __str__(self) -> str:
        return f"{self.page.relative_to(DOCS)}:{self.line}"


def fragments(*languages: str, pages: list[Path] = PAGES) -> list[Fragment]:
    found = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for fence in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            found.append(Fragment(page, text[: fence.start()].count("\n") + 1, fence[1], fence[2]))
    return [one for one in found if one.language in languages]


def added(file: str) -> str:
    """What a how-to puts into a new file."""
    page, language = ADDED[file]
    (text,) = (one.text for one in fragments(language) if one.page.stem == page and not one.file)
    return text


def commands(fragment: Fragment) -> list[tuple[str, str]]:
    """The commands after each `$ `, as far as their quotes go, each with what is shown below it."""
    found, lines = [], fragment.text.splitlines()
    while lines:
        line = lines.pop(0)
        assert line.startswith("$ "), f"{fragment}: {line}"
        command, shown = line.removeprefix("$ "), []
        while command.count('"') % 2 or command.count("'") % 2:
            command += "\n" + lines.pop(0)
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        found.append((command, "\n".join(shown)))
    return found


def in_file(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


# ── It builds, and its links lead somewhere ──────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual")
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "cache"), str(DOCS), str(folder / "html")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return folder / "html"


class _Links(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        elif given.get("src") or (tag == "link" and given.get("href")):
            self.fetched.append(str(given.get("src") or given["href"]))


def test_every_internal_link_leads_somewhere_and_nothing_comes_from_the_network(built):
    pages = {page: _Links(page.read_text(encoding="utf-8")) for page in built.rglob("*.html")}
    assert {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")} <= {
        page.relative_to(built).with_suffix("") for page in pages
    }
    for page, found in pages.items():
        for link in [*found.links, *found.fetched]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert link in found.links, f"{page.name} fetches {link}"
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), f"{page.name} links to {link}"
            if parts.fragment and target in pages:
                assert parts.fragment in pages[target].ids, f"{page.name} links to {link}"
    for style in built.rglob("*.css"):
        assert not re.search(r"@import|url\(\s*['\"]?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def test_the_reference_holds_every_key_table_column_and_option(built):
    said = {page.stem: page.read_text(encoding="utf-8") for page in (built / "reference").glob("*.html")}
    schema = yaml.safe_load(study.SCHEMA.read_text(encoding="utf-8"))
    mappings = [schema, *schema["$defs"].values()]
    for key in {key for mapping in mappings for key in mapping.get("properties", ())}:
        assert f'<span class="pre">{key}</span>' in said["config"], key
    for game in records.GAME_TABLES:
        for table, columns in generate.empty_tables(game).items():
            page = said["tables" if table in (*records.GAME_TABLES[game], *records.MODEL_TABLES) else "metrics"]
            assert f'<span class="pre">{table}</span>' in page, table
            for column in columns:
                assert f'<span class="pre">{column}</span>' in page, column
    for option in {*re.findall(r'"(--[a-z-]+)"', in_file("fishpool/cli.py"))} - {"--version"}:
        assert option in said["commands"], option


def test_every_metric_table_has_a_place_in_the_reference():
    made = {table for game in records.GAME_TABLES for table in generate.empty_tables(game)}
    assert made == set(generate.comments_of_tables())


# ── Commands ─────────────────────────────────────────────────────────────────────────────────────────────────────

CONSOLE = [(fragment, command) for fragment in fragments("console", "bash") for command, _ in commands(fragment)]
OTHERS = {"curl", "uvx"}  # not ours, and not to be run here


@pytest.mark.parametrize(("fragment", "command"), CONSOLE, ids=[f"{one}-{i}" for i, (one, _) in enumerate(CONSOLE)])
def test_a_command_is_one_that_there_is(fragment, command, capsys):
    program, *arguments = shlex.split(command.replace('"$(cat my-question.sql)"', "query"))
    name = Path(program).name
    if name == "fishpool":
        _parse(cli._parser(), arguments, capsys)
    elif name == "snakemake":
        from snakemake.cli import get_argument_parser

        executor = "--executor" in arguments  # whose names are those of installed plugins
        _parse(get_argument_parser(), [one for one in arguments if one not in ("--executor", "slurm")], capsys)
        assert not executor or fragment.page.stem == "cluster"
    elif name == "make":
        targets = re.findall(r"^([\w./-]+):", in_file("Makefile"), re.MULTILINE)
        assert arguments
        assert set(arguments) <= set(targets)
    elif name == "uv":
        done = subprocess.run([sys.executable, "-m", "uv", "pip", "install", "--help"], capture_output=True, text=True)
        assert all(f"{one} " in done.stdout for one in arguments if one.startswith("--"))
    else:
        assert name in OTHERS, f"{fragment}: {name}"


def _parse(parser: argparse.ArgumentParser, arguments: list[str], capsys: Any) -> None:
    try:
        parser.parse_args(arguments)
    except SystemExit:
        pytest.fail(capsys.readouterr().err)
    options = {option for one in _parsers(parser) for option in one._option_string_actions}
    assert {one for one in arguments if one.startswith("--")} <= options  # argparse would take a part of one as well


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _parsers(below)


def test_pages_name_only_files_that_there_are():
    for page in PAGES:
        for path in re.findall(
            r"`((?:config|docs|examples|fishpool|scripts|tests|workflow)/[\w./-]+)`", page.read_text()
        ):
            assert path in ADDED or "NN" in path or (ROOT / path).exists(), f"{page.name}: {path}"


# ── Configs ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def extended() -> Iterator[None]:
    """The library with the players that the how-tos add."""
    strategies, players = dict(scripted.STRATEGIES), dict(commons_players.PLAYERS)
    for fragment in fragments("python"):
        if fragment.file == "fishpool/players/scripted.py":
            exec(fragment.text, vars(scripted))
        elif fragment.file == "fishpool/players/commons.py" and not fragment.place:
            exec(fragment.text, vars(commons_players))
    for fragment in fragments("python"):
        if fragment.place == "PLAYERS":
            commons_players.PLAYERS.update(eval(f"{{{fragment.body}}}", vars(commons_players)))
    yield
    for there, before in ((scripted.STRATEGIES, strategies), (commons_players.PLAYERS, players)):
        there.clear()
        there.update(before)


@pytest.mark.parametrize("fragment", fragments("yaml"), ids=str)
def test_a_config_is_valid(fragment, extended, tmp_path, monkeypatch):
    given = yaml.safe_load(fragment.text)
    if fragment.file == "wrong.yaml":
        with pytest.raises(study.ConfigError):
            study.load(given)
        return
    if "studies" not in given:
        given["studies"] = {"one": {"game": "dictator", "oracles": ["published"]}}
    for name in ("config", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    for one in given["studies"].values():
        if replay := one.get("replay"):
            (tmp_path / replay).touch()
    monkeypatch.chdir(tmp_path)
    config = study.load(given)
    assert {one.name for one in config.configured} == set(given["studies"])


def test_the_document_that_is_shown_is_a_strategy(tmp_path):
    from fishpool.documents import read_documents

    (document,) = fragments("markdown")
    (tmp_path / "one.md").write_text(document.text)
    assert [one.name for one in read_documents(tmp_path)] == ["fair-enough"]


def test_the_added_players_play(extended):
    text = next(one for one in fragments("yaml") if one.file == "forgiver.yaml").text
    frames = played(study.load(yaml.safe_load(text.replace("seeds: 50", "seeds: 2"))))
    assert set(frames["turns"]["player"]) == {"Forgiver", "TitForTat", "Grudger", "Random"}
    text = next(one for one in fragments("yaml") if one.file == "halves.yaml").text
    frames = played(study.load(yaml.safe_load(text.replace("seeds: 50", "seeds: 2"))))
    caught = frames["turns"].filter(pl.col("player") == "half_share", pl.col("round") == 1, phase="catch")
    assert set(caught["catch"]) == {5}


# ── SQL and Python ───────────────────────────────────────────────────────────────────────────────────────────────


def played(config: study.Config) -> dict[str, pl.DataFrame]:
    """The records of all selected studies, which are of one game."""
    batches = [
        frames
        for one in config.studies
        for condition in one.conditions
        for shard in one.shards(condition)
        for frames in import_module(f"fishpool.runners.{one.game}").play(shard)
    ]
    return {table: pl.concat([frames[table] for frames in batches]) for table in batches[0]}


def write_database(config: study.Config, file: Path) -> None:
    """The database that the workflow would make of these studies."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as connection:
        generate.fill(config.studies[0].game, connection, played(config))


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the tutorial has been followed, with what each command printed beside what the page shows."""
    folder = tmp_path_factory.mktemp("tutorial")
    with chdir(folder):
        for fragment in fragments("yaml", "console", pages=[TUTORIAL]):
            if fragment.language == "yaml":
                Path(fragment.file).write_text(fragment.text)
                continue
            for command, shown in commands(fragment):
                program, *arguments = shlex.split(command)
                if program.endswith("snakemake"):
                    config = study.load_files([Path(arguments[arguments.index("--configfile") + 1])])
                    write_database(config, Path(config.results) / "fishpool.duckdb")
                elif program.endswith("fishpool"):
                    with (folder / "said").open("a") as file, redirect_stdout(file), redirect_stderr(file):
                        cli.main(arguments)
                    with (folder / "shown").open("a") as file:
                        file.write(f"{shown}\n")
    return folder


def test_the_tutorial_shows_what_its_commands_print(tutorial):
    assert (tutorial / "shown").read_text() == (tutorial / "said").read_text()


def test_the_metric_is_computed(tutorial):
    sql = added("workflow/sql/prisoners_dilemma/pd_first_defections.sql")
    assert sql.startswith("-- pd_first_defections: a row is ")
    with duckdb.connect(str(tutorial / "my-results" / "fishpool.duckdb")) as connection:
        generate.register(connection)
        rows = connection.sql(sql).pl()
    assert rows.height == 9
    assert rows["rate"].is_between(0, 1).all()
    by_player = {(row["condition"], row["player"]): row for row in rows.to_dicts()}
    assert by_player["plain", "Defector"]["rate"] == 1
    assert by_player["plain", "Defector"]["rate_low"] is None
    assert by_player["plain", "TitForTat"]["rate"] == 0
    assert by_player["noisy", "TitForTat"]["rate_low"] < by_player["noisy", "TitForTat"]["rate"]


def test_the_question_is_drawn(tutorial):
    sql, module = map(added, ADDED)
    with duckdb.connect(str(tutorial / "my-results" / "fishpool.duckdb")) as connection:
        generate.register(connection)
        rows = connection.sql(sql).pl()
    namespace: dict[str, Any] = {}
    exec(compile(module, "rq15", "exec"), namespace)
    svg = _svg(namespace["chart"](rows))
    assert {"Who defects first?", "TitForTat", "noisier"} <= set(re.findall(r">([^<>]+)</text>", svg))
    namespace["chart"](rows.clear()).to_dict()


def _svg(chart: Any) -> str:
    import vl_convert

    return vl_convert.vegalite_to_svg(chart.to_dict())


@pytest.mark.parametrize("fragment", [one for one in fragments("python") if "assert" in one.text], ids=str)
def test_python_runs(fragment):
    exec(fragment.text, {})


@pytest.mark.workflow
def test_snakemake_plans_what_the_how_tos_add(tmp_path):
    for name in ("config", "workflow", "scripts", "fishpool"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for fragment in fragments("python", "yaml"):
        if fragment.place:
            text = (tmp_path / fragment.file).read_text()
            opening = re.search(rf"^{fragment.place}\b[^\n]*= \{{\n", text, re.MULTILINE)
            text = text[: opening.end()] + fragment.body + text[opening.end() :]
        elif fragment.language == "python" and fragment.file:
            text = (tmp_path / fragment.file).read_text()
            marker = "\n# --- the players ---" if "commons" in fragment.file else "\n# ── Counting ──"
            text = text.replace(marker, f"\n{fragment.body}\n{marker}")
        elif fragment.language == "yaml" and fragment.file:
            text = fragment.text
        else:
            continue
        (tmp_path / fragment.file).write_text(text)
    for file in ADDED:
        (tmp_path / file).write_text(added(file))
    options = ["--configfile", "forgiver.yaml", "--cores", "1", "--dry-run", "results/figures/rq15.svg"]
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(Path(sys.executable).parent) + ":/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    planned = re.findall(r"^Job \d+: (.+)$", done.stdout + done.stderr, re.MULTILINE)
    assert {"query pd_first_defections of forgiver/noisy", "draw rq15", "play forgiver/plain/seeds-0"} <= set(planned)
    tests = [sys.executable, "-m", "fishpool.cli", "check", "--configfile", "halves.yaml"]
    assert subprocess.run(tests, cwd=tmp_path, check=False, capture_output=True).returncode == 0
