"""A chart as files: SVG and PNG for print, HTML for the screen, and its Vega-Lite specification for the report.

It draws no figure and knows no question. Source: Altair's own writers, with vl-convert as the renderer; a file appears
whole under its name or not at all.
"""

from __future__ import annotations

import json
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import altair as alt

from fishpool.files import replacing

_PIXELS_PER_INCH = 96  # the unit of a figure's sizes, and that of SVG
_DOTS_PER_PIXEL = 3  # whole, so that cells of whole pixels meet without seams


class _ScriptSafe(json.JSONEncoder):
    """JSON that cannot end the script element it stands in: a name such as `</script>` stays text."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c")


def save(chart: Any, stem: Path) -> None:
    """Write `<stem>.svg`, `<stem>.png` (288 dots an inch), `<stem>.html`, which needs no network, and `<stem>.json`."""
    with alt.data_transformers.enable("default", max_rows=None):  # Altair's own limit is for notebooks
        contents = {"svg": _svg(chart), "png": _png(chart), "html": _html(chart), "json": chart.to_json().encode()}
    for ending, content in contents.items():
        with replacing(stem.with_name(f"{stem.name}.{ending}")) as part:
            part.write_bytes(content)


def _svg(chart: Any) -> bytes:
    buffer = StringIO()
    chart.save(buffer, format="svg")
    alternative = f'<svg role="img" aria-label={quoteattr(chart.description)} '
    return buffer.getvalue().replace("<svg ", alternative, 1).encode()


def _png(chart: Any) -> bytes:
    buffer = BytesIO()
    # The renderer multiplies the scale by dots an inch over 72, its own unit.
    chart.save(buffer, format="png", ppi=_DOTS_PER_PIXEL * _PIXELS_PER_INCH, scale_factor=72 / _PIXELS_PER_INCH)
    return buffer.getvalue()


def _html(chart: Any) -> bytes:
    buffer = StringIO()
    options = {"renderer": "svg", "actions": {"export": True, "source": False, "compiled": False, "editor": False}}
    chart.save(buffer, format="html", inline=True, embed_options=options, json_kwds={"cls": _ScriptSafe})
    return buffer.getvalue().encode()
