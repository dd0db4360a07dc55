"""Configs in great numbers: a valid one loads and runs, a broken one is sentences and exit code 2, none is executed.

Valid ones are made from the schema, so that each key with its limits is among them; broken ones are those with changes,
or their text with mutations. `fishpool check` is asked in this process, Snakemake itself a few times.
"""

import contextlib
import copy
import io
import json
import os
import random
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from canned_model import canned
from effort import EFFORT
from fault_mutations import mutated
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fishpool import cli, guard, study
from fishpool.games import commons
from fishpool.players import model as models
from fishpool.players.commons import PLAYERS
from fishpool.players.scripted import STRATEGIES
from fishpool.shards import Shard, Site
from fishpool.study import Config, ConfigError

pytestmark = pytest.mark.faults

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = yaml.safe_load(study.SCHEMA.read_text(encoding="utf-8"))
DEFINED = SCHEMA["$defs"]


def campaign(examples: int) -> Any:
    return settings(
        max_examples=examples * EFFORT, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate],
    )  # fmt: skip


# ── Valid configs, from the schema ───────────────────────────────────────────────────────────────────────────────

LONGEST = "Name-of-64-characters_Name-of-64-characters_and-nothing-repeats_"
NAMES = st.sampled_from(["a", "B-2", "0", LONGEST, "x" * 19, "no", "null", "plain_1", "TRUE"])
FOLDERS = st.sampled_from(
    ["out", "../out", ".", "/tmp/a b", "größe", "a@b=c,d:e+f-g", "x" * 255, "/".join(["ö" * 100] * 9)]
)
LANES = ("fast", "standard")
SMALL = {  # so that a config can be played in no time
    "rounds": st.integers(1, 4),
    "seeds": st.integers(1, 2) | st.lists(st.sampled_from([0, 7, 2**63 - 1]), min_size=1, max_size=2, unique=True),
    "capacity": st.integers(1, 60),
    "starts": st.integers(10, 30),
    "draws": st.integers(2, 4),
}
# Values where type and range say too little.
OWN: dict[str, st.SearchStrategy[Any]] = {
    "results": FOLDERS,
    "journal": st.none() | FOLDERS,
    "seeds": st.sampled_from([1, 200.0, 20_000])
    | st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=9, unique=True),
    "note": st.text(max_size=500),
    "replay": st.none() | st.just("config/replays/none.jsonl.xz").filter(lambda name: (ROOT / name).exists()),
    "lane": st.sampled_from(LANES),
    "prompts": st.just("config/prompts"),
    "agent_ids": st.sampled_from([["agent_1", "agent_2"], ["b", "a"], ["0", "no"], [LONGEST, LONGEST.swapcase()]]),
    "labels": st.sampled_from([["A", "B"], ["B", "A"], ["stay", "x" * 32], ["0", "1"]]),
    "reveal": st.sampled_from(["hidden", "true", True]),
    "agents": st.lists(st.sampled_from([*sorted(PLAYERS), "2*salami", "3*random"]), min_size=1, max_size=4),
    "channels": st.lists(st.sampled_from([channel.value for channel in commons.Channel]), unique=True),
    "twins": st.lists(st.sampled_from(["forced_truth", "binding_promise", "honest"]), unique=True),
    "growth": st.sampled_from([1.0000001, 1.1, 2, 2.0, 3.7, 1000]),
    "strategy_set": st.lists(
        st.sampled_from([name for name, one in STRATEGIES.items() if not one.stochastic]),
        min_size=2, max_size=4, unique=True,
    ),
    "strategies": st.just("config/strategies"),
    "betas": st.lists(st.sampled_from([1, 5, 20, 0.001, 1000]), min_size=1, max_size=3, unique=True),
    "digest": st.none() | st.text(max_size=200),
    "model": st.sampled_from(["llama3.1:8b", "openai/gpt-oss-20b", "llamacpp/gemma3-270m", "a b", "x" * 300]),
    "process": st.sampled_from(["python3 bot.py", "sh 'a b.sh' --fast", "./bot", "x" * 4000]),
    "endpoints": st.sampled_from([["http://127.0.0.1:1"], ["https://a/v1", "http://b"], ["embedded"]]),
    "api_key": st.none() | st.sampled_from(["OPENAI_API_KEY", "_x"]),
    "figure_format": st.sampled_from(["pdf", [], ["svg", "pdf"], "html"]),
    "report_runs": st.sampled_from(["sample", "all", ["a:b:0"]]),
}  # fmt: skip


