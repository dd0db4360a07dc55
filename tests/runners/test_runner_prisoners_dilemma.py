"""A shard of the prisoner's dilemma as records: complete, in order, and honest about what broke."""

import json
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import polars as pl
import pytest

from fishpool.players import scripted
from fishpool.players.scripted import STRATEGIES, Strategy
from fishpool.runners import prisoners_dilemma as runner
from fishpool.shards import Player, Shard

NAMES = ("TitForTat", "Random", "Defector", "Joss")
SHARD = Shard(
    study="study",
    condition="noisy",
    name="seeds-0",
    game="prisoners_dilemma",
    parameters={"rounds": 6, "noise": 0.2, "lane": "standard", "agent_ids": ["ann", "bob"]},
    players=tuple(Player(name, "scripted", {"strategy": name}) for name in NAMES),
    turn_timeout=5.0,
    seeds=(0, 3, 8),
)


def frames_of(shard):
    batches = list(runner.play(shard))
    return {table: pl.concat([batch[table] for batch in batches]) for table in ("runs", "turns")}


def test_every_pair_and_seed_is_played_once_in_canonical_order():
    frames = frames_of(SHARD)
    expected = [
        f"study:noisy:{seed}:{first}:{second}"
        for seed in SHARD.seeds
        for first, second in combinations_with_replacement(NAMES, 2)
    ]
    assert frames["runs"]["run_id"].to_list() == expected
    assert len(expected) == runner.number_of_runs(SHARD)
    turns = frames["turns"].select("run_id", "round", "agent").rows()
    assert turns == [(run, number, agent) for run in expected for number in range(1, 7) for agent in ("ann", "bob")]
    assert frames["runs"]["turn_records"].to_list() == [12] * len(expected)


def test_runs_can_be_traced():
    run = frames_of(SHARD)["runs"].row(0, named=True)
    assert json.loads(run["parameters"]) == SHARD.parameters
    assert json.loads(run["agents"]) == {"ann": "TitForTat", "bob": "TitForTat"}
    assert json.loads(run["versions"])["numpy"] == np.__version__


def test_winner_and_payoffs_agree():
    frames = frames_of(SHARD)
    totals = frames["turns"].group_by("run_id", "agent").agg(pl.col("payoff").sum())
    score = {(run, agent): total for run, agent, total in totals.rows()}
    for run, winner in frames["runs"].select("run_id", "winner").rows():
        ann, bob = score[run, "ann"], score[run, "bob"]
        assert winner == (None if ann == bob else "ann" if ann > bob else "bob")


def test_flipped_says_where_the_noise_struck():
    turns = frames_of(SHARD)["turns"]
    submitted = turns["action"].str.json_path_match("$.choice")
    assert ((submitted != turns["choice"]) == turns["flipped"]).all()
    assert 0.1 < turns["flipped"].mean() < 0.3
    quiet = frames_of(replace(SHARD, parameters={**SHARD.parameters, "noise": 0.0}))["turns"]
    assert not quiet["flipped"].any()


def test_conditions_with_the_same_seed_share_their_luck():
    other = replace(SHARD, condition="longer", parameters={**SHARD.parameters, "rounds": 9})
    mine, theirs = frames_of(SHARD)["turns"], frames_of(other)["turns"]
    drawn = [
        frame.filter((pl.col("player") == "Random") & (pl.col("round") <= 6)).select("seed_run", "round", "action")
        for frame in (
            frame.with_columns(seed_run=pl.col("run_id").str.split(":").list.slice(2).list.join(":"))
            for frame in (mine, theirs)
        )
    ]
    assert drawn[0].equals(drawn[1])


def test_a_player_more_leaves_all_other_matches_as_they_were():
    more = replace(SHARD, players=(Player("Grudger", "scripted", {"strategy": "Grudger"}), *SHARD.players))
    before = frames_of(SHARD)["turns"]
    after = frames_of(more)["turns"].filter(~pl.col("run_id").str.contains("Grudger"))
    assert before.equals(after)


@pytest.mark.parametrize("matches", [1, 7, 20])  # of ten pairs and three seeds
def test_batches_change_nothing(monkeypatch, matches):
    whole = frames_of(SHARD)
    monkeypatch.setattr(runner, "_MATCHES_AT_ONCE", matches)
    parts = frames_of(SHARD)
    assert all(whole[table].equals(parts[table]) for table in whole)


def test_columns_and_referee_write_the_same_records(monkeypatch):
    in_columns = frames_of(SHARD)

    def refuse(seeds, pairs, strategies, parameters):
        if pairs:
            raise runner.StrategyError(next(iter({strategies[name] for pair in pairs for name in pair})))
        return columns(seeds, pairs, strategies, parameters)

    columns = runner.play_in_columns
    monkeypatch.setattr(runner, "play_in_columns", refuse)
    refereed = frames_of(SHARD)
    for table, frame in in_columns.items():
        assert frame.equals(refereed[table]), table


@pytest.fixture
def fragile(monkeypatch):
    """A strategy that raises once it has been defected on."""

    def choose(seen):
        if seen.resolved and not seen.theirs().all():
            raise ZeroDivisionError('division of "spoils" by zero\n')
        return seen.always(True)

    monkeypatch.setitem(STRATEGIES, "Fragile", Strategy("Fragile", choose, stochastic=False))


def test_a_player_that_raises_makes_its_match_void_and_the_rest_goes_on(fragile):
    players = tuple(Player(name, "scripted", {"strategy": name}) for name in ("Cooperator", "Fragile", "Defector"))
    shard = replace(SHARD, players=players, seeds=(0, 1), parameters={**SHARD.parameters, "noise": 0.0})
    frames = frames_of(shard)
    endings = {
        run: (ending, reason) for run, ending, reason in frames["runs"].select("run_id", "ending", "end_reason").rows()
    }
    void = {run for run, (ending, _) in endings.items() if ending == "void"}
    assert void == {"study:noisy:0:Fragile:Defector", "study:noisy:1:Fragile:Defector"}
    for run in void:
        assert endings[run][1] == r'ann raised ZeroDivisionError: division of "spoils" by zero\n'
        turns = frames["turns"].filter(run_id=run)
        assert turns.select("round", "agent", "status", "payoff").rows() == [
            (1, "ann", "moved", 0),
            (1, "bob", "moved", 5),
            (2, "ann", "infrastructure", None),
            (2, "bob", "moved", None),
        ]
        assert turns["choice"].to_list() == ["cooperate", "defect", None, None]
    assert frames["runs"]["run_id"].to_list() == [
        f"study:noisy:{seed}:{first}:{second}"
        for seed in (0, 1)
        for first, second in combinations_with_replacement([player.name for player in players], 2)
    ]


def test_a_shard_in_which_everything_raises_is_all_void(fragile):
    def always_raise(seen):
        raise RuntimeError("no")

    STRATEGIES["Fragile"] = replace(STRATEGIES["Fragile"], choose=always_raise)
    frames = frames_of(replace(SHARD, players=(Player("Fragile", "scripted", {"strategy": "Fragile"}),)))
    assert frames["runs"]["ending"].to_list() == ["void"] * 3
    assert frames["turns"]["status"].unique().to_list() == ["infrastructure"]


def test_a_player_may_have_a_name_of_its_own():
    shard = replace(
        SHARD,
        players=(
            Player("Tat", "scripted", {"strategy": "TitForTat"}),
            Player("Tit", "scripted", {"strategy": "TitForTat"}),
        ),
    )
    assert set(frames_of(shard)["turns"]["player"]) == {"Tat", "Tit"}
    assert scripted.STRATEGIES["TitForTat"].name == "TitForTat"
