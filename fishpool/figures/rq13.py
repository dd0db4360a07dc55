"""RQ13, "Which norms survive selection, and from where?": how fields of strategies settle, and what tips them.

Parts a tournament, for its first oracle: frequencies along the iteration (the paper's Figure 1), the basins with their
boundary and saddle (Figure 2), the fixed points, the equilibrium by share payoff (Figure 3), the simplex of author
types and the bloc's ranking. It computes nothing; its source is the tables named in `chart`.
"""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from fishpool.figures import strategies, style

QUESTION = "Which norms survive selection, and from where?"

_BASINS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_SADDLE = "#000000"
_DYNAMICS = ("plain", "damped")


def chart(
    dictator_scores: pl.DataFrame,
    dictator_pool: pl.DataFrame,
    dictator_trajectories: pl.DataFrame,
    dictator_equilibria: pl.DataFrame,
    dictator_basins: pl.DataFrame,
    dictator_boundary: pl.DataFrame,
    dictator_sensitivity: pl.DataFrame,
    dictator_type_masses: pl.DataFrame,
    dictator_bloc: pl.DataFrame,
) -> Any:
    """The figure from its tables, each over any number of tournaments and oracles."""
    if dictator_scores.is_empty():
        return style.no_data(QUESTION)
    parts, described = [], [QUESTION]
    for tournament, oracle in strategies.first_oracles(dictator_scores):
        here = (pl.col("tournament") == tournament) & (pl.col("oracle") == oracle)
        scores = dictator_scores.filter(here)
        equilibria = dictator_equilibria.filter(here).drop_nulls("frequency")
        if equilibria.is_empty():
            empty = alt.Chart(alt.InlineData(values=[{}])).mark_text(
                text="decisions are missing, so no equilibrium is known", color=style.FAINT, fontSize=style.BODY
            )
            parts.append(empty.properties(width=style.WIDTH / 2, height=40, title=f"{tournament}, oracle {oracle}"))
            continue
        pool = dictator_pool.filter(here).row(0, named=True)
        panels = [
            _trajectories(dictator_trajectories.filter(here), scores),
            alt.hconcat(
                _basins(dictator_basins.filter(here), dictator_boundary.filter(here), equilibria),
                _fixed_points(equilibria, scores),
                spacing=40,
            ).resolve_scale(color="independent", shape="independent", y="independent"),
            _sensitivity(dictator_sensitivity.filter(here), scores, pool),
            alt.hconcat(
                _type_masses(dictator_type_masses.filter(here)), _bloc(dictator_bloc.filter(here), scores), spacing=18
            ).resolve_scale(color="independent"),
        ]
        title = alt.TitleParams(
            f"{tournament}, oracle {oracle}", anchor="start", fontSize=10.5, fontWeight="bold", offset=6
        )
        parts.append(alt.vconcat(*panels, spacing=24, title=title).resolve_scale(color="independent"))
        described.append(_description(tournament, oracle, equilibria))
    notes = [
        "Logit fixed points f = softmax(β A f). Plain dynamics apply the response, damped ones take steps of 0.02: "
        "the same fixed points, other basins. Runs that do not converge are gaps or hollow marks, never points.",
        "Intervals: 95 % score intervals over random starts. Bar colours and lines: strategies, hue by family.",
    ]
    return style.page(
        alt.vconcat(*parts, spacing=30).resolve_scale(color="independent"), QUESTION, notes, " ".join(described)
    )


