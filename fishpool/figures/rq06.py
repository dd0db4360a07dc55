"""RQ6, "How many liars break a pool?": efficiency and survival by the number of liars among agents of another kind.

A line and a band in a panel a kind. It computes nothing; its sources are the tables commons_estimates and
commons_conditions.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style
from fishpool.figures.commons import told

QUESTION = "How many liars break a pool?"

_ROWS = {"efficiency": "efficiency", "survived": "pools never collapsed"}


def chart(commons_estimates: pl.DataFrame, commons_conditions: pl.DataFrame) -> Any:
    """The figure from the two tables: two rows of panels a study. A pool of liars only belongs in every panel."""
    factors = commons_conditions.select("study", "condition", "liars", "liar", "others")
    estimates = commons_estimates.filter(pl.col("player").is_null(), pl.col("metric").is_in(list(_ROWS)))
    estimates = estimates.join(factors, on=["study", "condition"])
    if estimates.is_empty():
        return style.no_data(QUESTION)
    rows = []
    for (study,), here in estimates.group_by("study", maintain_order=True):
        kinds = style.in_order(here["others"].drop_nulls())
        names = ", ".join(style.in_order(here["liar"].drop_nulls()))
        width = (style.WIDTH - 70) / max(3, len(kinds)) - 20
        for metric, title in _ROWS.items():
            panels = []
            for place, kind in enumerate(kinds):
                line = here.filter(pl.col("metric") == metric, pl.col("others").fill_null(kind) == kind).sort("liars")
                panels.append(_panel(line, title if place == 0 else None, f"k {names} among {kind}", width))
            rows.append(
                alt.hconcat(*panels, spacing=2, title=style.heading(str(study)) if metric == "efficiency" else "")
            )
    notes = [
        "Pools of which k agents lie by rule; the others are all of one kind. Above: catch over the sustainable catch. "
        f"Below: share of pools that never collapsed. {style.numbers(estimates, 'runs')} runs a point, paired by seed.",
        "Bands: 95 % bootstrap intervals over seeds, none where nothing varies.",
    ]
    efficiency = estimates.filter(pl.col("metric") == "efficiency").iter_rows(named=True)
    summary = " ".join(
        f"{row['liars']} liars among {row['others'] or 'nobody else'}: {row['estimate']:.2f}." for row in efficiency
    )
    return style.page(alt.vconcat(*rows, spacing=14), QUESTION, notes, f"{QUESTION} Efficiency. {summary}")


def _panel(line: pl.DataFrame, title: str | None, name: str, width: float) -> Any:
    most = max(line["liars"].to_list(), default=0)
    ticks = alt.Axis(title="liars in the pool, k", values=list(range(most + 1)), format="d", grid=False)
    x = alt.X("liars", type="quantitative", scale=alt.Scale(domain=[0, most], padding=6), axis=ticks)
    ink = (
        style.INK if title else "transparent"
    )  # without labels the panel's name would stand lower than its neighbour's
    scale, axis = alt.Scale(domain=[0, 1]), alt.Axis(title=title, labelColor=ink, tickCount=5)
    tooltip = told([], ["liars", "estimate", "low", "high", "runs"])
    y = alt.Y("estimate", type="quantitative", scale=scale, axis=axis)
    low = alt.Y("low", type="quantitative", scale=scale, axis=axis)
    bounded = alt.Chart(line.drop_nulls(["low", "high"]))
    base = alt.Chart(line)
    return alt.layer(
        bounded.mark_area(opacity=0.25, color=style.COLOURS[0]).encode(x=x, y=low, y2="high"),
        base.mark_line(strokeWidth=1.6, color=style.COLOURS[0]).encode(x=x, y=y),
        base.mark_point(filled=True, size=30, opacity=1, color=style.COLOURS[0]).encode(x=x, y=y, tooltip=tooltip),
        width=width,
        height=120,
        title=style.heading(name),
    )
