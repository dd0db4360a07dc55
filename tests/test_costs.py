"""What a study asks of its models: counts that add up, an upper bound that is one, nothing for a replay."""

from dataclasses import replace

import pytest

from fishpool.costs import estimate
from fishpool.shards import Player
from fishpool.study import Condition, Config, Study


def model(name, server="llamacpp", **settings):
    return Player(name, "model", {"server": server, "name": name, "max_tokens": 100, **settings})


def config(*conditions, seeds=(0, 1, 2)):
    study = Study("s", conditions[0].game, seeds, 50, conditions, conditions[0].players, ())
    return Config("results", (study,), (study,), {})


def meeting(*players, rounds=10, replay=None, files=()):
    return Condition("s", "c", "prisoners_dilemma", {"rounds": rounds}, players, 30.0, files, replay)


SCRIPTED = Player("tit_for_tat", "scripted", {"strategy": "tit_for_tat"})


def test_two_models_share_the_calls_of_a_study_evenly():
    one, other = estimate(config(meeting(model("a"), model("b", max_tokens=7), SCRIPTED)))
    # 4 seats each (self-play has two), 10 rounds, 3 seeds
    assert (one.model, one.calls, one.tokens_out) == ("a", 120, 12_000)
    assert (other.model, other.calls, other.tokens_out) == ("b", 120, 840)


def test_a_pool_asks_each_model_as_often_as_it_has_agents():
    parameters = {"agents": ["a", "salami", "b", "b"], "channels": ["promise"], "rounds": 6, "memory": "public"}
    condition = Condition("s", "c", "commons", parameters, (model("a"), model("b")), 30.0)
    assert [cost.calls for cost in estimate(config(condition))] == [2 * 6 * 3, 2 * 2 * 6 * 3]
    assert sum(cost.calls for cost in estimate(config(condition))) == 3 * condition.model_calls_per_seed


def test_an_oracle_is_asked_about_every_pair_with_both_documents(tmp_path):
    files = [tmp_path / f"{name}.md" for name in "abc"]
    for file in files:
        file.write_text("x" * 4000)
    oracle = model("o", replicates=5)
    condition = Condition("s", "c", "dictator", {"self_play": True}, (oracle,), 0.0, tuple(map(str, files)))
    (cost,) = estimate(config(condition, seeds=(0,)))
    assert cost.calls == 9 * 5
    assert cost.tokens_in == pytest.approx(45 * 2000, rel=0.01)


def test_longer_games_and_longer_rules_take_more_tokens(tmp_path):
    rules = tmp_path / "rules.txt"
    rules.write_text("r" * 4000)
    short, long, ruled = (
        estimate(config(condition))[0]
        for condition in (
            meeting(model("a"), rounds=10),
            meeting(model("a"), rounds=20),
            meeting(model("a"), rounds=10, files=(str(rules),)),
        )
    )
    assert long.calls == 2 * short.calls
    assert long.tokens_in > 2 * short.tokens_in
    assert ruled.tokens_in == short.tokens_in + 1000 * short.calls


def test_a_replay_and_scripted_players_ask_nobody():
    live = meeting(model("a"))
    assert estimate(config(replace(live, replay="x.jsonl.xz"))) == ()
    assert estimate(config(meeting(SCRIPTED))) == ()
    assert len(estimate(config(live))) == 1
