"""The page as text: everything in it is from the database, and nothing in it can do anything."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import duckdb
import pytest
from canned_model import HOSTILE

from fishpool import ask
from fishpool.report import page, quality
from fishpool.report.questions import QUESTIONS, answers
from fishpool.report.sample import FaultyChoice, choose
from fishpool.report.tables import Table, Tables
from fishpool.screen import visible

SCRIPTS = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)


class Elements(HTMLParser):
    """The elements of a page with their attributes, and what text stands outside scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.found, self.text, self._inside = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.text.append(data)


@pytest.fixture(scope="module")
def tables(reported):
    with duckdb.connect(str(reported.database), read_only=True) as connection:
        yield Tables(connection)


@pytest.fixture(scope="module")
def elements(reported):
    return Elements(reported.page.read_text(encoding="utf-8"))


def test_what_a_model_said_and_saw_is_there_as_text_and_as_nothing_else(elements):
    text = "".join(elements.text)
    assert f"Let me think. {visible(HOSTILE)}" in text
    assert f"You play a game. {visible(HOSTILE)}" in text
    assert "<b>model</b>" in text
    tags = {tag for tag, _ in elements.found}
    assert tags.isdisjoint({"iframe", "object", "embed", "base"})
    assert {attrs.get("type", "") for tag, attrs in elements.found if tag == "script"} == {"", "application/json"}
    assert sum(tag == "script" and "type" not in attrs for tag, attrs in elements.found) == 2  # Vega and the page's own
    assert not [attrs for _, attrs in elements.found if any(name.startswith("on") for name in attrs)]
    assert not [
        attrs for tag, attrs in elements.found if tag == "img" and not attrs["src"].startswith("data:image/svg")
    ]


def test_nothing_is_loaded_from_anywhere_and_the_policy_says_so(elements):
    (policy,) = (attrs["content"] for tag, attrs in elements.found if tag == "meta" and "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    links = [attrs.get("href", "") for tag, attrs in elements.found if tag in ("a", "link")]
    assert [link for link in links if not link.startswith(("#", "data:"))] == []
    assert not [attrs for _, attrs in elements.found if "srcset" in attrs or "action" in attrs]


def test_every_figure_has_a_description_and_every_table_a_caption_and_scopes(elements):
    pictures = [attrs for tag, attrs in elements.found if tag == "img"]
    assert len(pictures) == len(QUESTIONS)
    assert all("?" in attrs["alt"] and len(attrs["alt"]) > 25 for attrs in pictures)
    tags = [tag for tag, _ in elements.found]
    assert tags.count("table") == tags.count("caption") > 20
    assert all("scope" in attrs for tag, attrs in elements.found if tag == "th")


def test_headings_step_down_one_level_at_a_time(elements):
    levels = [int(tag[1]) for tag, _ in elements.found if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_same_database_gives_the_same_page(reported, tmp_path):
    page.build(reported.database, reported.figures, reported.asked, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == reported.page.read_bytes()


def test_the_note_of_a_study_stands_beside_each_of_its_questions_as_text(reported, tmp_path):
    study = next(iter(reported.asked["rq09"]))
    asked = {"rq09": reported.asked["rq09"]}
    notes = {study: "a <b>tiny</b> model", "another": "not here"}
    page.build(reported.database, reported.figures, asked, tmp_path / "noted.html", notes=notes)
    text = (tmp_path / "noted.html").read_text()
    assert f"<b>{study}</b>: a &lt;b&gt;tiny&lt;/b&gt; model" in text
    assert "not here" not in text


@pytest.mark.parametrize("key", QUESTIONS)
def test_the_query_of_a_question_gives_its_rows_to_people_too(key, reported):
    query = QUESTIONS[key].query(reported.asked[key])
    with ask.opened(reported.database) as connection, ask.ask(connection, query) as answer:
        assert len(list(answer.rows)) > 0


@pytest.mark.parametrize("key", QUESTIONS)
def test_a_question_without_a_row_claims_nothing(key, tables):
    found = answers(key, tables, {"nowhere": ["never"]})
    assert [one for one in found if isinstance(one, Table) and one.rows] == []
    assert not [one for one in found if isinstance(one, str) and "nowhere" in one]


@pytest.mark.parametrize("key", QUESTIONS)
def test_every_number_of_runs_and_every_interval_is_said(key, tables, reported):
    for one in answers(key, tables, reported.asked[key]):
        said = one if isinstance(one, str) else " ".join(one.columns)
        assert "None" not in said
        assert "nan" not in said
        if isinstance(one, Table) and "95 % interval" in one.columns:
            assert {"runs", "matches"} & set(one.columns) or key == "rq02"


def test_the_quality_page_counts_what_the_tables_hold(tables):
    by_heading = {heading: grids for heading, _, grids in quality.sections(tables)}
    runs, turns = by_heading["Studies"]
    counts = {row[0].text: row[runs.columns.index("runs")].text for row in runs.rows}
    assert counts == {"pairs": "42", "pool": "8", "open": "2"} | {"pairs": counts["pairs"]}
    (total,) = tables.rows("SELECT count(*) AS turns FROM turns")
    assert sum(int(row[1].text.replace(",", "")) for row in turns.rows) == total["turns"]
    (ended,) = by_heading["Forfeits, resignations and void runs"]
    assert any("forfeited" in row[0].text for row in ended.rows)
    players, replies = by_heading["Models and other players from outside"]
    assert "0" * 64 in [cell.text for row in players.rows for cell in row]
    (sent,) = tables.rows("SELECT count(*) AS replies FROM replies")
    assert replies.rows[0][replies.columns.index("replies")].text == f"{sent['replies']:,}"
    assert "never counted as a move" in " ".join(quality.summary(tables))


def test_the_sample_holds_the_first_run_of_each_condition_and_what_stands_out(tables):
    sampled = {one.run_id: one.reasons for one in choose(tables)}
    assert {"pool:silent:0", "pool:allow:0", "open:published:0", "open:formal:0"} <= sampled.keys()
    reasons = " ".join(reason for some in sampled.values() for reason in some)
    for why in ("forfeited", "the most lies of its study", "the most repaired turns", "the most unequal match"):
        assert why in reasons
    assert [one.run_id for one in choose(tables)] == [one.run_id for one in choose(tables)]


def test_every_run_or_named_ones_are_replayed_on_request(tables):
    (count,) = tables.rows("SELECT count(*) AS runs FROM runs")
    assert len(choose(tables, "all")) == count["runs"]
    assert "pool:silent:3" in {one.run_id for one in choose(tables, ["pool:silent:3"])}
    with pytest.raises(FaultyChoice, match=r"report_runs: pool:silent:9: there is no such run; did you mean"):
        choose(tables, ["pool:silent:9"])


def test_more_runs_than_a_page_can_hold_are_refused(tables, monkeypatch):
    monkeypatch.setattr("fishpool.report.sample.MOST", 3)
    with pytest.raises(FaultyChoice, match="a page holds at most 3"):
        choose(tables, "all")


def test_the_size_of_a_figure_is_found_behind_a_description_of_any_length():
    svg = (
        b'<svg role="img" aria-label="'
        + b"word &gt; width=&quot;9&quot; " * 500
        + b'" width="692" height="300"><g width="5"/>'
    )
    assert re.findall(rb' (?:width|height)="([\d.]+)', page._opening(svg)) == [b"692", b"300"]
