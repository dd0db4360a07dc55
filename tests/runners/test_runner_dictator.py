"""A tournament as records: what is written for every answer, and for none."""

import json
from pathlib import Path

import polars as pl

from fishpool import study
from fishpool.runners.dictator import play

NINE = Path(__file__).parents[2] / "config" / "strategies"


def frames(oracle="published", **keys):
    given = {"game": "dictator", "strategies": str(NINE), "oracles": [oracle]} | keys
    (one,) = study.load({"studies": {"t": given}}).studies
    (shard,) = one.shards(one.conditions[0])
    (batch,) = play(shard)
    return batch["runs"], batch["turns"]


def test_a_round_is_one_answer_about_one_pair():
    runs, turns = frames()
    assert runs["rounds"][0] == turns.height == 3 * 81
    assert runs["winner"][0] == "mirror"
    assert turns["round"].to_list() == list(range(1, 244))
    assert set(turns["status"]) == {"moved"}
    assert json.loads(turns["action"][0]) == {"decision": turns["decision"][0]}


def test_what_is_received_adds_up_to_the_endowment_also_where_it_is_odd():
    _, turns = frames(endowment=61)
    assert (turns["dictator_value"] + turns["recipient_value"] == 61).all()
    assert set(turns.filter(pl.col("decision") == "SHARE")["dictator_value"]) == {30.5}
    assert set(turns.filter(pl.col("decision") == "TAKE")["recipient_value"]) == {0.0}


def test_without_self_play_nobody_meets_its_copy():
    _, turns = frames(self_play=False)
    assert turns.height == 3 * 72
    assert turns.filter(pl.col("agent") == pl.col("recipient")).is_empty()


def test_the_formal_oracle_says_which_cells_it_chooses():
    _, turns = frames("formal")
    assert turns["chosen"].sum() == 9
    assert frames()[1]["chosen"].null_count() == 3 * 81


def test_no_readable_answer_is_an_invalid_turn_without_a_decision(tmp_path):
    path = tmp_path / "holes.csv"
    names = sorted(file.stem for file in NINE.glob("*.md"))
    rows = [f"{a},{b},{'' if a == b == 'mirror' else 'SHARE'}" for a in names for b in names]
    path.write_text("dictator,recipient,decision\n" + "\n".join(rows) + "\n")
    runs, turns = frames({"decisions": str(path)})
    (hole,) = turns.filter(pl.col("decision").is_null()).to_dicts()
    assert (hole["agent"], hole["recipient"], hole["status"], hole["action"]) == ("mirror", "mirror", "invalid", None)
    assert hole["dictator_value"] is None
    assert runs["winner"][0] is None
    assert runs["end_reason"][0] == "decisions that are missing: 1"
