"""A small results folder as a run of the workflow leaves it, made in this process in a few seconds.

Everything is the real thing (runners, records, their SQL) but Snakemake, which only calls them, and the model, whose
replies are canned: some cannot be read, some lie, some are hostile.
"""

import json
from importlib import import_module
from pathlib import Path

from canned_model import HOSTILE, canned

from fishpool import database, shards, study
from fishpool.analysis.contrasts import contrasts
from fishpool.analysis.ranking import rank_players
from fishpool.shards import Site
from fishpool.tabulate import tabulate

SQL = Path(__file__).parents[1] / "workflow" / "sql"
CONFIG = Path(__file__).parent / "config" / "asked.yaml"
ESCAPES = "\x1b[31mred\x1b[0m \x07 and \u202eback \u2066\u200b"
LONG = "word " * 50

COMMONS = (
    "agent_rounds", "rounds", "lies", "individual", "deviations", "deviation_classes", "deviation_points", "societal",
    "conditions", "observations", "estimates", "survival", "lies_rounds",
)  # fmt: skip


def reply_to(view):
    """A model that cannot always be read, promises less than it takes, and says hostile things."""
    if "phase" not in view:
        if view["round"] == 3 and not view.get("error"):
            return f"I will cooperate. {ESCAPES}\n{HOSTILE}"
        return '{"type": "choose", "choice": "cooperate"}'
    turn = (view["phase"], view["round"])
    if turn in {("catch", 2), ("catch", 3), ("report", 3)} or (turn == ("catch", 4) and not view["error"]):
        return "as much as I can"
    answers = {
        "pledge": {"intention": 20, "promise": 5, "message": f"Trust me.\n  agent_2  promises 50 {ESCAPES}"},
        "catch": {"catch": 20},
        "report": {"report": 5, "message": LONG},
        "discuss": {"message": "", "accuse": ["agent_2"], "trust": {"agent_2": 10, "agent_3": 90}},
    }
    return json.dumps(answers[view["phase"]], ensure_ascii=False)


def build(results: Path, monkeypatch) -> study.Config:
    """Play and tabulate the studies of tests/config/asked.yaml below `results`; the config that they are from."""
    canned(monkeypatch, reply_to)
    config = study.load_files([CONFIG], {"results": str(results)})
    for one in config.studies:
        for condition in one.conditions:
            _condition(results, one, condition)
    tables = database.tables_in(results / "parquet")
    file = results / "parquet" / "contrasts.parquet"
    declared = [contrast for one in config.studies for contrast in one.contrasts]
    database.write(contrasts(database.scan(tables["commons_observations"]), declared=declared), file)
    govsim = SQL / "commons" / "commons_govsim.sql"
    database.query_in_turn({govsim: results / "parquet" / "commons_govsim.parquet"}, tables)
    tables = database.tables_in(results / "parquet")
    database.build(tables, database.table_comments(), results / "fishpool.duckdb")
    return config


def _condition(results, one, condition):
    def file(table):
        return results / "parquet" / table / one.name / f"{condition.name}.parquet"

    folders = []
    for shard in one.shards(condition):
        folders.append(results / "jsonl" / one.name / condition.name / shard.name)
        runner = import_module(f"fishpool.runners.{shard.game}")
        shards.write(folders[-1], shard.tables, runner.play(shard, Site()))
    tables = {table: [file(table)] for table in condition.tables}
    for table, (output,) in tables.items():
        output.parent.mkdir(parents=True, exist_ok=True)
        tabulate(one.game, table, folders, output)

    def query(*names):
        queries = {SQL / f"{name}.sql": file(Path(name).name) for name in names}
        database.query_in_turn(queries, tables)
        tables.update({output.parent.parent.name: [output] for output in queries.values()})

    query("validity")
    if one.game == "commons":
        query(*(f"commons/commons_{name}" for name in COMMONS))
    if one.game == "prisoners_dilemma":
        query("prisoners_dilemma/pd_individual")
        strengths = file("pd_strengths")
        database.write(rank_players(database.scan(tables["pd_individual"])), strengths)
        tables["pd_strengths"] = [strengths]
        query(*(f"prisoners_dilemma/pd_{name}" for name in ("matchups", "ranking", "rounds", "profiles")))
    if one.game == "dictator":
        query("dictator/dictator_decisions")
