"""How strategies of the dictator game look: a colour each, its hue given by its family, and their order by rank.

It knows no strategy by name, so that a new document gets a place in its family's colours; it draws nothing.
Source: the families and hues of Table 1 and Figure 1 of M. Glass, "The Open-Strategy Dictator Game" (2026), in the
colours of Okabe and Ito, which survive colour blindness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from fishpool.figures import style

if TYPE_CHECKING:
    import polars as pl

ABSENT = "#d9d9d9"  # a cell that nobody decided, a run that does not converge

_FAMILIES = {
    "unconditional": ("#BDBDBD", "#4D4D4D"),  # greys: the giving one light, the taking one dark
    "trait": ("#CC79A7", "#7E57A0", "#009E73"),
    "reciprocity": ("#56B4E9", "#0072B2"),
    "second-order": ("#F0C808", "#D55E00"),
}
_OTHERS = ("#8C6D31", "#5F9EA0", "#A55194", "#637939", "#AD494A", "#7B4173")


def colours(scores: pl.DataFrame) -> alt.Scale:
    """The scale of a strategy's colour from `dictator_scores`; within a family, colours go by name.

    Where a family has more strategies than hues, the hues come round again.
    """
    families = dict(zip(scores["strategy"], scores["family"], strict=True))
    unknown = iter(_OTHERS * (1 + len(set(families.values()))))
    hues = {
        family: _FAMILIES.get(family) or (next(unknown), next(unknown)) for family in sorted(set(families.values()))
    }
    place: dict[str, int] = {}
    colour = {}
    for name in sorted(families):
        family = families[name]
        colour[name] = hues[family][place.get(family, 0) % len(hues[family])]
        place[family] = place.get(family, 0) + 1
    names = ranked(scores)
    return alt.Scale(domain=names, range=[colour[name] for name in names])


def ranked(scores: pl.DataFrame) -> list[str]:
    """The strategies of a tournament, best first; those without a score last."""
    return style.in_order(scores.sort("rank", nulls_last=True, maintain_order=True)["strategy"])


def encoding(scores: pl.DataFrame, **legend: Any) -> alt.Color:
    """The colour of a field `strategy`, with a legend above unless told otherwise (`orient=None`: none)."""
    shown: dict[str, Any] = {
        "orient": "top",
        "direction": "horizontal",
        "columns": 5,
        "title": None,
        "symbolType": "square",
    } | legend
    return alt.Color(
        "strategy", type="nominal", scale=colours(scores), legend=alt.Legend(**shown) if shown["orient"] else None
    )


def heading(lines: list[str]) -> alt.TitleParams:
    """The name of a panel, above its left end."""
    return alt.TitleParams(lines, anchor="start", fontSize=style.SMALL, fontWeight="normal", offset=4, lineHeight=10)


def part(text: str, notes: Sequence[str] = ()) -> alt.TitleParams:
    """The name of a part of a figure, and under it what its marks are."""
    return alt.TitleParams(
        text,
        subtitle=list(notes),
        anchor="start",
        fontSize=style.BODY,
        fontWeight="bold",
        subtitleFontSize=style.SMALL,
        subtitlePadding=2,
        offset=6,
    )


def first_oracles(frame: pl.DataFrame) -> list[tuple[str, str]]:
    """(tournament, oracle) of the first oracle that each tournament names: the one whose field the figures show."""
    pairs = frame.select("tournament", "oracle").unique(maintain_order=True)
    return [(str(t), str(o)) for t, o in pairs.unique("tournament", keep="first", maintain_order=True).iter_rows()]
