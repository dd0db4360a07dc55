"""What the page adds to a figure's specification: legends that filter, and nothing else."""

import json

import altair as alt
import polars as pl
import pytest

from fishpool.report.charts import script_safe, with_filters

FRAME = pl.DataFrame({"x": [1, 2], "y": [1, 2], "who": ["a", "b"]})


def points(**given):
    return alt.Chart(FRAME).mark_point(opacity=0.5).encode(x="x:Q", y="y:Q", **given)


def test_a_legend_of_names_filters_the_marks_of_all_panels():
    one = alt.layer(points(color="who:N"), alt.Chart(FRAME).mark_line().encode(x="x:Q", y="y:Q", color="who:N"))
    spec = with_filters(alt.hconcat(one, points(color="who:N")).to_dict())
    (made,) = spec["params"]
    assert made["select"] == {"type": "point", "fields": ["who"]}
    layered, alone = spec["hconcat"]
    assert made["views"] == [layered["layer"][0]["name"], alone["name"]]  # of layers one listens
    for unit, full in ((layered["layer"][0], 0.5), (layered["layer"][1], 1), (alone, 0.5)):
        assert unit["encoding"]["opacity"]["condition"] == {"param": made["name"], "value": full}
        assert unit["encoding"]["opacity"]["value"] < full / 2


@pytest.mark.parametrize(
    "chart",
    [
        points(),
        points(color="y:Q"),
        points(color=alt.Color("who:N", legend=None)),
        points(color=alt.value("red")),
    ],
)
def test_a_figure_without_a_legend_of_names_stays_as_it_is(chart):
    spec = chart.to_dict()
    assert with_filters(spec) == spec


def test_an_opacity_that_means_something_is_kept():
    spec = with_filters(points(color="who:N", opacity="y:Q").to_dict())
    assert spec["encoding"]["opacity"]["field"] == "y"


def test_the_argument_is_left_alone():
    spec = points(color="who:N").to_dict()
    before = json.dumps(spec)
    with_filters(spec)
    assert json.dumps(spec) == before


def test_json_in_a_script_element_cannot_end_it():
    text = script_safe({"name": "</script><!--<script>"})
    assert "<" not in text
    assert json.loads(text) == {"name": "</script><!--<script>"}
