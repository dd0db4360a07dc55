"""A shard of the fish pool becomes records that say what was played, the same bytes every time, and quickly."""

import asyncio
import json
from io import BytesIO

import polars as pl
import pytest

from fishpool import records, referee
from fishpool.games import commons as rules
from fishpool.players.commons import seat_one
from fishpool.runners import commons as runner
from fishpool.shards import Player, Shard

TALK = {"channels": ["promise", "report", "discuss", "chat"], "audit_q": 0.5, "fine": 2}


def shard(seeds=3, **parameters):
    given = {
        "agents": ["salami", "random", "grim"],
        "twins": ["forced_truth", "binding_promise", "honest"],
    } | parameters
    return Shard("study", "one", "seeds-0", "commons", given, (), 30, tuple(range(seeds)))


def frames(seeds=3, **parameters):
    batches = list(runner.play(shard(seeds, **parameters)))
    return {table: pl.concat([batch[table] for batch in batches]) for table in batches[0]}


def test_frames_have_the_schema_of_their_tables():
    for table, frame in frames(**TALK).items():
        assert dict(frame.schema) == records.schema("commons", table)


def test_the_same_shard_gives_the_same_bytes_however_its_seeds_are_cut():
    def written(parts):
        buffers = {table: BytesIO() for table in records.GAME_TABLES["commons"]}
        for part in parts:
            for batch in runner.play(part):
                for table, frame in batch.items():
                    frame.write_ndjson(buffers[table])
        return {table: buffer.getvalue() for table, buffer in buffers.items()}

    whole = shard(4, **TALK)
    halves = [
        Shard("study", "one", name, "commons", whole.parameters, (), 30, seeds)
        for name, seeds in (("a", (0, 1)), ("b", (2, 3)))
    ]
    assert written([whole]) == written([whole]) == written(halves)


def test_a_run_says_how_it_ended_and_how_many_turns_it_has():
    made = frames(agents=["greedy_liar"] * 3)
    run = made["runs"].row(0, named=True)
    assert (run["run_id"], run["ending"], run["rounds"]) == ("study:one:0", "collapsed", 1)
    assert run["end_reason"] == "collapsed in round 1: 0 tons left, 5 are needed"
    assert (run["n"], run["horizon"], run["sustainable_yield"], run["escapement"]) == (3, 12, 50, 50)
    assert json.loads(run["parameters"]) == shard(agents=["greedy_liar"] * 3).parameters
    assert json.loads(run["agents"]) == {f"agent_{number}": "greedy_liar" for number in (1, 2, 3)}
    turns = made["turns"].group_by("run_id").len()
    assert set(turns["len"]) == {run["turn_records"]} == {9}


def test_a_turn_holds_what_was_said_and_the_typed_columns_what_it_meant():
    made = frames(**TALK, speech="forced_truth")["turns"].filter(
        pl.col("run_id") == "study:one:0", pl.col("round") == 1
    )
    [report] = made.filter(pl.col("phase") == "report", pl.col("player") == "salami").iter_rows(named=True)
    assert json.loads(report["action"]) == {"report": 16, "message": ""}
    assert report["report"] == 17
    [catch] = made.filter(pl.col("phase") == "catch", pl.col("player") == "salami").iter_rows(named=True)
    assert (catch["stock"], catch["fair"], catch["demand"], catch["catch"]) == (100, 16, 17, 17)
    assert (catch["promise"], catch["status"], catch["fallback"]) == (None, "moved", False)
    [talk] = made.filter(pl.col("phase") == "discuss", pl.col("player") == "grim").iter_rows(named=True)
    assert json.loads(talk["trust"]) == {"agent_1": 100, "agent_2": 100}


def test_claims_are_true_or_broken_and_name_what_they_are_held_against():
    claims = frames(agents=["salami", "white_liar"])["claims"].filter(
        pl.col("run_id") == "study:one:0", pl.col("round") == 1
    )
    assert claims.select("agent", "kind", "claimed", "actual", "broken").rows() == [
        ("agent_1", "promise", 25, 26, True),
        ("agent_2", "promise", 25, 23, False),
        ("agent_1", "report", 25, 26, True),
        ("agent_2", "report", 25, 23, True),
    ]
    exact = frames(agents=["white_liar"] * 2, promise_semantics="exact")["claims"]
    assert exact.filter(pl.col("kind") == "promise")["broken"].all()


