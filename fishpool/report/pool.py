"""The stock of a fish pool over a run, drawn as a small picture.

It knows of a run only its rounds. Bars are the stock before anybody fished, their dark part what was left.
"""

from __future__ import annotations

from markupsafe import Markup

from fishpool.replay import Replay

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 480, 120, 34, 18


def stock_chart(replay: Replay) -> Markup:
    """An SVG element, or nothing for a run without a stock."""
    fished = [(one.number, one.stock, one.remaining or 0) for one in replay.rounds if one.stock is not None]
    if not fished:
        return Markup("")
    capacity = int(replay.run["parameters"].get("capacity") or max(stock for _, stock, _ in fished))
    collapse = int(replay.run["parameters"].get("collapse") or 0)
    step = (_WIDTH - _LEFT) / max(len(fished), int(replay.run.get("horizon") or 0))
    high = _HEIGHT - _BOTTOM - 6

    def y(tons: float) -> float:
        return round(6 + high * (1 - tons / capacity), 1)

    parts = [
        Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, _WIDTH, y(0), y(0)),
        Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(_LEFT - 4, y(capacity) + 8, capacity),
        Markup('<text x="{}" y="{}" text-anchor="end">0</text>').format(_LEFT - 4, y(0)),
        Markup('<line class="collapse" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
            _LEFT, _WIDTH, y(collapse), y(collapse)
        ),
    ]
    for place, (number, stock, remaining) in enumerate(fished):
        x, width = round(_LEFT + place * step + 2, 1), round(step - 4, 1)
        for name, tons in (("before", stock), ("after", remaining)):
            parts.append(
                Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
                    name, x, y(tons), width, round(y(0) - y(tons), 1)
                )
            )
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
                round(x + width / 2, 1), _HEIGHT - 4, number
            )
        )
    told = "; ".join(f"round {number}: {stock} tons, {left} left" for number, stock, left in fished)
    label = f"Stock by round. {told}."
    return Markup(
        '<svg class="stock" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">{}</svg>'
    ).format(label, _WIDTH, _HEIGHT, _WIDTH, _HEIGHT, Markup("").join(parts))
