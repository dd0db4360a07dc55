"""What a study asks of its models: counts that add up, an upper bound that is one, nothing for a replay."""

from dataclasses import replace

import pytest

from fishpool.costs import estimate
from fishpool.shards import Player
from fishpool.study import Condition, Config, Study, load_files


def model(name, server="llamacpp", **settings):
    return Player(name, "model", {"server": server, "name": name, "max_tokens": 100, **settings})


def config(*conditions, seeds=(0, 1, 2)):
    study = Study("s", conditions[0].game, seeds, 50, conditions, conditions[0].players, ())
    return Config("results", (study,), (study,), {})


def meeting(*players, rounds=10, replay=None, prompts="config/prompts"):
    return Condition("s", "c", "prisoners_dilemma", {"rounds": rounds, "prompts": prompts}, players, 30.0, (), replay)


def pool(**parameters):
    """A fish pool with the default values of the parameters that are not given."""
    defaults = load_files([]).configured
    usual = next(study for study in defaults if study.game == "commons").conditions[0]
    given = {**usual.parameters, "prompts": "config/prompts", **parameters}
    return Condition("s", "c", "commons", given, (model("a"), model("b")), 30.0)


SCRIPTED = Player("tit_for_tat", "scripted", {"strategy": "tit_for_tat"})


def test_two_models_share_the_calls_of_a_study_evenly():
    one, other = estimate(config(meeting(model("a"), model("b", max_tokens=7), SCRIPTED)))
    # 4 seats each (self-play has two), 10 rounds, 3 seeds
    assert (one.model, one.calls, one.tokens_out) == ("a", 120, 12_000)
    assert (other.model, other.calls, other.tokens_out) == ("b", 120, 840)


def test_a_pool_asks_each_model_as_often_as_it_has_agents():
    condition = pool(agents=["a", "salami", "b", "b"], channels=["promise"], rounds=6)
    assert [cost.calls for cost in estimate(config(condition))] == [2 * 6 * 3, 2 * 2 * 6 * 3]
    assert sum(cost.calls for cost in estimate(config(condition))) == 3 * condition.model_calls_per_seed


def test_an_oracle_is_asked_about_every_pair_with_both_documents(tmp_path):
    files = [tmp_path / f"{name}.md" for name in "abc"]
    for file in files:
        file.write_text("x" * 4000)
    oracle = model("o", replicates=5)
    condition = Condition(
        "s", "c", "dictator", {"self_play": True, "prompts": "config/prompts"}, (oracle,), 0.0, tuple(map(str, files))
    )
    (cost,) = estimate(config(condition, seeds=(0,)))
    assert cost.calls == 9 * 5
    assert cost.tokens_in == pytest.approx(45 * (8000 + 1000) / 3.5, rel=0.05)


def test_longer_games_and_more_talk_take_more_tokens():
    short, long = (estimate(config(meeting(model("a"), rounds=rounds)))[0] for rounds in (10, 20))
    assert long.calls == 2 * short.calls
    assert long.tokens_in > 2 * short.tokens_in
    quiet, chatty = (estimate(config(pool(agents=["a", "b"], channels=there)))[0] for there in (["report"], ["chat"]))
    assert chatty.tokens_in / chatty.calls > 1.5 * quiet.tokens_in / quiet.calls


def test_the_estimate_is_near_what_the_models_tokenizer_counted():
    """Six games of five rounds and 30 calls on Gemma 3, which counted 13,116 tokens in."""
    (cost,) = estimate(config(meeting(model("a"), SCRIPTED, rounds=5), seeds=(0, 1)))
    assert cost.calls == 30
    assert cost.tokens_in == pytest.approx(13_116, rel=0.1)


def test_a_replay_and_scripted_players_ask_nobody():
    live = meeting(model("a"))
    assert estimate(config(replace(live, replay="x.jsonl.xz"))) == ()
    assert estimate(config(meeting(SCRIPTED))) == ()
    assert len(estimate(config(live))) == 1
