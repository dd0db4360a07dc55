"""How strategies of the dictator game look: a colour each, its hue given by its family, and their order by rank.

It knows no strategy by name, so that a new document gets a place in its family's colours; it draws nothing.
Source: the families and hues of Table 1 and Figure 1 of M. Glass, "The Open-Strategy Dictator Game" (2026), in the
colours of Okabe and Ito, which survive colour blindness.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from colorsys import hls_to_rgb
from itertools import count
from typing import TYPE_CHECKING, Any

import altair as alt

from fishpool.figures import style

if TYPE_CHECKING:
    import polars as pl

ABSENT = "#d9d9d9"  # a cell that nobody decided, a run that does not converge

# The first shades of a family are those of the paper's strategies; those of one family differ also to the colour-blind.
_FAMILIES = {
    "unconditional": ("#BDBDBD", "#4D4D4D", "#868686", "#000000", "#A98546"),
    "trait": ("#CC79A7", "#7E57A0", "#009E73", "#F3BFDC", "#46285F"),
    "reciprocity": ("#56B4E9", "#0072B2", "#00365C", "#A9DDF7", "#7087E8"),
    "second-order": ("#F0C808", "#D55E00", "#7A3200", "#FFE9A0", "#FF9D5C"),
}
_OTHERS = (
    ("#8C6D31", "#D9B35B", "#4F3B12", "#F0DCAA"),
    ("#5F9EA0", "#24494B", "#8FD0CB", "#41777A"),
    ("#A55194", "#DE9ED6", "#5E2355", "#F4D3EF"),
    ("#AD494A", "#F0A3A6", "#6B1F20", "#F9D5D3"),
    ("#637939", "#B5CF6B", "#3A4720", "#DCEBB2"),
)


def colours(scores: pl.DataFrame) -> alt.Scale:
    """The scale of a strategy's colour from `dictator_scores`; within a family, colours go by name.

    No two strategies have the same. Beyond the shades of its family, a strategy gets a hue that no other has.
    """
    families = dict(sorted(zip(scores["strategy"], scores["family"], strict=True)))
    unknown = iter(_OTHERS)
    shades = {family: _FAMILIES.get(family) or next(unknown, ()) for family in sorted(set(families.values()))}
    left = {family: iter(own) for family, own in shades.items()}
    taken = {shade for own in shades.values() for shade in own}
    further = (shade for shade in _further() if shade not in taken)
    colour = {name: next(left[family], None) or next(further) for name, family in families.items()}
    names = ranked(scores)
    return alt.Scale(domain=names, range=[colour[name] for name in names])


def _further() -> Iterator[str]:
    """Colours without end: those of all families, then hues a golden section of the circle apart, dark and light."""
    yield from (shade for own in zip(*_OTHERS, strict=True) for shade in own)
    yield from (shade for own in _FAMILIES.values() for shade in own)
    for place in count():
        channels = hls_to_rgb(place * 0.618034 % 1, (0.35, 0.65, 0.5)[place % 3], 0.6)
        yield "#" + "".join(f"{round(255 * channel):02X}" for channel in channels)


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
