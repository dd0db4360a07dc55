"""RQ1, "Does talk sustain the pool?": how many pools are left after each round, by the channels that are open.

A panel a condition, its Kaplan-Meier curve over those of all others. It computes nothing; its source is the table
commons_survival.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style
from fishpool.figures.commons import told

QUESTION = "Does talk sustain the pool?"

_PANELS_A_ROW = 5
_HEIGHT = 130


def chart(commons_survival: pl.DataFrame) -> Any:
    """The figure from the table, over any number of studies and conditions."""
    if commons_survival.is_empty():
        return style.no_data(QUESTION)
    rows = []
    for (study,), curves in commons_survival.group_by("study", maintain_order=True):
        names = style.in_order(curves["condition"])
        width = (style.WIDTH - 60) / min(len(names), _PANELS_A_ROW) - 22
        panels = [_panel(curves, name, width, first=place % _PANELS_A_ROW == 0) for place, name in enumerate(names)]
        rows.append(alt.concat(*panels, columns=_PANELS_A_ROW, spacing=12, title=style.heading(str(study))))
    runs = style.numbers(commons_survival.filter(pl.col("round") == 0), "at_risk")
    notes = [
        "Share of pools that have not collapsed by the end of each round (Kaplan–Meier), in grey those of the other "
        f"conditions. {runs} runs a condition, paired by seed.",
        "Bands: 95 % intervals (Greenwood, log-log), none where all runs did the same.",
    ]
    return style.page(alt.vconcat(*rows, spacing=20), QUESTION, notes, _description(commons_survival))


def _panel(curves: pl.DataFrame, name: str, width: float, first: bool) -> Any:
    own, others = curves.filter(pl.col("condition") == name), curves.filter(pl.col("condition") != name)
    rounds = max(curves["round"].to_list())
    x = alt.X(
        "round",
        type="quantitative",
        scale=alt.Scale(domain=[0, rounds + 0.4], nice=False),
        axis=alt.Axis(title="round", tickCount=4, grid=False),
    )
    axis = alt.Axis(title="share of pools left" if first else None, labels=first, tickCount=5)
    y = alt.Y("survival", type="quantitative", scale=alt.Scale(domain=[0, 1]), axis=axis)
    tooltip = told([], ["round", "at_risk", "collapsed", "survival", "low", "high"])
    behind = alt.Chart(others).mark_line(interpolate="step-after", color=style.GRID, strokeWidth=1)
    band = alt.Chart(own.drop_nulls(["low", "high"])).mark_area(
        interpolate="step-after", color=style.COLOURS[0], opacity=0.25
    )
    line = alt.Chart(own).mark_line(interpolate="step-after", color=style.COLOURS[0], strokeWidth=1.8)
    return alt.layer(
        behind.encode(x=x, y=y, detail=alt.Detail("condition", type="nominal")),
        band.encode(x=x, y=alt.Y("low", type="quantitative"), y2="high"),
        line.encode(x=x, y=y, tooltip=tooltip),
        width=width,
        height=_HEIGHT,
        title=style.heading(name),
    )


def _description(curves: pl.DataFrame) -> str:
    last = curves.group_by("study", "condition", maintain_order=True).agg(pl.col("survival").sort_by("round").last())
    summary = (
        f"{study}, {condition}: {survival:.0%} of pools left at the end."
        for study, condition, survival in last.iter_rows()
    )
    return " ".join([QUESTION, "Survival curves.", *summary])
