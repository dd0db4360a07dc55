"""RQ4, "Who gains from lies?": what each departure from a promise did for its agent and for everyone.

A scatter a player, colour and shape by the class of the departure. It computes nothing; its source is the table
commons_deviation_points.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style
from fishpool.figures.commons import told, told_apart

QUESTION = "Who gains from lies?"

_CLASSES = ["win-win", "selfish", "altruistic", "sabotaging", "neutral"]
_PANELS_A_ROW = 3
_SIZE = 178


def chart(commons_deviation_points: pl.DataFrame) -> Any:
    """The figure from the table, over any number of studies and conditions."""
    points = commons_deviation_points.group_by("study", "player", "class", "du", "dw").agg(pl.col("deviations").sum())
    if points.is_empty():
        return style.no_data(QUESTION)
    points = points.sort("study", "player", "du", "dw")
    reach = tuple(max(abs(end) for end in style.extent(points, column)) * 1.3 for column in ("du", "dw"))
    panels = [
        _panel(here, reach, f"{player} (n = {here['deviations'].sum():,})", place % _PANELS_A_ROW == 0)
        for place, ((_, player), here) in enumerate(points.group_by("study", "player", maintain_order=True))
    ]
    notes = [
        "A point is one value of what departing from a promise changed, against keeping it under the same luck; its "
        "area grows with how often it occurred; n: departures. Both axes are logarithmic in either direction from 0.",
        "The future is valued at what the remaining rounds yield if they keep the escapement. Players who never "
        "departed from a promise have no panel. Catching less than a promised ceiling, as white_liar does, is a "
        "departure but no broken promise.",
    ]
    counts = points.group_by("player", "class").agg(pl.col("deviations").sum()).sort("player", "class")
    summary = " ".join(f"{player}: {number} {kind}." for player, kind, number in counts.iter_rows())
    figure = alt.concat(*panels, columns=_PANELS_A_ROW, spacing=18)
    return style.page(figure, QUESTION, notes, f"{QUESTION} Departures from promises by class. {summary}")


def _panel(points: pl.DataFrame, reach: tuple[float, ...], name: str, first: bool) -> Any:
    encodings = told_apart("class", _CLASSES)
    x = alt.X("du", type="quantitative", scale=_scale(reach[0]), axis=_axis("for the agent, Δu (payoff)", reach[0]))
    y = alt.Y(
        "dw",
        type="quantitative",
        scale=_scale(reach[1]),
        axis=_axis("for everyone, ΔW (payoff)" if first else None, reach[1]),
    )
    tooltip = told(["class"], ["du", "dw", "deviations"])
    zero = alt.Chart(alt.InlineData(values=[{}])).mark_rule(color=style.FAINT, strokeWidth=0.8)
    size = alt.Size("deviations", type="quantitative", scale=alt.Scale(type="log", range=[12, 130]), legend=None)
    marks = alt.Chart(points).mark_point(filled=True, opacity=0.65)
    return alt.layer(
        zero.encode(x=alt.datum(0, type="quantitative")),
        zero.encode(y=alt.datum(0, type="quantitative")),
        marks.encode(x=x, y=y, size=size, color=encodings["color"], shape=encodings["shape"], tooltip=tooltip),
        width=_SIZE,
        height=_SIZE,
        title=style.heading(name),
    )


def _scale(furthest: float) -> alt.Scale:
    return alt.Scale(type="symlog", constant=1, domain=[-furthest, furthest], nice=False)


def _axis(title: str | None, furthest: float) -> alt.Axis:
    steps = [step for step in (1, 10, 100, 1000, 10_000) if step < furthest]
    return alt.Axis(title=title, values=[*(-step for step in reversed(steps)), 0, *steps], format="d")