def value(key: str, schema: dict[str, Any], small: bool) -> st.SearchStrategy[Any]:
    """Any value of a key; the limits themselves are often among them."""
    schema = {**DEFINED.get(schema.get("$ref", "").rpartition("/")[2], {}), **schema}
    if small and key in SMALL:
        return SMALL[key]
    if key in OWN:
        return OWN[key]
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    some: list[st.SearchStrategy[Any]] = []
    if "null" in types:
        some.append(st.none())
    if "boolean" in types:
        some.append(st.booleans())
    least, most = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if "integer" in types:
        whole = st.sampled_from([least, most]) | st.integers(least, most)
        some.append(whole | whole.map(float))
    if "number" in types:
        open_end = "exclusiveMinimum" in schema
        smallest = [5e-324, 1e-9] if open_end and least == 0 else [least]
        some.append(st.sampled_from([*smallest, most]) | st.floats(least, most, exclude_min=open_end))
    if "array" in types:
        some.append(st.lists(value("", schema["items"], small), min_size=1, max_size=3, unique=True))
    assert some, f"no values of {key} are known: add some to OWN"
    return st.one_of(some)


@cache
def mapping(name: str, small: bool, leave_out: tuple[str, ...] = ()) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the keys of a definition that are not required, and all that are."""
    schema = DEFINED[name]
    keys = {
        key: value(key, kind, small)
        for key, kind in schema["properties"].items()
        if key not in (*leave_out, "game", "name")
    }
    required = {key: keys.pop(key) for key in schema.get("required", ()) if key in keys}
    return st.fixed_dictionaries(required, optional=keys)


def named(entries: list[Any], taken: list[str]) -> list[Any]:
    """Players of which none has the name of another."""
    names = [f"player.{number}" for number in range(len(entries))]
    return [
        entry if isinstance(entry, str) else {**entry, "name": name} for entry, name in zip(entries, names, strict=True)
    ]


def sound_pool(given: dict[str, Any], outsiders: list[str]) -> dict[str, Any]:
    """Parameters of a pool that can be together; what cannot is put right."""
    usual = {key: kind["default"] for key, kind in DEFINED["commons_parameters"]["properties"].items()}
    p = {**usual, **given}
    n = sum(int(entry.rpartition("*")[0] or 1) for entry in p["agents"])
    p["capacity"] = max(p["capacity"], n)
    p["collapse"] = min(p["collapse"], p["capacity"])
    channels = [channel for channel in p["channels"] if channel != "discuss" or "chat" in p["channels"]]
    p["channels"] = channels
    if "report" not in channels:
        p["audit_q"], p["fine"] = 0, 0.0
    if n == 1:
        p["fine_to"] = "sink"
    needs = {"forced_truth": "report", "binding_promise": "promise", "free": None}[p["speech"]]
    if needs and needs not in channels:
        p["speech"] = "free"
    if any(entry.rpartition("*")[2] in outsiders for entry in p["agents"]):
        p["twins"] = []
    return {key: p[key] for key in p if key in given or p[key] != usual[key]}


@cache
@st.composite
def prisoners_dilemma(draw: Any, small: bool) -> dict[str, Any]:
    scripted = draw(st.lists(st.sampled_from(sorted(STRATEGIES)), max_size=3, unique=True))
    some = st.one_of(
        st.sampled_from(sorted(STRATEGIES)).map(lambda name: {"player": name}),
        mapping("model_player", small),
        mapping("process_player", small),
    )
    own = named(draw(st.lists(some, min_size=not scripted, max_size=2)), scripted)
    parameters = mapping("prisoners_dilemma_parameters", small)
    given = draw(mapping("prisoners_dilemma", small, leave_out=("players", "conditions", "base")))
    conditions = draw(st.dictionaries(NAMES, parameters, min_size=1, max_size=2))
    base = draw(st.just({}) | st.fixed_dictionaries({"base": parameters}))
    return {"game": "prisoners_dilemma", **given, "players": [*scripted, *own], "conditions": conditions, **base}


@cache
@st.composite
def fish_pool(draw: Any, small: bool) -> dict[str, Any]:
    some = st.one_of(mapping("model_player", small), mapping("process_player", small))
    players = named(draw(st.lists(some, max_size=2)), sorted(PLAYERS))
    outsiders = [player["name"] for player in players]
    given = draw(mapping("commons", small, leave_out=("players", "conditions", "base", "questions", "contrasts")))
    conditions = draw(st.dictionaries(NAMES, mapping("commons_parameters", small), min_size=1, max_size=2))
    for parameters in conditions.values():
        if outsiders and draw(st.booleans()):
            parameters["agents"] = [*parameters.get("agents", []), *outsiders]
    conditions = {name: sound_pool(parameters, outsiders) for name, parameters in conditions.items()}
    if len(conditions) == 1:  # none can be in the place of another
        given["questions"] = draw(st.lists(st.sampled_from([f"rq0{number}" for number in range(1, 9)]), unique=True))
    ends = st.sampled_from(sorted(conditions))
    contrast = st.fixed_dictionaries(
        {"metric": st.sampled_from(DEFINED["contrast"]["properties"]["metric"]["enum"]), "a": ends, "b": ends},
        optional={"player": st.sampled_from([*sorted(PLAYERS), *outsiders])},
    )
    given["contrasts"] = draw(st.lists(contrast, max_size=2))
    return {"game": "commons", **given, "players": players, "conditions": conditions}


@cache
@st.composite
def dictator(draw: Any, small: bool) -> dict[str, Any]:
    given = draw(mapping("dictator", small, leave_out=("oracles",)))
    some = st.one_of(
        st.sampled_from(["published", "formal"]),
        st.just({"decisions": "tests/config/holed.csv"}),
        mapping("model_oracle", small).map(lambda oracle: {**oracle, "replicates": 2} if small else oracle),
    )
    oracles = draw(st.lists(some, min_size=2, max_size=4))
    own = [{**oracle, "name": f"o{place}"} for place, oracle in enumerate(oracles) if not isinstance(oracle, str)]
    return {
        "game": "dictator",
        **given,
        "oracles": [*dict.fromkeys(one for one in oracles if isinstance(one, str)), *own],
    }


RECORDED = st.sampled_from(["prisoners_dilemma", "commons"]).flatmap(
    lambda game: mapping(f"recorded_{game}", True).map(lambda given: {"game": game, **given})
)


@st.composite
def configs(draw: Any, small: bool = False) -> dict[str, Any]:
    """A valid config."""
    some = st.permutations([prisoners_dilemma(small), fish_pool(small), dictator(small), RECORDED])
    names = st.lists(NAMES, min_size=1, max_size=4, unique=True)
    studies = {name: draw(one) for name, one in zip(draw(names), draw(some), strict=False)}
    keys = {
        key: value(key, kind, small)
        for key, kind in SCHEMA["properties"].items()
        if key not in ("studies", "only", "lanes", "servers")
    }
    config = draw(st.fixed_dictionaries({}, optional=keys))
    if draw(st.booleans()):
        config["only"] = draw(st.sampled_from([[*studies], next(iter(studies))]))
    if draw(st.booleans()):
        lane = SCHEMA["properties"]["lanes"]["additionalProperties"]["properties"]["turn_timeout"]
        lanes = st.fixed_dictionaries({"turn_timeout": value("turn_timeout", lane, small)})
        config["lanes"] = draw(st.dictionaries(NAMES | st.sampled_from(LANES), lanes, max_size=2))
    if draw(st.booleans()):
        config["servers"] = draw(st.dictionaries(NAMES, mapping("server", small), max_size=2))
    return {**config, "studies": studies}


def keys_in(tree: Any) -> Counter[str]:
    if isinstance(tree, dict):
        return sum((keys_in(inner) for inner in tree.values()), Counter(map(str, tree)))
    return sum(map(keys_in, tree), Counter()) if isinstance(tree, list) else Counter()


# ── They load, and they run ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module", autouse=True)
def bare(tmp_path_factory):
    """The default config is out of the way: it takes half a second, each time."""
    default = tmp_path_factory.mktemp("default") / "config.yaml"
    default.write_text("lanes: {}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "DEFAULT_CONFIG", default)
        patch.chdir(ROOT)
        yield default


def check(*options: str) -> tuple[int, str]:
    """What `fishpool check` says on standard error, and its exit code."""
    said, out = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(out):
        code = cli.main(["check", *options])
    return code, said.getvalue()


FORMATS = {
    "JSON": json.dumps,
    "blocks": lambda config: yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
    "flow": lambda config: yaml.safe_dump(config, sort_keys=False, default_flow_style=True),
}


def test_a_valid_config_loads_whatever_its_format_and_every_key_is_tried(bare):
    file, seen = bare.with_name("valid.yaml"), Counter()

    @campaign(100)
    @given(configs(), st.sampled_from(sorted(FORMATS)))
    def loads(config, form):
        seen.update(keys_in(config))
        file.write_text(FORMATS[form](config), encoding="utf-8")
        assert study.load_files([file]) == study.load(config)
        assert guard.main(["--configfile", str(file)]) == 0
        assert check("--configfile", str(file)) == (0, "")

    loads()
    known = {key for part in (SCHEMA, *DEFINED.values()) for key in part.get("properties", {})}
    print(f"\nvalid configs loaded: {seen['studies']}; of {len(known)} keys not tried: {sorted(known - seen.keys())}")
    assert len(known - seen.keys()) <= 5


def legal_action(view: dict[str, Any]) -> str:
    """A reply to any view of any game, which may be none."""
    luck = random.Random(json.dumps(view, sort_keys=True))
    if luck.random() < 0.1:
        return "no"
    if "dictator" in view:
        return json.dumps({"decision": luck.choice(("SHARE", "TAKE")), "reasoning": "\u202e\x00"})
    if "legal" not in view:
        return json.dumps({"type": "choose", "choice": luck.choice(("cooperate", "defect"))})
    tons = luck.randint(0, view["legal"]["max"])
    return json.dumps(
        {
            "pledge": {"intention": tons, "promise": tons},
            "catch": {"catch": tons},
            "report": {"report": tons},
            "discuss": {"message": "x", "accuse": [], "trust": {}},
        }[view["phase"]]
    )


REAL_MODELS = models.Kind


def run(config: Config) -> Counter[str]:
    """Play the first job of every condition; models and bots are asked here, but made ready as they would be."""
    ran: Counter[str] = Counter()
    site = Site(config.servers, "no such folder/journal", config.offline)
    for one in config.studies:
        for condition in one.conditions:
            for shard in one.shards(condition)[:1] if condition.recorded is None else ():
                assert Shard.from_json(shard.to_json()) == shard
                if "model" in condition.kinds:
                    REAL_MODELS(shard, site, [player for player in shard.players if player.kind == "model"])
                runner = import_module(f"fishpool.runners.{shard.game}")
                runs = 0
                for frames in runner.play(shard):
                    assert set(frames) == set(shard.tables)
                    runs += len(frames["runs"])
                assert runs == runner.number_of_runs(shard) > 0
                ran[shard.game] += 1
    return ran


@pytest.fixture
def outsiders(monkeypatch):
    """Models and bots are asked in this process."""
    canned(monkeypatch, legal_action)
    monkeypatch.setitem(sys.modules, "fishpool.players.process", bots := import_module("types").ModuleType("bots"))
    bots.Kind = sys.modules["fishpool.players.model"].Kind
    from fishpool.players import process

    bots.parse, bots.files_of = process.parse, process.files_of


def test_a_valid_config_runs(outsiders):
    ran: Counter[str] = Counter()

    @campaign(40)
    @given(configs(small=True))
    def runs(config):
        ran.update(run(study.load(config)), configs=1)

    runs()
    print(f"\nvalid configs run: {dict(ran)} jobs")
    assert set(ran) == {"configs", "prisoners_dilemma", "commons", "dictator"}


# ── Broken ones ──────────────────────────────────────────────────────────────────────────────────────────────────


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


HOSTILE = (
    None, True, False, 0, -1, 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.5, 1e308, -1e308, 5e-324, float("nan"),
    float("inf"), "", " ", "5", "1e-2", "nan", "true", "null", "$(ls)", "`ls`", "{x}", "{{x}}", "../../etc", "/",
    "~", "a;b", "a\nb", "\x00", "\ud800", "\u202e", "x" * 100_000, "?1/0", "?__import__('os').getpid()", "<script>",
    "%(x)s", "\\", "'", '"', [], {}, [[]], [{}], {"": {}}, [None], {"a": {"b": {"c": {}}}}, "TitForTat",
    "prisoners_dilemma", "commons", "dictator", "published", "you", ["resign", "x"],
)  # fmt: skip
NEVER = (float("nan"), float("inf"), 2**63, -(2**63), 10**5000, b"x", object(), (1,), {1}, 1 + 2j)


WORDS = ("rounds", "", "x" * 100_000, "a.b", "\x1b[2J", "__use_yte__")


def change(config: dict[str, Any], draw: Any) -> None:
    """Change one thing in a config, wherever and whatever it is."""
    path = draw(st.sampled_from(places(config)[1:] or [()]))
    if not path:
        return
    inner, last = at(config, path[:-1]), path[-1]
    kind = draw(st.sampled_from(["replace", "replace", "remove", "add", "misspell", "move"]))
    if kind == "replace":
        inner[last] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
    elif kind == "move":
        inner[last] = copy.deepcopy(at(config, draw(st.sampled_from(places(config)))))
    elif kind == "remove":
        del inner[last]
    elif isinstance(inner, list):
        inner.append(copy.deepcopy(draw(st.sampled_from(HOSTILE))))
    elif kind == "add":
        inner[draw(st.sampled_from(WORDS))] = 1
    else:
        inner[f"{last}{draw(st.sampled_from(['s', ' ', 'é']))}"] = inner.pop(last)


def test_a_config_with_changes_is_a_config_that_runs_or_sentences(outsiders):
    found: Counter[str] = Counter()

    @campaign(250)
    @given(configs(small=True), st.data())
    def changed(config, data):
        config = copy.deepcopy(config)
        for _ in range(data.draw(st.sampled_from([1, 1, 3]))):
            change(config, data.draw)
        try:
            loaded = study.load(config)
        except ConfigError as error:
            assert_sentences(str(error), list(error.faults))
            found["refused"] += 1
        else:
            run(loaded)
            found["run"] += 1

    changed()
    print(f"\nconfigs with changes: {dict(found)}")
    assert min(found["run"], found["refused"]) > 0


def assert_sentences(said: str, faults: list[str]) -> None:
    assert faults
    assert said.splitlines() == faults
    for fault in faults:
        assert fault.isprintable()
        assert 20 < len(fault) < 1500
        assert "Traceback" not in fault


@campaign(100)
@given(configs(), st.data())
def test_a_config_that_cannot_be_is_refused(config, data):
    config = copy.deepcopy(config)
    *above, last = data.draw(st.sampled_from(places(config)[1:]))
    inner = at(config, tuple(above))
    kind = data.draw(st.sampled_from(["value", "unknown key", "no text", "depth", "endless"]))
    if kind == "value":
        inner[last] = data.draw(st.sampled_from(NEVER))
    elif kind == "depth":
        for _ in range(40):
            inner[last] = data.draw(st.sampled_from([[inner[last]], {"x": inner[last]}]))
    elif kind == "endless":
        inner[last] = config
    else:
        # of the mappings with names that users give, a new name is no fault; so the change is at the top, or in a study
        where = data.draw(st.sampled_from([config, *config["studies"].values()]))
        where["roundss" if kind == "unknown key" else data.draw(st.sampled_from([1, None, True, 1.5, (1,), b"x"]))] = 1
    with pytest.raises(ConfigError) as caught:
        study.load(config)
    assert_sentences(str(caught.value), list(caught.value.faults))


YAML_TOKENS = (
    *"{}[]&*!|>'\"%@`#?:-,~<=.\n\t \\\x00\x85\u2028\ufeff\ud800", "<<: ", "*a", "&a ", "? ", "- ", "---\n", "...\n",
    "%YAML 9.9\n", "%TAG ! x", "!!python/object/apply:os.system [ls]", "!!python/name:os.system",
    "!!python/tuple [a]", "!!set {a}", "!!omap [a: 1]", "!!binary AAAA", "!!timestamp x", "!!int x", "!!float nan",
    "!!null x", "!!bool x", "!!str 5", "!x ", "!<a> ", "2024-13-40", "2024-01-01", "12:59:61", "0x", "0o9", "1_000",
    ".inf", "-.inf", ".nan", "1e400", "9" * 5000, "yes", "no", "on", "null", "=", "__use_yte__: true\n",
    "? [a, b]\n: 1\n", "1: 2\n", "&a [*a]", "&b {x: *b}", "[" * 200, "{a: " * 200, "- " * 200, "\r\n", "é" * 50,
    "\x1b[2J", "${x}", "$(ls)", "{x}", "|\n  a\n b\n", ">-\n", '"\\x00"', '"\\ud800"', '"\\',
)  # fmt: skip


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Valid configs as text: the small one of the tests, and one a game."""
    small = [(ROOT / "tests" / "config" / name).read_text() for name in ("tiny.yaml", "dictator.yaml", "models.yaml")]
    made = {
        "results": "out", "only": ["pool"], "lanes": {"slow": {"turn_timeout": 600}},
        "studies": {
            "pool": {
                "game": "commons", "seeds": [1, 2], "base": {"rounds": 3}, "players": [{"model": "m", "name": "m"}],
                "conditions": {"none": {"channels": []}, "both": {"agents": ["2*salami", "m"], "audit_q": 0.5}},
                "contrasts": [{"metric": "payoff", "a": "both", "b": "none"}],
            }
        },
    }  # fmt: skip
    return [*small, yaml.safe_dump(made), json.dumps(made), yaml.safe_dump(made, default_flow_style=True)]


