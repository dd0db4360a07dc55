"""What the figures of the fish pool, RQ1 to RQ8, share: how groups are told apart, and what a mark says.

It decides no colours, shapes and sizes (`style` does) and draws no question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from fishpool.figures import style


def told_apart(field: str, names: Sequence[str]) -> dict[str, Any]:
    """Encodings of a field's values: `color` for all marks, `shape` for points, `dash` for lines.

    The dash encodes the field `line`, a copy: a dash of the field itself would fray the symbols of the legend.
    """
    legend = alt.Legend(
        title=field,
        orient="top",
        direction="horizontal",
        titleOrient="left",
        columns=6,
        offset=4,
        symbolStrokeWidth=0,
    )

    def channel(kind: Any, field: str, values: Sequence[Any], legend: Any) -> Any:
        scale = alt.Scale(domain=list(names), range=[values[i % len(values)] for i in range(len(names))])
        return kind(field, type="nominal", scale=scale, legend=legend)

    return {
        "color": channel(alt.Color, field, style.COLOURS, legend),
        "shape": channel(alt.Shape, field, style.SHAPES, legend),
        "dash": channel(alt.StrokeDash, "line", style.DASHES, None),
    }


def told(names: list[str], numbers: list[str]) -> list[alt.Tooltip]:
    """What a mark says when pointed at."""
    return [alt.Tooltip(field, type="nominal") for field in names] + [
        alt.Tooltip(field, type="quantitative") for field in numbers
    ]
