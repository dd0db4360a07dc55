"""RQ10, "How does cooperation move over the rounds of a match?": by round, and by what has just happened.

One block a study: a panel a player with its cooperation rate by round and condition, then the conditional cooperation
profiles P(C | the round before) with the counts behind them. It computes nothing; its source is the tables pd_rounds
and pd_profiles, and pd_ranking for the order of the players (their rank in the first condition).
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import style

QUESTION = "How does cooperation move over {}?"

_COLUMNS = 6
_GAP = 8
_MARGIN = 100  # left of both parts: the players' names
_PANEL = 200  # greatest width of a panel
_HEIGHT = 64  # and height
_PROFILE = 114  # width of a profile's column, its counts included
_PROFILE_SCALE = (6, 70)  # where in it the rates 0 and 1 lie
_PROFILE_ROW = 8  # height of one condition
_STATES = {"opening": "opening", "CC": "after CC", "CD": "after CD", "DC": "after DC", "DD": "after DD"}


def chart(pd_rounds: pl.DataFrame, pd_profiles: pl.DataFrame, pd_ranking: pl.DataFrame) -> Any:
    """The figure from the three tables, each over any number of studies and conditions."""
    if pd_rounds.is_empty():
        return style.no_data(QUESTION.format("a match"))
    conditions = style.in_order([*pd_rounds["condition"], *pd_profiles["condition"]])
    encodings = style.conditions(conditions)
    pd_rounds = pd_rounds.with_columns(line=pl.col("condition").replace_strict(conditions, range(len(conditions))))
    blocks, shaded, left_out = [], False, []
    for study in style.in_order(pd_rounds["study"]):
        here = pl.col("study") == study
        rounds, profiles = pd_rounds.filter(here), pd_profiles.filter(here)
        players = style.foremost(pd_ranking.filter(here)["player"], [*rounds["player"], *profiles["player"]])
        count = len({*rounds["player"], *profiles["player"]})
        if count > style.MOST:
            left_out.append(style.left_out(study, count, "pd_rounds and pd_profiles"))
        rounds, profiles = (table.filter(pl.col("player").is_in(players)) for table in (rounds, profiles))
        lengths = {max(part["round"]) for _, part in rounds.group_by("condition")}
        ending = lengths == {max(lengths)} and max(lengths) > 2
        shaded |= ending
        parts = [_curves(rounds, players, max(lengths), ending, encodings)]
        if not profiles.is_empty():
            parts.append(_profiles(profiles, players, encodings))
        blocks.append(alt.vconcat(*parts, spacing=24, title=style.heading(study)))
    longest = max(pd_rounds["round"])
    question = QUESTION.format(f"{longest} rounds" if longest > 1 else "a match")
    notes = [
        "Above: share of matches in which a player cooperated, by round; "
        f"{style.numbers(pd_rounds, 'matches')} matches a player and round, self-play left out."
        f"{' Shaded: the last two rounds.' if shaded else ''}",
        "Below: how often it cooperated in the first round (opening) and after each kind of round (CD: it cooperated, "
        "its opponent defected); n: such rounds (n/a: none).",
        "Bands and bars: 95 % bootstrap intervals over seeds, none where nothing varies. Players are ordered by their "
        "rank in the first condition.",
        *left_out,
    ]
    description = (
        f"{question} Curves of the cooperation rate by round of {pd_rounds['player'].n_unique()} players under the "
        f"conditions {', '.join(conditions)}; below, their cooperation rates in the first "
        "round and after each kind of round, with counts."
    )
    figure = alt.vconcat(*blocks, spacing=30).resolve_scale(yOffset="independent")
    return style.page(figure, question, notes, description)


def _curves(rounds: pl.DataFrame, players: list[str], last: int, ending: bool, encodings: dict[str, Any]) -> Any:
    """A small panel a player, in it a line a condition with its band."""
    columns = min(_COLUMNS, len(players))
    width = min(_PANEL, (style.WIDTH - _MARGIN - _GAP * (columns - 1)) // columns)
    # A band joins neighbouring rounds that have intervals; a round whose neighbours have none gets a bar.
    beside = [pl.col("low").shift(n).over("player", "condition").is_null() for n in (1, -1)]
    rows = rounds.sort("player", "condition", "round").with_columns(
        panel=pl.col("player").replace_strict(players, ["\n".join(style.wrapped(name, width)) for name in players]),
        place=pl.col("player").replace_strict(players, range(len(players))),
        alone_low=pl.when(beside[0] & beside[1]).then("low"),
        alone_high=pl.when(beside[0] & beside[1]).then("high"),
    )

    x_scale = alt.Scale(domain=[0.5, last + 0.5], nice=False, zero=False)
    x = alt.X("round", type="quantitative", scale=x_scale, axis=_round_axis(last))
    y_scale = alt.Scale(domain=[-0.04, 1.04], nice=False)
    y_axis = alt.Axis(title="P(cooperate)", values=[0, 0.5, 1], format=".1~f", domain=False)
    y, low, alone = (
        alt.Y(field, type="quantitative", scale=y_scale, axis=y_axis)
        for field in ("cooperation_rate", "low", "alone_low")
    )
    color = encodings["color"]
    layers = [
        alt.Chart().mark_area(opacity=0.3).encode(x=x, y=low, y2="high", color=color),
        alt.Chart().mark_rule(opacity=0.5).encode(x=x, y=alone, y2="alone_high", color=color),
        alt.Chart()
        .mark_line(strokeWidth=1.1, strokeJoin="round")
        .encode(x=x, y=y, color=color, strokeDash=encodings["dash"]),
        alt.Chart()
        .mark_point(filled=True, size=7, opacity=1)
        .encode(x=x, y=y, color=color, shape=encodings["shape"], tooltip=_tooltip("round", "matches")),
    ]
    if ending:
        final = alt.Chart(pl.DataFrame({"round": [last - 1.5], "end": [last + 0.5]}))
        layers.insert(0, final.mark_rect(fill=style.SHADE).encode(x=x, x2="end"))
    panel = alt.layer(*layers, data=rows, width=width, height=min(width // 2, _HEIGHT))
    facet = alt.Facet("panel", type="nominal", sort=alt.EncodingSortField("place", "min"), header=style.panel_names())
    panels = panel.facet(facet, columns=columns, spacing={"row": 6, "column": _GAP})
    return panels.resolve_axis(x="independent").properties(
        title=style.part("Cooperation (vertical) by round (horizontal)")
    )


def _profiles(profiles: pl.DataFrame, players: list[str], encodings: dict[str, Any]) -> Any:
    """A column a state, a row a player, in it a line a condition: rate, interval and count."""
    conditions = style.in_order(profiles["condition"])
    row = _PROFILE_ROW * len(conditions) + 3
    rows = profiles.with_columns(
        panel=pl.col("state").replace_strict(_STATES),
        place=pl.col("state").replace_strict(list(_STATES), range(len(_STATES))),
        count=pl.when(pl.col("n") > 0)
        .then(pl.col("n").map_elements("{:,}".format, pl.String))
        .otherwise(pl.lit("n/a")),
    )

    y_scale = alt.Scale(domain=players, paddingInner=3 / row, paddingOuter=0)
    y_axis = alt.Axis(title=None, domain=False, ticks=False, labelPadding=4)
    y = alt.Y("player", type="nominal", sort=None, scale=y_scale, axis=y_axis)
    offset = alt.YOffset("condition", type="nominal", sort=None, scale=alt.Scale(domain=conditions))
    x_scale = alt.Scale(domain=[0, 1], range=list(_PROFILE_SCALE))
    x_axis = alt.Axis(
        title="P(cooperate)", values=[0, 0.5, 1], format=".1~f", grid=False, labelFlush=False, domain=False, ticks=False
    )
    x, low = (alt.X(field, type="quantitative", scale=x_scale, axis=x_axis) for field in ("cooperation_rate", "low"))
    color, shape = encodings["color"], encodings["shape"]
    every_other = alt.Chart(pl.DataFrame({"player": players[::2]}))
    grid = alt.Chart(pl.DataFrame({"cooperation_rate": [0.0, 0.5, 1.0]}))
    head = alt.Chart(pl.DataFrame({"count": ["n"]})).mark_text(align="right", fontSize=style.SMALL, color=style.INK)
    panel = alt.layer(
        every_other.mark_rect(fill=style.SHADE).encode(y=y, x=alt.value(0), x2=alt.value(_PROFILE)),
        grid.mark_rule(color=style.GRID, strokeWidth=0.6).encode(x=x),
        alt.Chart().mark_rule(strokeWidth=1.2).encode(x=low, x2="high", y=y, yOffset=offset, color=color),
        alt.Chart()
        .mark_point(filled=True, size=15, opacity=1)
        .encode(x=x, y=y, yOffset=offset, color=color, shape=shape, tooltip=_tooltip("state", "n")),
        alt.Chart()
        .mark_text(align="right", fontSize=style.TINY, color=style.INK)
        .encode(x=alt.value(_PROFILE - 2), y=y, yOffset=offset, text="count:N"),
        head.encode(x=alt.value(_PROFILE - 2), y=alt.value(-6), text="count:N"),
        data=rows,
        width=_PROFILE,
        height=len(players) * row,
    )
    column = alt.Column("panel", type="nominal", sort=alt.EncodingSortField("place", "min"), header=style.panel_names())
    return panel.facet(column=column, spacing=5).properties(
        title=style.part("Cooperation after what has just happened, with the number of such rounds")
    )


def _tooltip(what: str, count: str) -> list[alt.Tooltip]:
    return [
        *(alt.Tooltip(column, type="nominal") for column in ("player", "condition", what)),
        alt.Tooltip(count, type="quantitative", format=","),
        *(alt.Tooltip(column, type="quantitative", format=".3f") for column in ("cooperation_rate", "low", "high")),
    ]


def _round_axis(last: int) -> alt.Axis:
    step = 1 if last <= 6 else 5 * -(-last // 25)
    return alt.Axis(title=None, values=sorted({1, *range(step, last + 1, step)}), grid=False, labelFlush=False)