def test_only_the_twins_that_are_asked_for_are_played():
    assert set(frames(twins=["honest"])["twins"]["twin"]) == {"honest"}
    assert frames(twins=[])["twins"].is_empty()
    assert frames(twins=["forced_truth"], channels=["promise"])["twins"].is_empty()


@pytest.mark.parametrize("agents", [["honest_sustainable"] * 4 + ["salami"], ["random"] * 5])
def test_play_is_fast_enough(agents):
    import time

    started = time.process_time()
    for _ in runner.play(shard(200, agents=agents, twins=[])):
        pass
    assert time.process_time() - started < 200 * 0.006  # 10,000 runs in a minute


# ── With players that are not scripted ───────────────────────────────────────────────────────────────────────────


class Says(referee.Player):
    """Answers each phase with the next of its texts for it; an exception is raised, a number of seconds is waited."""

    repairs = 1

    def __init__(self, **texts):
        self.texts = texts
        self.views = []

    async def act(self, view):
        self.views.append(view)
        said = self.texts.get(view["phase"], ['{"promise": 10, "intention": 10}'])
        text = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(text, Exception):
            raise text
        if isinstance(text, float):
            await asyncio.sleep(text)
        return text


def refereed(player, rounds=2, turn_timeout=5.0, **parameters):
    given = rules.parameters_of({"agents": ["bot", "honest_sustainable"], "rounds": rounds} | parameters)
    seats = [player, seat_one(0, 1, "honest_sustainable")]
    game = asyncio.run(runner.referee_run(given, seats, 0, "name", turn_timeout))
    made = Shard("s", "c", "seeds-0", "commons", {}, (Player("bot", "process", {}),), 30, (0,))
    common = runner._common(made, given)
    frames = runner.refereed_frames(made, "s:c:0", game, common)
    return game, frames["runs"].row(0, named=True), frames["turns"].filter(pl.col("agent") == "agent_1")


def test_an_outsider_plays_beside_scripted_players():
    player = Says(catch=['{"catch": 7}'], report=['{"report": 6}'])
    game, run, turns = refereed(player)
    assert run["ending"] == "completed"
    assert [played.catches for played in game.run.rounds] == [(7, 25), (7, 25)]
    assert turns["status"].unique().to_list() == ["moved"]
    assert turns["report"].drop_nulls().to_list() == [6, 6]


def test_a_view_does_not_tell_study_or_condition():
    name = runner.view_id("s:audited:0")
    assert "audited" not in name
    assert name == runner.view_id("s:audited:0") != runner.view_id("s:audited:1")


def test_an_unreadable_action_is_asked_for_once_more_and_then_stood_in_for():
    player = Says(catch=["lots", '{"catch": 5}', "lots", '{"catch": 5.5}'], report=['{"report": 0}'])
    game, _, turns = refereed(player)
    catches = turns.filter(pl.col("phase") == "catch")
    assert catches["status"].to_list() == ["repaired", "invalid"]
    assert catches["attempts"].to_list() == [2, 2]
    assert catches["fallback"].to_list() == [False, True]
    assert [played.catches[0] for played in game.run.rounds] == [5, 0]
    again = [view["error"] for view in player.views if view["error"]]
    assert len(again) == 2
    assert "not JSON" in again[0]


def test_a_late_action_is_a_timeout_and_the_rules_stand_in():
    game, run, turns = refereed(Says(catch=[0.5], report=['{"report": 0}']), rounds=1, turn_timeout=0.05)
    assert turns.filter(pl.col("phase") == "catch")["status"].to_list() == ["timeout"]
    assert turns.filter(pl.col("phase") == "catch")["fallback"].to_list() == [True]
    assert (run["ending"], game.run.rounds[0].catches[0]) == ("completed", 0)


def test_a_broken_player_voids_the_run_and_its_last_turns_are_kept():
    player = Says(catch=['{"catch": 5}', OSError("the wire is cut")], report=['{"report": 5}'])
    game, run, turns = refereed(player)
    assert (run["ending"], run["rounds"], len(game.run.rounds)) == ("void", 1, 1)
    assert run["end_reason"] == "agent_1 in round 2, catch: raised OSError: the wire is cut"
    assert turns["status"].to_list()[-2:] == ["moved", "infrastructure"]
    assert turns["round"].to_list()[-1] == 2


def test_a_run_that_breaks_in_its_first_turn_has_no_rounds():
    _, run, turns = refereed(Says(pledge=[OSError("gone")]))
    assert (run["ending"], run["rounds"]) == ("void", 0)
    assert turns["status"].to_list() == ["infrastructure"]
