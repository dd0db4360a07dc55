"""The tables of a tournament: their columns, what a missing decision does to each, and that they agree."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fishpool.analysis.dictator import Settings, compare_oracles, dictator_tables, read_pools
from fishpool.documents import read_documents
from fishpool.games.dictator import Document, Votes, play
from fishpool.oracles.decisions import published

COLUMNS = {
    "dictator_payoffs": "tournament oracle strategy opponent payoff",
    "dictator_scores": "tournament oracle strategy family score rank k_give k_recv unconditional self_cooperating"
    " reciprocal exploited subsidizer first_order_deterrent second_order_deterrent protective extensional",
    "dictator_dominance": "tournament oracle strategy kind slack dominated_by mixture",
    "dictator_trajectories": "tournament oracle model beta dynamics start iteration strategy frequency",
    "dictator_equilibria": "tournament oracle model beta dynamics equilibrium stable spectral_radius residual"
    " basin_share basin_low basin_high welfare strategy frequency",
    "dictator_basins": "tournament oracle beta start equilibrium converged mirror chivalry",
    "dictator_boundary": "tournament oracle beta coordinates accuracy intercept slope",
    "dictator_sensitivity": "tournament oracle sigma dynamics strategy frequency converged residual share_of_starts",
    "dictator_type_masses": "tournament oracle own mixed welfare_type lambda_mixed fixed_points core_share welfare"
    " welfare_ratio",
    "dictator_bloc": "tournament oracle mass strategy welfare rank",
}
SMALL = Settings(starts=200, sweep_starts=20, type_starts=10, draws=5)
DOCUMENTS = read_documents(Path(__file__).parents[2] / "config" / "strategies")
NAMES = [document.name for document in DOCUMENTS]


def decisions(oracle=None, *, self_play=True, name="published"):
    return frame_of(play(DOCUMENTS, oracle or published(NAMES), self_play=self_play), name)


def frame_of(tournament, name="published"):
    D = tournament.decisions
    rows = [
        {
            "tournament": "t",
            "oracle": name,
            "dictator": dictator.name,
            "recipient": recipient.name,
            "family": dictator.family,
            "decision": None if np.isnan(D[i, j]) else "SHARE" if D[i, j] else "TAKE",
            "replicates": int(tournament.replicates[i, j]),
            "share_votes": int(tournament.share_votes[i, j]),
        }
        for i, dictator in enumerate(tournament.documents)
        for j, recipient in enumerate(tournament.documents)
        if tournament.played[i, j]
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def with_a_hole(dictator, recipient):
    answer = published(NAMES)
    return lambda d, r: Votes(0, 0) if (d.name, r.name) == (dictator, recipient) else answer(d, r)


@pytest.fixture(scope="module")
def tables():
    return dictator_tables(read_pools(decisions(), SMALL))


@pytest.fixture(scope="module")
def holed():
    return dictator_tables(read_pools(decisions(with_a_hole("mirror", "selfish")), SMALL))


@pytest.fixture(scope="module")
def without_self_play():
    return dictator_tables(read_pools(decisions(self_play=False), SMALL))


def test_every_table_has_its_columns_and_none_of_unknown_type(tables, holed):
    for name, columns in COLUMNS.items():
        assert set(columns.split()) <= set(tables[name].columns), name
    for name, table in tables.items():
        assert pl.Null not in table.schema.values(), name
        if name != "dictator_basins":  # whose missing starts have no shares
            assert table.schema == holed[name].schema, name


def test_frequencies_sum_to_one_at_every_fixed_point_and_iterate(tables):
    points = tables["dictator_equilibria"].group_by("model", "beta", "dynamics", "equilibrium")
    assert points.agg(pl.col("frequency").sum())["frequency"].to_numpy() == pytest.approx(1)
    iterates = tables["dictator_trajectories"].group_by("model", "beta", "dynamics", "start", "iteration")
    assert iterates.agg(pl.col("frequency").sum())["frequency"].to_numpy() == pytest.approx(1)


def test_basin_shares_are_those_of_the_starts(tables):
    starts = tables["dictator_basins"].filter(pl.col("dynamics") == "plain")
    reached = starts["equilibrium"].value_counts().sort("equilibrium")["count"] / starts.height
    points = tables["dictator_equilibria"].filter(
        (pl.col("model") == "own_payoff") & (pl.col("beta") == 20) & (pl.col("dynamics") == "plain")
    )
    shares = points.unique("equilibrium").sort("equilibrium").filter(pl.col("basin_share") > 0)
    assert shares["basin_share"].to_list() == pytest.approx(reached.to_list())
    assert (shares["basin_low"] < shares["basin_share"]).all()
    assert starts.select(NAMES).sum_horizontal().to_numpy() == pytest.approx(1)


def test_equilibrium_0_has_the_largest_basin_and_both_dynamics_share_their_points(tables):
    own = tables["dictator_equilibria"].filter((pl.col("model") == "own_payoff") & (pl.col("beta") == 20))
    for _, group in own.group_by("dynamics"):
        shares = group.unique("equilibrium").sort("equilibrium")["basin_share"].to_list()
        assert shares == sorted(shares, reverse=True)
    plain, damped = (
        own.filter(pl.col("dynamics") == dynamics).sort("equilibrium", "strategy")["frequency"].to_numpy()
        for dynamics in ("plain", "damped")
    )
    assert plain == pytest.approx(damped, abs=1e-6)


def test_the_mixture_is_json_and_names_its_strategies(tables):
    row = tables["dictator_dominance"].row(by_predicate=pl.col("strategy") == "selfish", named=True)
    assert (row["kind"], row["dominated_by"], json.loads(row["mixture"])) == (
        "weak",
        ["cooperation-coalition"],
        {"cooperation-coalition": 1.0},
    )


def test_a_run_that_does_not_converge_is_a_row_without_a_frequency(tables):
    lost = tables["dictator_sensitivity"].filter(~pl.col("converged"))
    assert not lost.is_empty()
    assert lost["frequency"].null_count() == lost["share_of_starts"].null_count() == lost.height
    assert set(lost["ending"]) <= {"cycle", "running"}


def test_the_constants_of_the_game(tables):
    row = tables["dictator_pool"].row(0, named=True)
    assert (row["unconditional_cooperators"], row["protectors"], row["harvesting_pays"]) == (1, 1, False)
    assert row["gap"] >= row["gain"]
    assert round(row["exchange_rate"], 4) == 5.0732


def test_a_missing_decision_is_carried_as_missing(holed):
    payoffs = holed["dictator_payoffs"].filter(pl.col("payoff").is_null())
    assert set(payoffs.select("strategy", "opponent").iter_rows()) == {("mirror", "selfish"), ("selfish", "mirror")}
    scores = holed["dictator_scores"].filter(pl.col("score").is_null())
    assert set(scores["strategy"]) == {"mirror", "selfish"}
    assert scores["rank"].null_count() == 2
    assert holed["dictator_pool"]["missing"][0] == 1
    for name, column in (
        ("dictator_dominance", "kind"),
        ("dictator_equilibria", "frequency"),
        ("dictator_trajectories", "frequency"),
        ("dictator_basins", "equilibrium"),
        ("dictator_boundary", "accuracy"),
        ("dictator_sensitivity", "frequency"),
        ("dictator_type_masses", "welfare"),
        ("dictator_bloc", "welfare"),
        ("dictator_flips", "distance"),
        ("dictator_draws", "score"),
        ("dictator_robustness", "score"),
    ):
        assert not holed[name].is_empty(), name
        assert holed[name][column].null_count() == holed[name].height, name


def test_without_self_play_the_diagonal_is_in_no_table(without_self_play):
    payoffs = without_self_play["dictator_payoffs"]
    assert payoffs.filter(pl.col("strategy") == pl.col("opponent")).is_empty()
    assert payoffs["payoff"].null_count() == 0
    scores = without_self_play["dictator_scores"]
    assert scores["rounds"].to_list() == [8] * 9
    totals = payoffs.group_by("strategy", maintain_order=True).agg(pl.col("payoff").sum())
    assert scores["score"].to_list() == pytest.approx(totals["payoff"].to_list())
    assert scores["self_cooperating"].null_count() == 9
    assert scores.row(by_predicate=pl.col("strategy") == "generous", named=True)["unconditional"] is True
    assert without_self_play["dictator_pool"]["missing"][0] == 0
    assert without_self_play["dictator_equilibria"]["frequency"].null_count() == 2 * 3 * 2 * 9


def test_resampled_votes_touch_the_split_cells_only(tables):
    rows = tables["dictator_robustness"].filter(pl.col("scheme") == "votes")
    fixed = rows.filter(pl.col("score_low").is_null())["strategy"].to_list()
    # The split cells are decisions of, or about, six of the nine strategies; the others always score the same.
    assert set(fixed) >= {"mirror", "generous", "selfish"}
    assert rows["draws"].to_list() == [SMALL.draws] * 9


def test_flips_of_cells_that_others_disagree_about_change_the_winner(tables):
    flips = tables["dictator_flips"]
    assert flips.height == 81
    flip = flips.row(by_predicate=(pl.col("dictator") == "mirror") & (pl.col("recipient") == "selfish"), named=True)
    assert (flip["winner"], flip["winner_changes"]) == ("cooperation-coalition", True)


def test_agreement_compares_each_pair_once_and_an_oracle_with_itself():
    everywhere = decisions(lambda d, r: Votes(1, 1), name="generous")
    several = pl.concat([decisions(), everywhere, decisions(with_a_hole("mirror", "mirror"), name="c")])
    table = compare_oracles(several.lazy())
    rows = {
        (a, b): (agree, cells) for a, b, agree, cells in table.select("oracle_a", "oracle_b", "agree", "cells").rows()
    }
    shares = decisions().filter(pl.col("decision") == "SHARE").height
    assert rows == {
        ("published", "published"): (76, 81),
        ("published", "generous"): (shares, 81),
        ("published", "c"): (80, 80),
    }


def test_settings_come_from_the_study():
    given = {"betas": [5, 1], "starts": 50, "draws": 7, "self_play": True, "endowment": 61.0, "utility": "linear"}
    settings = Settings.from_config(given)
    assert settings.betas == (1.0, 5.0)
    assert settings.stakes.exchange_rate == pytest.approx(1)


@pytest.mark.parametrize(
    "rules", [("always_share",), ("always_take",), ("always_share", "always_take"), ("mirror",) * 3]
)
def test_pools_of_one_two_and_three_strategies(rules):
    shares = {"always_share": 1, "always_take": 0, "mirror": 1}
    documents = [Document(f"s{i}", "test", "", rule) for i, rule in enumerate(rules)]
    tournament = play(documents, lambda d, r: Votes(shares[d.rule], 1))
    made = dictator_tables(read_pools(frame_of(tournament), SMALL))
    points = made["dictator_equilibria"]
    assert points["frequency"].null_count() == 0
    assert made["dictator_scores"].height == len(rules)
    if len(rules) == 1:
        assert set(points["frequency"]) == {1.0}
