"""The figures' Vega-Lite specifications as the page embeds them: with legends that filter, and one copy of Vega.

It draws nothing and changes no data; what a figure shows is decided in `fishpool.figures`. Source: Vega-Lite's
documentation of parameters bound to legends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from typing import Any

Spec = dict[str, Any]

_COMPOSED = ("layer", "hconcat", "vconcat", "concat")
_DIMMED = 0.08  # what is left of the opacity of a mark that the legend does not choose


def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, in the version that Altair writes specifications for."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    make: Any = vl_convert.javascript_bundle  # its stub asks for a snippet, which it does not need
    script: str = make(vl_version=version)
    return script


def script_safe(value: Any) -> str:
    """JSON that cannot end the script element it stands in: a name such as `</script>` stays text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def with_filters(spec: Spec) -> Spec:
    """The specification with a filter for each legend of names: a click leaves the marks of that name alone in full.

    Marks whose opacity is an encoding already keep it. Of layers that share a legend the first one listens to it.
    """
    spec = deepcopy(spec)
    filters: dict[str, Spec] = {}
    listening: set[tuple[str, int]] = set()
    for unit, panel in _units(spec):
        colour = unit["encoding"].get("color")
        if not (isinstance(colour, dict) and "field" in colour and colour.get("type") in ("nominal", "ordinal")):
            continue
        field = colour["field"]
        select = {"type": "point", "fields": [field]}
        made = filters.setdefault(
            field, {"name": f"filter_{len(filters)}", "select": select, "bind": "legend", "views": []}
        )
        if colour.get("legend", True) is not None and (field, panel) not in listening:
            listening.add((field, panel))
            unit.setdefault("name", f"panel_{panel}_{len(listening)}")
            made["views"].append(unit["name"])
        unit["encoding"].setdefault("opacity", _dimmed_by(made["name"], unit["mark"]))
    there = {made["name"]: made for made in filters.values() if made["views"]}
    for unit, _ in _units(spec):
        opacity = unit["encoding"].get("opacity", {})
        if opacity.get("condition", {}).get("param", "") not in {*there, ""}:
            del unit["encoding"]["opacity"]  # nobody listens: the colour has no legend
    return {**spec, "params": [*spec.get("params", []), *there.values()]} if there else spec


def _dimmed_by(name: str, mark: Any) -> Spec:
    full = mark.get("opacity", 1) if isinstance(mark, dict) else 1
    return {"condition": {"param": name, "value": full}, "value": full * _DIMMED}


def _units(spec: Spec, panels: Iterator[int] | None = None, panel: int | None = None) -> Iterator[tuple[Spec, int]]:
    """All single views with encodings, each with the number of its panel: layers of one panel have it in common."""
    panels = count() if panels is None else panels
    if "layer" in spec and panel is None:
        panel = next(panels)
    if "mark" in spec and "encoding" in spec:
        yield spec, next(panels) if panel is None else panel
    for composition in _COMPOSED:
        for part in spec.get(composition, ()):
            yield from _units(part, panels, panel)
    if isinstance(spec.get("spec"), dict):
        yield from _units(spec["spec"], panels, panel)
