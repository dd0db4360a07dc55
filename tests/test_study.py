"""A config becomes studies and shards, or one sentence a fault; never anything else, whatever is in it."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fishpool import records, shards, study
from fishpool.analysis.commons import TwinKind as commons_twins
from fishpool.costs import estimate
from fishpool.games import commons
from fishpool.games.prisoners_dilemma import Parameters
from fishpool.models.calls import Model
from fishpool.players.commons import LIARS
from fishpool.players.scripted import STRATEGIES
from fishpool.shards import Player, Shard
from fishpool.stale import stale_files
from fishpool.study import Config, ConfigError

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
SCHEMA = yaml.safe_load(study.SCHEMA.read_text(encoding="utf-8"))
VALID: dict[str, Any] = {
    "results": "out",
    "only": ["one"],
    "lanes": {"slow": {"turn_timeout": 600}},
    "studies": {
        "one": {
            "game": "prisoners_dilemma",
            "seeds": [3, 0, 7],
            "seeds_per_job": 4,
            "base": {"rounds": 7, "lane": "slow"},
            "players": ["TitForTat", {"player": "TitForTat", "name": "Tit.2"}, "Random"],
            "conditions": {"plain": {}, "noisy": {"noise": 1, "agent_ids": ["left", "right"]}},
            "strategy_set": ["Defector", "TitForTat"],
        },
        "two": {
            "game": "prisoners_dilemma",
            "seeds": 2,
            "players": ["Joss"],
            "conditions": {"plain": {"lane": "fast"}},
        },
    },
}


def faults_of(config: Any, files: tuple[Path, ...] = ()) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        study.load(config, files)
    return caught.value.faults


def faults_of_text(text: str | bytes, folder: Path) -> tuple[str, ...]:
    file = folder / "my.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        study.load_files([file])
    return tuple(fault.removeprefix(f"{file}: ") for fault in caught.value.faults)


def changed(path: str, value: Any) -> dict[str, Any]:
    """VALID with `value` at a dotted path."""
    config = copy.deepcopy(VALID)
    *above, last = path.split(".")
    inner = config
    for key in above:
        inner = inner[key]
    inner[last] = value
    return config


# ── A valid config ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_config_becomes_studies_with_every_parameter_filled_in():
    config = study.load(VALID)
    assert (config.results, [one.name for one in config.configured]) == ("out", ["one", "two"])
    (one,) = config.studies
    assert one.seeds == (0, 3, 7)
    assert one.players == (
        Player("TitForTat", "scripted", {"strategy": "TitForTat"}),
        Player("Tit.2", "scripted", {"strategy": "TitForTat"}),
        Player("Random", "scripted", {"strategy": "Random"}),
    )
    assert one.strategy_set == ("Defector", "TitForTat")
    plain, noisy = one.conditions
    assert plain.parameters == {"rounds": 7, "noise": 0.0, "lane": "slow", "agent_ids": ["agent_1", "agent_2"]}
    assert noisy.parameters == {"rounds": 7, "noise": 1.0, "lane": "slow", "agent_ids": ["left", "right"]}
    assert plain.turn_timeout == 600
    assert (plain.runs_per_seed, plain.model_calls_per_seed) == (6, 0)
    two = config.configured[1]
    assert (two.seeds, two.seeds_per_job, two.conditions[0].turn_timeout) == ((0, 1), 50, 30)
    assert two.strategy_set == tuple(SCHEMA["$defs"]["strategy_set"]["default"])


def test_results_may_lie_anywhere():
    for folder, kept in {"my results": "my results", "../out/": "../out", "/größe/a": "/größe/a", ".": "."}.items():
        assert study.load(VALID | {"results": folder}).results == kept


def test_equal_numbers_make_equal_jobs():
    def job(parameters: dict[str, Any]) -> str:
        (two,) = study.load(changed("studies.two.conditions", {"plain": parameters}) | {"only": "two"}).studies
        return two.shards(two.conditions[0])[0].to_json()

    assert job({"noise": 0, "rounds": 20}) == job({"noise": -0.0, "rounds": 20.0}) == job({"noise": 0.0}) == job({})


def test_the_default_config_has_every_scripted_player_with_and_without_noise():
    (one,) = (one for one in study.load_files([]).studies if one.name == "round_robin")
    assert {player.name for player in one.players} == set(STRATEGIES)
    assert [condition.parameters["noise"] for condition in one.conditions] == [0.0, 0.05]
    assert len(one.seeds) >= 200
    assert one.conditions[0].parameters["rounds"] == 20


def test_the_tiny_config_is_small():
    (tiny,) = study.load_files([ROOT / "tests" / "config" / "tiny.yaml"]).studies
    assert [[len(shard.seeds) for shard in tiny.shards(condition)] for condition in tiny.conditions] == [[2, 2], [2, 2]]


seeds = st.one_of(st.integers(1, 60), st.lists(st.integers(0, 300), min_size=1, max_size=40, unique=True))


@given(seeds, st.integers(1, 100), st.integers(0, 300))
def test_shards_hold_each_seed_once_and_a_further_seed_changes_one_of_them(chosen, seeds_per_job, further):
    def jobs(chosen: Any) -> dict[str, str]:
        entry = VALID["studies"]["two"] | {"seeds": chosen, "seeds_per_job": seeds_per_job}
        (two,) = study.load({"studies": {"two": entry}}).studies
        shards = two.shards(two.conditions[0])
        assert sorted(seed for shard in shards for seed in shard.seeds) == list(two.seeds)
        assert len({shard.name for shard in shards}) == len(shards)
        for shard in shards:
            first = int(shard.name.removeprefix("seeds-"))
            assert first % seeds_per_job == 0
            assert all(first <= seed < first + seeds_per_job for seed in shard.seeds)
            assert Shard.from_json(shard.to_json()) == shard
        return {shard.name: shard.to_json() for shard in shards}

    seeds = list(range(chosen)) if isinstance(chosen, int) else chosen
    before, after = jobs(chosen), jobs(sorted({*seeds, further}, reverse=True))
    differing = {name for name in after if before.get(name) != after[name]}
    assert differing == (set() if further in seeds else {f"seeds-{further // seeds_per_job * seeds_per_job}"})


def test_only_the_clock_of_its_own_lane_is_in_a_shard():
    def job(lanes: dict[str, Any]) -> str:
        (one,) = study.load(VALID | {"lanes": lanes}).studies
        return one.shards(one.conditions[0])[0].to_json()

    other = {"slow": {"turn_timeout": 600}, "fast": {"turn_timeout": 1}, "new": {"turn_timeout": 5}}
    assert job(other) == job({"slow": {"turn_timeout": 600}})
    assert job({"slow": {"turn_timeout": 601}}) != job({"slow": {"turn_timeout": 600}})


def test_study_is_read_without_heavy_libraries():
    heavy = "{'numpy', 'polars', 'duckdb', 'altair', 'scipy', 'snakemake', 'jsonschema'}"
    subprocess.run(
        [sys.executable, "-c", f"import fishpool.study, sys; assert not {heavy} & set(sys.modules)"], check=True
    )


# ── Layers, as Snakemake merges them ─────────────────────────────────────────────────────────────────────────────

json_trees = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text("ab", max_size=2), json_trees), st.dictionaries(st.text("ab", max_size=2), json_trees))
def test_files_are_merged_as_snakemake_merges_them(base, over):
    from snakemake.utils import update_config

    expected = copy.deepcopy(base)
    update_config(expected, copy.deepcopy(over))
    assert study._merge(base, over) == expected


@pytest.mark.parametrize(
    "entries",
    [
        ["only=one", "results=out"],
        ["only=[one, two]"],
        ["only=5", "results=1.5", "lanes=", "x1=True"],
        ["lanes={fast: {turn_timeout: 3}}", "lanes={slow: {turn_timeout: 4}}"],
        ["only={", "results=a=b", "aa=1e3", "bb=nan"],
    ],
)
def test_values_of_the_command_line_are_read_as_snakemake_reads_them(entries):
    from snakemake.cli import parse_config

    assert repr(study.overrides(entries)) == repr(parse_config(entries))


def test_a_later_file_wins_and_the_command_line_wins_over_files(tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(yaml.safe_dump(VALID))
    second.write_text("studies: {two: {seeds: 9}}\nonly: [one, two]\n")
    assert [len(one.seeds) for one in study.load_files([first, second]).studies] == [3, 9]
    assert [one.name for one in study.load_files([first, second], {"only": "round_robin"}).studies] == ["round_robin"]


def test_a_fault_names_the_file_that_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = Path("first.yaml"), Path("second.yaml")
    first.write_text("results: 5\nstudies: {round_robin: {seeds: x, seeds_per_job: 0}}\n")
    second.write_text("studies: {round_robin: {seeds: 0, base: {nois: 1}}}\n")
    with pytest.raises(ConfigError) as caught:
        study.load_files([first, second], {"results": True})
    named = {fault.split(" ")[1]: fault.split(" ")[0] for fault in caught.value.faults}
    assert named == {
        "results": "--config:",
        "studies.round_robin.seeds": "second.yaml:",
        "studies.round_robin.seeds_per_job": "first.yaml:",
        "studies.round_robin.base.nois": "second.yaml:",
    }


def test_the_same_faults_are_named_for_a_config_that_snakemake_has_merged(tmp_path):
    from snakemake.utils import update_config

    file = tmp_path / "my.yaml"
    file.write_text(
        "only: x\nstudies: {two: {seeds: 1, seeds: 2}, no: 3, round_robin: {base: {noise: .nan, rounds: 0}}}\n"
    )
    merged = yaml.safe_load(study.DEFAULT_CONFIG.read_text())
    update_config(merged, yaml.safe_load(file.read_text()))
    with pytest.raises(ConfigError) as caught:
        study.load_files([file])
    assert faults_of(merged, (study.DEFAULT_CONFIG, file)) == caught.value.faults
    assert (
        faults_of(merged, (file, study.DEFAULT_CONFIG)) == caught.value.faults
    )  # the order in which Snakemake has them
    # The repeated key, `no`, .nan, rounds, only, and that two has no game.
    assert len(caught.value.faults) == 6


# ── Faults ───────────────────────────────────────────────────────────────────────────────────────────────────────


def readme_faults() -> list[tuple[str, str]]:
    return re.findall(r"^\| `([^`]+)` \| `(my\.yaml: [^`]+)` \|$", README, re.MULTILINE)


@pytest.mark.parametrize(("written", "said"), readme_faults())
def test_the_readme_shows_the_sentence_that_a_wrong_value_gets(written, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, _, value = written.partition(":")
    keys = path.split(".")
    Path("my.yaml").write_text("".join(f"{{{key}: " for key in keys) + value + "}" * len(keys))
    with pytest.raises(ConfigError) as caught:
        study.load_files([Path("my.yaml")])
    assert caught.value.faults == (said,)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("studies.one.players", [], "is a list of 0 items; expected a list of 1 to 200 players"),
        ("studies.one.players", "TitForTat", "is the text 'TitForTat'; expected a list"),
        ("studies.one.conditions", {}, "is a mapping of 0 keys; expected a mapping of at least one condition"),
        ("studies.one.conditions", {"a/b": {}}, "studies.one.conditions.'a/b' is not a name that can be used"),
        ("studies.one.conditions", {"plain\n": {}}, r"conditions.'plain\n' is not a name that can be used"),
        ("studies.one.conditions", {"..": {}}, "is not a name that can be used"),
        ("studies.one.conditions", {"no" + "ab" * 20: {}}, "expected a name whose end is not 20 times the same, which"),
        ("studies.one.seeds", [0, -1], "studies.one.seeds[1] is -1; expected a whole number from 0"),
        ("studies.one.seeds", [0, True], "studies.one.seeds[1] is true; expected a whole number"),
        ("studies.one.seeds", 10**9, "is 1000000000; expected a whole number from 1 to 1000000"),
        ("studies.one.seeds", 1 << 70, "is a whole number of 71 bits; expected a finite number"),
        ("studies.one.seeds", "many", "is the text 'many'; expected a whole number"),
        ("studies.one.base.rounds", "5", "is the text '5'; expected a whole number from 1 to 10000"),
        ("studies.one.base.noise", float("inf"), "is inf; expected a finite number"),
        ("studies.one.base.noise", -0.1, "is -0.1; expected a number from 0 to 1"),
        ("studies.one.base.agent_ids", ["a"], "is a list of 1 item; expected a list of two different names"),
        ("studies.one.base.agent_ids", ["a", "OPPONENT"], "agent_ids[1] is 'OPPONENT', a word whose meaning depends"),
        ("studies.one.base.lane", "slwo", "expected one of fast, standard, slow; did you mean slow?"),
        ("studies.one.strategy_set", ["Defector"], "expected a list of at least two different scripted players"),
        (
            "studies.one.strategy_set",
            ["Defector", "defector"],
            "'defector', which is no scripted player; did you mean Defe",
        ),
        ("studies.one.players", ["titfortat"], "did you mean TitForTat?"),
        (
            "studies.one.players",
            [{"plyer": "Joss"}],
            "players[0].plyer is an unknown key; expected one of player, name; did",
        ),
        ("studies.one.players", [["Joss"]], "players[0] is a list of 1 item; expected the name of a scripted player"),
        ("studies.one.game", 5, "is 5; expected one of prisoners_dilemma, commons, dictator"),
        ("studies.one", None, "studies.one is empty (null); expected a mapping with at least the key game"),
        ("studies.one.date", datetime.date(2024, 1, 2), "studies.one.date is a date; expected text, a number"),
        ("only", [], "only is a list of 0 items; expected the name of a study or a list"),
        ("only", ["one", "one"], "only[1] is 'one' again; each may be there once only"),
        ("only", 5, "only is 5; expected the name of a study or a list of such names"),
        ("results", "", "results is ''; expected the name of a folder"),
        ("results", "-rf", "results is '-rf'; expected the name of a folder"),
        ("results", "a ", "results is 'a '; expected the name of a folder"),
        ("results", "$(ls)", "results is '$(ls)'; expected the name of a folder"),
        ("results", "a\n", r"results is 'a\n'; expected the name of a folder"),
        ("results", 2024, "results is 2024; expected the name of a folder"),
        ("results", "x" * 256, "'; expected a name without parts of more than 255 bytes"),
        ("studies.one.base.prompts", "é" * 128, "'; expected a name without parts of more than 255 bytes"),
        ("studies.one.base.labels", ["stay", "resign"], "labels[1] is 'resign', which is the word for giving up; call"),
        ("__use_yte__", True, "__use_yte__ is an unknown key"),
    ],
)
def test_a_wrong_value_gets_one_sentence(path, value, said):
    (fault,) = faults_of(changed(path, value))
    assert said in fault
    assert fault.startswith(f"--config: {path.rpartition('.')[0]}")


def test_a_number_with_more_digits_than_python_writes_gets_one_sentence():
    (fault,) = faults_of(changed("studies.one.seeds", 1 << 20_000))
    assert "studies.one.seeds is a whole number of 20001 bits" in fault


def test_a_missing_key_and_its_misspelling_are_one_fault():
    config = changed("studies.one.seds", 5)
    del config["studies"]["one"]["seeds"]
    (fault,) = faults_of(config)
    assert "studies.one.seds is an unknown key" in fault
    assert "did you mean seeds?" in fault
    del config["studies"]["one"]["seds"]
    (fault,) = faults_of(config)
    assert "studies.one.seeds is missing; expected a whole number from 1" in fault


def test_all_faults_are_reported_at_once():
    config = changed("studies.one.seeds", 0)
    config["studies"]["one"]["players"] = ["Nobody", "TitForTat", "TitForTat"]
    config["studies"]["two"]["conditions"]["plain"] = {"noise": 2, "lane": "none"}
    assert len(faults_of(config)) == 5


def test_a_fault_in_a_study_that_is_not_run_counts_too():
    (fault,) = faults_of(changed("studies.two.seeds", 0))
    assert "studies.two.seeds" in fault


def players_of(*entries, **top):
    config = changed("studies.one.players", list(entries))
    return study.load({**config, **top}).studies[0].players


def test_a_model_is_a_player_with_every_setting_that_identifies_its_replies():
    entry = {"model": "llama3.1:8b", "temperature": 1, "max_tokens": 64}
    (player,) = players_of(entry)
    assert (player.name, player.kind) == ("llama3.1-8b", "model")
    assert Model.from_json(player.settings) == Model(
        server="ollama", name="llama3.1:8b", max_tokens=64, sampling={"temperature": 1.0}
    )


@pytest.mark.parametrize(
    ("model", "server", "name"),
    [
        ("llama3.1", "ollama", "llama3.1"),
        ("openai/gpt-oss-20b", "openai", "gpt-oss-20b"),
        ("lab/org/model", "lab", "org/model"),
        ("hf.co/org/model", "ollama", "hf.co/org/model"),
        ("llamacpp/gemma3-270m", "llamacpp", "gemma3-270m"),
    ],
)
def test_a_model_is_asked_where_its_prefix_says(model, server, name):
    (player,) = players_of({"model": model}, servers={"lab": {"kind": "openai"}})
    assert (player.settings["server"], player.settings["name"]) == (server, name)


def test_a_model_without_a_server_of_its_kind_has_the_usual_address():
    config = study.load({**VALID, "servers": {"lab": {"kind": "openai"}}})
    assert config.servers["lab"]["endpoints"] == config.servers["openai"]["endpoints"]
    assert config.journal == "out/journal.sqlite"


@pytest.mark.parametrize(
    "server",
    [
        {"api_key": "sk-secret"},
        {"api_key": "hf_secret"},
        {"api_key": ["sk-secret"]},
        {"apikey": "sk-secret"},
        {"headers": {"Authorization": "Bearer sk-secret"}},
        {"endpoints": ["http://ann:secret@lab/v1"]},
        {"endpoints": ["http://secret@lab/v1"]},
        {"endpoints": ["http://ann:secret@lab:999999/v1"]},
        {"endpoints": ["http://[?secret"]},
        {"endpoints": ["http://lab/v1?key=secret"]},
        {"endpoints": ["http://lab/v1#secret"]},
        {"endpoints": ["http://ann:secret@lab/v1", "http://ann:secret@lab/v1"]},
        {"endpoints": "http://ann:secret@lab/v1"},
        "http://ann:secret@lab/v1",
    ],
)
def test_a_key_or_password_is_refused_and_never_stands_in_a_fault(server):
    lab = {"kind": "openai", **server} if isinstance(server, dict) else server
    faults = faults_of({**VALID, "servers": {"lab": lab}})
    assert faults
    assert "secret" not in "".join(faults)


@pytest.mark.parametrize(
    "address", ["http://[", "http://lab:999999/v1", "http://lab:port", "http://:80", "http://lab:0"]
)
def test_an_address_that_nobody_can_be_asked_at_is_refused(address):
    [fault] = faults_of({**VALID, "servers": {"lab": {"kind": "openai", "endpoints": [address]}}})
    assert fault.endswith("expected an address such as http://127.0.0.1:8000/v1, its port at most 65535")


@pytest.mark.parametrize(
    ("command", "name"),
    [("python bots/my_bot.py --fast", "my_bot"), ("./bot", "bot"), ("awk -f tit.awk", "tit"), ("--", "player")],
)
def test_a_bot_is_named_after_what_it_runs(command, name):
    assert study._as_name(study._program(command)) == name


def test_a_bot_file_that_snakemake_cannot_watch_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bo{t}.py").touch()
    [fault] = faults_of(changed("studies.one.players", [{"process": "python3 'bo{t}.py'"}]))
    assert "where the name of a file holds a brace, which Snakemake would fill in" in fault


def test_calls_of_models_are_counted_as_if_every_run_lasted_to_its_end():
    config = changed("studies.one.players", ["TitForTat", {"model": "a"}, {"model": "b"}])
    (one,) = study.load(config).studies
    rounds = one.conditions[0].parameters["rounds"]
    # a meets Tit, b and itself; b meets Tit, a and itself: seats of models 1 + 2 + 2, 1 + 2, of which a-b counts once
    assert one.conditions[0].model_calls_per_seed == (1 + 2 + 2 + 1 + 2) * rounds


def test_calls_of_a_pool_count_its_phases_and_only_the_agents_that_are_models():
    config = pool({"rounds": 3}, {"agents": ["2*m", "grim"], "channels": ["report"]}, players=[{"model": "m"}])
    (one,) = study.load(config).studies
    assert one.conditions[0].model_calls_per_seed == 2 * 3 * 2
    assert one.conditions[0].parameters["twins"] == []
    assert one.conditions[0].kinds == ("model",)


def test_a_condition_of_scripted_players_alone_does_not_hang_on_prompts():
    config = pool({}, {"agents": ["grim"]}, players=[{"model": "m"}])
    (one,) = study.load(config).studies
    (condition,) = one.conditions
    assert (condition.kinds, condition.files) == ((), ())
    assert "prompts" not in condition.parameters


def test_recorded_games_are_found_and_marked_ones_are_never_stale(tmp_path):
    shard = Shard("arena", "fast", "seeds-0", "prisoners_dilemma", {}, (), 30, (0,))
    directory = tmp_path / "jsonl" / "arena" / "fast" / "seeds-0"
    shards.mark_recorded(directory)
    empty = {table: {name: [] for name in records.schema(shard.game, table)} for table in shard.tables}
    frames = {table: records.frame(shard.game, table, columns) for table, columns in empty.items()}
    shards.write(directory, shard.tables, [frames], shards.Progress("arena", 0))
    recorded = {"game": "prisoners_dilemma", "recorded": True}
    config = study.load({"results": str(tmp_path), "studies": {"arena": recorded}})
    (condition,) = config.studies[0].conditions
    assert [one.name for one in config.studies[0].shards(condition)] == ["seeds-0"]
    other = study.load({"results": str(tmp_path), "studies": {"other": recorded}})
    assert stale_files(tmp_path, other) == []
    (directory / shards.RECORDED).unlink()
    assert len(stale_files(tmp_path, other)) == 5


@pytest.mark.parametrize("game", ["prisoners_dilemma", "commons"])
def test_recorded_games_in_which_a_model_played_have_replies_and_cost_nothing(tmp_path, game):
    directory = tmp_path / "jsonl" / "played" / "one" / "seeds-0"
    directory.mkdir(parents=True)
    for name in (shards.CHECKSUMS, "replies.jsonl"):
        (directory / name).touch()
    config = study.load({"results": str(tmp_path), "studies": {"played": {"game": game, "recorded": True}}})
    (condition,) = config.studies[0].conditions
    assert condition.tables[-1] == "replies"
    assert condition.model_calls_per_seed == 0
    assert estimate(config) == ()


def test_a_model_has_no_twins():
    (fault,) = faults_of(pool({"twins": ["honest"]}, {"agents": ["m", "grim"]}, players=[{"model": "m"}]))
    assert "twins has honest, a replay of the run" in fault


def test_values_inside_a_command_line_value_cannot_be_numbers():
    with pytest.raises(ConfigError) as caught:
        study.load_files([], study.overrides(["lanes={fast: {turn_timeout: 3}}"]))
    (fault,) = caught.value.faults
    assert fault.startswith("--config: lanes.fast.turn_timeout is the text '3'; expected a number")
    assert fault.endswith("so write it in a --configfile")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty; expected a mapping"),
        ("# nothing\n", "is empty; expected a mapping"),
        ("- a\n- b\n", "holds a list of 2 items at the top; expected a mapping"),
        ("studies: {a: [}\n", "is not YAML in line 1, column 15: "),
        ("studies:\n\tone: 1\n", "is not YAML in line 2, column 1: "),
        ("only: \x07\n", "is not YAML: special characters are not allowed"),
        (b"only: \xff\n", "is not UTF-8 text (byte 7); save it as UTF-8"),
        ("only: tiny\n---\nonly: a\n", "is not YAML in line 2"),
        (
            "only: !!python/object/apply:os.system [ls]\n",
            "is not YAML in line 1, column 7: could not determine a constr",
        ),
        ("results: 2024-13-40\n", "is not YAML in line 1, column 10: found a value that it cannot make sense of"),
        ("results: !!int x\n", "is not YAML in line 1, column 10: found a value that it cannot make sense of"),
        ("only: round_robin\nonly: round_robin\n", "only is written in line 1 and again in line 2; keep one"),
        (
            '{"only": "round_robin", "only": "round_robin"}',
            "the key only is written twice in one mapping; keep one of them",
        ),
        ("? [a, b]\n: 1\n", "is not YAML in line 1, column 3: "),
        ("only: &a [*a]\n", "only holds more than 32 levels, perhaps because an alias holds itself"),
        ("only: " + "[" * 5000, "is nested more than 32 levels deep"),
        (
            "lanes: {5: {turn_timeout: 3}}\n",
            "lanes.5 is what YAML reads for the key 5 in line 1; write the key in quotes",
        ),
        (
            "lanes: {on: {turn_timeout: 3}}\n",
            "lanes.true is what YAML reads for the key on in line 1; write the key in qu",
        ),
        ("__use_yte__: true\n", "__use_yte__ makes Snakemake run Python that stands in the file; a config is data"),
        ("results: 2024-01-01\n", "results is a date; expected text, a number, a list or a mapping"),
        (
            "results: " + "9" * 5000 + "\n",
            "is not YAML in line 1, column 10: found a value that it cannot make sense of",
        ),
    ],
)
def test_a_file_that_cannot_be_read_gets_one_sentence(text, said, tmp_path):
    (fault,) = faults_of_text(text, tmp_path)
    assert fault.startswith(said)


def test_aliases_that_multiply_are_refused_at_once(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert any("holds more than 1000000 values" in fault for fault in faults_of_text("\n".join(lines), tmp_path))


def test_a_file_that_is_missing_or_is_a_folder_gets_one_sentence(tmp_path):
    with pytest.raises(ConfigError) as caught:
        study.load_files([tmp_path / "none.yaml", tmp_path])
    missing, folder = caught.value.faults
    assert missing.endswith("none.yaml: there is no such file; check the name after --configfile")
    assert folder.endswith(": cannot be read: Is a directory")


def test_merge_keys_and_aliases_of_yaml_are_welcome(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text(
        "studies:\n  mine: &mine {game: prisoners_dilemma, seeds: 3, players: [Joss], conditions: {plain: {}}}\n"
        "  more: {<<: *mine, seeds: 5}\nonly: more\n"
    )
    assert study.load_files([file]).studies[0].seeds == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("place", ["studies.one.note", "results", "report_runs", "journal"])
def test_half_a_character_is_no_text(place):
    """JSON can hold it (and a command line that is not UTF-8), no record, log or journal can."""
    [fault] = faults_of(changed(place, ["a\ud800"] if place == "report_runs" else "a\ud800"))
    assert fault.startswith(f"--config: {place}")
    assert r"is 'a\ud800', text with half a character" in fault


@pytest.mark.parametrize(("half", "count"), [("", 4), ("\ud800", 3)])  # a key that no file can hold is not gone into
def test_hostile_names_are_shown_escaped_and_short(half, count):
    hostile = f"x\n\x1b[31m\u202e{half}" + "y" * 10_000
    config = changed("studies.one.players", [hostile])
    config[hostile] = {hostile: hostile}
    config["studies"][hostile] = {hostile: 1}
    faults = faults_of(config)
    assert len(faults) == count
    for fault in faults:
        assert fault.isprintable()
        assert len(fault) < 500


# ── Whatever is in it ────────────────────────────────────────────────────────────────────────────────────────────

texts = st.text(st.characters(exclude_categories=()), max_size=8) | st.sampled_from(
    [
        "TitForTat",
        "Joss",
        "prisoners_dilemma",
        "standard",
        "one",
        "two",
        "plain",
        "5",
        "1e-2",
        "you",
        "__class__",
        "$ref",
    ]
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 60),
    st.integers(),
    st.floats(),
    texts,
    st.binary(max_size=3),
    st.dates(),
    st.sets(st.integers(), max_size=2),
    st.tuples(st.integers()),
    st.just(1 << 200),
)
known = [key for part in (SCHEMA, *SCHEMA["$defs"].values()) for key in part.get("properties", {})]
keys = st.one_of(st.sampled_from(known), texts, st.integers(), st.booleans(), st.none(), st.floats())
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=20
)


def check_outcome(load: Callable[[], Config]) -> None:
    try:
        outcome: Config | ConfigError = load()
    except ConfigError as error:
        outcome = error
    if isinstance(outcome, ConfigError):
        assert outcome.faults
        assert str(outcome).splitlines() == list(outcome.faults)
        for fault in outcome.faults:
            assert fault.isprintable()
            assert len(fault) < 1500


@settings(max_examples=150, deadline=None)
@given(trees)
def test_an_arbitrary_tree_is_a_config_or_has_faults(tree):
    for config in (tree, {"studies": tree}, {"studies": {"one": tree}}):
        check_outcome(lambda config=config: study.load(config))


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_valid_config_with_some_things_changed_is_a_config_or_has_faults(data):
    config = copy.deepcopy(VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(places(config)[1:]))
        inner = config
        for key in above:
            inner = inner[key]
        change = data.draw(st.sampled_from(["replace", "remove", "add", "misspell"]))
        if change == "replace":
            inner[last] = data.draw(trees)
        elif change == "remove":
            del inner[last]
        elif isinstance(inner, list):
            inner.append(data.draw(trees))
        elif change == "misspell":
            inner[f"{last}s"] = inner.pop(last)
        else:
            inner[data.draw(keys)] = data.draw(trees)
        if len(places(config)) == 1:
            break
    check_outcome(lambda: study.load(config))


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_an_arbitrary_file_is_a_config_or_has_faults(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_bytes(content)
    check_outcome(lambda: study.load(VALID, (file,)))
    check_outcome(lambda: study.load_files([file]))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_file_with_some_characters_changed_is_a_config_or_has_faults(tmp_path_factory, data):
    text = yaml.safe_dump(VALID)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        piece = data.draw(
            st.sampled_from([*"{}[]&*!|>'\"%@`#?:-,\n\t \x00", "<<: ", "!!set ", "*a", "&a ", "~", ".inf"])
        )
        text = text[:place] + piece + text[place + data.draw(st.integers(0, 2)) :]
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_text(text)
    check_outcome(lambda: study.load_files([file]))


# ── The schema and its description ───────────────────────────────────────────────────────────────────────────────


def schemas(tree: Any) -> list[dict[str, Any]]:
    """All schemas inside a schema that says something about a value."""
    found = [tree] if isinstance(tree, dict) else []
    if isinstance(tree, dict):
        inner = [*tree.get("properties", {}).values(), *tree.get("$defs", {}).values()]
        inner += [tree[key] for key in ("items", "additionalProperties", "propertyNames") if key in tree]
        found += [schema for value in inner for schema in schemas(value)]
    return found


def test_the_schema_is_one_and_finds_each_fault_once():
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(SCHEMA)
    text = json.dumps(SCHEMA)
    assert not {"anyOf", "oneOf", "not"} & set(re.findall(r'"(\w+)":', text))


def test_every_schema_can_say_what_it_expects():
    for schema in schemas(SCHEMA):
        if schema and "$ref" not in schema:
            assert study._expected(schema)


def documented() -> list[tuple[str, str, dict[str, Any]]]:
    """Every key of the config, but for names that users give: the part of the README that explains it, its schema."""
    shared = SCHEMA["$defs"]["prisoners_dilemma"]["properties"]
    sections = [
        ("At the top", SCHEMA["properties"]),
        ("At the top", SCHEMA["properties"]["lanes"]["additionalProperties"]["properties"]),
        ("At the top", SCHEMA["$defs"]["server"]["properties"]),
        ("A study", shared),
        ("A study", {"recorded": SCHEMA["$defs"]["recorded_commons"]["properties"]["recorded"]}),
        ("A player", SCHEMA["$defs"]["named_player"]["properties"]),
        ("A model", SCHEMA["$defs"]["model_player"]["properties"]),
        ("A bot", SCHEMA["$defs"]["process_player"]["properties"]),
        ("Parameters of the prisoner's dilemma", SCHEMA["$defs"]["prisoners_dilemma_parameters"]["properties"]),
        (
            "A study of the fish pool",
            {
                key: kind
                for key, kind in SCHEMA["$defs"]["commons"]["properties"].items()
                if key not in shared or key == "players"
            },
        ),
        ("A study of the fish pool", SCHEMA["$defs"]["contrast"]["properties"]),
        ("Parameters of the fish pool", SCHEMA["$defs"]["commons_parameters"]["properties"]),
        (
            "A study of the dictator game",
            {key: kind for key, kind in SCHEMA["$defs"]["dictator"]["properties"].items() if key not in shared},
        ),
        ("A study of the dictator game", SCHEMA["$defs"]["decision_file"]["properties"]),
        (
            "A study of the dictator game",
            {"replicates": SCHEMA["$defs"]["model_oracle"]["properties"]["replicates"]},
        ),
    ]
    return [
        (section, key, {**SCHEMA["$defs"].get(kind.get("$ref", "").rpartition("/")[2], {}), **kind})
        for section, properties in sections
        for key, kind in properties.items()
    ]


@pytest.mark.parametrize(("section", "key", "kind"), documented())
def test_the_readme_explains_every_key_with_its_default(section, key, kind):
    part = README.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    row = re.search(rf"^\| `(?:(?:lanes|servers)\.NAME\.)?{key}` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", part, re.MULTILINE)
    assert row, f"{key} has no row in config/README.md"
    if "default" in kind:
        assert yaml.safe_load(row[1].strip("`")) == kind["default"]
    else:
        assert not row[1].startswith("`")
    if kind:
        assert kind["description"]
    assert key in "".join(written for written, _ in readme_faults()) or key == "player"


def test_the_schema_has_the_defaults_of_the_game():
    defaults = {one.name: one.default for one in dataclasses.fields(Parameters)}
    kinds = SCHEMA["$defs"]["prisoners_dilemma_parameters"]["properties"]
    schema = {key: tuple(kind["default"]) if key == "agent_ids" else kind["default"] for key, kind in kinds.items()}
    assert {key: schema[key] for key in schema if key not in study._FOR_MODELS} == defaults


def test_the_default_strategy_set_can_be_fitted():
    chosen = SCHEMA["$defs"]["strategy_set"]["default"]
    assert not [name for name in chosen if STRATEGIES[name].stochastic]


def test_the_schema_has_the_defaults_of_the_fish_pool():
    kinds = SCHEMA["$defs"]["commons_parameters"]["properties"]
    plain = {"agents": ["5*honest_sustainable"], "twins": [*commons_twins], "lane": "standard"}
    for one in dataclasses.fields(commons.Parameters):
        value = sorted(one.default) if isinstance(one.default, frozenset) else one.default
        assert kinds[one.name]["default"] == plain.get(one.name, value)
    assert kinds.keys() - {one.name for one in dataclasses.fields(commons.Parameters)} == {"twins", "lane", "prompts"}
    assert kinds["twins"]["default"] == plain["twins"]


# ── The fish pool ────────────────────────────────────────────────────────────────────────────────────────────────


def pool(base: Any = None, condition: Any = None, **keys: Any) -> dict[str, Any]:
    return {
        "studies": {
            "pool": {"game": "commons", "seeds": 2, "base": base or {}, "conditions": {"one": condition or {}}} | keys
        }
    }


def test_groups_are_written_out_and_true_is_a_word():
    given = pool({"agents": ["2*salami", "grim"]}, {"reveal": True, "fine": 2, "channels": ["report"]})
    (one,) = study.load(given).studies
    (condition,) = one.conditions
    assert condition.parameters["agents"] == ["salami", "salami", "grim"]
    assert (condition.parameters["reveal"], condition.parameters["fine"]) == ("true", 2.0)
    assert (condition.runs_per_seed, condition.players, one.players) == (1, (), ())
    assert (one.questions, one.contrasts) == ((), ())


def test_contrasts_know_their_study_and_question():
    given = pool(questions=["rq02", "rq04"], contrasts=[{"metric": "payoff", "a": "one", "b": "one", "player": "grim"}])
    (one,) = study.load(given).studies
    assert one.contrasts == (
        {"question": "rq02, rq04", "study": "pool", "metric": "payoff", "a": "one", "b": "one", "player": "grim"},
    )


@pytest.mark.parametrize(
    ("base", "condition", "said"),
    [
        ({"channels": ["promise"]}, {"fine": 2}, "one.fine is 2 without reports that it could punish; add report"),
        ({"fine": 2}, {"channels": ["promise"]}, "one.fine is 2 without reports that it could punish; add report"),
        ({}, {"audit_q": 0.5, "channels": []}, "one.audit_q is 0.5 without reports to audit"),
        ({}, {"channels": ["discuss"]}, "one.channels has discuss without chat; a discussion is made of messages"),
        (
            {"agents": ["101*grim"]},
            {},
            "one.agents has 101 players for 100 tons; there cannot be more agents than fish",
        ),
        ({}, {"speech": "binding_promise", "channels": ["report"]}, "one.speech is binding_promise without promises"),
        ({}, {"collapse": 101}, "one.collapse is 101, above the capacity of 100"),
        ({}, {"growth": 1}, "one.growth is 1; the stock regrows only if growth is above 1"),
        (
            {"agents": ["9" * 9 + "*grim"]},
            {},
            "base.agents[0] is '999999999*grim'; expected a whole number from 1 to 9999",
        ),
        ({}, {"agents": ["*grim"]}, "one.agents[0] is '*grim'; expected a whole number from 1 to 9999 before the *"),
        ({}, {"agents": ["5 * grim"]}, "one.agents[0] is '5 * grim'; expected it without spaces, 5*grim"),
        ({}, {"agents": ["5* grim"]}, "one.agents[0] is '5* grim'; expected it without spaces, 5*grim"),
        ({}, {"agents": [" grim"]}, "one.agents[0] is ' grim'; expected it without spaces, grim"),
        ({}, {"agents": ["0 * grim"]}, "one.agents[0] is '0 * grim'; expected a whole number from 1 to 9999 before"),
        ({}, {"agents": ["2*"]}, "one.agents[0] is '2*', which is no scripted player"),
        ({}, {"agents": []}, "one.agents is a list of 0 items; expected a list of players"),
        ({}, {"reveal": "yes"}, "one.reveal is 'yes'; expected hidden or true"),
    ],
)
def test_a_pool_that_cannot_be_gets_one_sentence(base, condition, said):
    (fault,) = faults_of(pool(base, condition))
    assert said in fault


@pytest.mark.parametrize(
    ("question", "one", "other", "differ"),
    [
        ("rq02", {"agents": ["2*grim", "salami"]}, {"agents": ["grim", "2*salami"]}, "permission, or in the set of pl"),
        ("rq03", {"audit_q": 0.5, "fine": 2}, {"audit_q": 0.5, "fine": 2, "rounds": 3}, "the fine, in audit_q times"),
        ("rq03", {"audit_q": 0.5, "fine": 0}, {"audit_q": 0.1, "fine": 0}, "the fine, in audit_q times"),
        ("rq05", {}, {"rounds": 3}, "speech"),
        ("rq06", {"agents": ["2*grim", "salami"]}, {"agents": ["opportunist", "3*grim"]}, "the number of liars"),
        ("rq07", {"stock": "noisy"}, {"stock": "noisy", "noise": 0.5}, "stock or memory"),
        ("rq08", {"horizon": "unknown"}, {"horizon": "unknown", "rounds": 3}, "horizon"),
    ],
)
def test_a_study_does_not_ask_a_question_that_puts_two_conditions_on_one_place(question, one, other, differ):
    conditions = {"one": one, "other": other, "third": one}
    (fault,) = faults_of(pool(conditions=conditions, questions=["rq01", question]))
    assert f"pool.questions[1] is '{question}', whose figure has one place for the conditions one and other;" in fault
    assert f"let them differ in {differ}" in fault


@pytest.mark.parametrize(
    ("questions", "one", "other"),
    [
        (["rq02"], {}, {"permission": "forbid"}),
        (["rq02"], {"agents": ["grim", "salami"]}, {"agents": ["grim", "greedy_liar"]}),
        (["rq03"], {"audit_q": 0.5, "fine": 2}, {"audit_q": 0.25, "fine": 4}),
        (["rq03"], {"agents": ["grim", "salami"]}, {"agents": ["grim", "greedy_liar"]}),
        (["rq05"], {}, {"speech": "forced_truth"}),
        (["rq06"], {"agents": ["2*grim", "salami"]}, {"agents": ["2*conditional", "salami"]}),
        (["rq06"], {"agents": ["2*grim", "salami"]}, {"agents": ["grim", "2*salami"]}),
        (["rq07"], {"stock": "noisy"}, {"stock": "noisy", "memory": "none"}),
        (["rq08"], {}, {"horizon": "unknown"}),
        (["rq01", "rq04"], {}, {"rounds": 3}),
    ],
)
def test_conditions_with_places_of_their_own_may_be_asked(questions, one, other):
    (asked,) = study.load(pool(conditions={"one": one, "other": other}, questions=questions)).studies
    assert asked.questions == tuple(questions)


def test_the_figures_count_the_same_liars_as_the_check():
    text = (ROOT / "workflow" / "sql" / "commons" / "commons_conditions.sql").read_text(encoding="utf-8")
    named = re.findall(r"agent (?:NOT )?IN \(([^)]*)\)", text)
    assert [set(re.findall(r"'(\w+)'", names)) for names in named] == [LIARS, LIARS]


@pytest.mark.parametrize(
    ("given", "formats"),
    [
        ({}, ("svg", "png", "html", "json")),
        ({"figure_format": "pdf"}, ("svg", "png", "html", "json", "pdf")),
        ({"figure_format": ["png", "pdf"]}, ("svg", "png", "html", "json", "pdf")),
        ({"figure_format": "svg"}, ("svg", "png", "html", "json")),
    ],
)
def test_a_format_is_added_to_those_that_every_figure_has(given, formats):
    assert study.load(pool() | given).figure_formats == formats


def test_formats_are_asked_for_on_the_command_line():
    assert study.overrides(["figure_format=pdf"]) == {"figure_format": "pdf"}
    assert study.overrides(["figure_format=[png,pdf]"]) == {"figure_format": ["png", "pdf"]}
    with pytest.raises(ConfigError, match=r"figure_format\[1\] is 'gif'; expected one of pdf, svg, png, html"):
        study.load(pool() | {"figure_format": ["pdf", "gif"]})
