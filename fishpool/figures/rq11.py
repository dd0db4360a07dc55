"""RQ11, "Which strategies are the players really using?": estimated shares of the strategies of a stated set.

A panel a player, in it a row a strategy and in that a line a condition, with 95 % intervals; shares that the data do
not settle are hollow marks without one. It computes nothing; its source is the table pd_strategy_shares, and
pd_ranking for the order of the players (their rank in the first condition).
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style

QUESTION = "Which strategies are the players really using?"

_COLUMNS = 6
_GAP = 8
_MARGIN = 100  # left of the panels: the strategies' names
_PANEL = 200  # greatest width of a panel
_LINE = 6  # height of one condition
_ERROR = "implementation error"
_APART = "cannot be told apart"


def chart(pd_strategy_shares: pl.DataFrame, pd_ranking: pl.DataFrame) -> Any:
    """The figure from the two tables, each over any number of studies and conditions."""
    if pd_strategy_shares.is_empty():
        return style.no_data(QUESTION)
    conditions = style.in_order(pd_strategy_shares["condition"])
    encodings = style.conditions(conditions, hollow=_APART)
    blocks, left_out = [], []
    for study in style.in_order(pd_strategy_shares["study"]):
        here = pl.col("study") == study
        shares = pd_strategy_shares.filter(here)
        players = style.foremost(pd_ranking.filter(here)["player"], shares["player"])
        if shares["player"].n_unique() > style.MOST:
            left_out.append(style.left_out(study, shares["player"].n_unique(), "pd_strategy_shares"))
        blocks.append(_panels(shares.filter(pl.col("player").is_in(players)), players, encodings, study))
    figure = alt.vconcat(*blocks, spacing=30).resolve_scale(yOffset="independent")
    notes = [
        "Share of a player's matches in which it followed a strategy of the set (strategy-frequency estimation)"
        f"{_matches(pd_strategy_shares)}.",
        "Bars: 95 % bootstrap intervals over seeds, none where nothing varies. Hollow: the data cannot tell the "
        "strategy from others of the set; its share could be another.",
        *left_out,
    ]
    if "implementation_error" in pd_strategy_shares.columns:
        notes.append(
            "Last row: how often the player did not do what the strategy it followed prescribes; at 0.5 the set "
            "explains nothing and the shares mean nothing."
        )
    strategies = style.in_order(pd_strategy_shares["strategy"])
    count = pd_strategy_shares["player"].n_unique()
    description = (
        f"{QUESTION} Estimated shares of the strategies {', '.join(strategies)} for {count} players under the "
        f"conditions {', '.join(conditions)}, with intervals."
    )
    return style.page(figure, QUESTION, notes, description)


def _panels(shares: pl.DataFrame, players: list[str], encodings: dict[str, Any], study: str) -> Any:
    conditions = style.in_order(shares["condition"])
    if "implementation_error" in shares.columns:
        errors = shares.unique(["condition", "player"], maintain_order=True).select(
            "study",
            "condition",
            "player",
            strategy=pl.lit(_ERROR),
            share="implementation_error",
            identifiable=pl.lit(True),
        )
        shares = pl.concat([shares, errors], how="diagonal")
    strategies = style.in_order(shares["strategy"])
    columns = min(_COLUMNS, len(players))
    width = min(_PANEL, (style.WIDTH - _MARGIN - _GAP * (columns - 1)) // columns)
    row = _LINE * len(conditions) + 3
    rows = shares.with_columns(
        panel=pl.col("player").replace_strict(players, ["\n".join(style.wrapped(name, width)) for name in players]),
        place=pl.col("player").replace_strict(players, range(len(players))),
        filling=pl.when("identifiable").then("condition").otherwise(pl.lit(_APART)),
    )

    y_scale = alt.Scale(domain=strategies, paddingInner=3 / row, paddingOuter=0)
    y_axis = alt.Axis(title=None, domain=False, ticks=False, labelPadding=4)
    y = alt.Y("strategy", type="nominal", sort=None, scale=y_scale, axis=y_axis)
    offset = alt.YOffset("condition", type="nominal", sort=None, scale=alt.Scale(domain=conditions))
    x_scale = alt.Scale(domain=[-0.04, 1.04], nice=False)
    x_axis = alt.Axis(title=None, values=[0, 0.5, 1], format=".1~f", labelFlush=False, domain=False)
    x, low = (alt.X(field, type="quantitative", scale=x_scale, axis=x_axis) for field in ("share", "low"))
    tooltip = [
        *(alt.Tooltip(column, type="nominal") for column in ("player", "condition", "strategy", "identifiable")),
        *(alt.Tooltip(column, type="quantitative", format=".3f") for column in ("share", "low", "high")),
    ]
    color = encodings["color"]
    every_other = alt.Chart(pl.DataFrame({"strategy": strategies[::2]}))
    panel = alt.layer(
        every_other.mark_rect(fill=style.SHADE).encode(y=y),
        alt.Chart().mark_rule(strokeWidth=1.2).encode(x=low, x2="high", y=y, yOffset=offset, color=color),
        alt.Chart()
        .mark_point(size=12, strokeWidth=0.8, opacity=1)
        .encode(
            x=x,
            y=y,
            yOffset=offset,
            color=color,
            fill=encodings["fill"],
            shape=encodings["shape"],
            tooltip=tooltip,
        ),
        data=rows,
        width=width,
        height=len(strategies) * row,
    )
    facet = alt.Facet("panel", type="nominal", sort=alt.EncodingSortField("place", "min"), header=style.panel_names())
    panels = panel.facet(facet, columns=columns, spacing={"row": 6, "column": _GAP})
    return panels.resolve_axis(x="independent").properties(
        title=style.heading(study, "horizontal: estimated share of matches")
    )


def _matches(shares: pl.DataFrame) -> str:
    return f"; {style.numbers(shares, 'matches')} matches a player and condition" if "matches" in shares.columns else ""