def _trajectories(trajectories: pl.DataFrame, scores: pl.DataFrame) -> Any:
    """Figure 1: frequencies by iteration, each panel until it is within 0.01 of its fixed point."""
    rows = trajectories.filter(pl.col("dynamics") == "plain")
    panels = []
    for model, beta, start in rows.select("model", "beta", "start").unique(maintain_order=True).iter_rows():
        if model == "author_types" and beta == rows["beta"].min():
            continue  # the paper shows the mixture at the two higher pressures
        path = rows.filter((pl.col("model") == model) & (pl.col("beta") == beta) & (pl.col("start") == start))
        settled = path["ending"][0] == "converged"
        last = min(path.filter(pl.col("distance") <= 0.01)["iteration"]) if settled else 20
        path = path.filter(pl.col("iteration") <= last)
        ticks = list(range(0, last + 1, 1 + last // 8))
        name = "softmax" if model == "own_payoff" else "author types"
        extra = f", {start}" if start != "uniform" else ""
        line = alt.Chart(path).mark_line(
            point=alt.OverlayMarkDef(size=12, filled=True, opacity=1), strokeWidth=1.4, opacity=1
        )
        panels.append(
            line.encode(
                x=alt.X("iteration:Q", axis=alt.Axis(title="iteration", values=ticks, format="d", grid=False)),
                y=alt.Y("frequency:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="frequency", tickCount=3)),
                color=strategies.encoding(scores, columns=9, orient="top"),
                tooltip=["strategy:N", "iteration:Q", alt.Tooltip("frequency:Q", format=".4f")],
            ).properties(
                width=176,
                height=70,
                title=strategies.heading([f"{name}, β = {beta:g}{extra}{'' if settled else ' (does not settle)'}"]),
            )
        )
    figure = alt.vconcat(*(alt.hconcat(*panels[i : i + 3], spacing=20) for i in range(0, len(panels), 3)), spacing=10)
    return figure.properties(title=strategies.part("a  Strategy frequencies along the iteration")).resolve_scale(
        color="shared"
    )


def _basins(basins: pl.DataFrame, boundaries: pl.DataFrame, equilibria: pl.DataFrame) -> Any:
    """Figure 2: the starts in the two most informative coordinates, with the fitted boundary and the fixed points."""
    plain = basins.filter(pl.col("dynamics") == "plain")
    fit = boundaries.filter((pl.col("dynamics") == "plain") & (pl.col("coordinates") == 2)).drop_nulls("intercept")
    points = _at_highest_beta(equilibria)
    size = 200
    title = strategies.part("b  Where starts lead (plain)")
    if fit.is_empty():
        nothing = alt.Chart(alt.InlineData(values=[{}])).mark_text(
            text="one basin takes all starts" if plain["converged"].any() else "no start converges",
            color=style.FAINT,
            fontSize=style.BODY,
        )
        return nothing.properties(width=size, height=40, title=title)
    line = fit.row(0, named=True)
    vertical, horizontal = line["strategies"][:2]
    starts = plain.select(
        x=pl.col(horizontal),
        y=pl.col(vertical),
        reached=pl.when(pl.col("equilibrium").is_null())
        .then(pl.lit("none"))
        .otherwise(pl.format("basin {}", pl.col("equilibrium") + 1)),
    )
    names = sorted(starts["reached"].unique())
    domain = [0.0, 0.6]
    x = alt.X("x:Q", scale=alt.Scale(domain=domain, clamp=True), axis=alt.Axis(title=f"initial share of {horizontal}"))
    y = alt.Y("y:Q", scale=alt.Scale(domain=domain, clamp=True), axis=alt.Axis(title=f"initial share of {vertical}"))
    colour = alt.Color(
        "reached",
        type="nominal",
        scale=alt.Scale(
            domain=names, range=[_BASINS[i % 6] if n != "none" else strategies.ABSENT for i, n in enumerate(names)]
        ),
        legend=alt.Legend(orient="bottom", direction="horizontal", title="a start leads to", offset=4),
    )
    dots = alt.Chart(starts).mark_circle(size=9, opacity=0.55).encode(x=x, y=y, color=colour)
    ends = [0.0, min(domain[1], (domain[1] - line["intercept"]) / line["slope"] if line["slope"] > 0 else domain[1])]
    divide = pl.DataFrame({"x": ends, "y": [line["intercept"] + line["slope"] * end for end in ends]})
    dashed = alt.Chart(divide).mark_line(color=style.INK, strokeDash=[5, 3], strokeWidth=1.3).encode(x=x, y=y)
    saddle = _coordinates(points.filter(~pl.col("stable")), horizontal, vertical)
    cross = alt.Chart(saddle).mark_point(shape="cross", filled=True, size=110, color=_SADDLE, opacity=1, stroke="white")
    note = (
        f"dashed: {vertical} > {line['intercept']:.2f} + {line['slope']:.2f} × {horizontal} "
        f"predicts {line['accuracy']:.1%} of {line['starts']:,} starts"
    )
    return alt.layer(dots, dashed, cross.encode(x=x, y=y)).properties(
        width=size,
        height=size,
        title=strategies.part("b  Where starts lead (plain)", [note, "cross: the unstable point (saddle)"]),
    )


def _coordinates(points: pl.DataFrame, horizontal: str, vertical: str) -> pl.DataFrame:
    def of(name: str) -> pl.Expr:
        return pl.col("frequency").filter(pl.col("strategy") == name).first()

    return points.group_by("equilibrium", maintain_order=True).agg(x=of(horizontal), y=of(vertical))


def _fixed_points(equilibria: pl.DataFrame, scores: pl.DataFrame) -> Any:
    """Composition of every fixed point at the highest beta, with its basin under both dynamics."""
    rows = []
    for dynamics in _DYNAMICS:
        points = _at_highest_beta(equilibria, dynamics)
        for point in points["equilibrium"].unique(maintain_order=True):
            one = points.filter(pl.col("equilibrium") == point)
            first = one.row(0, named=True)
            kind = f"{dynamics}, basin {point + 1}" if first["basin_share"] > 0 else f"{dynamics}, no basin"
            interval = ""
            if first["basin_share"] > 0 and first["basin_low"] is not None:
                interval = f"{first['basin_share']:.3f} [{first['basin_low']:.3f}, {first['basin_high']:.3f}]"
            text = f"{interval or 'unstable' if not first['stable'] or interval else 'stable'}"
            label = f"{kind} ({point})" if first["basin_share"] == 0 else kind
            more = f"radius {first['spectral_radius']:.2f}, V {first['welfare']:.3f}"
            rows.append(
                one.select("strategy", "frequency").with_columns(
                    label=pl.lit(label), basin=pl.lit(text), more=pl.lit(more)
                )
            )
    frame = pl.concat(rows)
    labels = style.in_order(frame["label"])
    y = alt.Y(
        "label",
        type="nominal",
        sort=None,
        scale=alt.Scale(domain=labels),
        axis=alt.Axis(title=None, ticks=False, domain=False),
    )
    height = 28 * len(labels)
    order = {name: i for i, name in enumerate(strategies.ranked(scores))}
    frame = frame.with_columns(place=pl.col("strategy").replace_strict(order, return_dtype=pl.Int64))
    bars = (
        alt.Chart(frame)
        .mark_bar(height=15, stroke="white", strokeWidth=0.4)
        .encode(
            x=alt.X(
                "frequency:Q",
                stack="zero",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(title="frequency", tickCount=5),
            ),
            y=y,
            color=strategies.encoding(scores, orient=None),
            order=alt.Order("place:Q"),
            tooltip=["strategy:N", alt.Tooltip("frequency:Q", format=".4f"), "label:N"],
        )
        .properties(width=150, height=height)
    )
    once = frame.unique("label", maintain_order=True)
    side = alt.Y("label", type="nominal", sort=None, scale=alt.Scale(domain=labels), axis=None)
    text = alt.Chart(once).mark_text(align="left", fontSize=style.SMALL, color=style.INK, dy=-5)
    more = alt.Chart(once).mark_text(align="left", fontSize=style.TINY, color=style.FAINT, dy=6)
    words = alt.layer(
        text.encode(y=side, x=alt.value(0), text="basin:N"), more.encode(y=side, x=alt.value(0), text="more:N")
    ).properties(width=100, height=height)
    return alt.hconcat(bars, words, spacing=6).properties(
        title=strategies.part(
            "c  Fixed points at the highest β", ["share of starts [95 % interval];", "spectral radius; welfare V"]
        )
    )


def _at_highest_beta(equilibria: pl.DataFrame, dynamics: str = "plain") -> pl.DataFrame:
    own = equilibria.filter((pl.col("model") == "own_payoff") & (pl.col("dynamics") == dynamics))
    return own.filter(pl.col("beta") == pl.col("beta").max())


def _sensitivity(sensitivity: pl.DataFrame, scores: pl.DataFrame, pool: dict[str, Any]) -> Any:
    """Figure 3: the equilibrium from the uniform start by share payoff, and the share of starts that reach it."""
    order = {name: i for i, name in enumerate(strategies.ranked(scores))}
    panels = []
    for dynamics in ("damped", "plain"):
        rows = sensitivity.filter(pl.col("dynamics") == dynamics).with_columns(
            place=pl.col("strategy").replace_strict(order, return_dtype=pl.Int64)
        )
        # A stacked area would join the points on both sides of a gap, so each share payoff has a bar of its own.
        bars = rows.filter(~pl.col("reference")).sort("sigma", "place").drop_nulls("frequency")
        bars = bars.with_columns(top=pl.col("frequency").cum_sum().over("sigma")).with_columns(
            low=pl.col("sigma") - 0.005, high=pl.col("sigma") + 0.0055, foot=pl.col("top") - pl.col("frequency")
        )
        x = alt.X(
            "low:Q",
            scale=alt.Scale(domain=[0.045, 0.955], nice=False),
            axis=alt.Axis(title="share payoff σ (taking pays 1)", tickCount=10, grid=False),
        )
        y = alt.Y("foot:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="frequency", tickCount=5))
        area = alt.Chart(bars).mark_rect(strokeWidth=0)
        area = area.encode(x=x, x2="high:Q", y=y, y2="top:Q", color=strategies.encoding(scores, orient=None))
        once = rows.unique("sigma", maintain_order=True).sort("sigma")
        along = alt.X("sigma:Q")
        up = alt.Y("share_of_starts:Q", scale=alt.Scale(domain=[0, 1]))
        dashed = alt.Chart(once).mark_line(
            color="black", strokeDash=[4, 2], strokeWidth=1.3, invalid="break-paths-show-domains"
        )
        whiskers = alt.Chart(once.filter(pl.col("share_of_starts") < 1)).mark_rule(color="black", strokeWidth=0.5)
        thresholds = pl.DataFrame(
            {
                "sigma": [pool[f"share_payoff{mark}"] for mark in ("_for_rate_1", "_for_rate_4", "")],
                "text": ["ρ = 1", "ρ = 4", "this game"],
                "level": [-6, -6, -15],
            }
        )
        rules = alt.Chart(thresholds).mark_rule(strokeDash=[1, 2], color=style.INK, strokeWidth=1).encode(x=along)
        words = [
            alt.Chart(thresholds[i : i + 1])
            .mark_text(fontSize=style.TINY, color=style.INK, baseline="bottom")
            .encode(x=along, y=alt.value(thresholds["level"][i] + 4), text="text:N")
            for i in range(3)
        ]
        starts = style.numbers(rows, "starts")
        panels.append(
            alt.layer(
                area,
                rules,
                *words,
                whiskers.encode(x=along, y=alt.Y("share_low:Q"), y2="share_high:Q"),
                dashed.encode(x=along, y=up),
            ).properties(
                width=300,
                height=120,
                title=strategies.heading([f"{dynamics} dynamics; dashed: share of {starts} starts that reach it", ""]),
            )
        )
    return alt.hconcat(*panels, spacing=24).properties(
        title=strategies.part("d  The equilibrium from the uniform start by share payoff (white: it does not converge)")
    )


def _type_masses(masses: pl.DataFrame) -> Any:
    """The simplex of author types: share of starts that reach the core, and how many fixed points starts reach.

    Beside it that share by how much the mixed type minds the welfare of all.
    """
    grid = masses.filter(pl.col("part") == "simplex").with_columns(
        x=pl.col("welfare_type") + pl.col("own") / 2, y=pl.col("own") * 0.866
    )
    panels = []
    for dynamics in _DYNAMICS:
        rows = grid.filter(pl.col("dynamics") == dynamics)
        x = alt.X("x:Q", scale=alt.Scale(domain=[-0.06, 1.06]), axis=None)
        y = alt.Y("y:Q", scale=alt.Scale(domain=[-0.08, 0.95]), axis=None)
        colour = alt.Color(
            "core_share:Q",
            scale=alt.Scale(domain=[0, 1], scheme="viridis"),
            legend=alt.Legend(
                title="share of converged starts that reach the core",
                orient="bottom",
                direction="horizontal",
                offset=2,
                gradientLength=120,
                gradientThickness=6,
                tickCount=3,
            )
            if dynamics == "plain"
            else None,
        )
        tooltip = ["own:Q", "mixed:Q", "welfare_type:Q", "fixed_points:Q", "core_share:Q", "welfare:Q", "unconverged:Q"]
        known = rows.drop_nulls("core_share")
        circles = alt.Chart(known).mark_circle(size=76, opacity=1).encode(x=x, y=y, color=colour, tooltip=tooltip)
        hollow = alt.Chart(rows.filter(pl.col("core_share").is_null())).mark_point(
            size=66, color=style.FAINT, strokeWidth=0.8
        )
        ring = alt.Chart(known.filter(pl.col("unconverged") > 0)).mark_point(size=105, color=style.INK, strokeWidth=0.9)
        ink = alt.condition("datum.core_share > 0.6", alt.value("black"), alt.value("white"))
        number = alt.Chart(known).mark_text(fontSize=style.TINY).encode(x=x, y=y, text="fixed_points:Q", color=ink)
        corners = pl.DataFrame(
            {"x": [0.0, 1.0, 0.5], "y": [-0.065, -0.065, 0.93], "text": ["mixed", "welfare", "own payoff"]}
        )
        names = alt.Chart(corners).mark_text(fontSize=style.SMALL, color=style.INK).encode(x=x, y=y, text="text:N")
        panels.append(
            alt.layer(circles, hollow.encode(x=x, y=y), ring.encode(x=x, y=y), number, names).properties(
                width=146, height=131, title=strategies.heading([f"{dynamics} dynamics"])
            )
        )
    panels.append(_sweep(masses.filter(pl.col("part") == "lambda")))
    return alt.hconcat(*panels, spacing=6).properties(
        title=strategies.part(
            "e  Masses of author types",
            [f"number: fixed points that {style.numbers(masses, 'starts')} starts reach; ring: some do not converge"],
        )
    )


def _sweep(masses: pl.DataFrame) -> Any:
    """Share of the starts that reach the core by lambda of the mixed type, at the reference masses."""
    shares = masses.drop_nulls("core_share")
    first = masses.row(0, named=True) if masses.height else dict.fromkeys(("own", "mixed", "welfare_type"), 0)
    held = "/".join(f"{100 * first[name]:.0f}" for name in ("own", "mixed", "welfare_type"))
    dash = alt.StrokeDash(
        "dynamics", type="nominal", scale=alt.Scale(domain=list(_DYNAMICS), range=[[1, 0], [4, 3]]), legend=None
    )
    line = alt.Chart(shares).mark_line(color=style.INK, strokeWidth=1.3)
    return line.encode(
        x=alt.X(
            "lambda_mixed:Q",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(title="λ of the mixed type", values=[0, 0.5, 1], grid=False),
        ),
        y=alt.Y("core_share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="reach the core", tickCount=3)),
        strokeDash=dash,
        tooltip=["dynamics:N", "lambda_mixed:Q", "core_share:Q", "fixed_points:Q"],
    ).properties(width=62, height=131, title=strategies.heading([f"masses {held} %,", "dashed: damped"]))


def _bloc(bloc: pl.DataFrame, scores: pl.DataFrame) -> Any:
    """Rank of each strategy as the submission of the total-welfare bloc, by the bloc's mass."""
    rows = bloc.drop_nulls("rank")
    size = max(scores.height, 2)
    x = alt.X("mass:Q", axis=alt.Axis(title="mass of the bloc", tickCount=3, grid=False))
    encodings = {
        "color": strategies.encoding(scores, orient=None),
        "tooltip": ["strategy:N", "mass:Q", "rank:Q", alt.Tooltip("welfare:Q", format=".4f")],
    }
    line = alt.Chart(rows).mark_line(point=alt.OverlayMarkDef(size=14, opacity=1), strokeWidth=1.4)
    # Never finer than a twentieth of the first best, so that rounding does not look like a difference.
    floor = min([0.95, *(math.floor(20 * ratio) / 20 for ratio in rows["welfare_ratio"].drop_nulls())])
    rank = line.encode(
        x=x,
        y=alt.Y(
            "rank:Q",
            scale=alt.Scale(domain=[1, size], nice=False, reverse=True),
            axis=alt.Axis(title="rank", values=list(range(1, size + 1, 1 + size // 15)), format="d"),
        ),
        **encodings,
    ).properties(width=82, height=131)
    welfare = line.encode(
        x=x,
        y=alt.Y(
            "welfare_ratio:Q",
            scale=alt.Scale(domain=[floor, 1], nice=False),
            axis=alt.Axis(title="V / first best", format=".2f", tickCount=5),
        ),
        **encodings,
    ).properties(width=82, height=131)
    return alt.hconcat(rank, welfare, spacing=8).properties(
        title=strategies.part(
            "f  The welfare bloc's best submission", ["welfare V of the field that settles around it"]
        )
    )


def _description(tournament: str, oracle: str, equilibria: pl.DataFrame) -> str:
    points = _at_highest_beta(equilibria)
    said = []
    for point in points["equilibrium"].unique(maintain_order=True):
        one = points.filter(pl.col("equilibrium") == point)
        top = one.sort("frequency", descending=True).head(4)
        members = ", ".join(f"{name} {share:.3f}" for name, share in top.select("strategy", "frequency").iter_rows())
        said.append(f"basin share {one['basin_share'][0]:.3f}: {members}")
    return f"{tournament}, oracle {oracle}, fixed points at the highest beta, plain dynamics: {'; '.join(said)}."
