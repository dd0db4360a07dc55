"""A chart as files: SVG, PNG and PDF for print, HTML for the screen, its Vega-Lite specification for the report.

It draws no figure and knows no question. Source: Altair's own writers, with vl-convert as the renderer; a file appears
whole under its name or not at all, and names are text in it, whatever they hold. What a PNG carries besides its pixels
follows the PNG specification (W3C, third edition, 11.3.3 iTXt).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import altair as alt
from altair.utils.mimebundle import spec_to_mimebundle

from fishpool.files import replacing
from fishpool.screen import visible

Specification: TypeAlias = dict[str, Any]  # of Vega-Lite

_PIXELS_PER_INCH = 96  # the unit of a figure's sizes, and that of SVG
_DOTS_PER_PIXEL = 3  # whole, so that cells of whole pixels meet without seams
_POINTS_PER_INCH = 72  # the unit of PDF
_SVG = "http://www.w3.org/2000/svg"
_UNSEEN = "\u2060"  # a word joiner, which has no width
# What every object of JavaScript has: where such a name stands in an expression, Vega takes it for a signal, and fails.
_INHERITED = frozenset(
    {
        "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString",
        "valueOf", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
    }
)  # fmt: skip


class _ScriptSafe(json.JSONEncoder):
    """JSON that cannot end the script element it stands in: a name such as `</script>` stays text."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c")


def save(chart: Any, stem: Path, formats: Iterable[str] = ("svg", "png", "html", "json")) -> None:
    """Write `<stem>.svg`, `<stem>.png` (288 dots an inch) and `<stem>.html`, which needs no network, and `<stem>.json`.

    `formats` are the endings to write; `pdf` is one more, in which the fonts are embedded.
    """
    specification = specification_of(chart)
    contents = {ending: _WRITERS[ending](specification) for ending in formats}
    for ending, content in contents.items():
        with replacing(stem.with_name(f"{stem.name}.{ending}")) as part:
            part.write_bytes(content)


def specification_of(chart: Any) -> Specification:
    """What all files of a chart are drawn from; made once, since Altair takes up to a second for it."""
    with alt.data_transformers.enable("default", max_rows=None):  # Altair's own limit is for notebooks
        return dict(_as_text(chart.to_dict()))


def _as_text(part: Any) -> Any:
    """A specification whose strings can all be drawn, in data and elsewhere alike: XML knows no control characters."""
    if isinstance(part, dict):
        return {key: _as_text(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_as_text(value) for value in part]
    if not isinstance(part, str):
        return part
    return part + _UNSEEN if part in _INHERITED else "\n".join(map(visible, part.split("\n")))


def _svg(specification: Specification) -> bytes:
    image = spec_to_mimebundle(specification, "svg", "vega-lite")["image/svg+xml"]
    alternative = f'<svg role="img" aria-label={quoteattr(specification["description"])} '
    return str(image).replace("<svg ", alternative, 1).encode()


def _png(specification: Specification) -> bytes:
    # The renderer multiplies the scale by dots an inch over 72, its own unit.
    ppi, scale = _DOTS_PER_PIXEL * _PIXELS_PER_INCH, _POINTS_PER_INCH / _PIXELS_PER_INCH
    image, _ = spec_to_mimebundle(specification, "png", "vega-lite", ppi=ppi, scale_factor=scale)
    return _described(image["image/png"], specification["description"])


def _described(png: bytes, description: str) -> bytes:
    """The image with its description as a text chunk, which readers of metadata show as alternative text."""
    header = 8 + 25  # the signature, and the chunk IHDR, which comes first
    # keyword, not compressed, no language, no translated keyword
    content = b"iTXtDescription\0\0\0\0\0" + description.encode()
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    return png[:header] + chunk + png[header:]


def _pdf(specification: Specification) -> bytes:
    """Of the SVG's size in print: the renderer takes a pixel, 1/96 inch, for a point, 1/72 inch."""
    import vl_convert

    image = ElementTree.fromstring(_svg(specification))
    for side in ("width", "height"):
        image.set(side, f"{float(image.attrib[side]) * _POINTS_PER_INCH / _PIXELS_PER_INCH:g}")
    _flatten(image)
    return bytes(vl_convert.svg_to_pdf(ElementTree.tostring(image, encoding="unicode")))


def _flatten(element: ElementTree.Element) -> None:
    """Groups that only move what is in them are resolved, because a PDF nests no more than 28 deep."""
    children = []
    for child in element:
        _flatten(child)
        if child.tag == f"{{{_SVG}}}g" and _looks(child) <= {"transform"}:
            for inner in child:
                moved = " ".join(filter(None, (child.get("transform"), inner.get("transform"))))
                inner.attrib.update({"transform": moved} if moved else {})
            children += list(child)
        else:
            children.append(child)
    element[:] = children


def _looks(group: ElementTree.Element) -> set[str]:
    """A group's attributes but for those that only say what it is."""
    return {name for name in group.attrib if name not in ("class", "role") and not name.startswith("aria-")}


def _html(specification: Specification) -> bytes:
    options = {"renderer": "svg", "actions": {"export": True, "source": False, "compiled": False, "editor": False}}
    page = spec_to_mimebundle(
        specification,
        "html",
        "vega-lite",
        vega_version=alt.VEGA_VERSION,
        vegaembed_version=alt.VEGAEMBED_VERSION,
        vegalite_version=alt.VEGALITE_VERSION,
        embed_options=options,
        json_kwds={"cls": _ScriptSafe},
        template="inline",
    )
    return page["text/html"].encode()


def _json(specification: Specification) -> bytes:
    return json.dumps(specification, indent=2, sort_keys=True, ensure_ascii=False).encode()


_WRITERS: dict[str, Callable[[Specification], bytes]] = {
    "svg": _svg, "png": _png, "html": _html, "json": _json, "pdf": _pdf,
}  # fmt: skip
