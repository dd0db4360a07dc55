"""A replay holds a run as the records have it, turn by turn, whatever order a query gives them."""

import json

import duckdb
import pytest
from canned_model import HOSTILE, canned

from fishpool import replay
from fishpool.runners import commons, prisoners_dilemma
from fishpool.shards import Player, Shard, Site

MODEL = Player("model", "model", {})
SCRIPTED = Player("TitForTat", "scripted", {"strategy": "TitForTat"})


def database(frames, tmp_path):
    file = tmp_path / "fishpool.duckdb"
    with duckdb.connect(str(file)) as connection:
        for table, frame in frames.items():
            connection.register("frame", frame.sample(fraction=1, shuffle=True, seed=1).to_arrow())
            connection.execute(f"CREATE TABLE {table} AS FROM frame")
    return file


def match(monkeypatch, reply_to):
    canned(monkeypatch, reply_to)
    parameters = {"agent_ids": ["agent_1", "agent_2"], "lane": "standard", "noise": 0.0, "rounds": 3}
    shard = Shard("study", "plain", "seeds-0", "prisoners_dilemma", parameters, (MODEL, SCRIPTED), 30, (0,))
    return next(prisoners_dilemma.play(shard, Site()))


def pool(monkeypatch, reply_to, **parameters):
    canned(monkeypatch, reply_to)
    given = {"agents": ["model", "salami", "honest_sustainable"], "rounds": 4, "twins": []} | parameters
    shard = Shard("study", "pool", "seeds-0", "commons", given, (MODEL,), 30, (0,))
    return next(commons.play(shard, Site()))


def test_a_pool_is_replayed_round_by_round_with_its_stock_and_its_lies(monkeypatch, tmp_path):
    def reply_to(view):
        answers = {
            "pledge": {"intention": 30, "promise": 10, "message": HOSTILE},
            "catch": {"catch": 30},
            "report": {"report": 10, "message": ""},
            "discuss": {"message": "we are fishing too much"},
        }
        return json.dumps(answers[view["phase"]])

    frames = pool(monkeypatch, reply_to, channels=["promise", "report", "chat"])
    run = replay.load_run(database(frames, tmp_path), "study:pool:0")

    assert [played.number for played in run.rounds] == list(range(1, len(run.rounds) + 1))
    assert [phase.name for phase in run.rounds[0].phases] == ["pledge", "catch", "report", "discuss"]
    pledge, catch, report, _ = run.rounds[0].phases
    assert [turn.agent for turn in catch.turns] == ["agent_1", "agent_2", "agent_3"]
    assert run.rounds[0].stock == 100
    assert run.rounds[0].remaining == 100 - sum(turn.values["catch"] for turn in catch.turns)
    assert pledge.turns[0].message == HOSTILE
    assert pledge.turns[0].lies == (replay.Claim("promise", 10, 30, True),)
    assert report.turns[0].lies == (replay.Claim("report", 10, 30, True),)
    assert catch.turns[2].lies == ()
    assert pledge.turns[0].replies[0].messages[0][1].endswith(HOSTILE)
    assert run.run["agents"] == {"agent_1": "model", "agent_2": "salami", "agent_3": "honest_sustainable"}
    assert run.run["outsiders"]["model"]["digest"] == "0" * 64


def test_every_turn_claim_and_reply_of_a_run_is_replayed_once(monkeypatch, tmp_path):
    def reply_to(view):
        if view["phase"] == "catch" and not view.get("error"):
            return "as much as I can"
        answers = {
            "pledge": {"intention": 5, "promise": 5, "message": ""},
            "catch": {"catch": 5},
            "report": {"report": 5, "message": ""},
        }
        return json.dumps(answers[view["phase"]])

    frames = pool(monkeypatch, reply_to)
    run = replay.load_run(database(frames, tmp_path), "study:pool:0")
    assert len(run.turns) == len(frames["turns"])
    assert sum(len(turn.claims) for turn in run.turns) == len(frames["claims"])
    assert sum(len(turn.replies) for turn in run.turns) == len(frames["replies"])
    repaired = [turn for turn in run.turns if turn.status == "repaired"]
    assert {turn.attempts for turn in repaired} == {2}
    first, second = repaired[0].replies
    assert (first.attempt, first.reading, first.text) == (1, "invalid", "as much as I can")
    assert first.fault
    assert (second.attempt, second.fault) == (2, "")


def test_a_forfeited_match_ends_with_the_replies_that_were_no_action(monkeypatch, tmp_path):
    def reply_to(view):
        return "I cooperate." if view["round"] == 2 else '{"type": "choose", "choice": "cooperate"}'

    run = replay.load_run(database(match(monkeypatch, reply_to), tmp_path), "study:plain:0:model:TitForTat")
    assert run.run["ending"] == "forfeited"
    assert run.run["winner"] == "agent_2"
    last = run.rounds[-1].turns[0]
    assert (last.status, last.action, last.attempts) == ("invalid", None, 2)
    assert [reply.text for reply in last.replies] == ["I cooperate."] * 2
    assert last.fault == last.replies[-1].fault != ""
    assert run.rounds[0].turns[1].values == {"choice": "cooperate", "flipped": False, "payoff": 3}
    assert run.rounds[-1].stock is None


def test_an_unknown_run_is_named_with_the_nearest_one(monkeypatch, tmp_path):
    file = database(match(monkeypatch, lambda view: '{"type": "resign"}'), tmp_path)
    with pytest.raises(replay.UnknownRun) as raised:
        replay.load_run(file, "study:plain:0:model:TitForTa'; DROP TABLE runs; --")
    assert raised.value.args[0].endswith("did you mean study:plain:0:model:TitForTat?")


def test_records_without_tables_for_claims_and_replies_are_replayed_too(tmp_path):
    parameters = {"agent_ids": ["agent_1", "agent_2"], "lane": "standard", "noise": 0.0, "rounds": 3}
    players = (SCRIPTED, Player("Defector", "scripted", {"strategy": "Defector"}))
    shard = Shard("study", "plain", "seeds-0", "prisoners_dilemma", parameters, players, 30, (0,))
    file = database(next(prisoners_dilemma.play(shard, Site())), tmp_path)
    with duckdb.connect(str(file), read_only=True) as connection:
        ids = ["study:plain:0:Defector:Defector", "study:plain:0:TitForTat:Defector"]
        runs = replay.load_runs(connection, ids)
    assert [run.run_id for run in runs] == ids
    assert [turn.values["choice"] for turn in runs[1].turns][:4] == ["cooperate", "defect", "defect", "defect"]