def test_a_broken_file_is_sentences_and_exit_code_2(bare, texts):
    file = bare.with_name("broken.yaml")
    luck, found = random.Random(0), Counter()
    for text in mutated(texts, 200 * EFFORT + len(texts), tokens=YAML_TOKENS):
        content = text.encode(luck.choice(["utf-8"] * 20 + ["utf-16", "utf-8-sig"]), "surrogatepass")
        if luck.random() < 0.05 and content:
            place = luck.randrange(len(content))
            content = content[:place] + bytes([luck.randrange(256)]) + content[place + luck.randrange(3) :]
        file.write_bytes(content)
        code, said = check("--configfile", str(file))
        if code:
            assert code == 2, content
            assert_sentences(said, said.split("\n")[:-1])
        else:
            assert said == "", content
        with contextlib.redirect_stderr(io.StringIO()) as guarded:
            readable = guard.main(["--configfile", str(file)])
        assert readable in (0, code), content
        assert readable == 0 or guarded.getvalue(), content
        found[f"exit {code}"] += 1
    print(f"\nfiles: {dict(found)}")
    assert min(found.values()) > 0


# ── Snakemake itself ─────────────────────────────────────────────────────────────────────────────────────────────

TEMPLATE = """
__use_yte__: true
__definitions__:
  - open('{marker}', 'w').close()
only: "?open('{marker}', 'w').close()"
"""
UNREADABLE = {
    "is not there": (None, "there is no such file; check the name after --configfile"),
    "empty": (b"", "is empty; expected a mapping"),
    "not UTF-8": (b"only: \xff\n", "is not UTF-8 text (byte 7)"),
    "no YAML": (b"only: [\n", "is not YAML in line 2"),
    "a tag that makes objects": (b"only: !!python/object/apply:os.system [ls]\n", "is not YAML in line 1, column 7"),
    "a tuple": (b"only: !!python/tuple [a]\n", "is not YAML in line 1, column 7"),
    "no such date": (b"only: 2024-13-40\n", "is not YAML in line 1, column 7"),
    "a mapping that holds itself": (b"lanes: &a {b: *a}\n", "lanes holds more than 32 levels"),
    "mappings that multiply": (
        "\n".join(
            ["a0: &a0 {x: 1}"]
            + [f"a{i}: &a{i} {{{', '.join(f'k{j}: *a{i - 1}' for j in range(9))}}}" for i in range(1, 12)]
        ).encode(),
        "holds more than 1000000 values",
    ),
    "very deep": (b"only: " + b"[" * 5000, "is nested more than 32 levels deep"),
    "very deep JSON": (b'{"only":' * 3000, "is nested more than 32 levels deep"),
    "a template": (TEMPLATE.format(marker="executed").encode(), "__use_yte__ makes Snakemake run Python"),
    "a template by a merge": (b"x: &x {__use_yte__: true}\n<<: *x\n", "__use_yte__ makes Snakemake run Python"),
    "a template in JSON": (b'{"__use_yte__": true}', "__use_yte__ makes Snakemake run Python"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_file_that_is_no_data_is_refused_before_snakemake_reads_it(kind, tmp_path, monkeypatch, capsys):
    content, sentence = UNREADABLE[kind]
    file = tmp_path / "my.yaml"
    if content is not None:
        file.write_bytes(content)
    assert guard.main(["all", "--cores", "2", "--configfile", str(file), "--config", "only=x", "-n"]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert check("--configfile", str(file))[0] == 2


def snakemake(folder: Path, *options: str, cores: int = 1) -> tuple[int, str]:
    """The workflow of this checkout, started where a user starts it, but with a working directory of its own."""
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHASHSEED")}
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--directory", str(folder), "--cores", str(cores), *options],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.workflow
@pytest.mark.parametrize("option", ["--configfile", "--configfiles"])
def test_snakemake_executes_nothing_of_a_config(option, tmp_path):
    file, marker = tmp_path / "my.yaml", tmp_path / "executed"
    file.write_text(TEMPLATE.format(marker=str(marker)))
    code, said = snakemake(tmp_path / "work", option, str(ROOT / "tests/config/tiny.yaml"), str(file), "--dry-run")
    assert code == 2, said
    assert "my.yaml: __use_yte__ makes Snakemake run Python that stands in the file" in said
    assert "Traceback" not in said
    assert not marker.exists()


@pytest.mark.workflow
@pytest.mark.parametrize("kind", ["is not there", "not UTF-8", "a mapping that holds itself"])
def test_snakemake_says_a_sentence_about_a_file_that_it_cannot_read(kind, tmp_path):
    content, sentence = UNREADABLE[kind]
    if content is not None:
        (tmp_path / "my.yaml").write_bytes(content)
    code, said = snakemake(tmp_path / "work", "--configfile", str(tmp_path / "my.yaml"))
    assert code == 2, said
    assert sentence in said
    assert len(said.splitlines()) == 2, said  # the other one says which profile it uses
    assert not (tmp_path / "work" / "results").exists()


@pytest.mark.workflow
def test_the_workflow_refuses_a_template_where_no_profile_does(tmp_path):
    (tmp_path / "my.yaml").write_text("__use_yte__: true\nstudies: {}\n")
    code, said = snakemake(tmp_path / "work", "--workflow-profile", "none", "--configfile", str(tmp_path / "my.yaml"))
    assert code != 0
    assert "my.yaml: __use_yte__ makes Snakemake run Python" in said
    assert "Traceback" not in said
    assert not (tmp_path / "work" / "results").exists()


@pytest.mark.workflow
@pytest.mark.parametrize("number", range(min(EFFORT, 10)))
def test_a_valid_config_runs_to_the_report(number, tmp_path):
    made: list[dict[str, Any]] = []

    @settings(campaign(1), max_examples=20 * (number + 1))
    @given(configs(small=True).filter(lambda config: not {"model", "process", "recorded"} & keys_in(config).keys()))
    def make(config):
        made.append(config)

    make()
    config = max(made[20 * number :], key=lambda config: len(keys_in(config)))
    config |= {"results": "results", "journal": None, "only": [*config["studies"]], "report_runs": "sample"}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    code, said = snakemake(tmp_path / "work", "--configfile", str(tmp_path / "my.yaml"), "--quiet", cores=2)
    assert code == 0, f"{said}\n{json.dumps(config)}"
    assert (tmp_path / "work" / "results" / "report.html").exists()
