"""RQ12, RQ13 and RQ14 from the tables of a tournament: what is drawn, and that nothing unknown is drawn as known."""

import json
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import altair as alt
import numpy as np
import polars as pl
import pytest
from made_up import marks, svg_of, texts

from fishpool.analysis.dictator import Settings, compare_oracles, dictator_tables, read_pools
from fishpool.documents import read_documents
from fishpool.figures import files, rq12, rq13, rq14, strategies, style
from fishpool.games.dictator import Document, Votes, play
from fishpool.oracles.decisions import published

DOCUMENTS = read_documents(Path(__file__).parents[2] / "config" / "strategies")
NAMES = [document.name for document in DOCUMENTS]
SMALL = Settings(starts=300, sweep_starts=20, type_starts=10, draws=5)


def tables(documents=DOCUMENTS, oracle=None, *, self_play=True):
    tournament = play(documents, oracle or published([d.name for d in documents]), self_play=self_play)
    D = tournament.decisions
    rows = [
        {
            "tournament": "t",
            "oracle": "published",
            "dictator": dictator.name,
            "recipient": recipient.name,
            "family": dictator.family,
            "decision": None if np.isnan(D[i, j]) else "SHARE" if D[i, j] else "TAKE",
            "replicates": int(tournament.replicates[i, j]),
            "share_votes": int(tournament.share_votes[i, j]),
        }
        for i, dictator in enumerate(documents)
        for j, recipient in enumerate(documents)
        if tournament.played[i, j]
    ]
    decisions = pl.DataFrame(rows, infer_schema_length=None)
    made = dictator_tables(read_pools(decisions, SMALL))
    return made | {"dictator_decisions": decisions, "dictator_agreement": compare_oracles(decisions.lazy())}


def draw(module, made):
    code = module.chart.__code__
    return module.chart(**{name: made[name] for name in code.co_varnames[: code.co_argcount]})


def holed(dictator, recipient):
    return (
        Votes(0, 0)
        if (dictator.name, recipient.name) == ("mirror", "selfish")
        else published(NAMES)(dictator, recipient)
    )


@pytest.fixture(scope="module")
def nine():
    return tables()


@pytest.fixture(scope="module")
def incomplete():
    return tables(oracle=holed)


@pytest.fixture(scope="module")
def alone():
    return tables(self_play=False)


def test_rq12_shows_the_leaderboard_and_who_dominates(nine):
    shown = texts(draw(rq12, nine))
    for text in ("59.055", "40.432", "1, 3, 5, 6", "none", "1. mirror", "9. selfish"):
        assert text in shown


def test_rq12_leaves_unknown_cells_empty(nine, incomplete, alone):
    for made, cells in ((nine, 81), (incomplete, 80), (alone, 72)):
        (decisions,) = marks(draw(rq12, made).to_dict(), "rect", "decision")
        assert len(decisions) == cells
    (payoffs,) = marks(draw(rq12, incomplete).to_dict(), "rect", "payoff")
    assert len(payoffs) == 79
    assert "n/a" in texts(draw(rq12, incomplete))


def test_rq13_has_the_panels_of_figures_1_to_3(nine):
    shown = texts(draw(rq13, nine))
    for title in ("softmax, β = 1", "softmax, β = 5", "softmax, β = 20", "softmax, β = 20, basin 2"):
        assert title in shown
    assert "author types, β = 5" in shown
    assert "author types, β = 20" in shown
    assert "ρ = 1" in shown
    assert "ρ = 4" in shown
    assert any(text.startswith("dashed: chivalry > ") for text in shown)


def test_rq13_draws_every_start_and_no_run_that_did_not_converge(nine):
    spec = draw(rq13, nine).to_dict()
    (starts,) = marks(spec, "circle", "reached")
    assert len(starts) == 300
    lost = nine["dictator_sensitivity"].filter(~pl.col("converged"))
    for bars in marks(spec, "rect", "strategy"):
        assert all(row["frequency"] is not None for row in bars)
    assert not lost.is_empty()


def test_rq13_says_that_nothing_is_known_where_decisions_are_missing(incomplete, alone):
    for made in (incomplete, alone):
        assert "decisions are missing, so no equilibrium is known" in texts(draw(rq13, made))


def test_rq14_shows_agreement_flips_and_robustness(nine):
    spec = draw(rq14, nine).to_dict()
    shown = texts(draw(rq14, nine))
    assert "76/81" in shown
    for scheme in ("votes", "noise 1 %", "noise 3 %", "noise 10 %"):
        assert any(text.startswith(scheme) for text in shown)
    for rows in marks(spec, "rule", "rank_low"):
        assert all(row["rank_low"] is not None for row in rows)


def test_rq14_stands_without_equilibria(incomplete):
    assert not any(text.startswith("noise 1 %") for text in texts(draw(rq14, incomplete)))


@pytest.mark.parametrize("module", [rq12, rq13, rq14])
def test_small_pools_and_empty_tables(module, nine):
    pool = [Document("one", "new", "", None), Document("two", "new", "", None)]
    for documents in (pool[:1], pool):
        assert texts(draw(module, tables(documents, lambda d, r: Votes(1, 1))))
    empty = {name: table.clear() for name, table in nine.items()}
    assert "no data" in texts(draw(module, empty))


