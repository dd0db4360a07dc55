"""How every figure looks: sizes, fonts, colours, and the few pieces that all questions share.

It is the one place where looks are decided; it holds no state that a chart could change, and it computes no statistics.
Source: widths are the usual 183 mm page of a journal at 96 pixels an inch; the palette of conditions is that of Okabe
and Ito, "Color Universal Design" (2008), in an order that alternates light and dark; scales of cells (viridis, greys to
blue) grow darker or lighter throughout, so that they survive greyscale.

Text that comes from a study (players, conditions) reaches a chart only as data, as a title or as a scale's domain. Vega
takes all three literally; a sort order, a filter or a label expression would be compiled into an expression instead.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    import polars as pl

WIDTH = 692  # 183 mm
FONT = (
    "Liberation Sans, Arial, Helvetica, sans-serif"  # the renderer brings the first, browsers the next of equal widths
)
SMALL = 8.5  # labels: 6.4 pt in print
TINY = 7.5  # counts beside marks: 5.6 pt
BODY = 9.5
HEADING = 13

INK = "#222222"
FAINT = "#6b6b6b"
GRID = "#e4e4e4"
SHADE = "#f1f1f1"
ABSENT = "#d9d9d9"

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
_SHAPES = ("circle", "triangle-up", "square", "diamond", "triangle-down")
_DASHES: tuple[tuple[float, ...], ...] = ((1, 0), (4, 2), (1, 1.5), (6, 2, 1, 2))


def page(chart: Any, question: str, notes: Iterable[str], description: str) -> Any:
    """The finished figure: the question above, each note on lines of its own below it, alt text, and all settings."""
    title = alt.TitleParams(
        question,
        subtitle=[line for note in notes for line in textwrap.wrap(note, 165)],
        anchor="start",
        frame="bounds",
        fontSize=HEADING,
        subtitleFontSize=BODY,
        subtitleLineHeight=12,
        subtitlePadding=5,
        offset=10,
    )
    axis = {
        "labelFontSize": SMALL,
        "titleFontSize": SMALL,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "labelLimit": 0,
        "titleLimit": 0,
        "maxExtent": 1000,
        "domainColor": FAINT,
        "tickColor": FAINT,
        "tickSize": 3,
        "gridColor": GRID,
        "gridWidth": 0.6,
    }
    legend = {
        "labelFontSize": SMALL,
        "titleFontSize": SMALL,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "labelLimit": 0,
        "titleLimit": 0,
    }
    return chart.properties(title=title, description=description).configure(
        font=FONT,
        background="white",
        padding=8,
        axis=axis,
        legend=legend,
        mark={"aria": False},  # the description speaks for the figure; one label a mark triples the file
        title={"font": FONT, "color": INK, "subtitleColor": FAINT, "subtitleFont": FONT, "limit": 0},
        view={"stroke": None},
    )


def no_data(question: str) -> Any:
    """What a question shows while its tables have no row."""
    nothing = alt.Chart(alt.InlineData(values=[{}])).mark_text(text="no data", fontSize=HEADING, color=FAINT)
    return page(nothing.properties(width=WIDTH / 2, height=60), question, [], f"{question} No data.")


def in_order(values: Iterable[str]) -> list[str]:
    """The distinct values in order of first appearance: tables come in the order of the config."""
    return list(dict.fromkeys(values))


def extent(frame: pl.DataFrame, *columns: str) -> list[float]:
    """The least and greatest value of these columns, as a scale's domain; made wider where they are one."""
    values = [value for column in columns for value in frame[column].drop_nulls()]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    return [low, high] if low < high else [low - 1, high + 1]


def numbers(frame: pl.DataFrame, column: str) -> str:
    """A count that is the same everywhere ("200") or its range ("180–200")."""
    values = frame[column].drop_nulls()
    if values.is_empty():
        return "no"
    ends = sorted({int(values.min()), int(values.max())})  # type: ignore[arg-type]
    return "–".join(f"{end:,}" for end in ends)


def wrapped(name: str, pixels: float) -> list[str]:
    """A name broken into lines that fit; nothing of it is lost, so that different names stay different."""
    length = max(8, int(pixels / (0.56 * SMALL)))
    return [name[start : start + length] for start in range(0, len(name), length)] or [name]


def panel_title(lines: list[str]) -> alt.TitleParams:
    """The name of a small panel, above its left end."""
    return alt.TitleParams(lines, anchor="start", fontSize=SMALL, fontWeight="normal", offset=3, lineHeight=10)


def conditions(names: Sequence[str], field: str = "condition") -> dict[str, Any]:
    """Encodings of a condition: `color` for all marks, `shape` for points, `dash` for lines."""
    legend = alt.Legend(orient="top", direction="horizontal", title=field, titleOrient="left", columns=6)

    def scale(values: Sequence[Any]) -> alt.Scale:
        return alt.Scale(domain=list(names), range=[values[i % len(values)] for i in range(len(names))])

    return {
        "color": alt.Color(field, type="nominal", scale=scale(_COLOURS), legend=legend),
        "shape": alt.Shape(field, type="nominal", scale=scale(_SHAPES), legend=legend),
        "dash": alt.StrokeDash(field, type="nominal", scale=scale(_DASHES), legend=legend),
    }
