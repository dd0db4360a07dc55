"""RQ7, "Does information protect?": efficiency and survival by what agents see of the stock and remember of the past.

Heatmaps with the intervals written in. It computes nothing; its sources are the tables commons_estimates and
commons_conditions.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style
from fishpool.figures.commons import told

QUESTION = "Does information protect?"

_STOCK, _MEMORY = ["exact", "noisy", "hidden"], ["public", "none"]
_PANELS = {"efficiency": "efficiency", "survived": "share of pools never collapsed"}


def chart(commons_estimates: pl.DataFrame, commons_conditions: pl.DataFrame) -> Any:
    """The figure from the two tables: a row of heatmaps a study."""
    factors = commons_conditions.select("study", "condition", "stock", "memory")
    cells = commons_estimates.filter(pl.col("player").is_null(), pl.col("metric").is_in(list(_PANELS)))
    cells = cells.join(factors, on=["study", "condition"])
    if cells.is_empty():
        return style.no_data(QUESTION)
    rows = []
    for (study,), here in cells.group_by("study", maintain_order=True):
        panels = [_panel(here.filter(pl.col("metric") == metric), metric) for metric in _PANELS]
        rows.append(alt.hconcat(*panels, spacing=24, title=style.heading(str(study))))
    notes = [
        "Mean over runs, and below it its 95 % bootstrap interval over seeds (none where nothing varies). "
        f"{style.numbers(cells, 'runs')} runs a cell, paired by seed.",
        "Stock: what agents see of it. Memory: whether all past promises, reports and published catches are shown, or "
        "only those of the last round. Scripted players look no further back than the last round, but for grim, which "
        "then takes all it sees and so ends the pool: for them the two rows show that memory changes nothing else.",
    ]
    summary = " ".join(
        f"Stock {row['stock']}, memory {row['memory']}: {row['estimate']:.2f}."
        for row in cells.filter(pl.col("metric") == "efficiency").iter_rows(named=True)
    )
    return style.page(alt.vconcat(*rows, spacing=20), QUESTION, notes, f"{QUESTION} Efficiency. {summary}")


def _panel(cells: pl.DataFrame, metric: str) -> Any:
    ends = cells.select("low", "high").iter_rows()
    written = ["" if low is None else f"[{low:.2f}, {high:.2f}]" for low, high in ends]
    cells = cells.with_columns(interval=pl.Series(written, dtype=pl.String))
    x = alt.X(
        "stock",
        type="nominal",
        sort=None,
        scale=alt.Scale(domain=_STOCK),
        axis=alt.Axis(title="stock", labelAngle=0, domain=False, ticks=False),
    )
    y = alt.Y(
        "memory",
        type="nominal",
        sort=None,
        scale=alt.Scale(domain=_MEMORY),
        axis=alt.Axis(title="memory", domain=False, ticks=False),
    )
    legend = alt.Legend(
        orient="top",
        direction="horizontal",
        title=_PANELS[metric],
        gradientLength=150,
        gradientThickness=6,
        tickCount=5,
    )
    color = alt.Color("estimate", type="quantitative", scale=alt.Scale(scheme="viridis", domain=[0, 1]), legend=legend)
    ink = alt.condition("datum.estimate > 0.5", alt.value("black"), alt.value("white"))
    tooltip = told([], ["estimate", "low", "high", "runs"])
    base = alt.Chart(cells)
    return alt.layer(
        base.mark_rect(stroke="white").encode(x=x, y=y, color=color, tooltip=tooltip),
        base.mark_text(fontSize=12, dy=-6).encode(
            x=x, y=y, text=alt.Text("estimate", type="quantitative", format=".2f"), color=ink
        ),
        base.mark_text(fontSize=style.SMALL, dy=9).encode(
            x=x, y=y, text=alt.Text("interval", type="nominal"), color=ink
        ),
        width=265,
        height=130,
    ).resolve_scale(color="independent")
