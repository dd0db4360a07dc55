"""RQ2, "Do agents lie unasked?": broken promises and false reports by player, under each permission to lie.

Points with intervals, a panel a kind of claim. It computes nothing; its sources are the tables commons_estimates and
commons_conditions.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style
from fishpool.figures.commons import told, told_apart

QUESTION = "Do agents lie unasked?"

_PERMISSIONS = ["silent", "forbid", "allow"]
_KINDS = {"broken_rate": "broken promises", "misreport_rate": "false reports"}
_DENOMINATORS = {"broken_rate": "promises", "misreport_rate": "reports"}


def chart(commons_estimates: pl.DataFrame, commons_conditions: pl.DataFrame) -> Any:
    """The figure from the two tables, over any number of studies."""
    rates = (
        commons_estimates.filter(pl.col("metric").is_in(list(_KINDS)), pl.col("player").is_not_null())
        .join(commons_conditions.select("study", "condition", "permission", "agents"), on=["study", "condition"])
        .with_columns(group=pl.col("agents").list.unique(maintain_order=True).list.join(", "))
    )
    if rates.is_empty():
        return style.no_data(QUESTION)
    encodings = told_apart("permission", _PERMISSIONS)
    rows = []
    for (study, group), here in rates.sort("study", "group", maintain_order=True).group_by(
        "study", "group", maintain_order=True
    ):
        players = sorted(set(here["player"]))
        panels = [_panel(here.filter(pl.col("metric") == metric), metric, players, encodings) for metric in _KINDS]
        rows.append(alt.hconcat(*panels, spacing=10, title=style.heading(f"{study}: a pool of {group}")))
    notes = [
        "Share of a player's claims that are untrue, by what the rules say about lying. "
        f"{style.numbers(rates, 'runs')} runs a point, paired by seed.",
        "Bars: 95 % bootstrap intervals over seeds, none where nothing varies. Scripted players do not read the "
        "permission: for them the three points show that it changes nothing else.",
    ]
    description = " ".join(
        f"{row['player']}, {row['permission']}: {row['estimate']:.2f}."
        for row in rates.filter(pl.col("metric") == "misreport_rate").iter_rows(named=True)
    )
    return style.page(alt.vconcat(*rows, spacing=20), QUESTION, notes, f"{QUESTION} False reports: {description}")


def _panel(rates: pl.DataFrame, metric: str, players: list[str], encodings: dict[str, Any]) -> Any:
    first = metric == next(iter(_KINDS))
    scale = alt.Scale(domain=[0, 1], padding=8)
    axis = alt.Axis(title=f"share of {_DENOMINATORS[metric]}", tickCount=5)
    y = alt.Y(
        "player",
        type="nominal",
        sort=None,
        scale=alt.Scale(domain=players),
        axis=alt.Axis(title=None, ticks=False, domain=False, grid=True, labelPadding=6)
        if first
        else alt.Axis(title=None, labels=False, ticks=False, domain=False, grid=True),
    )
    offset = alt.YOffset(
        "permission", type="nominal", sort=None, scale=alt.Scale(domain=_PERMISSIONS, paddingOuter=0.6)
    )
    tooltip = told(["player", "permission"], ["estimate", "low", "high", "runs"])
    bars = alt.Chart(rates.drop_nulls(["low", "high"])).mark_rule(strokeWidth=1.2)
    points = alt.Chart(rates).mark_point(filled=True, size=26, opacity=1)
    return alt.layer(
        bars.encode(
            x=alt.X("low", type="quantitative", scale=scale, axis=axis),
            x2="high",
            y=y,
            yOffset=offset,
            color=encodings["color"],
        ),
        points.encode(
            x=alt.X("estimate", type="quantitative", scale=scale, axis=axis),
            y=y,
            yOffset=offset,
            color=encodings["color"],
            shape=encodings["shape"],
            tooltip=tooltip,
        ),
        width=270,
        height=26 * len(players),
        title=style.heading(_KINDS[metric]),
    )
