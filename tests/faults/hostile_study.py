"""A study of all three games in which everybody says every hostile text, played for real in one of two ways.

It holds no test. A model on a loopback server, a bot and the strategy documents say the texts; in records of games
that were played elsewhere, everybody is called by them. `make` plays it in this process, `make_by_snakemake` by the
workflow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import yaml
from hostile_texts import SOME, TEXTS

from fishpool import records, shards
from fishpool import study as studies
from fishpool.games.commons import Parameters
from fishpool.report import page
from fishpool.runners import commons, prisoners_dilemma
from fishpool.shards import Player, Shard, Site
from fishpool.tabulate import tabulate

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
sys.path += [str(TESTS / "models"), str(TESTS / "report")]  # last, so that nothing there hides a module of ours

import study_in_a_database  # noqa: E402
from misbehaving import InThread, Misbehaving  # noqa: E402

ROUNDS = 13  # of a pool, in which model and bot say three texts each
KEY = "sk-this-key-is-nowhere-0123456789"

BOT = '''"""A bot that says one text after the other, in its actions and on standard error, with all that it knows."""

import json, os, sys

texts = json.loads(open(sys.argv[1], encoding="utf-8").read())
acted = said = 0
for line in sys.stdin:
    view = json.loads(line)
    phase = view.get("phase")
    acted += 1
    bare, text = texts[acted % len(texts)], texts[said % len(texts)]
    said += phase in ("pledge", "report", "discuss")
    print(bare, dict(os.environ), file=sys.stderr, flush=True)
    if phase is None:
        action = bare if acted % 5 == 0 else {"type": "choose", "choice": "cooperate"}
    elif phase == "pledge":
        action = {"intention": 1, "promise": 1, "message": text}
    elif phase == "catch":
        action = bare if acted % 5 == 0 else {"catch": 2}
    elif phase == "report":
        action = {"report": 1, "message": text}
    else:
        others = [name for name in view["names"] if name != view["agent_id"]]
        action = {"message": text, "accuse": others[:1], "trust": {others[0]: 50}}
    print(json.dumps(action), flush=True)
'''


def answers(texts: Sequence[str], more: str = "") -> Any:
    """What a server of `misbehaving.py` answers: the next text wherever a form has room for one, now and then bare.

    `more` is added to each text where a form does not bound its length.
    """
    said = dict.fromkeys(("message", "reasoning", "bare"), 0)

    def next_text(place: str) -> str:
        said[place] += 1
        return texts[(said[place] - 1) % len(texts)]

    def answer(body: dict[str, Any]) -> str:
        properties = body["format"]["properties"]
        repeated = any(message["role"] == "assistant" for message in body["messages"])
        if "message" not in properties and not repeated and said["bare"] < len(texts) and said["reasoning"] % 2:
            return next_text("bare") + more
        made = {key: _fitting(key, form) for key, form in properties.items()}
        for key in made.keys() & {"reasoning", "message"}:
            made[key] = next_text(key) + (more if key == "reasoning" else "")
        return json.dumps(made, ensure_ascii=False)

    return answer


def _fitting(key: str, form: dict[str, Any]) -> Any:
    if key == "trust":
        return dict.fromkeys(form["properties"], 50)
    if key == "accuse":
        return form["items"]["enum"][:1]
    if "enum" in form:
        return form["enum"][0]
    return 1 if form.get("type") == "integer" or "anyOf" in form else ""


def write_study(root: Path, address: str) -> Path:
    """The config of a study whose model, bot and documents say every text, with all that it needs below `root`."""
    texts = list(TEXTS.values())
    (root / "bots").mkdir()
    (root / "bots" / "sayer.py").write_text(BOT, encoding="utf-8")
    first = ROUNDS * 3 - 1  # the model says those before it, and one that nobody hears, since the game is over
    later = texts[first:] + texts[:first]
    (root / "bots" / "texts.json").write_text(json.dumps(later), encoding="utf-8")
    (root / "strategies").mkdir()
    for number in range(4):
        body = "\n".join(texts[number::4])
        document = f"---\nname: document-{number}\nfamily: hostile\nrule: always_take\n---\n{body}\n"
        (root / "strategies" / f"{number}.md").write_bytes(document.encode())
    bot = {"process": f"{sys.executable} bots/sayer.py bots/texts.json", "name": "sayer", "keep_alive": True}
    model = {"model": "test", "name": "speaker", "max_tokens": 100_000}
    note = TEXTS["html script"] + TEXTS["override"] + TEXTS["vega quotes"] + TEXTS["jinja"]
    server = {"kind": "ollama", "endpoints": [address], "api_key": "HOSTILE_KEY"}
    few = ["Cooperator", "Defector"]
    config = {
        "servers": {"ollama": {**server, "concurrency": 4, "retries": 2}},
        "only": ["pool", "match", "documents", "strangers", "visitors"],
        "figure_format": "pdf",
        "studies": {
            "pool": {
                "game": "commons", "seeds": 1, "note": note, "players": [model, bot],
                "questions": [f"rq0{number}" for number in range(1, 9)],
                "base": {
                    "agents": ["speaker", "sayer", "conditional"], "rounds": ROUNDS, "twins": [], "audit_q": 0.2,
                    "fine": 2, "channels": ["promise", "report", "discuss", "chat"],
                },
                "conditions": {"toString": {}},
            },
            "match": {
                "game": "prisoners_dilemma", "seeds": 1, "strategy_set": few, "note": note,
                "players": ["TitForTat", model, bot],
                "base": {"rounds": 10}, "conditions": {"constructor": {}, "1e5": {"noise": 0.2}},
            },
            "documents": {
                "game": "dictator", "strategies": "strategies", "note": note, "starts": 20, "draws": 2,
                "oracles": ["formal", {**model, "name": "speaker", "replicates": 3}],
            },
            "strangers": {"game": "commons", "recorded": True, "note": note},
            "visitors": {"game": "prisoners_dilemma", "recorded": True, "strategy_set": few, "note": note},
        },
    }  # fmt: skip
    (root / "hostile.yaml").write_text(yaml.safe_dump(config, allow_unicode=False), encoding="utf-8")
    return root / "hostile.yaml"


def write_strangers(results: Path) -> None:
    """Records of games that were played elsewhere, in which everybody's names and ids are texts."""
    names = [TEXTS[name] for name in SOME]
    pairs = list(zip(names, names[1:] + names[:1], strict=True))
    parameters = {"agent_ids": ["agent_1", "agent_2"], "lane": "standard", "noise": 0.1, "rounds": 4}
    players = tuple(Player(name, "scripted", {"strategy": "Random"}) for name in names)
    match = Shard("visitors", "arena", "seeds-0", "prisoners_dilemma", parameters, players, 30, (0,))
    [frames] = prisoners_dilemma.play_pairs(match, pairs, Site())
    _record(results, match, frames, {"agent_2": TEXTS["html image"]})

    names = list(TEXTS.values())
    default = {field.name: getattr(Parameters(), field.name) for field in fields(Parameters)}
    talk = ["promise", "report", "discuss", "chat"]
    for seed in range(0, len(names), 4):
        parameters = {**default, "agents": ["salami", "random", "grim", "white_liar"], "twins": [], "rounds": 4}
        parameters |= {"channels": talk, "audit_q": 0.5, "fine": 1}
        pool = Shard("strangers", "played", f"seeds-{seed}", "commons", parameters, (), 30, (seed,))
        [frames] = commons.play(pool, Site())
        called = dict(zip(parameters["agents"], names[seed : seed + 4], strict=False))
        _record(results, pool, frames, called | {"agent_1": names[seed]})


