"""RQ9, "Who cooperates with whom?": every player against every other, and the ranking that follows.

A row of panels a study and condition, all over the same rows of players, best first: rank, mean score and cooperation
rate by opponent, mean score with its interval, Bradley-Terry strength with its interval. It computes nothing; its
source is the tables pd_matchups, pd_ranking and pd_rounds (whose last round is the length of a match).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style

QUESTION = "Who cooperates with whom?"

# What a cell shows, or says when pointed at.
_COLUMNS = ["player", "opponent", "matches", "mean_score", "score_low", "score_high", "cooperation_rate"]

_HEATMAP = 200
_ESTIMATES = 62
_CELL = (9, 26)  # least and greatest side of a cell
_WIDE = 180  # from this width on a heatmap has room for the title of its scale in one line
_NUMBERED = 22  # from this side on a cell has room for its number
_FEW = 6  # up to so many players, the conditions of a study share their columns


def chart(pd_matchups: pl.DataFrame, pd_ranking: pl.DataFrame, pd_rounds: pl.DataFrame) -> Any:
    """The figure from the three tables, each over any number of studies and conditions."""
    if pd_matchups.is_empty():
        return style.no_data(QUESTION)
    blocks: list[Any] = []
    left_out, few = [], False
    for study in style.in_order(pd_matchups["study"]):
        here = pl.col("study") == study
        matchups, ranking, rounds = (table.filter(here) for table in (pd_matchups, pd_ranking, pd_rounds))
        count = len({*matchups["player"], *matchups["opponent"]})
        if count > style.MOST:
            left_out.append(style.left_out(study, count, "pd_matchups and pd_ranking"))
        few |= count <= _FEW and matchups["condition"].n_unique() > 1
        blocks += _study(study, matchups, ranking, rounds, together=count <= _FEW)
    figure = alt.vconcat(*blocks, spacing=22).resolve_scale(color="independent")
    order = "both by rank"
    if few:
        order += f" (in a study of up to {_FEW} players by that in its first condition)"
    notes = [
        f"A row is a player, a column its opponent, {order}. Framed cells: self-play, which no ranking counts. "
        f"{style.numbers(pd_matchups, 'matches')} matches a cell; "
        f"{style.numbers(pd_ranking, 'matches')} matches a player in the ranking.",
        "Bars: 95 % intervals (of means: bootstrap over seeds; of strengths: clustered by seed), none where nothing "
        "varies. In brackets: 95 % interval of the rank. Strength: Bradley–Terry with ties, natural logarithm, mean 0; "
        "n/a: no finite estimate.",
        *left_out,
    ]
    if _cells_missing(pd_matchups):
        notes.append("Empty cells: no scored round.")
    return style.page(figure, QUESTION, notes, " ".join(_description(pd_matchups, pd_ranking)))


def _study(
    study: str, matchups: pl.DataFrame, ranking: pl.DataFrame, rounds: pl.DataFrame, together: bool
) -> Iterator[Any]:
    """A row of panels a condition, over the same scales; `together`, also over the same columns, named once."""
    by_rank = ranking.sort("rank", "player", nulls_last=True)
    everyone = [*matchups["player"], *matchups["opponent"]]
    conditions = style.in_order(matchups["condition"])
    players = {
        name: style.foremost(
            by_rank.filter(pl.col("condition") == conditions[0 if together else i])["player"], everyone
        )
        for i, name in enumerate(conditions)
    }
    shown = {name for names in players.values() for name in names}
    cells = matchups.filter(pl.col("player").is_in(shown), pl.col("opponent").is_in(shown))
    ranks = ranking.filter(pl.col("player").is_in(shown))
    domains = {"cells": style.extent(cells, "mean_score")}
    for field, prefix in (("mean_score", "score"), ("strength", "strength")):
        if ranks[field].count():
            domains[field] = style.extent(ranks, field, f"{prefix}_low", f"{prefix}_high")
    for i, condition in enumerate(conditions):
        here = pl.col("condition") == condition
        length = max(rounds.filter(here)["round"], default=None)
        points = f"points a match of {length} round{'s'[: length > 1]}" if length else "points a match"
        own = pl.col("player").is_in(players[condition])
        panels = _panels(
            matchups.filter(here, own, pl.col("opponent").is_in(players[condition])),
            ranking.filter(here, own),
            players[condition],
            points,
            domains,
            _Edges(top=i == 0 or not together, bottom=i == len(conditions) - 1 or not together),
        )
        yield alt.hconcat(*panels, spacing=9, title=style.heading(f"{study}: {condition}")).resolve_scale(
            color="independent"
        )


@dataclass(frozen=True)
class _Edges:
    """Whether a row of panels has legends and headings (`top`), and names of columns and axes (`bottom`)."""

    top: bool
    bottom: bool


def _panels(
    matchups: pl.DataFrame,
    ranking: pl.DataFrame,
    players: list[str],
    points: str,
    domains: dict[str, list[float]],
    edges: _Edges,
) -> Iterator[Any]:
    side = min(max(_HEATMAP // len(players), _CELL[0]), _CELL[1])
    size = side * len(players)

    def rows(labels: bool = False) -> alt.Y:
        axis = alt.Axis(title=None, domain=False, ticks=False, labelPadding=4) if labels else None
        return alt.Y("player", type="nominal", sort=None, scale=alt.Scale(domain=players), axis=axis)

    yield _ranks(ranking, rows(labels=True), size, edges)
    score = alt.Color(
        "mean_score",
        type="quantitative",
        scale=alt.Scale(scheme="viridis", domain=domains["cells"]),
        legend=_gradient("mean score", f"({points})", size) if edges.top else None,
    )
    middle = sum(domains["cells"]) / 2
    yield _heatmap(matchups, players, rows(), score, ".1f", middle, size, True, edges)
    rate = alt.Color(
        "cooperation_rate",
        type="quantitative",
        scale=alt.Scale(scheme="blues", domain=[0, 1]),
        legend=_gradient("cooperation rate", "(share of rounds)", size, [0, 0.5, 1]) if edges.top else None,
    )
    yield _heatmap(matchups, players, rows(), rate, ".2f", 0.55, size, False, edges)
    yield _intervals(ranking, "mean_score", "score", ["mean score", "(points a match)"], domains, rows(), size, edges)
    yield _intervals(ranking, "strength", "strength", ["strength", "(log scale)"], domains, rows(), size, edges)


def _ranks(ranking: pl.DataFrame, y: alt.Y, size: int, edges: _Edges) -> Any:
    """Ranks in figures, with their intervals."""
    interval = pl.format(" [{}–{}]", "rank_low", "rank_high").fill_null("")
    rows = ranking.select("player", text=pl.col("rank").cast(pl.String) + interval)
    text = alt.Chart(rows).mark_text(align="left", fontSize=style.SMALL, color=style.INK)
    text = text.encode(y=y, x=alt.value(0), text="text:N")
    title = alt.TitleParams("player and rank", anchor="start", fontSize=style.SMALL, fontWeight="normal", offset=4)
    return alt.layer(text, width=37, height=size, title=title if edges.top else alt.Undefined)


def _heatmap(
    matchups: pl.DataFrame,
    players: list[str],
    y: alt.Y,
    color: alt.Color,
    number: str,
    middle: float,
    size: int,
    light_is_high: bool,
    edges: _Edges,
) -> Any:
    """Player against opponent; self-play apart, as a small square in a frame; the numbers where there is room."""
    field = color.shorthand
    cells = matchups.drop_nulls(field).select(_COLUMNS)
    own = cells.filter(pl.col("player") == pl.col("opponent"))
    x = alt.X(
        "opponent",
        type="nominal",
        sort=None,
        scale=alt.Scale(domain=players),
        axis=alt.Axis(title="opponent", labelAngle=-90, domain=False, ticks=False, labelPadding=4)
        if edges.bottom
        else None,
    )
    tooltip = [
        alt.Tooltip("player", type="nominal"),
        alt.Tooltip("opponent", type="nominal"),
        alt.Tooltip("matches", type="quantitative", format=","),
        alt.Tooltip("mean_score", type="quantitative", format=".2f"),
        alt.Tooltip("score_low", type="quantitative", format=".2f"),
        alt.Tooltip("score_high", type="quantitative", format=".2f"),
        alt.Tooltip("cooperation_rate", type="quantitative", format=".3f"),
    ]
    numbered = size / len(players) >= _NUMBERED
    inner = 0.8 if numbered else 0.6
    layers = [
        alt.Chart(cells).mark_rect().encode(x=x, y=y, color=color, tooltip=tooltip),
        alt.Chart(own).mark_rect(fill="white", stroke=style.INK, strokeWidth=0.8).encode(x=x, y=y),
        alt.Chart(own)
        .mark_rect(width={"band": inner}, height={"band": inner})
        .encode(x=x, y=y, color=color, tooltip=tooltip),
    ]
    if numbered:
        above, below = ("black", "white") if light_is_high else ("white", "black")
        label = alt.condition(f"datum.{field} > {middle!r}", alt.value(above), alt.value(below))
        text = alt.Chart(cells).mark_text(fontSize=style.SMALL)
        layers.append(text.encode(x=x, y=y, text=alt.Text(field, type="quantitative", format=number), color=label))
    return alt.layer(*layers, width=size, height=size)


def _intervals(
    ranking: pl.DataFrame,
    field: str,
    prefix: str,
    title: list[str],
    domains: dict[str, list[float]],
    y: alt.Y,
    size: int,
    edges: _Edges,
) -> Any:
    """Points with their intervals; n/a where there is no estimate."""
    low, high = f"{prefix}_low", f"{prefix}_high"
    axis = alt.Axis(
        title=title if edges.bottom else None,
        labels=edges.bottom and field in domains,
        grid=True,
        tickCount=4,
        domain=False,
        ticks=False,
    )
    scale = alt.Scale(domain=domains.get(field, [-1, 1]), zero=False, nice=False, padding=4)
    x = alt.X(field, type="quantitative", scale=scale, axis=axis)
    tooltip = [alt.Tooltip("player", type="nominal"), alt.Tooltip("matches", type="quantitative", format=",")]
    tooltip += [alt.Tooltip(column, type="quantitative", format=".3f") for column in (field, low, high)]
    estimates = ranking.drop_nulls(field)
    guides = alt.Chart(ranking).mark_rule(color=style.GRID, strokeWidth=0.6)
    bars = alt.Chart(ranking.drop_nulls([field, low, high])).mark_rule(color=style.INK, strokeWidth=1)
    marks = alt.Chart(estimates).mark_point(filled=True, size=9, color=style.INK, opacity=1)
    absent = alt.Chart(ranking.filter(pl.col(field).is_null()))
    return alt.layer(
        guides.encode(y=y),
        bars.encode(x=alt.X(low, type="quantitative", scale=scale, axis=axis), x2=high, y=y),
        marks.encode(x=x, y=y, tooltip=tooltip),
        absent.mark_text(text="n/a", fontSize=style.SMALL, color=style.FAINT).encode(x=alt.value(_ESTIMATES / 2), y=y),
        width=_ESTIMATES,
        height=size,
    )


def _gradient(title: str, unit: str, size: int, values: list[float] | None = None) -> alt.Legend:
    return alt.Legend(
        orient="top",
        direction="horizontal",
        # No wider than the heatmap, or the columns of other conditions would stand elsewhere.
        title=f"{title} {unit}" if size >= _WIDE else [title, *textwrap.wrap(unit, size // 5)],
        gradientLength=max(size * 0.6, min(size - 8, 70)),
        gradientThickness=6,
        tickCount=4,
        values=values if values is not None else alt.Undefined,
        titlePadding=3,
        offset=4,
    )


def _cells_missing(matchups: pl.DataFrame) -> bool:
    pairs = matchups.group_by("study", "condition").agg(
        pl.len().alias("cells"), pl.col("player").n_unique().alias("players"), pl.col("cooperation_rate").null_count()
    )
    return not pairs.filter((pl.col("cells") < pl.col("players") ** 2) | (pl.col("cooperation_rate") > 0)).is_empty()


def _description(matchups: pl.DataFrame, ranking: pl.DataFrame) -> Iterator[str]:
    players = style.in_order([*matchups["player"], *matchups["opponent"]])
    yield f"{QUESTION} Heatmaps of mean score and cooperation rate of {len(players)} players against each opponent,"
    yield "beside their ranking by mean score and by Bradley-Terry strength."
    for row in ranking.filter(pl.col("rank") == 1).iter_rows(named=True):
        first = f"{row['player']} ranks first with {row['mean_score']:.1f} points a match."
        yield f"{row['study']}, {row['condition']}: {first}"
