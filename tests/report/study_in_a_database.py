"""A small study of all three games in a database as the workflow collects it, and its figures, for tests of the report.

Everything is played by the real runners and computed by the real metrics; only a model's replies are given. Names of
players and what they say are hostile.
"""

import json
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import duckdb
import polars as pl
from built_results import COMMONS
from canned_model import HOSTILE, canned

from fishpool.analysis import ranking, strategy_frequencies
from fishpool.analysis.contrasts import contrasts
from fishpool.analysis.dictator import Settings, compare_oracles, dictator_tables, read_pools
from fishpool.analysis.inference import register
from fishpool.figures.files import save
from fishpool.games.commons import Parameters
from fishpool.runners import commons, dictator, prisoners_dilemma
from fishpool.shards import Player, Shard, Site

ROOT = Path(__file__).parents[2]
SQL = ROOT / "workflow" / "sql"
MODEL = Player("<b>model</b>", "model", {})
ASKED = {
    **{f"rq{number:02}": {"pool": ["silent", "allow"]} for number in range(1, 9)},
    **{f"rq{number:02}": {"pairs": ["plain", "noisy"]} for number in (9, 10, 11)},
    **{f"rq{number:02}": {"open": ["published", "formal"]} for number in (12, 13, 14)},
}


def answer(view):
    """A model that lies in the pool, is wordy now and then, and says nothing readable at last."""
    if "phase" not in view:
        return "I cooperate." if view["round"] == 3 else '{"type": "choose", "choice": "cooperate"}'
    answers = {
        "pledge": {"intention": 12, "promise": 5, "message": HOSTILE},
        "catch": {"catch": 12},
        "report": {"report": 4, "message": ""},
        "discuss": {"message": "Fine."},
    }
    said = json.dumps(answers[view["phase"]])
    return said if view.get("error") or view["phase"] != "catch" else f"Let me think. {HOSTILE}"


def played(monkeypatch):
    """The record frames of all shards by table."""
    canned(monkeypatch, answer)
    scripted = tuple(Player(name, "scripted", {"strategy": name}) for name in ("TitForTat", "Random", "Defector"))
    shards = [
        (
            prisoners_dilemma,
            Shard(
                "pairs", condition, "seeds-0", "prisoners_dilemma",
                {"agent_ids": ["agent_1", "agent_2"], "lane": "standard", "noise": noise, "rounds": 4},
                (*scripted, MODEL) if condition == "plain" else scripted, 30, (0, 1, 2),
            ),
        )
        for condition, noise in (("plain", 0.0), ("noisy", 0.1))
    ]  # fmt: skip
    talk = ["promise", "report", "chat"]
    default = {field.name: getattr(Parameters(), field.name) for field in fields(Parameters)}
    for permission in ("silent", "allow"):
        parameters = {
            **default, "agents": [MODEL.name, "salami", "random", "honest_sustainable"], "rounds": 4, "twins": [],
            "channels": talk, "permission": permission, "audit_q": 0.2, "fine": 2,
        }  # fmt: skip
        shard = Shard("pool", permission, "seeds-0", "commons", parameters, (MODEL,), 30, (0, 1, 2, 3))
        shards.append((commons, shard))
    for oracle in ("published", "formal"):
        parameters = {
            "decisions": None, "endowment": 60.0, "oracle": oracle, "self_play": True,
            "strategies": str(ROOT / "config/strategies"), "utility": "log",
        }  # fmt: skip
        shards.append(
            (
                dictator,
                Shard("open", oracle, "seeds-0", "dictator", parameters, (Player(oracle, oracle, {}),), 30, (0,)),
            )
        )
    frames = {}
    for runner, shard in shards:
        for batch in runner.play(shard, Site()):
            for table, frame in batch.items():
                frames.setdefault(table, []).append(frame)
    return {table: pl.concat(some, how="diagonal") for table, some in frames.items()}


DECLARED = [
    {"question": "rq02, rq05", "study": "pool", "metric": metric, "a": "allow", "b": "silent"}
    for metric in ("efficiency", "broken_rate")
]


def collected(frames, file, declared=DECLARED):
    """A database file of the frames with all metric tables."""
    with duckdb.connect(str(file)) as connection:
        register(connection)

        def add(table, frame):
            connection.register("frame", frame.to_arrow())
            connection.execute(f"CREATE TABLE {table} AS FROM frame")
            connection.unregister("frame")

        def query(path):
            connection.sql((SQL / f"{path}.sql").read_text(encoding="utf-8")).create(Path(path).name)

        for table, frame in frames.items():
            add(table, frame)
        _metrics(connection, add, query, declared)
    return file


def _metrics(connection, add, query, declared):
    def of(table):
        return connection.table(table).pl()

    connection.execute("ALTER TABLE runs RENAME TO every_run")
    connection.execute("ALTER TABLE turns RENAME TO every_turn")
    for game, metrics in (
        ("prisoners_dilemma", ("pd_individual",)),
        ("commons", tuple(f"commons_{metric}" for metric in COMMONS)),
        ("dictator", ("dictator_decisions",)),
    ):
        connection.execute(f"CREATE VIEW runs AS FROM every_run WHERE game = '{game}'")
        connection.execute("CREATE VIEW turns AS SELECT t.* FROM every_turn AS t JOIN runs USING (run_id)")
        for metric in metrics:
            query(f"{game}/{metric}")
        connection.execute("DROP VIEW turns")
        connection.execute("DROP VIEW runs")
    connection.execute("ALTER TABLE every_run RENAME TO runs")
    connection.execute("ALTER TABLE every_turn RENAME TO turns")
    query("validity")
    individual = of("pd_individual").lazy()
    add("pd_strengths", ranking.rank_players(individual))
    turns = (
        connection.sql("SELECT t.* FROM turns AS t JOIN runs USING (run_id) WHERE game = 'prisoners_dilemma'")
        .pl()
        .lazy()
    )
    add(
        "pd_strategy_shares",
        strategy_frequencies.shares_of_players(turns, individual, strategy_set=["Cooperator", "Defector", "TitForTat"]),
    )
    for metric in ("pd_matchups", "pd_ranking", "pd_rounds", "pd_profiles"):
        query(f"prisoners_dilemma/{metric}")
    decisions = of("dictator_decisions")
    settings = Settings(starts=60, sweep_starts=5, type_starts=5, draws=2)
    for table, frame in dictator_tables(read_pools(decisions, settings)).items():
        add(table, frame)
    add("dictator_agreement", compare_oracles(decisions.lazy()))
    add("contrasts", contrasts(of("commons_observations").lazy(), declared))


def drawn(database, folder, asked=ASKED, formats=("svg", "png", "html", "json")):
    """The figures of all questions, each over the studies that ask it."""
    with duckdb.connect(str(database), read_only=True) as connection:
        for key, studies in asked.items():
            chart = import_module(f"fishpool.figures.{key}").chart
            names = chart.__code__.co_varnames[: chart.__code__.co_argcount]
            tables = {name: connection.table(name).pl() for name in names}
            save(chart(**{name: _of(table, studies) for name, table in tables.items()}), folder / key, formats)


def _of(table, studies):
    """The rows of some studies, in a table that says of which one a row is."""
    return table.filter(pl.col("study").is_in(list(studies))) if "study" in table.columns else table
