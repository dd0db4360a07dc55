"""A full run makes every table and figure under its strict schema, and a second one nothing."""

import re
from pathlib import Path

import duckdb
import polars as pl
import pytest
import yaml
from workflow_checkout import CONFIG, Checkout

from fishpool import records

pytestmark = pytest.mark.workflow

CONDITIONS = {"plain", "noisy"}
# Tables that every run of the prisoner's dilemma makes, with columns that users rely on.
TABLES = {
    "runs": "run_id study game condition seed ending end_reason rounds winner parameters fishpool_version",
    "turns": "run_id round phase agent player action status fallback attempts choice payoff",
    "validity": "study condition player turns moved repaired invalid timeout infrastructure validity_rate",
    "pd_individual": "run_id study condition seed agent player opponent score opponent_score outcome rounds"
    " cooperation_rate first_move p_c_cc p_c_cd p_c_dc p_c_dd n_cc n_cd n_dc n_dd nice forgiveness retaliation"
    " exploitation",
    "pd_matchups": "study condition player opponent matches mean_score score_low score_high cooperation_rate"
    " mutual_cooperation_rate",
    "pd_ranking": "study condition player matches mean_score score_low score_high rank rank_low rank_high strength",
    "pd_rounds": "study condition player round matches cooperation_rate low high",
    "pd_strategy_shares": "study condition player strategy share low high identifiable",
}
QUESTIONS = ["rq09", "rq10", "rq11"]
ENDINGS = ["svg", "png", "html", "json"]


def made(names, checkout):
    """Those that the workflow makes: all but what is commented out in its rules until it is finished."""
    rules = "".join(file.read_text() for file in checkout.root.glob("workflow/rules/*.smk"))
    return [name for name in names if not re.search(rf'^ *# "{name}":', rules, re.MULTILINE)]


def test_a_full_run_makes_every_file_and_a_second_one_nothing(finished):
    files = {file.relative_to(finished.results).as_posix() for file in finished.results.rglob("*") if file.is_file()}
    for condition in CONDITIONS:
        for shard in ("seeds-0", "seeds-2"):
            assert {f"jsonl/tiny/{condition}/{shard}/{table}.jsonl" for table in ("runs", "turns")} <= files
        assert {f"parquet/{table}/tiny/{condition}.parquet" for table in made(TABLES, finished)} <= files
    figures = {f"figures/{name}.{ending}" for name in made(QUESTIONS, finished) for ending in ENDINGS}
    assert figures | {"fishpool.duckdb", "report.html"} <= files
    assert not [file for file in files if file.endswith(".part")]
    assert finished.snakemake("-n").had_nothing_to_do


def test_every_table_has_its_schema(finished):
    folder = finished.results / "parquet"
    for table, columns in TABLES.items():
        for file in folder.glob(f"{table}/tiny/*.parquet"):
            schema = pl.read_parquet_schema(file)
            assert set(columns.split()) <= schema.keys(), file
            assert pl.Null not in schema.values(), file
            if table in ("runs", "turns"):
                assert schema == records.schema("prisoners_dilemma", table)
    for table in {file.parts[-3] for file in folder.rglob("*.parquet")}:
        schemas = [pl.read_parquet_schema(file) for file in folder.glob(f"{table}/tiny/*.parquet")]
        assert len(schemas) == 2, table
        assert schemas[0] == schemas[1], table


def test_the_database_holds_the_rows_of_every_table(finished):
    folder = finished.results / "parquet"
    tables = {file.parts[-3] for file in folder.rglob("*.parquet")}
    assert {name for (name,) in finished.ask("SELECT table_name FROM duckdb_tables()")} == tables
    for table in tables:
        parquet = duckdb.read_parquet(f"{folder}/{table}/tiny/*.parquet")
        assert sorted(map(repr, finished.ask(f'FROM "{table}"'))) == sorted(map(repr, parquet.fetchall())), table
    said = dict(finished.ask("SELECT table_name, comment FROM duckdb_tables()"))
    assert [table for table, comment in said.items() if not (comment or "").startswith(f"{table}: a row is ")] == []
    seeds, pairs, rounds = 4, 6, 20
    assert finished.ask("SELECT count(*) FROM runs") == [(2 * seeds * pairs,)]
    assert finished.ask("SELECT count(*) FROM turns") == [(2 * seeds * pairs * 2 * rounds,)]


