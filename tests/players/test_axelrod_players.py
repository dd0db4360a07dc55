"""The Axelrod library's strategies as players here: every one of them plays, as it would in the library's own match.

The library's player and ours get the same seed and the same noise, so that those who draw are compared as exactly as
the others. Half the choices flipped by noise (0.5) drives both through histories that no pair would reach.
"""

import asyncio
import importlib
import json
import subprocess
import sys

import polars as pl
import pytest

from fishpool.games.prisoners_dilemma import Choice
from fishpool.models.faults import Stop
from fishpool.players import axelrod as players
from fishpool.runners import prisoners_dilemma as runner
from fishpool.seats import Seat
from fishpool.seeds import draw
from fishpool.shards import Player, Shard, Site

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(not players.names(), reason="the Axelrod library is not installed"),
]
PLAYABLE = [name for name in players.names() if name not in players.CHEATS]


@pytest.fixture(scope="module")
def axelrod():
    return importlib.import_module("axelrod")  # here and not above: it takes some 15 s, also where nothing is run


def shard_of(*strategies, rounds=8, noise=0.0, seeds=(0,), condition="plain", scripted=()):
    outside = (Player(f"their-{name}", "axelrod", {"strategy": name}) for name in strategies)
    ours = (Player(name, "scripted", {"strategy": name}) for name in scripted)
    parameters = {"rounds": rounds, "noise": noise, "lane": "standard", "agent_ids": ["ann", "bob"]}
    return Shard("study", condition, "seeds-0", "prisoners_dilemma", parameters, (*outside, *ours), 5.0, tuple(seeds))


def kind_of(shard):
    kind = players.Kind(shard, Site(), shard.players)
    asyncio.run(kind.open())
    return kind


def play(kind, shard, pair, seed=0):
    """Choices carried out, one (first, second) a round, of one refereed match."""
    noise, parameters = shard.parameters["noise"], runner.Parameters(rounds=shard.parameters["rounds"])
    by_name = {player.name: player for player in shard.players}
    seated = {
        agent: kind.seat(by_name[name], Seat("run", seed, agent, number, pair))
        for number, (agent, name) in enumerate(zip(parameters.agent_ids, pair, strict=True))
    }

    def flip(seat, resolved):
        return draw(seed, "noise", *pair, seat, counter=resolved) < noise

    played = asyncio.run(runner.referee_match(seated, parameters, 5.0, flip))
    assert played.match.result.ending == "completed", played.match.result.reason
    return [tuple(past.choices.values()) for past in played.match.history]


def played_by_the_library(axelrod, shard, pair, seed=0):
    """The same with the library's own players facing each other, on our seeds and our noise."""
    strategies = {player.name: player.settings["strategy"] for player in shard.players}
    sides = [getattr(axelrod, strategies[name])() for name in pair]
    noise, rounds = shard.parameters["noise"], shard.parameters["rounds"]
    for seat, side in enumerate(sides):
        side.set_match_attributes(length=rounds, noise=noise)
        side.set_seed(int(draw(seed, "axelrod", *pair, seat) * 2**32))
    first, second = sides
    for resolved in range(rounds):
        chosen = [first.strategy(second), second.strategy(first)]
        flips = [draw(seed, "noise", *pair, seat, counter=resolved) < noise for seat in (0, 1)]
        done = [action.flip() if flip else action for action, flip in zip(chosen, flips, strict=True)]
        first.update_history(*done)
        second.update_history(*reversed(done))
    word = {axelrod.Action.C: Choice.COOPERATE, axelrod.Action.D: Choice.DEFECT}
    return [tuple(word[action] for action in past) for past in zip(first.history, second.history, strict=True)]


def test_the_names_are_the_library_s_and_only_its_cheats_are_refused(axelrod):
    assert list(players.names()) == [strategy.__name__ for strategy in axelrod.all_strategies]
    assert set(players.CHEATS) == {strategy.__name__ for strategy in axelrod.cheating_strategies}
    assert len(PLAYABLE) > 230


