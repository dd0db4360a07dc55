"""RQ3, "Does auditing deter?": what lying pays over honesty, by the expected fine of an audit.

A line and a band for each fine, in full and around the break-even. It computes nothing; its sources are the tables
commons_estimates and commons_conditions.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style
from fishpool.figures.commons import told, told_apart

QUESTION = "Does auditing deter?"

_WIDTH, _HEIGHT = 290, 200
_FINE = "fine φ"


def chart(commons_estimates: pl.DataFrame, commons_conditions: pl.DataFrame) -> Any:
    """The figure from the two tables: a row of panels a study and player who lies there."""
    factors = commons_conditions.select("study", "condition", "audit_q", "fine", "expected_fine")
    estimates = commons_estimates.filter(pl.col("player").is_not_null()).join(factors, on=["study", "condition"])
    break_even = estimates.filter(pl.col("metric") == "break_even")
    liars = break_even.select("study", "player").unique(maintain_order=True)
    advantage = estimates.filter(pl.col("metric") == "advantage").join(liars, on=["study", "player"])
    if advantage.is_empty():
        return style.no_data(QUESTION)
    advantage = (
        advantage.with_columns(pl.format("{}", "fine").str.strip_suffix(".0").alias(_FINE))
        .with_columns(line=_FINE)
        .sort("fine", "audit_q")
    )
    rows = []
    for (study, player), points in advantage.group_by("study", "player", maintain_order=True):
        here = (pl.col("study") == study) & (pl.col("player") == player)
        rule = break_even.filter(here).select(at="estimate").unique()
        rows.append(
            alt.hconcat(
                _panel(points, rule, None),
                _panel(points, rule, _around(points, rule)),
                spacing=24,
                title=style.heading(f"{study}: {player}"),
            )
        )
    notes = [
        "What the liar's payoff is above that of its honest twin under the same seed (payoff, summed over a run), by "
        "the expected fine of one lie: the probability q of an audit times the fine φ. Right: near the break-even.",
        f"{style.numbers(advantage, 'runs')} runs a point. Bands: 95 % bootstrap intervals over seeds, none where "
        "nothing varies. Dashed: the expected fine at which a lie pays nothing.",
    ]
    summary = " ".join(
        f"q {row['audit_q']}, fine {row['fine']:g}: {row['estimate']:.1f}." for row in advantage.iter_rows(named=True)
    )
    return style.page(alt.vconcat(*rows, spacing=20), QUESTION, notes, f"{QUESTION} Advantage of lying: {summary}")


def _around(points: pl.DataFrame, rule: pl.DataFrame) -> tuple[list[float], list[float]]:
    """The part of both axes that shows twice the expected fine of the break-even."""
    furthest = 2 * max(rule["at"].to_list()) if len(rule) else 1.0
    near = points.filter(pl.col("expected_fine") <= furthest * 1.05)
    low, high = style.extent(near, "estimate", "low", "high")
    return [0, furthest * 1.05], [low - 0.5, high + 0.5]


def _panel(points: pl.DataFrame, rule: pl.DataFrame, part: tuple[list[float], list[float]] | None) -> Any:
    across = alt.Scale(domain=part[0] if part else [0, max(points["expected_fine"].to_list())], nice=False, padding=5)
    up = alt.Scale(
        domain=part[1] if part else style.extent(points, "estimate", "low", "high"), nice=part is None, padding=5
    )
    x = alt.X(
        "expected_fine",
        type="quantitative",
        scale=across,
        axis=alt.Axis(title="expected fine of a lie, q φ (payoff)", grid=False, tickCount=6),
    )
    axis = alt.Axis(title="payoff above the honest twin's", tickCount=6)
    encodings = told_apart(_FINE, style.in_order(points[_FINE]))
    tooltip = told([], ["audit_q", "fine", "expected_fine", "estimate", "low", "high", "runs"])
    band = alt.Chart(points.drop_nulls(["low", "high"])).mark_area(opacity=0.2, clip=True)
    line = alt.Chart(points).mark_line(strokeWidth=1.4, clip=True)
    marks = alt.Chart(points).mark_point(filled=True, size=28, opacity=1, clip=True)
    y = alt.Y("estimate", type="quantitative", scale=up, axis=axis)
    even = alt.Chart(rule)
    layers = [
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_rule(color=style.FAINT, strokeWidth=0.8)
        .encode(y=alt.datum(0, type="quantitative", scale=up, axis=axis)),
        band.encode(x=x, y=alt.Y("low", type="quantitative", scale=up, axis=axis), y2="high", color=encodings["color"]),
        line.encode(x=x, y=y, color=encodings["color"], strokeDash=encodings["dash"]),
        marks.encode(x=x, y=y, color=encodings["color"], shape=encodings["shape"], tooltip=tooltip),
        even.mark_rule(color=style.INK, strokeDash=[4, 3]).encode(x=alt.X("at", type="quantitative", scale=across)),
    ]
    if part:
        label = even.mark_text(align="left", dx=4, fontSize=style.SMALL, color=style.INK)
        layers.append(
            label.encode(
                x=alt.X("at", type="quantitative", scale=across),
                y=alt.value(8),
                text=alt.Text("at", type="quantitative", format=".3~f"),
            )
        )
    return alt.layer(*layers, width=_WIDTH, height=_HEIGHT)
