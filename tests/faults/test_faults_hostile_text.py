"""Hostile text from end to end: it is text wherever it appears, unchanged wherever it is kept, and never anything else.

A study of all three games is played in which everybody says every text of `hostile_texts.py`, once for all tests here;
with FISHPOOL_FAULTS=10 or more by Snakemake itself.
"""

import csv
import html
import io
import json
import lzma
import re
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import duckdb
import hostile_study
import polars as pl
import pytest
import yaml
from effort import EFFORT
from hostile_study import KEY, Made
from hostile_texts import LONE_SURROGATE, OWNED, SOME, TEXTS
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fishpool import ask, cli, study
from fishpool.documents import parse_document, shown
from fishpool.figures.files import save
from fishpool.models.calls import Reply, Request
from fishpool.models.journal import Entry, Sort
from fishpool.players.process import Log
from fishpool.prompts import encode
from fishpool.remarks import failures, last_line, remarks
from fishpool.report import charts, page
from fishpool.screen import visible, wrapped

pytestmark = pytest.mark.faults

ANY_TEXT = st.text() | st.sampled_from(list(TEXTS.values()))
CASES = settings(deadline=None, derandomize=True, max_examples=200 * EFFORT)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("hostile")
    return hostile_study.make_by_snakemake(root) if EFFORT >= 10 else hostile_study.make(root)


