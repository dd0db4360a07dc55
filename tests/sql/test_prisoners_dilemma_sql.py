"""The metric tables of the prisoner's dilemma, against the same definitions written out in plain Python."""

import asyncio
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from fishpool import referee
from fishpool.analysis.ranking import rank_players
from fishpool.database import header, query_in_turn, write
from fishpool.games.prisoners_dilemma import Parameters
from fishpool.runners import prisoners_dilemma as runner
from fishpool.runners.prisoners_dilemma import Pairing
from fishpool.shards import Player, Shard

SQL = Path(__file__).parents[2] / "workflow" / "sql"
COOPERATE = '{"type": "choose", "choice": "cooperate"}'
DEFECT = '{"type": "choose", "choice": "defect"}'
RESIGN = '{"type": "resign"}'
SHARD = Shard(
    "study",
    "noisy",
    "seeds-0",
    "prisoners_dilemma",
    {"rounds": 12, "noise": 0.1, "lane": "standard", "agent_ids": ["ann", "bob"]},
    tuple(Player(name, "scripted", {"strategy": name}) for name in ("TitForTat", "Random", "Defector", "Cooperator")),
    5.0,
    tuple(range(9)),
)


class Says(referee.Player):
    """A player that gives its replies one after the other, the last one for ever; raises what is an exception."""

    def __init__(self, *replies):
        self.replies = list(replies)

    async def act(self, view):
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply


def sql_file(metric):
    return next(SQL.rglob(f"{metric}.sql"))


class Tables:
    """Metric tables over record frames, each computed by its SQL file when it is first asked for."""

    READS = {  # noqa: RUF012
        "validity": ("runs", "turns"),
        "pd_individual": ("runs", "turns"),
        "pd_matchups": ("pd_individual",),
        "pd_ranking": ("pd_individual", "pd_strengths"),
        "pd_rounds": ("turns", "pd_individual"),
        "pd_profiles": ("pd_individual",),
    }

    def __init__(self, directory, frames):
        self.directory = directory
        for table, frame in frames.items():
            write(frame, directory / f"{table}.parquet")

    def __getitem__(self, table):
        file = self.directory / f"{table}.parquet"
        if not file.exists() and table == "pd_strengths":
            write(rank_players(self["pd_individual"].lazy()), file)
        if not file.exists():
            for name in self.READS[table]:
                self[name]  # computed first, if it is not there yet
            inputs = {name: [self.directory / f"{name}.parquet"] for name in self.READS[table]}
            query_in_turn({sql_file(table): file}, inputs)
        return pl.read_parquet(file)


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    (frames,) = runner.play(SHARD)
    return Tables(tmp_path_factory.mktemp("scripted"), frames)


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    """Five matches: completed, resigned, forfeited, void at once, void later; seeds 0 to 4."""
    matches = [
        ([COOPERATE], [DEFECT]),
        ([COOPERATE, COOPERATE, RESIGN], [COOPERATE]),
        ([DEFECT], [COOPERATE, COOPERATE, "?"]),
        (["?"], [COOPERATE]),
        ([COOPERATE, OSError("gone")], [DEFECT]),
    ]
    shard = replace(SHARD, parameters={**SHARD.parameters, "rounds": 3, "noise": 0.0})
    parameters = Parameters(rounds=3, agent_ids=("ann", "bob"))
    batch = [Pairing(seed, ("Ann", "Bob")) for seed in range(len(matches))]
    played = [
        asyncio.run(runner.referee_match({"ann": Says(*first), "bob": Says(*second)}, parameters, 5.0))
        for first, second in matches
    ]
    return Tables(tmp_path_factory.mktemp("broken"), runner.frames_of_matches(shard, parameters, batch, played))


def sides(tables):
    """(own choices, the other's choices, payoffs) by run and agent, C and D, scored rounds only."""
    found = {}
    for row in tables["turns"].iter_rows(named=True):
        found.setdefault(row["run_id"], {}).setdefault(row["agent"], []).append(row)
    for run, agents in found.items():
        for own, other in (("ann", "bob"), ("bob", "ann")):
            mine = [row["choice"][0].upper() for row in agents[own] if row["choice"]]
            theirs = [row["choice"][0].upper() for row in agents[other] if row["choice"]]
            points = [row["payoff"] for row in agents[own] if row["choice"]]
            yield run, own, mine, theirs, points


def rate(hits):
    hits = list(hits)
    return sum(hits) / len(hits) if hits else None


@pytest.mark.parametrize("which", ["scripted", "broken_off"])
def test_individual_metrics_by_their_definitions(which, request):
    tables = request.getfixturevalue(which)
    rows = {(row["run_id"], row["agent"]): row for row in tables["pd_individual"].iter_rows(named=True)}
    seen = 0
    for run, agent, mine, theirs, points in sides(tables):
        row = rows[run, agent]
        seen += 1
        after = list(zip(mine, theirs, mine[1:], strict=False))
        assert row["score"] == sum(points)
        assert row["rounds"] == len(mine)
        assert row["cooperation_rate"] == rate(own == "C" for own in mine)
        assert row["first_move"] == ({"C": "cooperate", "D": "defect"}[mine[0]] if mine else None)
        for state in ("CC", "CD", "DC", "DD"):
            followed = [next_move == "C" for own, other, next_move in after if own + other == state]
            assert row[f"n_{state.lower()}"] == len(followed)
            assert row[f"p_c_{state.lower()}"] == rate(followed)
        first = mine.index("D") if "D" in mine else 99
        other_first = theirs.index("D") if "D" in theirs else 99
        assert row["nice"] == ((first > other_first or first == 99) if mine else None)
        assert row["forgiveness"] == rate(move == "C" for _, other, move in after if other == "D")
        assert row["retaliation"] == rate(move == "D" for own, other, move in after if own + other == "CD")
        assert row["exploitation"] == rate(move == "D" for _, other, move in after if other == "C")
    assert seen == len(rows)


