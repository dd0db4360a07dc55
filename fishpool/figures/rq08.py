"""RQ8, "Is there end-game lying?": broken promises and false reports by round, with a known and an unknown horizon.

A line and a band for each condition. It computes nothing; its sources are the tables commons_lies_rounds and
commons_conditions.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style
from fishpool.figures.commons import told, told_apart

QUESTION = "Is there end-game lying?"

_PANELS = {
    "broken": ("broken_rate", "broken promises (share of promises)"),
    "misreport": ("misreport_rate", "false reports (share of reports)"),
}

_APART = 0.05  # least distance of two names, a line of text


def chart(commons_lies_rounds: pl.DataFrame, commons_conditions: pl.DataFrame) -> Any:
    """The figure from the two tables: a row of panels a study."""
    rates = commons_lies_rounds.join(
        commons_conditions.select("study", "condition", "horizon", line="horizon"), on=["study", "condition"]
    )
    if rates.is_empty():
        return style.no_data(QUESTION)
    rows = []
    for (study,), here in rates.group_by("study", maintain_order=True):
        panels = [_panel(here, prefix) for prefix in _PANELS]
        rows.append(alt.hconcat(*panels, spacing=24, title=style.heading(str(study))))
    notes = [
        f"Share of untrue claims in each round over all agents. {style.numbers(rates, 'runs')} runs a round (pools "
        "that have not collapsed), paired by seed.",
        "Bands: 95 % bootstrap intervals over seeds, none where nothing varies.",
    ]
    last = rates.group_by("horizon", maintain_order=True).agg(pl.col("broken_rate").sort_by("round").last())
    summary = " ".join(
        f"Horizon {horizon}: {rate:.2f} in the last round." for horizon, rate in last.iter_rows() if rate is not None
    )
    return style.page(
        alt.vconcat(*rows, spacing=20), QUESTION, notes, f"{QUESTION} Broken promises by round. {summary}"
    )


def _panel(rates: pl.DataFrame, prefix: str) -> Any:
    field, title = _PANELS[prefix]
    encodings = told_apart("horizon", style.in_order(rates["horizon"]))
    encodings["color"].legend = encodings["shape"].legend = None  # lines bear their names
    last = max(rates["round"].to_list())
    x = alt.X(
        "round",
        type="quantitative",
        scale=alt.Scale(domain=[1, last], padding=6, nice=False),
        axis=alt.Axis(title="round", values=list(range(1, last + 1)), format="d", grid=False),
    )
    scale, axis = alt.Scale(domain=[0, 1]), alt.Axis(title=title, tickCount=5)
    low, high = f"{prefix}_low", f"{prefix}_high"
    tooltip = told(["horizon"], ["round", field, low, high, "runs"])
    y = alt.Y(field, type="quantitative", scale=scale, axis=axis)
    band = alt.Chart(rates.drop_nulls([low, high])).mark_area(opacity=0.2)
    line = alt.Chart(rates.drop_nulls(field)).mark_line(strokeWidth=1.6)
    marks = alt.Chart(rates.drop_nulls(field)).mark_point(filled=True, size=32, opacity=1)
    ends = alt.Chart(_ends(rates, field)).mark_text(align="left", dx=6, fontSize=style.SMALL)
    return alt.layer(
        band.encode(x=x, y=alt.Y(low, type="quantitative", scale=scale, axis=axis), y2=high, color=encodings["color"]),
        line.encode(x=x, y=y, color=encodings["color"], strokeDash=encodings["dash"]),
        marks.encode(x=x, y=y, color=encodings["color"], shape=encodings["shape"], tooltip=tooltip),
        ends.encode(x=x, y=alt.Y("place", type="quantitative"), text="horizon:N", color=encodings["color"]),
        width=262,
        height=200,
    )


def _ends(rates: pl.DataFrame, field: str) -> pl.DataFrame:
    """Where each line's name stands: at its last point, but not on the name below."""
    last = rates.drop_nulls(field).sort("round").group_by("horizon", maintain_order=True).last().sort(field)
    places: list[float] = []
    for value in last[field]:
        places.append(max(value, places[-1] + _APART) if places else value)
    return last.select("horizon", "round", place=pl.Series(places, dtype=pl.Float64))
