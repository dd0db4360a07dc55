"""The figures of RQ1 to RQ8, drawn from tables of pools that were really played."""

import inspect
import json
import re
from importlib import import_module
from xml.etree import ElementTree

import polars as pl
import pytest
from made_up import svg_of

from fishpool.figures import style
from fishpool.figures.files import save

HONEST = "honest_sustainable"
STUDIES = {
    "rq01": {"none": {"channels": []}, "both": {}},
    "rq02": {"silent": {}, "forbid": {"permission": "forbid"}},
    "rq03": {
        f"q{q}_fine{fine}": {"agents": [HONEST] * 4 + ["salami"], "audit_q": q, "fine": fine}
        for fine in (2, 8)
        for q in (0, 0.25, 1)
    },
    "rq04": {"silent": {}},
    "rq05": {speech: {"speech": speech} for speech in ("free", "forced_truth", "binding_promise")},
    "rq06": {f"k{k}": {"agents": [HONEST] * (3 - k) + ["salami"] * k, "audit_q": 0.1, "fine": 2} for k in range(4)},
    "rq07": {
        f"{stock}_{memory}": {"stock": stock, "memory": memory}
        for stock in ("exact", "hidden")
        for memory in ("public", "none")
    },
    "rq08": {"known": {}, "unknown": {"horizon": "unknown"}},
}
LUCKY = {"agents": ["random", "opportunist", HONEST], "rounds": 4}


def module(question):
    return import_module(f"fishpool.figures.{question}")


def tables(question, connection):
    return {name: connection.table(name).pl() for name in inspect.signature(module(question).chart).parameters}


@pytest.fixture(scope="module")
def drawn():
    return {}


@pytest.fixture
def frames(pools, drawn):
    """The tables of a question's study, played once; `agents` replaces the pools' groups."""

    def of(question, agents=None, seeds=6):
        key = (question, tuple(agents or ()), seeds)
        if key not in drawn:
            conditions = {name: LUCKY | parameters for name, parameters in STUDIES[question].items()}
            if agents:
                conditions = {name: parameters | {"agents": agents} for name, parameters in conditions.items()}
            drawn[key] = tables(question, pools(seeds=seeds, **conditions))
        return drawn[key]

    return of


def marks(chart, kind):
    """The data under all marks of a kind that has any."""
    spec = chart.to_dict()
    found = []

    def walk(part, data):
        data = part.get("data", {}).get("name", data)
        mark = part.get("mark", {})
        if (mark if isinstance(mark, str) else mark.get("type")) == kind and data:
            found.append((part["encoding"], spec["datasets"][data]))
        for key in ("layer", "concat", "hconcat", "vconcat"):
            for inner in part.get(key, ()):
                walk(inner, data)

    walk(spec, None)
    return found


@pytest.mark.parametrize("question", STUDIES)
def test_a_figure_says_its_question_its_n_and_what_its_axes_show(question, frames):
    chart = module(question).chart(**frames(question))
    spec = chart.to_dict()
    assert spec["title"]["text"] == module(question).QUESTION
    note = " ".join(spec["title"]["subtitle"])
    assert "6 runs" in note or "n: departures" in note
    assert "95 %" in note or question == "rq04"
    assert spec["description"].startswith(module(question).QUESTION)
    titles = set(json.dumps(spec).split('"title": ')[1:])
    assert not any(title.startswith('"estimate"') for title in titles)  # every axis is named in words


@pytest.mark.parametrize("question", STUDIES)
def test_a_figure_without_data_says_so(question, frames):
    empty = {name: frame.clear() for name, frame in frames(question).items()}
    assert "no data" in json.dumps(module(question).chart(**empty).to_dict())


@pytest.mark.parametrize("question", ["rq02", "rq06", "rq07", "rq08"])
def test_deterministic_cells_show_no_interval(question, frames):
    deterministic = frames(question, agents=[HONEST, "salami", "salami"])
    chart = module(question).chart(**deterministic)
    for kind in ("area", "rule"):
        assert [data for encoding, data in marks(chart, kind) if "low" in json.dumps(encoding) and data] == []
    assert "[" not in "".join(row["interval"] for _, data in marks(chart, "text") for row in data if "interval" in row)


def test_lucky_cells_show_one(frames):
    chart = module("rq08").chart(**frames("rq08"))
    assert any(data for encoding, data in marks(chart, "area") if "low" in json.dumps(encoding))


def test_the_break_even_of_auditing_is_drawn_at_one_half(frames):
    chart = module("rq03").chart(**frames("rq03"))
    at = {
        row["at"]
        for encoding, data in marks(chart, "rule")
        if "at" in json.dumps(encoding.get("x", {}))
        for row in data
        if "at" in row
    }
    assert at == {0.5}


def test_two_studies_are_two_parts(frames):
    once = frames("rq07")
    twice = {name: pl.concat([frame, frame.with_columns(study=pl.lit("another"))]) for name, frame in once.items()}
    assert len(marks(module("rq07").chart(**twice), "rect")) == 2 * len(marks(module("rq07").chart(**once), "rect"))


def test_a_figure_can_be_rendered(frames, tmp_path):
    save(module("rq05").chart(**frames("rq05")), tmp_path / "rq05")
    assert {file.suffix for file in tmp_path.iterdir()} == {".svg", ".png", ".html", ".json"}


def test_the_lines_of_the_last_rounds_bear_their_names_and_no_name_lies_on_another():
    rq08 = module("rq08")
    rates = pl.DataFrame({"horizon": ["b", "a", "c"], "round": [3, 3, 2], "rate": [0.5, 0.51, 0.1]})
    places = {name: place for name, _, place in rq08._ends(rates, "rate").iter_rows()}
    assert places == {"c": 0.1, "b": 0.5, "a": pytest.approx(0.55)}


@pytest.mark.parametrize("question", STUDIES)
def test_a_figure_fits_a_page_and_no_text_is_below_five_points(question, frames):
    svg = svg_of(module(question).chart(**frames(question)))
    width = float(ElementTree.fromstring(svg).attrib["width"])
    smallest = min(map(float, re.findall(rb'font-size="([\d.]+)px"', svg)))
    assert smallest * min(1, style.WIDTH / width) * 72 / 96 >= 5  # a wider figure is made smaller in print