def test_names_are_checked_without_importing_the_library():
    code = (
        "import sys; from fishpool.players import axelrod as players;"
        "print(players.fault_of('TitForTat'), players.fault_of('TitForTatt'), 'axelrod' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.startswith("None which is no strategy of Axelrod 4.")
    assert out.endswith("did you mean TitForTat? False\n")


@pytest.mark.parametrize("name", ["Darwin", "MockPlayer", "Human", "MetaPlayer", "__name__", ""])
def test_what_is_no_fair_strategy_is_refused_in_a_sentence(name):
    with pytest.raises(Stop, match=r"^their-.* is axelrod:.*, which (is no strategy|learns) .*") as stop:
        kind_of(shard_of(name))
    assert "\n" not in str(stop.value)


def test_without_the_library_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(players, "names", lambda: ())
    with pytest.raises(Stop, match=r"^their-TitForTat is axelrod:TitForTat, which needs .* pip install"):
        kind_of(shard_of("TitForTat"))


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_every_strategy_plays_as_it_does_in_the_library(axelrod, noise):
    shard = shard_of(*PLAYABLE, rounds=12 if noise else 20, noise=noise)
    kind = kind_of(shard)
    different = []
    for number, name in enumerate(PLAYABLE):
        opponent = "their-Random" if noise else "their-TitForTat"
        pair = (f"their-{name}", opponent) if number % 2 else (opponent, f"their-{name}")
        ours, theirs = (play(kind, shard, pair, number), played_by_the_library(axelrod, shard, pair, number))
        if ours != theirs:
            different.append((name, ours, theirs))
    assert not different


def test_deterministic_strategies_play_the_library_s_own_match(axelrod):
    deterministic = [name for name in PLAYABLE if not axelrod.Classifiers["stochastic"](getattr(axelrod, name)())]
    shard = shard_of(*deterministic, rounds=20)
    kind = kind_of(shard)
    assert len(deterministic) > 130
    word = {axelrod.Action.C: Choice.COOPERATE, axelrod.Action.D: Choice.DEFECT}
    for name, opponent in zip(deterministic, deterministic[7:] + deterministic[:7], strict=True):
        match = axelrod.Match([getattr(axelrod, name)(), getattr(axelrod, opponent)()], turns=20)
        theirs = [tuple(word[action] for action in done) for done in match.play()]
        assert play(kind, shard, (f"their-{name}", f"their-{opponent}")) == theirs, (name, opponent)


def test_a_match_leaves_nothing_behind_for_the_next_one(axelrod):
    shard = shard_of(*PLAYABLE, rounds=8, noise=0.2)
    kind = kind_of(shard)
    for number, name in enumerate(PLAYABLE[::3]):
        before = play(kind, shard, (f"their-{name}", "their-Random"), number)
        play(kind, shard, (f"their-{name}", "their-Defector"), number + 1)
        assert play(kind, shard, (f"their-{name}", "their-Random"), number) == before, name


def test_a_shard_of_all_kinds_is_written_down_and_conditions_share_their_luck(axelrod):
    def choices_of(condition, rounds):
        shard = shard_of(
            "Random", "FirstByJoss", condition=condition, rounds=rounds, seeds=(0, 4), scripted=("TitForTat",)
        )
        frames = list(runner.play(shard))
        runs, turns = (pl.concat([frame[table] for frame in frames]) for table in ("runs", "turns"))
        identified = [json.loads(text) for text in runs["outsiders"] if text]
        assert identified[0] == {"their-Random": {"library": f"axelrod {axelrod.__version__}", "strategy": "Random"}}
        assert runs["ending"].unique().to_list() == ["completed"]
        assert set(turns["status"]) == {"moved"}
        return turns.filter(pl.col("round") <= 6)["choice"].to_list()

    assert choices_of("plain", 6) == choices_of("longer", 9)
