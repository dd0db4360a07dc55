"""RQ12, "Who wins when strategies are open?": what each document decides about each other one, and what that earns.

A row of panels a tournament and oracle, strategies by final score: the decision matrix, the payoff matrix, the score,
what it is made of, and who dominates the strategy (Tables 2 and 3 of the paper, as figures). It computes nothing; its
source is the tables dictator_decisions, dictator_payoffs, dictator_scores, dictator_dominance and dictator_pool.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import strategies, style

QUESTION = "Who wins when strategies are open?"

_MATRIX = 160
_NUMBERED = 14  # from this side on a cell has room for a letter
_TAKE, _SHARE = "#B2572B", "#CFE4F3"


def chart(
    dictator_decisions: pl.DataFrame,
    dictator_payoffs: pl.DataFrame,
    dictator_scores: pl.DataFrame,
    dictator_dominance: pl.DataFrame,
    dictator_pool: pl.DataFrame,
) -> Any:
    """The figure from the five tables, each over any number of tournaments and oracles."""
    if dictator_scores.is_empty():
        return style.no_data(QUESTION)
    rows, described = [], [QUESTION]
    pairs = dictator_scores.select("tournament", "oracle").unique(maintain_order=True)
    last = set(pairs.group_by("tournament").agg(pl.col("oracle").last()).iter_rows())
    for tournament, oracle in pairs.iter_rows():
        here = (pl.col("tournament") == tournament) & (pl.col("oracle") == oracle)
        scores = dictator_scores.filter(here)
        pool = dictator_pool.filter(here).row(0, named=True)
        order = strategies.ranked(scores)
        title = alt.TitleParams(
            f"{tournament}, oracle {oracle}", anchor="start", fontSize=10.5, fontWeight="bold", offset=6
        )
        domain = style.extent(dictator_payoffs.filter(pl.col("tournament") == tournament), "payoff")
        panels = [
            _decisions(dictator_decisions.filter(here), order),
            _payoffs(dictator_payoffs.filter(here), order, domain, legend=(tournament, oracle) in last),
            _columns(scores, dictator_dominance.filter(here), order),
        ]
        rows.append(alt.hconcat(*panels, spacing=10, title=title).resolve_scale(color="independent"))
        missing = f", {pool['missing']} of {pool['cells']} decisions missing" if pool["missing"] else ""
        described.append(
            f"{tournament}, oracle {oracle}{missing}: "
            + ", ".join(f"{name} {_number(score)}" for name, score in scores.select("strategy", "score").iter_rows())
            + "."
        )
    first = dictator_pool.row(0, named=True)
    notes = [
        "Strategies by final score; column numbers are the same. Left: S shares, T takes; a dot marks a split vote, "
        "grey a missing or unplayed round. Middle: the row's payoff against the column in both roles, in utilities "
        f"(E = {first['endowment']:g}, {first['utility']}); darker is better.",
        f"Score = rounds u(E) – {first['cost']:.4f} × shares given + {first['gain']:.4f} × shares received. Dominated "
        "by: ranks of the pure strategies that dominate weakly, or strictly where it says so; mix: by mixtures only. "
        "Squares: the strategy's colour in other figures, its hue by family.",
    ]
    return style.page(alt.vconcat(*rows, spacing=16), QUESTION, notes, " ".join(described))


def _axes(order: list[str], column: str, labels: bool) -> tuple[alt.X, alt.Y]:
    numbers = [str(i + 1) for i in range(len(order))]
    top = alt.Axis(title=column, orient="top", labelAngle=0, domain=False, ticks=False, labelOverlap=True)
    left = alt.Axis(title=None, labels=labels, domain=False, ticks=False, labelPadding=4)
    return (
        alt.X("number", type="nominal", sort=None, scale=alt.Scale(domain=numbers), axis=top),
        alt.Y("label", type="nominal", sort=None, scale=alt.Scale(domain=_labels(order)), axis=left),
    )


def _labels(order: list[str]) -> list[str]:
    return [f"{i + 1}. {name}" for i, name in enumerate(order)]


def _labels_of(scores: pl.DataFrame) -> list[str]:
    labels = dict(zip(strategies.ranked(scores), _labels(strategies.ranked(scores)), strict=True))
    return [labels[name] for name in scores["strategy"]]


def _placed(frame: pl.DataFrame, order: list[str], row: str, column: str) -> pl.DataFrame:
    """Rows and columns by their numbers."""
    labels = dict(zip(order, _labels(order), strict=True))
    numbers = {name: str(i + 1) for i, name in enumerate(order)}
    return frame.with_columns(
        label=pl.col(row).replace_strict(labels, return_dtype=pl.String),
        number=pl.col(column).replace_strict(numbers, return_dtype=pl.String),
    )


def _decisions(decisions: pl.DataFrame, order: list[str]) -> Any:
    x, y = _axes(order, "recipient", labels=True)
    cells = _placed(decisions, order, "dictator", "recipient").filter(pl.col("decision").is_not_null())
    cells = cells.with_columns(letter=pl.col("decision").str.slice(0, 1))
    split = cells.filter((pl.col("share_votes") > 0) & (pl.col("share_votes") < pl.col("replicates")))
    colour = alt.Color(
        "decision",
        type="nominal",
        scale=alt.Scale(domain=["SHARE", "TAKE"], range=[_SHARE, _TAKE]),
        # Cells too small for a letter need a legend.
        legend=None
        if _MATRIX / len(order) >= _NUMBERED
        else alt.Legend(orient="bottom", direction="horizontal", title=None, symbolType="square", offset=4),
    )
    tooltip = ["dictator", "recipient", "decision", "share_votes", "replicates"]
    layers = [
        alt.Chart(cells).mark_rect(stroke="white", strokeWidth=0.6).encode(x=x, y=y, color=colour, tooltip=tooltip)
    ]
    if _MATRIX / len(order) >= _NUMBERED:
        ink = alt.condition(alt.datum.decision == "TAKE", alt.value("white"), alt.value(style.INK))
        layers.append(alt.Chart(cells).mark_text(fontSize=style.SMALL).encode(x=x, y=y, text="letter:N", color=ink))
    layers.append(
        alt.Chart(split)
        .mark_point(filled=True, size=9, opacity=1, color="black", xOffset=6.5, yOffset=-6.5)
        .encode(x=x, y=y)
    )
    return alt.layer(
        *layers,
        width=_MATRIX,
        height=_MATRIX,
        view=alt.ViewBackground(fill=strategies.ABSENT),
        title=strategies.heading(["decision of the row about the column"]),
    )


def _payoffs(payoffs: pl.DataFrame, order: list[str], domain: list[float], legend: bool) -> Any:
    """The payoff matrix; all oracles of a tournament share the scale, whose legend stands below the last."""
    x, y = _axes(order, "opponent", labels=False)
    cells = _placed(payoffs, order, "strategy", "opponent").drop_nulls("payoff")
    colour = alt.Color(
        "payoff",
        type="quantitative",
        scale=alt.Scale(scheme="blues", domain=domain),
        legend=alt.Legend(
            orient="bottom",
            direction="horizontal",
            title="payoff (utilities)",
            gradientLength=110,
            gradientThickness=6,
            values=domain,
            format=".2f",
            offset=4,
        )
        if legend
        else None,
    )
    tooltip = [alt.Tooltip("strategy:N"), alt.Tooltip("opponent:N"), alt.Tooltip("payoff:Q", format=".3f")]
    rectangles = alt.Chart(cells).mark_rect(stroke="white", strokeWidth=0.6)
    return alt.layer(
        rectangles.encode(x=x, y=y, color=colour, tooltip=tooltip),
        width=_MATRIX,
        height=_MATRIX,
        view=alt.ViewBackground(fill=strategies.ABSENT),
        title=strategies.heading(["payoff of the row against the column"]),
    )


def _columns(scores: pl.DataFrame, dominance: pl.DataFrame, order: list[str]) -> Any:
    """Figures beside the matrices, one text column each."""
    verdicts = dominance.select("strategy", "kind", "dominated_by")
    numbers = {name: str(i + 1) for i, name in enumerate(order)}
    rows = scores.join(verdicts, on="strategy", how="left", maintain_order="left").with_columns(
        label=pl.Series(_labels_of(scores))
    )
    text = [
        {
            "label": row["label"],
            "score": _number(row["score"]),
            "given": _number(row["k_give"], 0),
            "received": _number(row["k_recv"], 0),
            "dominated": _dominated(row["kind"], row["dominated_by"], numbers),
        }
        for row in rows.iter_rows(named=True)
    ]
    frame = pl.DataFrame(text)
    y = alt.Y("label", type="nominal", sort=None, scale=alt.Scale(domain=_labels(order)), axis=None)
    panels = [_swatches(scores, y)]
    for field, heading, width in (
        ("score", ["score"], 40),
        ("given", ["shares", "given"], 34),
        ("received", ["shares", "received"], 40),
        ("dominated", ["dominated", "by"], 58),
    ):
        mark = alt.Chart(frame).mark_text(align="left", fontSize=style.SMALL, color=style.INK)
        mark = mark.encode(y=y, x=alt.value(0), text=f"{field}:N")
        panels.append(mark.properties(width=width, height=_MATRIX, title=strategies.heading(heading)))
    return alt.hconcat(*panels, spacing=4)


def _swatches(scores: pl.DataFrame, y: alt.Y) -> Any:
    """Each strategy's colour in the other figures."""
    rows = scores.select("strategy").with_columns(label=pl.Series(_labels_of(scores)))
    mark = alt.Chart(rows).mark_square(size=60, opacity=1)
    mark = mark.encode(y=y, x=alt.value(4), color=strategies.encoding(scores, orient=None))
    return mark.properties(width=8, height=_MATRIX)


def _dominated(kind: str | None, dominators: list[str] | None, numbers: dict[str, str]) -> str:
    if kind is None:
        return "n/a"
    if kind == "none":
        return "none"
    by = _ranges(sorted(int(numbers[name]) for name in dominators or []))
    return f"{by or 'mix'}{' (strictly)' if kind == 'strict' else ''}"


def _ranges(numbers: list[int]) -> str:
    """Numbers in ascending order, three and more in a row as a range: "1, 3–5"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}–{part[-1]}" if len(part) > 2 else ", ".join(map(str, part)) for part in parts)


def _number(value: float | None, digits: int = 3) -> str:
    return "n/a" if value is None else f"{value:.{digits}f}"
