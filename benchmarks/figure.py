"""One figure of all benchmarks: how many times as fast as the alternative, with the aim as a tick.

It measures nothing: it reads what the benchmarks have written, and leaves out those that compare nothing.

    python benchmarks/figure.py
"""

import json
import sys

import altair as alt
import polars as pl
from measure import RESULTS

from fishpool.figures import style
from fishpool.figures.files import save


def main() -> None:
    files = sorted(RESULTS.glob("*.json"))
    compared = [one for file in files for one in json.loads(file.read_text()).get("comparisons", [])]
    if not compared:
        sys.exit(f"{RESULTS}: holds no comparison; run a benchmark first, such as python benchmarks/play.py")
    rows = pl.DataFrame(
        {
            "comparison": [f"{one['what']}, against {one['alternative']}" for one in compared],
            "ratio": [one["ratio"] for one in compared],
            "aim": [float(one["aim"]) for one in compared],
            "said": [f"{one['ratio']:,.3g}" for one in compared],
        }
    )
    y = alt.Y("comparison:N", sort=None, title=None)
    scale = alt.Scale(type="log", domain=[0.5, 1000], nice=False)
    base = alt.Chart(rows)
    bars = base.mark_bar(color=style.COLOURS[0], height=10).encode(
        x=alt.X(
            "ratio:Q",
            scale=scale,
            title="times as fast as the alternative",
            axis=alt.Axis(format="~g", values=[0.5, 1, 10, 100, 1000]),
        ),
        x2=alt.datum(1),
        y=y,
    )
    aims = base.mark_tick(color=style.COLOURS[3], thickness=2, size=16).encode(x=alt.X("aim:Q", scale=scale), y=y)
    words = (
        base.mark_text(align="left", dx=6, fontSize=style.SMALL)
        .encode(x=alt.X("label:Q", scale=scale), y=y, text="said:N")
        .transform_calculate(label="max(datum.ratio, datum.aim, 1)")
    )
    chart = (bars + aims + words).properties(width=360, height=alt.Step(22))
    notes = [
        "Medians of passes in turn in one process, in processor time. A tick is the aim; bars begin at 1, equally fast."
    ]
    save(
        style.page(chart, "How fast, beside the alternatives", notes, "Ratios of all benchmarks."),
        RESULTS / "benchmarks",
    )


if __name__ == "__main__":
    main()