def _record(results: Path, shard: Shard, frames: dict[str, Any], called: dict[str, str]) -> None:
    """Write a recorded shard with other names, wherever they are: in columns, in JSON, in the ids of runs."""

    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {called.get(key, key): named(item) for key, item in value.items()}
        if isinstance(value, list):
            return [named(item) for item in value]
        return called.get(value, value) if isinstance(value, str) else value

    def renamed(column: str, value: Any) -> Any:
        if column in ("agents", "action", "accuse", "trust", "parameters", "outsiders") and value:
            return json.dumps(named(json.loads(value)), ensure_ascii=False)
        return named(value)

    written = {
        table: records.frame(
            shard.game, table, {name: [renamed(name, value) for value in frame[name]] for name in frame.columns}
        )
        for table, frame in frames.items()
    }
    directory = results / "jsonl" / shard.study / shard.condition / shard.name
    shards.mark_recorded(directory)
    shards.write(directory, shard.tables, [written])


# ── Played ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Made:
    """What playing the study has left below `root`: `said` is all that went to the terminal, `asked` the requests."""

    root: Path
    said: str
    asked: Sequence[dict[str, Any]]

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def database(self) -> Path:
        return self.results / "fishpool.duckdb"


def make(root: Path) -> Made:
    """Play, tabulate, compute, draw and report in this process, as the workflow does it."""
    return _made(root, _in_process)