@pytest.fixture
def here(made: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """The study, in whose folder the test is, with a terminal whose answers are read."""
    monkeypatch.chdir(made.root)
    monkeypatch.setattr(sys, "argv", ["fishpool"])
    return made


def fishpool(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def is_safe(text: str) -> bool:
    """Whether a terminal shows the text and does nothing."""
    return all(line.isprintable() for line in text.split("\n"))


def in_lines(text: str) -> str:
    """As a page shows it: line ends and tabs are seen, whatever else is unseen is written out."""
    return "".join(c if c in "\n\t" else visible(c) for c in text)


# ── Kept as it was said ──────────────────────────────────────────────────────────────────────────────────────────


def messages(actions: Iterator[str | None]) -> set[str]:
    return {json.loads(action).get("message", "") for action in actions if action}


def test_every_message_is_the_same_in_jsonl_parquet_and_the_database(made: Made) -> None:
    lines = (made.results / "jsonl/pool/toString/seeds-0/turns.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    written = [json.loads(line)["action"] for line in lines]
    frame = pl.read_parquet(made.results / "parquet/turns/pool/toString.parquet")
    with duckdb.connect(str(made.database), read_only=True) as connection:
        [asked] = connection.sql(
            "SELECT list(action ORDER BY round, phase, agent) FROM turns WHERE run_id LIKE 'pool:toString:%'"
        ).fetchall()[0]
    assert written == frame["action"].to_list()
    assert sorted(filter(None, written)) == sorted(filter(None, asked))
    assert set(TEXTS.values()) <= messages(iter(written))


def test_every_reply_is_the_same_in_records_and_journal(made: Made) -> None:
    with duckdb.connect(str(made.database), read_only=True) as connection:
        rows = connection.sql("SELECT reply, request_sha256 FROM replies").fetchall()
    with sqlite3.connect(made.results / "journal.sqlite") as journal:
        kept = dict(journal.execute("SELECT key, text FROM replies").fetchall())
    assert {key: reply for reply, key in rows} == kept
    said = "\0\0".join(kept.values())
    lacking = [name for name, text in TEXTS.items() if text not in said and json.dumps(text)[1:-1] not in said]
    assert lacking == []


def test_every_document_reaches_the_model_whole(made: Made) -> None:
    asked = [body["messages"][1]["content"] for body in made.asked if "decision" in body["format"]["properties"]]
    for number, file in enumerate(sorted((made.root / "strategies").glob("*.md"))):
        document = parse_document(file.read_bytes(), "")
        assert document.name == f"document-{number}"
        dictator = f"<dictator_strategy>\n{html.escape(document.text, quote=False)}\n</dictator_strategy>"
        assert any(dictator in prompt for prompt in asked)
        recipients = [json.loads(prompt.split("<recipient_strategy>")[1].partition("</")[0]) for prompt in asked]
        assert any("\n".join(line["text"] for line in lines) == document.text for lines in recipients)


def test_every_name_of_recorded_games_is_kept(made: Made) -> None:
    with duckdb.connect(str(made.database), read_only=True) as connection:
        names = {name for (name,) in connection.sql("SELECT DISTINCT player FROM turns").fetchall()}
    assert set(TEXTS.values()) <= names


# ── Said again to a model ────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_said_stands_in_the_next_prompts_encoded_and_substituted_by_nothing(made: Made) -> None:
    prompts = [body["messages"][-1]["content"] for body in made.asked if "message" in body["format"]["properties"]]
    heard: set[str] = set()
    for prompt in prompts:
        for line in prompt.split("\n"):
            if line.startswith('{"round"') and '"message"' in line:
                heard.add(json.loads(line)["message"])
        assert is_safe(prompt)
    assert set(TEXTS.values()) <= heard
    assert not any("You are agent_9" in line for prompt in prompts for line in prompt.split("\n") if line[:1] != "{")


# ── Nothing was executed, nothing told ───────────────────────────────────────────────────────────────────────────


def test_nothing_was_executed(made: Made) -> None:
    assert [file for file in made.root.rglob("*") if file.name == OWNED] == []


def test_the_key_that_the_server_repeats_is_in_no_file_and_on_no_screen(made: Made) -> None:
    """Parquet and DuckDB compress, so what they hold is looked at as rows."""
    files = [file for file in made.root.rglob("*") if file.is_file()]
    assert len(files) > 100
    assert [str(file) for file in files if KEY.encode() in file.read_bytes()] == []
    assert KEY not in made.said
    with duckdb.connect(str(made.database), read_only=True) as connection:
        tables = [name for (name,) in connection.sql("SELECT table_name FROM duckdb_tables()").fetchall()]
        for table in tables:
            assert KEY not in str(connection.sql(f'FROM "{table}"').fetchall())
        [[counted]] = connection.sql("SELECT count(*) FROM replies WHERE contains(reply, 'Bearer ***')").fetchall()
    assert counted > 100


def test_the_published_journal_has_no_key(here: Made, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = fishpool(capsys, "journal", "export", "published.jsonl")
    assert (code, err) == (0, "")
    published = lzma.decompress(Path("published.jsonl").read_bytes())
    assert published.count(b"Bearer ***") > 100
    assert KEY.encode() not in published


def test_a_bot_is_told_no_key_and_its_log_steers_no_terminal(made: Made) -> None:
    logs = list((made.results / "logs" / "players").rglob("sayer.log"))
    text = "".join(log.read_text(encoding="utf-8") for log in logs)
    assert "'PATH': " in text
    assert "HOSTILE_KEY" not in text
    assert is_safe(text.replace("\t", ""))


# ── On a terminal ────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_run_is_replayed_as_text(here: Made, capsys: pytest.CaptureFixture[str]) -> None:
    with duckdb.connect(str(here.database), read_only=True) as connection:
        runs = [run for (run,) in connection.sql("SELECT run_id FROM runs ORDER BY run_id").fetchall()]
    shown_at_all = ""
    for run in runs:
        code, out, err = fishpool(capsys, "replay", run, *(["--prompts"] if ":toString:" in run else []))
        assert (code, err) == (0, "")
        assert is_safe(out), run
        shown_at_all += out
    one_line = re.sub(r"\n +[│|] ", "", shown_at_all)
    lacking = [name for name, text in TEXTS.items() if visible(text).strip() not in one_line and "\n" not in text]
    assert lacking == []


def test_tables_of_sql_are_text_and_csv_and_json_are_exact(here: Made, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT DISTINCT player FROM turns ORDER BY player"
    code, out, err = fishpool(capsys, "sql", query)
    assert (code, err) == (0, "")
    assert is_safe(out)
    rows = {line.rstrip() for line in out.split("\n")}
    assert {visible(text).rstrip() for text in TEXTS.values()} <= rows
    _, out, _ = fishpool(capsys, "sql", query, "--json")
    names = [row["player"] for row in json.loads(out)]
    assert set(TEXTS.values()) <= set(names)
    _, out, _ = fishpool(capsys, "sql", query, "--csv")
    assert [row["player"] for row in csv.DictReader(io.StringIO(out, newline=""))] == names


def test_names_that_become_columns_are_text_too(here: Made, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = fishpool(capsys, "sql", "PIVOT (SELECT player FROM turns) ON player USING count(*)")
    assert (code, err) == (0, "")
    assert is_safe(out)
    for name in ("escape title", "html image", "override"):
        assert visible(TEXTS[name]) in out


def test_a_name_in_a_sentence_about_a_query_is_text(here: Made, capsys: pytest.CaptureFixture[str]) -> None:
    for text in list(TEXTS.values())[:: 1 if EFFORT > 1 else 4]:
        quoted = text.replace('"', '""').replace("\0", "")
        for query in (f'SELECT "{quoted}" FROM turns', f'FROM "{quoted}"', f"SELECT '{text}'::INTEGER", text):
            code, out, err = fishpool(capsys, "sql", query)
            assert code in (0, 2)
            assert is_safe(out + err), query
            assert err.count("\n") == (code == 2)
    assert not Path(OWNED).exists()


def test_status_journal_remarks_and_notes_are_text(here: Made, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("status", "--configfile", "hostile.yaml"), ("journal",)):
        code, out, err = fishpool(capsys, *arguments)
        assert (code, err) == (0, "")
        assert is_safe(out)
    assert is_safe("\n".join(remarks(here.database)))
    log = here.root / "some.log"
    for text in TEXTS.values():
        log.write_text(f"Error in rule play:\n    jobid: 3\n    log: {log}\n{text}\n", encoding="utf-8")
        assert is_safe("\n".join([last_line(log), *failures([log])]))


def test_a_published_journal_whose_models_have_hostile_names_is_listed_as_text_and_kept_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines: list[dict[str, Any]] = [{"format": "fishpool journal", "version": 1}]
    for text in TEXTS.values():
        said = ({"role": "user", "content": text},)
        request = Request("ollama", text, text, said, None, {"seed": 1}, None, f"{text}:c:0", text, 1, text, 1)
        entry = Entry(Sort.ANSWER, Reply(text, text, text, 1, 1, 1.0), None, text)
        lines.append({"server": text, "model": text, "digest": text})
        lines.append({"key": request.key, "request": json.loads(request.to_json()), **asdict(entry)})
    Path("published.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    code, out, err = fishpool(capsys, "journal", "import", "published.jsonl", "--journal", "journal.sqlite")
    assert (code, err) == (0, "")
    code, out, err = fishpool(capsys, "journal", "--journal", "journal.sqlite")
    assert (code, err) == (0, "")
    assert is_safe(out)
    assert visible(TEXTS["escape title"]) in out
    fishpool(capsys, "journal", "export", "again.jsonl.xz", "--journal", "journal.sqlite")
    again = [json.loads(line) for line in lzma.decompress(Path("again.jsonl.xz").read_bytes()).splitlines()]
    found, written = (sorted(json.dumps(line, sort_keys=True) for line in some) for some in (again, lines))
    assert found == written


def test_the_terminal_of_the_workflow_shows_no_control_character(made: Made) -> None:
    assert is_safe(made.said.replace("\r\n", "\n").replace("\t", " "))


@pytest.mark.parametrize("name", TEXTS)
def test_an_unknown_run_is_one_line(name: str, here: Made, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = fishpool(capsys, "replay", TEXTS[name])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert is_safe(err)


# ── Figures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_figures_are_whole_and_show_names_as_text(made: Made) -> None:
    figures = made.results / "figures"
    drawn = sorted(file.stem for file in figures.glob("*.svg"))
    assert len(drawn) == 14
    for key in drawn:
        image = ElementTree.fromstring((figures / f"{key}.svg").read_bytes())
        tags = {element.tag.rpartition("}")[2] for element in image.iter()}
        assert tags <= {"svg", "g", "path", "text", "tspan", "rect", "line", "defs", "clipPath", "image", "style"} | {
            "linearGradient", "stop",
        }, (key, tags)  # fmt: skip
        links = [value for element in image.iter() for name, value in element.attrib.items() if name.endswith("href")]
        assert all(link.startswith("data:image/png;base64,") for link in links)
        assert (figures / f"{key}.pdf").read_bytes().startswith(b"%PDF")
        page_of = (figures / f"{key}.html").read_text(encoding="utf-8")
        assert page_of.count("<script") == page_of.count("</script>") == 2
    texts = "".join(texts_of(figures / "rq11.svg"))
    assert "constructor" in texts
    assert [name for name in SOME if "\n" not in TEXTS[name] and visible(TEXTS[name]).strip()[:8] not in texts] == []


def texts_of(svg: Path) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.parse(svg).iter() if text.tag.endswith("text")]


def test_what_every_object_of_javascript_has_can_be_a_name(tmp_path: Path) -> None:
    import altair as alt

    names = ["constructor", "toString", "valueOf", "hasOwnProperty", "__proto__", "isPrototypeOf"]
    data = pl.DataFrame({"name": names, "value": range(len(names))})
    y = alt.Y("name:N", sort=names)
    chart = alt.vconcat(
        *(alt.Chart(data).mark_bar().encode(y=y, x="value:Q", color="name:N").properties(title=name) for name in names)
    ).properties(description="names")
    save(chart, tmp_path / "figure", ["svg", "json"])
    assert set(names) <= {text.replace("\u2060", "") for text in texts_of(tmp_path / "figure.svg")}


# ── The report ───────────────────────────────────────────────────────────────────────────────────────────────────


OUR_ELEMENTS = {
    "a", "article", "b", "body", "button", "caption", "details", "dialog", "div", "figcaption", "figure", "form", "h1",
    "h2", "h3", "head", "header", "html", "img", "li", "line", "link", "main", "mark", "meta", "nav", "p", "pre",
    "rect", "script", "section", "span", "style", "summary", "svg", "table", "tbody", "td", "template", "text", "tfoot",
    "th", "thead", "title", "tr", "ul",
}  # fmt: skip


class Page(HTMLParser):
    """All text of the page's messages, and every element that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: dict[str, int] = {}
        self.handlers: list[str] = []
        self.texts: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self._in_script = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if not self._in_script:
            self.texts.append(data)


def test_the_report_holds_every_text_and_no_element_of_theirs(made: Made) -> None:
    source = (made.results / "report.html").read_text(encoding="utf-8")
    parsed = Page()
    parsed.feed(source)
    assert parsed.elements.keys() <= OUR_ELEMENTS
    assert parsed.handlers == []
    assert parsed.elements["script"] == 2 + 1 + 14  # the renderer, the page's own, the anchors, the figures
    assert is_safe("".join(parsed.texts).replace("\t", ""))
    whole = "".join(parsed.texts)
    assert [name for name, text in TEXTS.items() if in_lines(text).strip() not in whole] == []


@pytest.mark.browser
def test_in_a_browser_the_report_and_its_replays_run_no_script_and_ask_for_nothing(
    made: Made, chromium: SimpleNamespace
) -> None:
    said: list[str] = []
    asked: set[str] = set()
    window = chromium.new_page()
    window.set_default_timeout(120_000)
    window.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    window.on("pageerror", lambda error: said.append(str(error)))
    window.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    window.on("request", lambda request: asked.add(request.url.partition("#")[0]))
    address = (made.results / "report.html").as_uri()
    window.goto(address)
    for figure in window.locator("figure.chart").all():
        figure.scroll_into_view_if_needed()
        window.wait_for_selector(f'figure[data-figure="{figure.get_attribute("data-figure")}"][data-live]')
    runs = window.evaluate("JSON.parse(document.getElementById('anchors').textContent)")
    assert len(runs) > 8
    for run in runs:
        window.evaluate("run => { location.hash = '#run=' + encodeURIComponent(run); }", run)
        window.wait_for_function(
            "title => document.querySelector('#replay h2')?.textContent === title", arg=in_lines(run)
        )
        window.evaluate("document.querySelectorAll('dialog details').forEach(one => { one.open = true; })")
    assert window.title() == "fishpool: report"
    window.close()
    assert wrong(said) == []
    assert {url for url in asked if not url.startswith("data:")} == {address}


def wrong(said: list[str]) -> list[str]:
    """What a browser has said but for Vega's warnings, which our own figures have too."""
    return [line for line in said if not line.startswith("warning: WARN ")]


@pytest.mark.browser
def test_in_a_browser_the_figures_run_no_script_and_ask_for_nothing(made: Made, chromium: SimpleNamespace) -> None:
    for file in sorted((made.results / "figures").glob("rq*.html"))[:: 1 if EFFORT >= 10 else 3]:
        said: list[str] = []
        asked: set[str] = set()
        window = chromium.new_page()
        window.set_default_timeout(120_000)
        window.on("console", lambda message, said=said: said.append(f"{message.type}: {message.text}"))
        window.on("pageerror", lambda error, said=said: said.append(str(error)))
        window.on("request", lambda request, asked=asked: asked.add(request.url))
        window.goto(file.as_uri())
        window.wait_for_selector("svg")
        assert OWNED not in window.title()
        window.close()
        assert wrong(said) == []
        assert {url for url in asked if not url.startswith("data:")} == {file.as_uri()}


# ── Names that cannot be ─────────────────────────────────────────────────────────────────────────────────────────


MATCH = {"game": "prisoners_dilemma", "seeds": 1, "players": ["TitForTat"], "conditions": {"plain": {}}}
CANNOT_BE = [name for name, text in TEXTS.items() if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", text)]


PLACES = (
    "study", "condition", "player", "scripted", "outsider", "agent", "agent id", "label", "lane", "server", "oracle",
    "results", "question", "only", "game", "key",
)  # fmt: skip


def named(place: str, text: str) -> dict[str, object]:
    """A config with the text as one of its names."""
    bot = {"process": "cat", "name": text}
    pool = {"game": "commons", "seeds": 1, "conditions": {"plain": {}}}
    return {
        "study": {"studies": {text: MATCH}},
        "condition": {"studies": {"one": {**MATCH, "conditions": {text: {}}}}},
        "player": {"studies": {"one": {**MATCH, "players": [bot]}}},
        "scripted": {"studies": {"one": {**MATCH, "players": [text]}}},
        "outsider": {"studies": {"one": {**pool, "players": [bot]}}},
        "agent": {"studies": {"one": {**pool, "base": {"agents": [text]}}}},
        "agent id": {"studies": {"one": {**MATCH, "base": {"agent_ids": ["agent_1", text]}}}},
        "label": {"studies": {"one": {**MATCH, "base": {"labels": ["J", text]}}}},
        "lane": {"studies": {"one": MATCH}, "lanes": {text: {"turn_timeout": 1}}},
        "server": {"studies": {"one": MATCH}, "servers": {text: {"kind": "ollama"}}},
        "oracle": {"studies": {"one": {"game": "dictator", "oracles": [{"decisions": "a.csv", "name": text}]}}},
        "results": {"studies": {"one": MATCH}, "results": f"{text}\0"},
        "question": {"studies": {"one": {**pool, "questions": [text]}}},
        "only": {"studies": {"one": MATCH}, "only": text},
        "game": {"studies": {"one": {"game": text}}},
        "key": {"studies": {"one": {**MATCH, text: 1}}},
    }[place]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_name_of_a_config_that_cannot_be_is_refused_by_one_sentence(place: str) -> None:
    for name in CANNOT_BE:
        with pytest.raises(study.ConfigError) as caught:
            study.load(named(place, TEXTS[name]))
        assert all(is_safe(fault) and "\n" not in fault for fault in caught.value.faults), name
        assert all(len(fault) < 2000 for fault in caught.value.faults)


@pytest.mark.parametrize("option", ["--name", "--condition", "--lane", "--against", "--set", "--config"])
def test_a_person_with_a_name_that_cannot_be_is_refused_by_one_sentence(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    against = () if option == "--against" else ("--against", "TitForTat")
    for name in CANNOT_BE if EFFORT > 1 else CANNOT_BE[::6]:
        code, out, err = fishpool(capsys, "play", "prisoners_dilemma", *against, f"{option}={TEXTS[name]}")
        assert (code, out) == (2, ""), name
        assert err.endswith("\n")
        assert is_safe(err), name
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("field", ["name", "family", "rule", "kind", "key"])
def test_a_document_with_a_field_that_cannot_be_is_refused_by_one_sentence(field: str) -> None:
    for name in CANNOT_BE:
        fields = {"name": "ada", "family": "f"} | ({TEXTS[name]: "x"} if field == "key" else {field: TEXTS[name]})
        matter = yaml.safe_dump(fields, allow_unicode=False)
        content = f"---\n{matter}---\nI share.\n".encode()
        if field == "rule":  # which only the formal oracle reads, and refuses
            assert parse_document(content, "ada.md").rule == TEXTS[name]
            continue
        with pytest.raises(ValueError, match=r"^ada\.md: ") as fault:
            parse_document(content, "ada.md")
        assert str(fault.value).isprintable()


@pytest.mark.parametrize(
    "matter",
    [
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(12)
        ) + "name: *m\nfamily: f\n",  # a million million names in 1 kB
        f"name: 0x{'f' * 5000}\nfamily: f\n",
        f"name: {'9' * 5000}\nfamily: f\n",
        "name: 2024-13-40\nfamily: f\n",
        f"name: {'[' * 5000}\nfamily: f\n",
        "name: !!binary aGk=\nfamily: f\n",
        "name: !!set {a, b}\nfamily: f\n",
        "name: 12:30:45.5\nfamily: f\n",
        "name: ada\nfamily: f\n1: x\n",
        "name: ada\nfamily: f\n? [a, b]\n: x\n",
        "name: ada\nfamily: f\nkind: .nan\n",
    ],
    ids=range(11),
)  # fmt: skip
def test_front_matter_that_is_a_trap_is_refused_by_one_short_sentence(matter: str) -> None:
    with pytest.raises(ValueError, match=r"^ada\.md: ") as fault:
        parse_document(f"---\n{matter}---\nI share.\n".encode(), "ada.md")
    assert len(str(fault.value)) < 300


@pytest.mark.parametrize("part", ["a", " ", "\n", "- a\n", "\0"])
def test_a_document_of_ten_megabytes_is_refused_before_it_is_read(part: str) -> None:
    text = part * 10_000_000
    for document in (text, f"---\nname: {text}\nfamily: f\n---\nx\n", f"---\nname: a\nfamily: f\n---\nx{text}y\n"):
        with pytest.raises(ValueError, match="at most 100,000 are read"):
            parse_document(document.encode(), "ada.md")


# ── The functions that everything goes through ───────────────────────────────────────────────────────────────────


@CASES
@given(ANY_TEXT)
@example(LONE_SURROGATE)
def test_visible_text_is_printable_and_plain_text_is_as_it_was(text: str) -> None:
    seen = visible(text)
    assert seen.isprintable()
    assert visible(seen) == seen
    assert not text.isprintable() or seen == text
    assert shown(text).isprintable()
    assert len(shown(text)) <= 62 + 60 * 9


@CASES
@given(ANY_TEXT, st.integers(10, 120))
def test_wrapped_text_loses_nothing_and_ends_no_line_of_ours(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(line.isprintable() for line in lines)
    assert "".join(lines) == "".join(map(visible, text.split("\n")))


@CASES
@given(ANY_TEXT)
@example(LONE_SURROGATE)
def test_encoded_text_is_one_line_without_marks_and_decodes_to_itself(text: str) -> None:
    encoded = encode(text)
    assert json.loads(encoded) == text
    assert encoded.isprintable()
    assert not set("<>[]&`") & set(encoded)


@CASES
@given(st.recursive(ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=5))
def test_json_in_a_script_ends_no_script(value: object) -> None:
    made = charts.script_safe(value)
    assert "<" not in made
    assert json.loads(made) == value


@CASES
@given(ANY_TEXT)
def test_the_page_shows_text_and_no_markup(text: str) -> None:
    from_page = page._environment().from_string('<p title="{{ text }}">{{ text }}</p>').render(text=text)
    parsed = Page()
    parsed.feed(from_page)
    assert parsed.elements == {"p": 1}
    assert "".join(parsed.texts) == in_lines(text)


@CASES
@given(ANY_TEXT)
@example(LONE_SURROGATE)
def test_a_cell_of_a_table_is_printable(text: str) -> None:
    out = io.StringIO()
    ask.show_table(ask.Answer((text, "b"), iter([(text, [text]), (None, {text: text})])), out)
    assert is_safe(out.getvalue())
    assert out.getvalue().count("\n") == 4


@CASES
@given(st.binary(max_size=200) | ANY_TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_a_log_of_a_bot_is_text(tmp_path_factory: pytest.TempPathFactory, errors: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "log"
    folder.mkdir(exist_ok=True)
    log = Log(folder, Path("bot.log"))
    log.clear()
    log.write("title", errors)
    assert is_safe((folder / "bot.log").read_text(encoding="utf-8").replace("\t", ""))