def test_outcomes_of_matches_that_broke_off(broken_off):
    outcomes = broken_off["pd_individual"].sort("seed", "agent").select("seed", "agent", "outcome", "score").rows()
    assert outcomes == [
        (0, "ann", "loss", 0),
        (0, "bob", "win", 15),
        (1, "ann", "loss", 6),
        (1, "bob", "win", 6),
        (2, "ann", "win", 10),
        (2, "bob", "loss", 0),
        (3, "ann", "void", 0),
        (3, "bob", "void", 0),
        (4, "ann", "void", 0),
        (4, "bob", "void", 5),
    ]


def test_forfeits_are_shown_both_in_and_out_and_voids_never(broken_off):
    row = broken_off["pd_matchups"].row(by_predicate=pl.col("player") == "Bob", named=True)
    assert (row["matches"], row["mean_score"]) == (3, pytest.approx((15 + 6 + 0) / 3))
    assert (row["matches_completed"], row["mean_score_completed"]) == (1, 15)
    ranked = broken_off["pd_ranking"].select("player", "matches", "matches_completed", "rank").rows()
    assert ranked == [("Bob", 3, 1, 1), ("Ann", 3, 1, 2)]
    assert broken_off["pd_rounds"].filter(player="Ann").select("round", "matches").rows() == [(1, 3), (2, 3), (3, 1)]


def test_validity_counts_every_turn(broken_off):
    row = broken_off["validity"].row(by_predicate=pl.col("player") == "Ann", named=True)
    # Ann: 3 + 2 + 3 + 0 + 1 moves, one resignation, one rejected action, one turn lost to the machine.
    assert {key: row[key] for key in ("turns", "moved", "resigned", "invalid", "infrastructure", "timeout")} == {
        "turns": 12,
        "moved": 9,
        "resigned": 1,
        "invalid": 1,
        "infrastructure": 1,
        "timeout": 0,
    }
    assert row["validity_rate"] == 10 / 11


def test_matchups_add_up(scripted):
    individual = scripted["pd_individual"]
    for row in scripted["pd_matchups"].iter_rows(named=True):
        rows = individual.filter(player=row["player"], opponent=row["opponent"])
        self_play = row["player"] == row["opponent"]
        assert row["matches"] == len(SHARD.seeds) == len(rows) // (1 + self_play)
        assert row["mean_score"] == pytest.approx(rows["score"].mean())
        assert row["cooperation_rate"] == pytest.approx(rows["cooperation_rate"].mean())
        if row["score_low"] is not None:
            assert row["score_low"] <= row["mean_score"] <= row["score_high"]
    assert len(scripted["pd_matchups"]) == 16


def test_ranking_leaves_out_self_play(scripted):
    individual = scripted["pd_individual"].filter(pl.col("player") != pl.col("opponent"))
    ranking = scripted["pd_ranking"]
    for row in ranking.iter_rows(named=True):
        scores = individual.filter(player=row["player"])["score"]
        assert (row["matches"], row["mean_score"]) == (len(scores), pytest.approx(scores.mean()))
        assert row["rank_low"] <= row["rank"] <= row["rank_high"]
    assert ranking["mean_score"].is_sorted(descending=True)
    assert ranking["rank"].to_list() == [1, 2, 3, 4]


def test_rounds_and_profiles_agree_with_the_moves(scripted):
    opponents = {
        (run, agent): opponent
        for run, agent, opponent in scripted["pd_individual"].select("run_id", "agent", "opponent").rows()
    }
    turns = scripted["turns"].filter(player="Random")
    turns = turns.filter([opponents[run, agent] != "Random" for run, agent in turns.select("run_id", "agent").rows()])
    for number, group in turns.group_by("round"):
        row = scripted["pd_rounds"].row(
            by_predicate=(pl.col("player") == "Random") & (pl.col("round") == number[0]), named=True
        )
        assert row["matches"] == len(group)
        assert row["cooperation_rate"] == pytest.approx((group["choice"] == "cooperate").mean())
    profiles = scripted["pd_profiles"].filter(player="Random")
    assert profiles["state"].to_list() == ["opening", "CC", "CD", "DC", "DD"]
    assert profiles["n"].sum() == len(turns)
    total = (profiles["cooperation_rate"] * profiles["n"]).sum()
    assert total == pytest.approx((turns["choice"] == "cooperate").sum())


def test_one_seed_has_no_interval(tmp_path):
    (frames,) = runner.play(replace(SHARD, seeds=(4,)))
    tables = Tables(tmp_path, frames)
    assert tables["pd_matchups"]["score_low"].null_count() == 16
    assert tables["pd_rounds"]["low"].null_count() == len(tables["pd_rounds"])
    assert tables["pd_ranking"]["rank_low"].null_count() == 4


def test_what_never_varies_has_no_interval(tmp_path):
    shard = replace(SHARD, parameters={**SHARD.parameters, "noise": 0.0})
    (frames,) = runner.play(shard)
    matchups = Tables(tmp_path, frames)["pd_matchups"]
    random = (pl.col("player") == "Random") | (pl.col("opponent") == "Random")
    assert matchups.filter(~random)["score_low"].null_count() == len(matchups.filter(~random))
    assert matchups.filter(random & (pl.col("player") != "Defector"))["score_low"].null_count() == 0


@pytest.mark.parametrize("file", sorted(SQL.rglob("*.sql")), ids=lambda file: file.stem)
def test_every_metric_opens_with_what_a_row_is(file):
    assert header(file.read_text()).startswith(f"{file.stem}: a row is ")