def make_by_snakemake(root: Path) -> Made:
    """The same by Snakemake, in a copy of the sources."""
    for name in ("config", "workflow", "scripts", "fishpool"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return _made(root, _by_snakemake)


def _made(root: Path, play: Callable[[Path], str]) -> Made:
    errors = [
        {"do": 500, "reason": f"bad key Bearer {KEY} {TEXTS['escape title']}"},
        {"do": 429, "reason": f"slow down {KEY}", "headers": {"X-Echo": f"Bearer {KEY}"}},
    ]
    said = answers(list(TEXTS.values()), f" Authorization: Bearer {KEY}")
    server = InThread(Misbehaving(errors, answer=said))
    before = Path.cwd()
    try:
        os.environ["HOSTILE_KEY"] = KEY
        config = write_study(root, server.url)
        write_strangers(root / "results")
        os.chdir(root)  # where bots and documents are
        said = play(config)
    finally:
        os.chdir(before)
        del os.environ["HOSTILE_KEY"]
        server.close()
    assert all(headers["authorization"] == f"Bearer {KEY}" for headers in server.server.headers)
    return Made(root, said, server.server.bodies)


def _by_snakemake(config: Path) -> str:
    command = [sys.executable, "-m", "snakemake", "--configfile", config.name, "--cores", "2", "--printshellcmds"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


def _in_process(config: Path) -> str:
    given = studies.load_files([config])
    results = Path(given.results)
    site = Site(given.servers, given.journal, given.offline, str(results / "logs" / "players"))
    asked: dict[str, dict[str, dict[str, list[str]]]] = {}
    frames: dict[str, list[pl.DataFrame]] = {}
    for one in given.studies:
        for condition in one.conditions:
            folders = []
            for shard in one.shards(condition):
                folders.append(results / "jsonl" / one.name / condition.name / shard.name)
                if condition.recorded is None:
                    runner = import_module(f"fishpool.runners.{shard.game}")
                    shards.write(folders[-1], shard.tables, runner.play(shard, site))
            for table in condition.tables:
                file = results / "parquet" / table / one.name / f"{condition.name}.parquet"
                file.parent.mkdir(parents=True, exist_ok=True)
                tabulate(one.game, table, folders, file)
                frames.setdefault(table, []).append(pl.read_parquet(file))
            for question in one.questions or QUESTIONS[one.game]:
                asked.setdefault(question, {}).setdefault(one.name, []).append(condition.name)
    database = results / "fishpool.duckdb"
    whole = {table: pl.concat(some, how="diagonal") for table, some in frames.items()}
    study_in_a_database.collected(whole, database, [])
    study_in_a_database.drawn(database, results / "figures", asked, ("svg", "png", "html", "json", "pdf"))
    notes = {one.name: one.note for one in given.studies}
    page.build(database, results / "figures", asked, results / "report.html", notes=notes)
    return ""


QUESTIONS = {
    "commons": (),
    "prisoners_dilemma": ("rq09", "rq10", "rq11"),
    "dictator": ("rq12", "rq13", "rq14"),
}