@pytest.mark.parametrize(
    ("config", "change", "sentence"),
    [
        (("only=tinny",), None, r"--config: only is 'tinny', which is no study.*did you mean tiny\?"),
        (("only=tiny",), {"players": ["TitForTwat", "Defector"]}, r"tiny\.yaml: .*'TitForTwat', which is no scripted"),
        (("only=tiny",), {"seeds": -1}, r"tiny\.yaml: studies.tiny.seeds is -1; expected a whole number"),
    ],
    ids=["unknown study", "unknown player", "impossible seeds"],
)
def test_a_wrong_config_starts_nothing(fresh, config, change, sentence):
    fresh.configure(lambda study: study.update(change or {}))
    outcome = fresh.snakemake(config=config)
    assert outcome.code != 0
    assert len(re.findall(sentence, outcome.text)) == 1, outcome.text
    assert "Traceback" not in outcome.text
    assert not outcome.jobs
    assert not fresh.results.exists()


@pytest.mark.parametrize("character", [":", "{", "}"])
def test_a_folder_that_cannot_be_on_a_path_is_refused(fresh, character):
    """With a colon in PYTHONPATH its jobs would have run whichever fishpool was installed."""
    moved = Checkout(fresh.root.rename(fresh.root.with_name(f"check{character}out")))
    outcome = moved.snakemake()
    assert outcome.code != 0
    assert f"{moved.root}: a path with {character} in it cannot be used; move the checkout" in outcome.text
    assert not moved.results.exists()


def test_a_player_that_raises_makes_its_matches_void_and_the_rest_goes_on(fresh):
    fresh.append(
        "fishpool/players/scripted.py",
        """

@_strategy("Moody")
def moody(seen: History) -> np.ndarray:
    if seen.resolved >= 3 and not seen.theirs_in(3).all():
        raise RuntimeError("no more of this")
    return seen.always(True)
""",
    )
    fresh.configure(lambda study: study.update(players=["Cooperator", "Defector", "Moody"]))
    outcome = fresh.snakemake()
    assert outcome.code == 0, outcome.text
    plain = "FROM runs WHERE condition = 'plain'"
    void = fresh.ask(f"SELECT DISTINCT agents, rounds, end_reason {plain} AND ending = 'void'")
    assert len(void) == 1
    note = r"^Note: \d+ of 48 games are void .+, such as tiny:noisy:\d:\w+:Moody \(.+no more of this.*\)\.$"
    assert re.search(note, outcome.text, re.MULTILINE), outcome.text
    assert void[0][:2] == ('{"agent_1": "Defector", "agent_2": "Moody"}', 3)
    assert "RuntimeError" in void[0][2]
    assert "no more of this" in void[0][2]
    assert fresh.ask(f"SELECT count(*) FILTER (ending = 'void'), count(*) FILTER (ending = 'completed') {plain}") == [
        (4, 20)
    ]
    players = "SELECT player, infrastructure FROM validity WHERE condition = 'plain' ORDER BY player"
    assert fresh.ask(players) == [("Cooperator", 0), ("Defector", 0), ("Moody", 4)]
    assert fresh.ask("SELECT count(*) FROM pd_individual WHERE outcome = 'void' AND condition = 'plain'") == [(8,)]


def test_the_small_study_is_what_these_tests_take_it_for():
    config = yaml.safe_load((Path(__file__).parents[2] / CONFIG).read_text())
    study = config["studies"]["tiny"]
    assert (study["seeds"], study["seeds_per_job"], set(study["conditions"])) == (4, 2, CONDITIONS)
