"""RQ5, "What does lying cost everyone?": welfare under free speech, forced truth and binding promises, seed by seed.

Dumbbells over a line a seed, and the differences within seeds beside them. It computes nothing; its sources are the
tables commons_observations, commons_estimates and commons_conditions.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style
from fishpool.figures.commons import told

QUESTION = "What does lying cost everyone?"

_SPEECH = ["forced_truth", "free", "binding_promise"]
_PRICES = {"price_of_lying": "forced truth", "price_of_breaking": "binding promise"}


def chart(commons_observations: pl.DataFrame, commons_estimates: pl.DataFrame, commons_conditions: pl.DataFrame) -> Any:
    """The figure from the three tables: a row of panels a study."""
    factors = commons_conditions.select("study", "condition", "speech")
    welfare = (pl.col("metric") == "welfare") & pl.col("player").is_null()
    seeds = commons_observations.filter(welfare).join(factors, on=["study", "condition"])
    means = commons_estimates.filter(pl.col("player").is_null()).join(factors, on=["study", "condition"])
    if seeds.is_empty():
        return style.no_data(QUESTION)
    rows = []
    for (study,), here in seeds.group_by("study", maintain_order=True):
        own = means.filter(pl.col("study") == study)
        prices = own.filter(pl.col("speech") == "free", pl.col("metric").is_in(list(_PRICES)))
        rows.append(
            alt.hconcat(
                _dumbbells(here, own.filter(welfare)), _prices(prices), spacing=30, title=style.heading(str(study))
            )
        )
    notes = [
        "Left: welfare (sum of all payoffs in a run); a thin line is one seed under the three rules of speech, a large "
        "point the mean. Right: mean difference of the twin under the rule to free speech. "
        f"{style.numbers(means.filter(welfare), 'runs')} runs a rule, paired by seed.",
        "Bars: 95 % bootstrap intervals over seeds, none where nothing varies.",
    ]
    summary = " ".join(
        f"{row['speech']}: {row['estimate']:.1f}." for row in means.filter(welfare).iter_rows(named=True)
    )
    return style.page(
        alt.vconcat(*rows, spacing=20), QUESTION, notes, f"{QUESTION} Mean welfare by rule of speech. {summary}"
    )


def _dumbbells(seeds: pl.DataFrame, means: pl.DataFrame) -> Any:
    y = alt.Y(
        "speech",
        type="nominal",
        sort=None,
        scale=alt.Scale(domain=_SPEECH),
        axis=alt.Axis(title=None, ticks=False, domain=False),
    )
    scale = alt.Scale(domain=style.extent(seeds, "numerator"), zero=False)
    axis = alt.Axis(title="welfare (payoff)", tickCount=6)
    x = alt.X("numerator", type="quantitative", scale=scale, axis=axis)
    seeds, means = (
        table.with_columns(place=pl.col("speech").replace_strict(_SPEECH, range(3))) for table in (seeds, means)
    )
    order = alt.Order("place", type="quantitative")  # a line goes down the rules
    lines = alt.Chart(seeds.select("speech", "place", "seed", "numerator")).mark_line(
        opacity=0.13, strokeWidth=0.7, color=style.COLOURS[4]
    )
    ends = alt.Chart(means).mark_line(strokeWidth=1.6, color=style.INK)
    bars = alt.Chart(means.drop_nulls(["low", "high"])).mark_rule(strokeWidth=3, color=style.INK)
    marks = alt.Chart(means).mark_point(filled=True, size=70, opacity=1, color=style.COLOURS[3])
    at = alt.X("estimate", type="quantitative", scale=scale, axis=axis)
    tooltip = told(["speech"], ["estimate", "low", "high", "runs"])
    return alt.layer(
        lines.encode(x=x, y=y, detail=alt.Detail("seed", type="nominal"), order=order),
        ends.encode(x=at, y=y, order=order),
        bars.encode(x=alt.X("low", type="quantitative", scale=scale, axis=axis), x2="high", y=y),
        marks.encode(x=at, y=y, tooltip=tooltip),
        width=360,
        height=190,
    )


def _prices(prices: pl.DataFrame) -> Any:
    named = prices.with_columns(twin=pl.col("metric").replace_strict(_PRICES))
    y = alt.Y(
        "twin",
        type="nominal",
        sort=None,
        scale=alt.Scale(domain=list(_PRICES.values())),
        axis=alt.Axis(title=None, ticks=False, domain=False),
    )
    axis = alt.Axis(title=["welfare minus that", "of free speech (payoff)"], tickCount=5)
    scale = alt.Scale(zero=True, padding=12)
    zero = alt.Chart(alt.InlineData(values=[{}])).mark_rule(color=style.FAINT, strokeWidth=0.8)
    bars = alt.Chart(named.drop_nulls(["low", "high"])).mark_rule(strokeWidth=1.4, color=style.INK)
    marks = alt.Chart(named).mark_point(filled=True, size=50, opacity=1, color=style.COLOURS[3])
    text = alt.Chart(named).mark_text(dy=-11, fontSize=style.SMALL, color=style.INK)
    x = alt.X("estimate", type="quantitative", scale=scale, axis=axis)
    return alt.layer(
        zero.encode(x=alt.datum(0, type="quantitative")),
        bars.encode(x=alt.X("low", type="quantitative", scale=scale, axis=axis), x2="high", y=y),
        marks.encode(x=x, y=y),
        text.encode(x=x, y=y, text=alt.Text("estimate", type="quantitative", format="+.1f")),
        width=150,
        height=100,
    )