def test_colours_go_by_family_and_every_strategy_has_one(nine):
    scale = strategies.colours(nine["dictator_scores"]).to_dict()
    colour = dict(zip(scale["domain"], scale["range"], strict=True))
    assert len(set(colour.values())) == 9
    assert colour["mirror"] == "#0072B2"
    assert colour["cooperation-coalition"] == "#D55E00"


def scores_of(families):
    return pl.DataFrame(
        {"strategy": [f"s{i}" for i in range(len(families))], "family": families, "rank": range(len(families))}
    )


@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("family", ["unconditional", "trait", "reciprocity", "second-order", "their own"])
def test_strategies_of_one_family_look_different_also_to_the_colour_blind(family, size):
    shades = strategies.colours(scores_of([family] * size)).to_dict()["range"]
    for one, other in combinations(shades, 2):
        for sight in SIGHTS.values():
            assert np.linalg.norm(seen(one, sight) - seen(other, sight)) > 15


@pytest.mark.parametrize("families", [["reciprocity"] * 200, ["a", "b"] * 20, [f"family {i}" for i in range(60)]])
def test_no_two_strategies_have_the_same_colour(families):
    shades = strategies.colours(scores_of(families)).to_dict()["range"]
    assert len(set(shades)) == len(families)
    assert strategies.ABSENT.upper() not in shades


# What a dichromat sees of linear light: G. M. Machado et al., "A Physiologically-based Model for Simulation of Color
# Vision Deficiency" (2009), severity 1.0.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}


def seen(shade, sight):
    """CIELAB coordinates of a colour of sRGB, as this sight has it."""
    channels = np.array([int(shade[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(sight @ linear, 0, 1) / to_xyz.sum(axis=1)
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * 841 / 108 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_no_figure_holds_a_number_that_is_not_finite(nine, incomplete):
    for made in (nine, incomplete):
        for module in (rq12, rq13, rq14):
            json.dumps(draw(module, made).to_dict(), allow_nan=False)


def generous(dictator, recipient):
    """An oracle to whom nearly everyone shares."""
    return Votes(0 if (dictator.name, recipient.name) in {("selfish", "generous"), ("mirror", "selfish")} else 1, 1)


@pytest.fixture(scope="module")
def alike():
    return tables(oracle=generous)


def test_where_nearly_all_share_every_figure_is_drawn_and_one_basin_is_said_to_be_one(alike):
    for module in (rq12, rq13, rq14):
        assert texts(draw(module, alike))
    assert "one basin takes all starts" in texts(draw(rq13, alike))
    assert "1–7" in texts(draw(rq12, alike))  # who dominates the one that even its victims share with


def test_rounding_does_not_look_like_a_difference_of_welfare(alike):
    bloc = alike["dictator_bloc"].with_columns(welfare_ratio=1 - 1e-12 * pl.col("mass"))
    spec = draw(rq13, alike | {"dictator_bloc": bloc}).to_dict()
    found = [scale["domain"] for scale in scales(spec, "welfare_ratio")]
    assert found == [[0.95, 1]]
    lower = draw(rq13, alike | {"dictator_bloc": bloc.with_columns(welfare_ratio=pl.lit(0.83))}).to_dict()
    assert [scale["domain"] for scale in scales(lower, "welfare_ratio")] == [[0.8, 1]]


def scales(spec, field):
    """The scales of a field's vertical axes."""
    if isinstance(spec, list):
        return [scale for part in spec for scale in scales(part, field)]
    if not isinstance(spec, dict):
        return []
    own = spec.get("encoding", {}).get("y", {})
    return [own.get("scale")] * (own.get("field") == field) + scales(list(spec.values()), field)


def test_rq13_draws_the_sweep_of_lambda(nine):
    (sweep,) = marks(draw(rq13, nine).to_dict(), "line", "lambda_mixed")
    drawn = nine["dictator_type_masses"].filter(pl.col("part") == "lambda").drop_nulls("core_share")
    assert sweep == drawn.to_dicts()


def test_the_oracles_of_a_tournament_share_a_scale_of_payoffs_and_its_legend(nine, alike):
    both = {
        name: pl.concat([nine[name], alike[name].with_columns(oracle=pl.lit("other"))], how="vertical_relaxed")
        for name in nine
        if "oracle" in nine[name].columns
    }
    payoffs = [
        part["encoding"]["color"]
        for row in draw(rq12, both).to_dict()["vconcat"]
        for part in row["hconcat"][1]["layer"]
    ]
    assert payoffs[0]["scale"] == payoffs[1]["scale"]
    assert [colour["legend"] is None for colour in payoffs] == [True, False]


@pytest.mark.parametrize("module", [rq12, rq13, rq14], ids=["rq12", "rq13", "rq14"])
def test_a_figure_fits_a_page_and_is_a_pdf_too(module, nine):
    chart = draw(module, nine)
    with alt.data_transformers.enable("default", max_rows=None):
        assert files._pdf(files.specification_of(chart)).startswith(b"%PDF")
        svg = svg_of(chart)
    width = float(ElementTree.fromstring(svg).attrib["width"])
    smallest = min(map(float, re.findall(rb'font-size="([\d.]+)px"', svg)))
    assert smallest * min(1, style.WIDTH / width) * 72 / 96 >= 5  # points in print
