"""How every figure looks: sizes, fonts, colours, and the few pieces that all questions share.

It is the one place where looks are decided; it holds no state that a chart could change, and it computes no statistics.
Source: widths are the usual 183 mm page of a journal at 96 pixels an inch; the palette of conditions is that of Okabe
and Ito, "Color Universal Design" (2008), in an order that alternates light and dark; scales of cells (viridis, greys to
blue) grow darker or lighter throughout, so that they survive greyscale.

Text that comes from a study (players, conditions) reaches a chart only as data, as a title or as a scale's domain. Vega
takes these literally; a filter or a label expression would be evaluated. (Of a domain of colours Vega-Lite makes an
expression too, in which each value is a quoted literal.)
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

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
SHAPES = ("circle", "triangle-up", "square", "diamond", "triangle-down")
DASHES: tuple[tuple[float, ...], ...] = ((1, 0), (4, 2), (1, 1.5), (6, 2, 1, 2))


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
    words = {
        "labelFontSize": SMALL,
        "titleFontSize": SMALL,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "labelLimit": 0,
        "titleLimit": 0,
    }
    axis = words | {
        "maxExtent": 1000,
        "domainColor": FAINT,
        "tickColor": FAINT,
        "tickSize": 3,
        "gridColor": GRID,
        "gridWidth": 0.6,
    }
    legend = words | {"symbolOpacity": 1, "symbolSize": 25}
    return chart.properties(title=title, description=description).configure(
        font=FONT,
        background="white",
        padding=8,
        lineBreak="\n",
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


MOST = 24  # players that a figure shows one by one: what a page has room for, and a browser


def foremost(ranked: Iterable[str], others: Iterable[str]) -> list[str]:
    """The players that a figure shows, those of a ranking first and in its order; no more than MOST."""
    return in_order([*ranked, *sorted(set(others))])[:MOST]


def left_out(study: str, players: int, tables: str) -> str:
    """The note for a study with more players than are shown."""
    return f"{study}: of {players} players the first {MOST} by rank are shown; all are in {tables}."


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


def panel_names() -> alt.Header:
    """The names of small panels, each above its left end; `\\n` starts a new line."""
    return alt.Header(
        title=None,
        labelAnchor="start",
        labelFontSize=SMALL,
        labelColor=INK,
        labelPadding=3,
        labelLineHeight=10,
        labelLimit=0,
    )


def heading(text: str, axis: str | None = None) -> alt.TitleParams:
    """The name of a study, or of one of its conditions; below it what an axis shows that all panels share."""
    return alt.TitleParams(
        text,
        subtitle=axis if axis else alt.Undefined,
        anchor="start",
        fontSize=10.5,
        fontWeight="bold",
        subtitleFontSize=SMALL,
        subtitlePadding=2,
        offset=6,
    )


def part(text: str) -> alt.TitleParams:
    """The name of a part of a figure."""
    return alt.TitleParams(
        text, anchor="start", frame="group", fontSize=BODY, fontWeight="normal", fontStyle="italic", offset=6
    )


def conditions(names: Sequence[str], hollow: str | None = None) -> dict[str, Any]:
    """How conditions are told apart: `color` for all marks, `shape` for points, `dash` for lines.

    The first two encode the field `condition`, the last its place in `names`, the field `line`: a dash of `condition`
    would fray the symbols of the legend. With `hollow`, a value that is no condition, also `fill` for the field
    `filling`: a point is filled with its condition's colour, or hollow where `filling` has that value; the legend says
    so.
    """
    legend = alt.Legend(
        title="condition",
        orient="top",
        direction="horizontal",
        titleOrient="left",
        columns=6,
        offset=4,
        symbolStrokeWidth=1.2,
    )
    extra = [hollow] if hollow else []

    def channel(kind: Any, field: str, values: Sequence[Any], last: Any) -> Any:
        steps = [values[i % len(values)] for i in range(len(names))]
        scale = alt.Scale(domain=[*names, *extra], range=[*steps, last][: len(names) + len(extra)])
        return kind(field, type="nominal", scale=scale, legend=legend)

    dashes = alt.Scale(domain=list(range(len(names))), range=[DASHES[i % len(DASHES)] for i in range(len(names))])
    return {
        "color": channel(alt.Color, "condition", COLOURS, INK),
        "fill": channel(alt.Fill, "filling", COLOURS, "white"),
        "shape": channel(alt.Shape, "condition", SHAPES, "circle"),
        "dash": alt.StrokeDash("line", type="nominal", scale=dashes, legend=None),
    }
