"""RQ14, "How much of that hangs on the oracle?": agreement, single decisions turned over, tournaments drawn anew.

Parts a tournament: how far its oracles agree and where their fixed points lie; for its first oracle what each single
decision carries, and the ranking, frequencies and basin under resampled decisions. It computes nothing; its source is
the tables named in `chart`.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import strategies, style

QUESTION = "How much of that hangs on the oracle?"

_MATRIX = 190


def chart(
    dictator_scores: pl.DataFrame,
    dictator_decisions: pl.DataFrame,
    dictator_agreement: pl.DataFrame,
    dictator_equilibria: pl.DataFrame,
    dictator_flips: pl.DataFrame,
    dictator_robustness: pl.DataFrame,
) -> Any:
    """The figure from its tables, each over any number of tournaments and oracles."""
    if dictator_scores.is_empty():
        return style.no_data(QUESTION)
    parts, described = [], [QUESTION]
    for tournament, oracle in strategies.first_oracles(dictator_scores):
        whole = pl.col("tournament") == tournament
        here = whole & (pl.col("oracle") == oracle)
        scores = dictator_scores.filter(here)
        agreement = dictator_agreement.filter(whole)
        oracles = style.in_order(dictator_scores.filter(whole)["oracle"])
        robustness = dictator_robustness.filter(here & (pl.col("draws") > 0))
        panels = [
            alt.hconcat(
                _agreement(agreement, oracles),
                _fields(dictator_equilibria.filter(whole), oracles, scores),
                spacing=30,
            ).resolve_scale(color="independent", y="independent"),
            alt.hconcat(
                _flips(dictator_flips.filter(here), dictator_decisions.filter(here), scores, "distance"),
                _flips(dictator_flips.filter(here), dictator_decisions.filter(here), scores, "basin_change"),
                spacing=12,
            ).resolve_scale(color="independent"),
        ]
        if not robustness.is_empty():
            panels.append(_robustness(robustness, scores))
        title = alt.TitleParams(
            f"{tournament}, first oracle {oracle}", anchor="start", fontSize=10.5, fontWeight="bold", offset=6
        )
        parts.append(alt.vconcat(*panels, spacing=24, title=title).resolve_scale(color="independent"))
        described += [
            f"{tournament}: {a} and {b} agree in {agree} of {cells} cells."
            for a, b, agree, cells in agreement.select("oracle_a", "oracle_b", "agree", "cells").iter_rows()
            if a != b
        ]
    drawn = dictator_robustness.filter(pl.col("draws") > 0)
    notes = [
        "An oracle beside itself: the mean share of a cell's votes that its decision has, over the cells with several "
        "votes. Resampled: votes, one answer drawn from each cell's votes; noise, decisions turned over at this rate.",
    ]
    if not drawn.is_empty():
        notes.append(
            f"Points: medians over {style.numbers(drawn, 'draws')} resampled tournaments; bars: the middle 95 % of "
            "them, none where all are equal."
        )
    return style.page(
        alt.vconcat(*parts, spacing=30).resolve_scale(color="independent"), QUESTION, notes, " ".join(described)
    )


def _agreement(agreement: pl.DataFrame, oracles: list[str]) -> Any:
    """Rate of agreement of each pair of oracles, both ways round."""
    turned = agreement.rename({"oracle_a": "oracle_b", "oracle_b": "oracle_a"}).select(agreement.columns)
    cells = pl.concat([agreement, turned]).unique(["oracle_a", "oracle_b"], maintain_order=True).drop_nulls("rate")
    cells = cells.with_columns(count=pl.format("{}/{}", "agree", "cells"))
    side = min(52 * len(oracles), 160)
    scale = alt.Scale(domain=oracles)
    x = alt.X(
        "oracle_b", type="nominal", sort=None, scale=scale, axis=alt.Axis(title=None, labelAngle=-30, ticks=False)
    )
    y = alt.Y("oracle_a", type="nominal", sort=None, scale=scale, axis=alt.Axis(title=None, ticks=False))
    colour = alt.Color(
        "rate:Q",
        scale=alt.Scale(scheme="blues", domain=[0.5, 1], clamp=True),
        legend=alt.Legend(
            title="rate of agreement",
            orient="bottom",
            direction="horizontal",
            gradientLength=100,
            gradientThickness=6,
            tickCount=3,
            format=".1f",
        ),
    )
    ink = alt.condition("datum.rate > 0.8", alt.value("white"), alt.value("black"))
    base = alt.Chart(cells).encode(x=x, y=y)
    return alt.layer(
        base.mark_rect(stroke="white").encode(color=colour, tooltip=["oracle_a:N", "oracle_b:N", "agree:Q", "cells:Q"]),
        base.mark_text(fontSize=style.SMALL, dy=-5).encode(text=alt.Text("rate:Q", format=".3f"), color=ink),
        base.mark_text(fontSize=style.TINY, dy=6).encode(text="count:N", color=ink),
        width=side,
        height=side,
        view=alt.ViewBackground(fill=strategies.ABSENT),
        title=strategies.part("a  Agreement of oracles", ["cells that both decided, and decided alike"]),
    )


def _fields(equilibria: pl.DataFrame, oracles: list[str], scores: pl.DataFrame) -> Any:
    """The attracting fixed points at the highest beta under each oracle, with their basins."""
    own = equilibria.filter((pl.col("model") == "own_payoff") & (pl.col("basin_share") > 0))
    own = own.filter(pl.col("beta") == pl.col("beta").max()).with_columns(
        label=pl.format("{}, {}, basin {}", "oracle", "dynamics", pl.col("equilibrium") + 1)
    )
    order = {name: i for i, name in enumerate(strategies.ranked(scores))}
    place = {name: i for i, name in enumerate(oracles)}
    own = own.with_columns(
        place=pl.col("strategy").replace_strict(order, default=None, return_dtype=pl.Int64),
        oracle_place=pl.col("oracle").replace_strict(place, return_dtype=pl.Int64),
    ).sort("oracle_place", maintain_order=True)
    own = own.filter(pl.col("equilibrium") < 4)
    labels = style.in_order(own["label"])
    y = alt.Y(
        "label", type="nominal", sort=None, scale=alt.Scale(domain=labels), axis=alt.Axis(title=None, ticks=False)
    )
    height = max(17 * len(labels), 20)
    bars = alt.Chart(own).mark_bar(height=11, stroke="white", strokeWidth=0.3)
    bars = bars.encode(
        x=alt.X(
            "frequency:Q", stack="zero", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="frequency", tickCount=5)
        ),
        y=y,
        color=strategies.encoding(scores, columns=2, orient="bottom", offset=4),
        order=alt.Order("place:Q"),
        tooltip=["label:N", "strategy:N", alt.Tooltip("frequency:Q", format=".4f")],
    ).properties(width=170, height=height)
    side = alt.Y("label", type="nominal", sort=None, scale=alt.Scale(domain=labels), axis=None)
    text = alt.Chart(own.unique("label", maintain_order=True)).mark_text(
        align="left", fontSize=style.SMALL, color=style.INK
    )
    shares = text.encode(y=side, x=alt.value(0), text=alt.Text("basin_share:Q", format=".3f")).properties(
        width=30, height=height
    )
    return alt.hconcat(bars, shares, spacing=6).properties(
        title=strategies.part("b  Attracting fixed points at the highest β", ["beside the bars: share of starts"])
    )


def _flips(flips: pl.DataFrame, decisions: pl.DataFrame, scores: pl.DataFrame, field: str) -> Any:
    """What turning each single decision over does, cell by cell."""
    order = strategies.ranked(scores)
    numbers = {name: str(i + 1) for i, name in enumerate(order)}
    labels = {name: f"{i + 1}. {name}" for i, name in enumerate(order)}
    cells = flips.with_columns(
        label=pl.col("dictator").replace_strict(labels, return_dtype=pl.String),
        number=pl.col("recipient").replace_strict(numbers, return_dtype=pl.String),
    )
    split = decisions.filter((pl.col("share_votes") > 0) & (pl.col("share_votes") < pl.col("replicates")))
    dots = cells.join(split.select("dictator", "recipient"), on=["dictator", "recipient"], how="semi")
    first = field == "distance"
    x = alt.X(
        "number",
        type="nominal",
        sort=None,
        scale=alt.Scale(domain=list(numbers.values())),
        axis=alt.Axis(title="recipient", orient="top", labelAngle=0, domain=False, ticks=False, labelOverlap=True),
    )
    y = alt.Y(
        "label",
        type="nominal",
        sort=None,
        scale=alt.Scale(domain=list(labels.values())),
        axis=alt.Axis(title=None, labels=first, domain=False, ticks=False, labelPadding=4),
    )
    legend = alt.Legend(
        orient="bottom", direction="horizontal", title=None, gradientLength=120, gradientThickness=6, tickCount=3
    )
    scale = (
        alt.Scale(scheme="purples", domain=[0, 1])
        if first
        else alt.Scale(scheme="blueorange", domain=[-1, 1], domainMid=0)
    )
    tooltip = ["dictator:N", "recipient:N", "winner:N", "undominated_changes:Q", "distance:Q", "basin_change:Q"]
    known = cells.drop_nulls(field)
    layers = [
        alt.Chart(known)
        .mark_rect(stroke="white", strokeWidth=0.6)
        .encode(x=x, y=y, color=alt.Color(field, type="quantitative", scale=scale, legend=legend), tooltip=tooltip)
    ]
    if first:
        changes = cells.filter(pl.col("winner_changes"))
        layers.append(
            alt.Chart(changes).mark_text(text="w", fontSize=style.SMALL, stroke="white", strokeWidth=2).encode(x=x, y=y)
        )
        layers.append(alt.Chart(changes).mark_text(text="w", fontSize=style.SMALL, color="black").encode(x=x, y=y))
    layers.append(
        alt.Chart(dots)
        .mark_point(filled=True, size=9, opacity=1, color="black", xOffset=7, yOffset=-6)
        .encode(x=x, y=y)
    )
    said = (
        [
            "c  One decision turned over: the equilibrium",
            "half the sum of changes of frequency; w: another winner or a tie",
        ]
        if first
        else [
            "One decision turned over: its basin",
            "change of the share of starts; dots: split votes; grey: no equilibrium",
        ]
    )
    return alt.layer(
        *layers,
        width=_MATRIX,
        height=_MATRIX,
        view=alt.ViewBackground(fill=strategies.ABSENT),
        title=strategies.part(said[0], said[1:]),
    )


def _robustness(robustness: pl.DataFrame, scores: pl.DataFrame) -> Any:
    """Rank, frequency and basin under resampled decisions, by strategy and scheme."""
    rows = robustness.with_columns(
        draw=pl.when(pl.col("scheme") == "votes")
        .then(pl.lit("votes"))
        .otherwise(pl.format("noise {} %", (pl.col("rate") * 100).round(1).cast(pl.String).str.strip_suffix(".0")))
    )
    schemes = style.in_order(rows["draw"])
    names = strategies.ranked(scores)

    def rows_by_name(labels: bool) -> alt.Y:
        axis = alt.Axis(title=None, labels=labels, ticks=False, grid=True)
        return alt.Y("strategy", type="nominal", sort=None, scale=alt.Scale(domain=names), axis=axis)

    panels = []
    for i, scheme in enumerate(schemes):
        here = rows.filter(pl.col("draw") == scheme)
        basin = here.row(0, named=True)
        said = "basin n/a"
        if basin["basin_share"] is not None:
            said = f"basin {basin['basin_share']:.2f}"
            if basin["basin_share_low"] is not None:
                said += f" [{basin['basin_share_low']:.2f}, {basin['basin_share_high']:.2f}]"
        pair = [
            _points(
                here,
                "rank",
                rows_by_name(i % 4 == 0),
                alt.Scale(domain=[0.5, len(names) + 0.5], nice=False),
                "rank",
                scores,
                54,
            ),
            _points(here, "frequency", rows_by_name(False), alt.Scale(domain=[0, 1]), "frequency", scores, 54),
        ]
        settled = f"settles in {basin['converged']:.0%}"
        panels.append(alt.hconcat(*pair, spacing=8, title=strategies.heading([scheme, settled, said])))
    rows_of = [alt.hconcat(*panels[i : i + 4], spacing=14) for i in range(0, len(panels), 4)]
    return alt.vconcat(*rows_of, spacing=12).properties(
        title=strategies.part(
            "d  Ranking and equilibrium under resampled decisions",
            ["basin: share of the starts that reach the equilibrium from the uniform start"],
        )
    )


def _points(
    frame: pl.DataFrame, field: str, y: alt.Y, scale: alt.Scale, title: str, scores: pl.DataFrame, width: int
) -> Any:
    axis = alt.Axis(title=title, tickCount=3, grid=False)
    if field == "rank":
        axis = alt.Axis(title=title, values=_ranks(scores.height), format="d", grid=False)
    colour = strategies.encoding(scores, orient=None)
    bars = alt.Chart(frame.drop_nulls(f"{field}_low")).mark_rule(strokeWidth=1.6, opacity=1)
    marks = alt.Chart(frame.drop_nulls(field)).mark_point(
        filled=True, size=26, opacity=1, stroke="white", strokeWidth=0.5
    )
    tooltip = ["strategy:N", f"{field}:Q", f"{field}_low:Q", f"{field}_high:Q", "draws:Q", "first:Q", "undominated:Q"]
    return alt.layer(
        bars.encode(x=alt.X(f"{field}_low:Q", scale=scale, axis=axis), x2=f"{field}_high:Q", y=y, color=colour),
        marks.encode(x=alt.X(f"{field}:Q", scale=scale, axis=axis), y=y, color=colour, tooltip=tooltip),
        width=width,
        height=14 * frame.height,
    )


def _ranks(last: int) -> list[int]:
    """At most three whole ranks, evenly spaced from the first."""
    return list(range(1, last + 1, max(1, (last - 1) // 2)))[:3]
