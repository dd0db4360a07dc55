"""The config, validated: YAML files and mappings go in; studies, conditions and shards come out.

It starts nothing, writes nothing, and knows no rules of a game beyond the limits of its parameters. Types, ranges and
defaults come from `workflow/schemas/config.schema.yaml`; `config/README.md` explains every key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import yaml

from fishpool import records
from fishpool.documents import NO_VALUE, NOT_PLAIN, is_plain, locate, read_documents
from fishpool.games.commons import impossible, parameters_of
from fishpool.games.prisoners_dilemma import PERSPECTIVE_WORDS, RESIGN
from fishpool.oracles.decisions import decisions_file, published
from fishpool.oracles.formal import resolve
from fishpool.players.commons import LIARS
from fishpool.players.commons import PLAYERS as COMMONS_PLAYERS
from fishpool.players.scripted import STRATEGIES
from fishpool.screen import is_text, visible
from fishpool.seats import SCRIPTED
from fishpool.shards import CHECKSUMS, Player, Shard, Site

_REPOSITORY = Path(__file__).resolve().parents[1]
DEFAULT_CONFIG = _REPOSITORY / "config" / "config.yaml"
SCHEMA = _REPOSITORY / "workflow" / "schemas" / "config.schema.yaml"
FIGURE_FORMATS = (
    "svg",
    "png",
    "html",
    "json",
)  # of every figure; the last, a Vega-Lite specification, is for the report

KeyPath: TypeAlias = tuple[str | int, ...]  # keys of mappings and indices of lists, from the top


class ConfigError(ValueError):
    """What is wrong with a config: `faults` holds one sentence a fault, each on one line."""

    def __init__(self, faults: Iterable[str]):
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True)
class Condition:
    """One condition of a study with every parameter of its game; `turn_timeout` (seconds) is that of its lane."""

    study: str
    name: str
    game: str
    parameters: dict[str, Any] = field(hash=False)
    players: tuple[Player, ...]
    turn_timeout: float
    files: tuple[str, ...] = ()  # what its play reads besides the sources: documents, a decision file, prompts, a bot
    replay: str | None = None
    recorded: tuple[str, ...] | None = None  # the shards that were found, of games that were played elsewhere
    recorded_replies: bool = False  # whether a model was among those who played them

    @property
    def tables(self) -> tuple[str, ...]:
        """The record tables that it has."""
        return records.tables(self.game, models="model" in self.kinds or self.recorded_replies)

    @property
    def runs_per_seed(self) -> int:
        """One pool or tournament; in a game of two, every unordered pair of players, self-play included."""
        return 1 if self.game in ("commons", "dictator") else len(self.players) * (len(self.players) + 1) // 2

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its players that are not scripted, such as model and process; of a tournament, its oracle's."""
        return tuple(sorted({player.kind for player in self.players} - {SCRIPTED}))

    @property
    def model_calls_per_seed(self) -> int:
        """Calls of language models if every run lasts to its end and every reply can be read, replayed ones too."""
        models = {player.name for player in self.players if player.kind == "model"}
        if not models:
            return 0
        if self.game == "dictator":
            own = self.parameters["self_play"]
            documents = sum(file.endswith(".md") for file in self.files)
            cells = documents * (documents if own else documents - 1)
            return sum(cells * int(player.settings["replicates"]) for player in self.players if player.name in models)
        if self.game == "commons":
            phases = 1 + len({"promise", "report", "chat"} & set(self.parameters["channels"]))
            agents = sum(name in models for name in self.parameters["agents"])
            return agents * phases * int(self.parameters["rounds"])
        seats = len(models) * (len(self.players) + 1)  # each meets every player, and itself from both seats
        return seats * int(self.parameters["rounds"])


@dataclass(frozen=True)
class Study:
    """A validated study; `strategy_set` is what the strategy-frequency estimation fits, empty for games without it.

    `questions` are those whose figures show the study; `contrasts` are mappings with the keys question, study, metric,
    a, b and player; `analysis` is what the analysis of a dictator tournament varies, as JSON values.
    """

    name: str
    game: str
    seeds: tuple[int, ...]
    seeds_per_job: int
    conditions: tuple[Condition, ...]
    players: tuple[Player, ...]
    strategy_set: tuple[str, ...]
    questions: tuple[str, ...] = ()
    note: str = ""  # what a reader of the report should know of it
    contrasts: tuple[dict[str, Any], ...] = field(default=(), hash=False)
    analysis: dict[str, Any] = field(default_factory=dict, hash=False)

    def shards(self, condition: Condition) -> tuple[Shard, ...]:
        """The jobs of one condition: seeds in blocks aligned by value, so that a further seed changes one of them.

        Of recorded games, what was found; their seeds are not known here.
        """
        if condition.recorded is not None:
            return tuple(
                Shard(self.name, condition.name, name, self.game, {}, condition.players, 0.0, ())
                for name in condition.recorded
            )
        blocks: dict[int, list[int]] = {}
        for seed in self.seeds:
            blocks.setdefault(seed // self.seeds_per_job * self.seeds_per_job, []).append(seed)
        return tuple(
            Shard(
                study=self.name,
                condition=condition.name,
                name=f"seeds-{first}",
                game=self.game,
                parameters=condition.parameters,
                players=condition.players,
                turn_timeout=condition.turn_timeout,
                seeds=tuple(block),
                replay=condition.replay,
            )
            for first, block in blocks.items()
        )


@dataclass(frozen=True)
class Config:
    """A validated config: `configured` holds all its studies, `studies` those that `only` leaves.

    `servers` has every key of each server; `journal` is the SQLite file of the models' replies; `report_runs` is
    "sample", "all" or a list of run ids; `figure_formats` are the endings of the figures' files.
    """

    results: str
    configured: tuple[Study, ...]
    studies: tuple[Study, ...]
    servers: dict[str, dict[str, Any]] = field(default_factory=dict, hash=False)
    journal: str = ""
    offline: bool = False
    figure_formats: tuple[str, ...] = FIGURE_FORMATS
    report_runs: str | tuple[str, ...] = "sample"

    @property
    def site(self) -> Site:
        """Where its games are played."""
        return Site(self.servers, self.journal, self.offline, logs=f"{self.results}/logs/players")


def load_files(paths: Sequence[Path], overrides: Mapping[str, Any] | None = None) -> Config:
    """The default config, the files over it in their order, then `overrides`, merged as Snakemake merges them.

    Raises ConfigError with every fault of every file and of the merged config.
    """
    review = _review(paths)
    if overrides:
        review.layers.append((_COMMAND_LINE, _plain(overrides, review, _COMMAND_LINE)))
    for _, layer in review.layers:
        review.config = _merge(review.config, layer)
    return _config(review)


def read_files(paths: Sequence[Path]) -> None:
    """Raises ConfigError with every fault for which the default config or one of the files cannot be read as data."""
    review = _review(paths)
    if review.faults:
        raise ConfigError(review.faults.values())


def _review(paths: Sequence[Path]) -> _Review:
    """The default config and the files over it, in the order in which they are merged."""
    review = _Review()
    review.read(paths if DEFAULT_CONFIG in [path.resolve() for path in paths] else [DEFAULT_CONFIG, *paths])
    return review


def load(config: Mapping[str, Any], files: Sequence[Path] = ()) -> Config:
    """A config that Snakemake has merged already; `files` are those it was merged from, later ones over earlier ones.

    The files are read again only for what merging hides (a key written twice) and to say in which one a fault is. The
    default config counts as the first of them wherever it stands: Snakemake names it last. Raises ConfigError with
    every fault.
    """
    review = _Review()
    review.read(sorted(files, key=lambda file: file.resolve() != DEFAULT_CONFIG))
    review.config = _plain(config, review, _COMMAND_LINE)
    return _config(review)


def overrides(entries: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE from a command line, each value read as `snakemake --config` reads it: texts inside it stay texts."""
    values: dict[str, Any] = {}
    for entry in entries:
        key, equals, text = entry.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][\w-]*\w", key):
            raise ConfigError([f"{_COMMAND_LINE}: found {_show(entry)}; expected KEY=VALUE, such as only=round_robin"])
        values = _merge(values, {key: _override(text)})
    return values


def _override(text: str) -> Any:
    words = {"True": True, "False": False, "": None}
    if text in words:
        return words[text]
    for read in (int, float, lambda text: yaml.load(text, yaml.BaseLoader)):
        try:
            return read(text)
        except (ValueError, yaml.YAMLError, RecursionError):
            continue
    return text


def _config(review: _Review) -> Config:
    _check_schema(review)
    _check_only(review)
    for name in review.keys(("studies",)):
        check = _CHECKS.get(review.sound(("studies", name, "game")))
        if check:
            check(review, ("studies", name))
    if review.faults:
        raise ConfigError(review.faults.values())
    given = review.config
    results = Path(given.get("results", _default("results"))).as_posix()
    studies = tuple(
        _recorded_study(name, study, Path(results)) if study.get("recorded") else _study(name, study, given)
        for name, study in given["studies"].items()
    )
    only = given.get("only", [study.name for study in studies])
    formats = given.get("figure_format", [])
    report_runs = given.get("report_runs", _default("report_runs"))
    return Config(
        results=results,
        configured=studies,
        studies=tuple(study for study in studies if study.name in ([only] if isinstance(only, str) else only)),
        servers={name: _server(server) for name, server in _servers(given).items()},
        journal=given.get("journal") or f"{results}/journal.sqlite",
        offline=given.get("offline", _default("offline")),
        figure_formats=tuple(dict.fromkeys([*FIGURE_FORMATS, *([formats] if isinstance(formats, str) else formats)])),
        report_runs=report_runs if isinstance(report_runs, str) else tuple(report_runs),
    )


def _servers(given: Mapping[str, Any]) -> dict[str, Any]:
    return {**_default("servers"), **given.get("servers", {})}


def _server(given: Mapping[str, Any]) -> dict[str, Any]:
    """Every key of a server; one without addresses has those of the default server of its kind."""
    kinds = _definition("server")["properties"]
    usual = next(server for server in _default("servers").values() if server["kind"] == given["kind"])
    values = {key: given.get(key, kind.get("default")) for key, kind in kinds.items()}
    return {**values, "endpoints": given.get("endpoints", usual["endpoints"])}


def _study(name: str, given: Mapping[str, Any], config: Mapping[str, Any]) -> Study:
    game, servers = given["game"], _servers(config)
    if game == "dictator":
        return _dictator_study(name, given, servers)
    lanes = {**_default("lanes"), **config.get("lanes", {})}
    players = tuple(_player(entry, servers) for entry in given.get("players", ()))
    conditions = []
    for condition, overrides in given["conditions"].items():
        parameters = _parameters(game, given.get("base", {}), overrides, [player.name for player in players])
        timeout = float(lanes[parameters["lane"]]["turn_timeout"])
        there = [player for player in players if game != "commons" or player.name in parameters["agents"]]
        files = _files(game, parameters["prompts"], there, given.get("replay"))
        if not any(player.kind == "model" for player in there):
            parameters = {key: value for key, value in parameters.items() if key not in _FOR_MODELS}
        conditions.append(
            Condition(name, condition, game, parameters, tuple(there), timeout, files, given.get("replay"))
        )
    seeds = given["seeds"]
    optional = {
        key: given.get(key, _property(_definition(game), key)["default"])
        for key in _definition(game)["properties"]
        if key in ("strategy_set", "questions", "contrasts")
    }
    questions = tuple(optional.get("questions", ()))
    asked = {"question": ", ".join(questions), "study": name, "player": None}
    return Study(
        name=name,
        game=game,
        seeds=tuple(sorted(map(int, seeds)) if isinstance(seeds, list) else range(int(seeds))),
        seeds_per_job=int(given.get("seeds_per_job", _definition("seeds_per_job")["default"])),
        conditions=tuple(conditions),
        players=players,
        strategy_set=tuple(optional.get("strategy_set", ())),
        questions=questions,
        note=given.get("note", ""),
        contrasts=tuple(asked | contrast for contrast in optional.get("contrasts", ())),
    )


def _recorded_study(name: str, given: Mapping[str, Any], results: Path) -> Study:
    """The conditions and shards that people or the arena have left in the results; none is no fault."""
    game = given["game"]
    found: dict[str, list[Path]] = {}
    for sums in sorted((results / "jsonl" / name).glob(f"*/*/{CHECKSUMS}")):
        shard = sums.parent
        if is_name(shard.name) and is_name(shard.parent.name):
            found.setdefault(shard.parent.name, []).append(shard)
    conditions = []
    for condition, shards in found.items():
        replies = any((shard / "replies.jsonl").exists() for shard in shards)
        names = tuple(shard.name for shard in shards)
        conditions.append(Condition(name, condition, game, {}, (), 0.0, recorded=names, recorded_replies=replies))
    strategies = given.get("strategy_set", _definition("strategy_set")["default"])
    return Study(
        name=name,
        game=game,
        seeds=(),
        seeds_per_job=1,
        note=given.get("note", ""),
        conditions=tuple(conditions),
        players=(),
        strategy_set=tuple(strategies) if game == "prisoners_dilemma" else (),
    )


_FOR_MODELS = ("prompts", "labels", "label_order")  # parameters that nobody else sees


def _files(game: str, prompts: str, players: Iterable[Player], replay: str | None) -> tuple[str, ...]:
    """What the play of these players reads besides the sources."""
    files = []
    for player in players:
        if player.kind == "model":
            files += [str(locate(replay))] if replay else []
            files += map(str, sorted((locate(prompts) / game).glob("*.txt")))
        elif player.kind == "process":
            from fishpool.players.process import files_of

            files += map(str, files_of(player.settings["process"]))
    return tuple(dict.fromkeys(files))


def _parameters(
    game: str, base: Mapping[str, Any], overrides: Mapping[str, Any], outsiders: Collection[str] = ()
) -> dict[str, Any]:
    """Every parameter of a condition, each in the one form that equal values share."""
    kinds = _definition(f"{game}_parameters")["properties"]
    given = {key: kind["default"] for key, kind in kinds.items()} | dict(base) | dict(overrides)
    parameters = {key: _exact(value, kinds[key]) for key, value in given.items()}
    if game == "commons":
        parameters["agents"] = [name for entry in parameters["agents"] for name in _agents(entry)]
        if parameters["reveal"] is True:  # which YAML makes of the word true
            parameters["reveal"] = "true"
        if not {"twins"} & {*base, *overrides} and not set(outsiders).isdisjoint(parameters["agents"]):
            parameters["twins"] = []
    return parameters


def _dictator_study(name: str, given: Mapping[str, Any], servers: Mapping[str, Any]) -> Study:
    """One condition an oracle, each with one shard: nothing is drawn, so there is one seed."""
    kinds = _definition("dictator")["properties"]
    values = {key: given.get(key, kind.get("default")) for key, kind in kinds.items()}
    own = {key: _exact(values[key], kinds[key]) for key in ("self_play", "endowment", "utility")}
    folder = values["strategies"]
    documents = [str(file) for file in sorted(locate(folder).glob("*.md"))]
    conditions = []
    for player in _oracles(values["oracles"], servers):
        parameters = {**own, "strategies": folder, "oracle": player.kind, "decisions": player.settings.get("decisions")}
        files = [*documents]
        if parameters["decisions"]:
            files.append(str(locate(parameters["decisions"])))
        if player.kind == "model":
            parameters["prompts"] = values["prompts"]
            files += _files("dictator", values["prompts"], [player], values["replay"])
        conditions.append(
            Condition(name, player.name, "dictator", parameters, (player,), 0.0, tuple(files), values["replay"])
        )
    analysis = {key: values[key] for key in ("betas", "starts", "draws")} | own
    return Study(
        name=name,
        game="dictator",
        seeds=(0,),
        seeds_per_job=1,
        note=given.get("note", ""),
        conditions=tuple(conditions),
        players=tuple(condition.players[0] for condition in conditions),
        strategy_set=(),
        analysis=analysis,
    )


def _oracles(entries: Iterable[Any], servers: Mapping[str, Any]) -> list[Player]:
    """The oracles as players of their kind; `formal` gives its greatest and its least fixed point."""
    oracles: list[Player] = []
    for entry in entries:
        if isinstance(entry, str):
            names = [entry, "formal_least"] if entry == "formal" else [entry]
            oracles += [Player(name, name, {}) for name in names]
        elif "model" in entry:
            replicates = int(
                entry.get("replicates", _definition("model_oracle")["properties"]["replicates"]["default"])
            )
            settings = {**_model(entry, servers), "replicates": replicates}
            name = entry.get("name") or _as_name(settings["name"]).replace(".", "-")
            oracles.append(Player(name, "model", settings))
        else:
            settings = {"decisions": entry["decisions"]}
            oracles.append(Player(entry.get("name", Path(entry["decisions"]).stem), "decisions", settings))
    return oracles


def _player(entry: str | Mapping[str, Any], servers: Mapping[str, Any]) -> Player:
    """A player of the config; its name is one of its own, or made of what plays."""
    if isinstance(entry, str):
        entry = {"player": entry}
    if "model" in entry:
        settings = _model(entry, servers)
        return Player(entry.get("name") or _as_name(settings["name"]), "model", settings)
    if "process" in entry:
        kinds = _definition("process_player")["properties"]
        settings = {key: entry.get(key, kind.get("default")) for key, kind in kinds.items() if key != "name"}
        return Player(entry.get("name") or _as_name(_program(entry["process"])), "process", settings)
    library, _, strategy = entry["player"].rpartition(":")
    kind = library or SCRIPTED
    return Player(entry.get("name") or _as_name(entry["player"]), kind, {"strategy": strategy})


def name_of(entry: Mapping[str, Any]) -> str:
    """What a player of this entry is called: by its own name, or one made of what plays."""
    return _player(entry, {}).name


_SAMPLING = ("temperature", "top_p", "top_k", "min_p")


def _model(entry: Mapping[str, Any], servers: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `models.calls.Model`."""
    server, _, name = entry["model"].partition("/")
    if not name or server not in servers:
        server, name = "ollama", entry["model"]
    kinds = _definition("model_player")["properties"]
    settings = {key: _exact(entry.get(key, kind["default"]), kind) for key, kind in kinds.items() if "default" in kind}
    sampling = {key: _exact(entry[key], kinds[key]) for key in _SAMPLING if key in entry}
    return {**settings, "server": server, "name": name, "sampling": sampling}


def _program(command: str) -> str:
    """What a command is called: `my_bot` of `python bots/my_bot.py --fast`."""
    words = command.split()
    named = [word for word in words if not word.startswith("-")]
    return Path((*named[1:], *named, *words, "")[0]).stem


def _as_name(text: str) -> str:
    """The nearest text that can stand in tables, run ids and names of files: `llama3.1-8b` of `llama3.1:8b`."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-_.")[:64] or "player"


def _agents(entry: str) -> list[str]:
    """The players of one entry: `4*salami` is four times salami, `salami` is one."""
    number, _, name = entry.rpartition("*")
    return [name] * (int(number) if number else 1)


def _exact(value: Any, kind: Mapping[str, Any]) -> Any:
    """One form for equal numbers (1 and 1.0, 0 and -0), because a job is compared with its predecessor as text."""
    types = kind["type"] if isinstance(kind["type"], list) else [kind["type"]]
    if value is None:
        return None
    if "integer" in types:
        return int(value)
    return float(value) + 0.0 if "number" in types else value


# ── What the schema cannot say ───────────────────────────────────────────────────────────────────────────────────


def _check_only(review: _Review) -> None:
    only = review.config.get("only") if isinstance(review.config, Mapping) else None
    for path in [("only",)] if isinstance(only, str) else review.items(("only",)):
        name = review.sound(path)
        if name is not None and name not in review.keys(("studies",)):
            review.add(path, f"is {_show(name)}, which is no study{_nearest(name, review.keys(('studies',)))}")


def _check_prisoners_dilemma(review: _Review, study: KeyPath) -> None:
    places = _check_lanes(review, study)
    for parameters in places:
        for path in review.items((*parameters, "agent_ids")):
            agent = review.sound(path)
            if agent is not None and agent.casefold() in PERSPECTIVE_WORDS:
                review.add(
                    path,
                    f"is {_show(agent)}, a word whose meaning depends on who reads it; "
                    "name the agent by an id such as agent_1",
                )
        for path in review.items((*parameters, "labels")):
            if review.sound(path) == RESIGN:
                review.add(path, f"is {_show(RESIGN)}, which is the word for giving up; call the choice something else")
    _check_players(review, (*study, "players"))
    _check_models(review, study, "players", places)
    for path in review.items((*study, "strategy_set")):
        _check_strategy(review, path)
        name = review.sound(path)
        if name is not None and STRATEGIES[name].stochastic:
            review.add(
                path,
                f"is {_show(name)}, which draws its choices by chance; "
                "the estimation fits strategies without chance, so take it out",
            )


def _check_lanes(review: _Review, study: KeyPath) -> list[KeyPath]:
    """Faults for lanes that there are not; the places of all parameters of a study."""
    lanes = [*_default("lanes"), *review.keys(("lanes",))]
    places = [(*study, "base"), *((*study, "conditions", key) for key in review.keys((*study, "conditions")))]
    for parameters in places:
        lane = review.sound((*parameters, "lane"))
        if lane is not None and lane not in lanes:
            review.add((*parameters, "lane"), f"is {_show(lane)}, which is no lane{_nearest(lane, lanes)}")
    return places


def _check_players(review: _Review, players: KeyPath, taken: Collection[str] = ()) -> None:
    """Faults of players; names that are `taken` already cannot be given again."""
    servers = _sound_servers(review)
    seen = set(taken)
    for path in review.items(players):
        value = review.at(path)
        if isinstance(value, str) or (isinstance(value, Mapping) and "player" in value):
            _check_strategy(review, path if isinstance(value, str) else (*path, "player"), axelrod=True)
        entry = review.sound(path)
        if entry is None:
            continue
        if isinstance(entry, Mapping) and "process" in entry:
            _check_command(review, (*path, "process"), entry["process"])
        player = _player(entry, servers)
        if player.name in seen:
            given = {"player": entry} if isinstance(entry, str) else entry
            kind = next(key for key in ("model", "process", "player") if key in given)
            review.add(
                path,
                f"is a second player named {player.name}; give it a name of its own, "
                f"such as {{{kind}: {given[kind]}, name: {player.name[:60]}-2}}",
            )
        seen.add(player.name)


def _sound_servers(review: _Review) -> dict[str, Any]:
    """The servers of a config that may have faults."""
    given = review.config.get("servers") if isinstance(review.config, Mapping) else None
    return {**_default("servers"), **(given if isinstance(given, Mapping) else {})}


def _check_command(review: _Review, path: KeyPath, command: str) -> None:
    from fishpool.players.process import files_of

    try:
        odd = [file for file in files_of(command) if not is_plain(file)]
    except ValueError as fault:
        review.add(path, f"is {_show(command)}, which cannot be started: {fault}")
    else:
        if odd:
            review.add(path, f"is {_show(command)}, where the name of a file {NOT_PLAIN}; rename the file")


def _check_models(review: _Review, study: KeyPath, who: str, places: Iterable[KeyPath]) -> None:
    """The published journal and the prompts of a study; `who` is the key of its players or oracles."""
    replay = review.sound((*study, "replay"))
    if replay is not None and not locate(replay).is_file():
        review.add((*study, "replay"), f"is {_show(replay)}, and there is no such file")
    entries = [review.sound(path) for path in review.items((*study, who))]
    if not any(isinstance(entry, Mapping) and "model" in entry for entry in entries):
        return
    from fishpool.prompts import read_prompts

    game = review.at((*study, "game"))
    usual = _definition("dictator")["properties"]["prompts"]["default"]
    folders = {(*place, "prompts"): review.sound((*place, "prompts")) for place in places}
    for path, folder in folders.items():
        if folder is not None or path == next(iter(folders)):
            try:
                read_prompts(locate(folder or usual), game)
            except ValueError as fault:
                review.add(path, f"is {_show(folder or usual)}, which cannot be used: {fault}")


def _check_strategy(review: _Review, path: KeyPath, *, axelrod: bool = False) -> None:
    name = review.sound(path)
    if name is None:
        return
    if axelrod and name.startswith("axelrod:"):
        from fishpool.players.axelrod import fault_of

        says = fault_of(name.removeprefix("axelrod:"))
        if says:
            review.add(path, f"is {_show(name)}, {says}")
    elif name not in STRATEGIES:
        review.add(path, f"is {_show(name)}, which is no scripted player{_nearest(name, STRATEGIES)}")


def _check_commons(review: _Review, study: KeyPath) -> None:
    _check_players(review, (*study, "players"), taken=COMMONS_PLAYERS)
    outsiders = _outsiders(review, study)
    known = [*COMMONS_PLAYERS, *outsiders]
    places = _check_lanes(review, study)
    _check_models(review, study, "players", places)
    for parameters in places:
        reveal = review.sound((*parameters, "reveal"))
        if reveal not in (None, True, "hidden", "true"):
            review.add((*parameters, "reveal"), f"is {_show(reveal)}; expected hidden or true")
        for path in review.items((*parameters, "agents")):
            entry = review.sound(path)
            if entry is not None:
                _check_agents(review, path, entry, known)
    conditions: dict[str, dict[str, Any]] = {}  # the parameters of those without a fault
    base = review.at((*study, "base")) or {}
    if review.sound((*study, "base")) is not None or not base:
        for condition in review.keys((*study, "conditions")):
            place = (*study, "conditions", condition)
            overrides = review.sound(place)
            if overrides is not None:
                filled = _parameters("commons", base, overrides, outsiders)
                faults = impossible(parameters_of(filled))
                if filled["twins"] and not set(outsiders).isdisjoint(filled["agents"]):
                    faults["twins"] = (
                        f"has {filled['twins'][0]}, a replay of the run with other rules or agents: who is not "
                        "scripted cannot be asked what it would have done, so leave twins out"
                    )
                for key, says in faults.items():
                    review.add((*place, key), says)
                if not faults:
                    conditions[condition] = filled
    _check_questions(review, study, conditions)
    for contrast in review.items((*study, "contrasts")):
        for side in "ab":
            name = review.sound((*contrast, side))
            there = review.keys((*study, "conditions"))
            if name is not None and name not in there:
                review.add((*contrast, side), f"is {_show(name)}, which is no condition{_nearest(name, there)}")
        player = review.sound((*contrast, "player"))
        if player is not None and player not in known:
            review.add((*contrast, "player"), f"is {_show(player)}, which is no player{_nearest(player, known)}")


def _outsiders(review: _Review, study: KeyPath) -> list[str]:
    """The names of a fish pool's players that are not scripted, as far as they are sound."""
    servers = _sound_servers(review)
    entries = (review.sound(path) for path in review.items((*study, "players")))
    return [_player(entry, servers).name for entry in entries if entry is not None]


def _check_questions(review: _Review, study: KeyPath, conditions: Mapping[str, Mapping[str, Any]]) -> None:
    """A fault for a question whose figure would draw two of the conditions over each other."""
    for path in review.items((*study, "questions")):
        question = review.sound(path)
        if question not in _PLACES:
            continue
        differ, place = _PLACES[question]
        seen: dict[Any, str] = {}
        for name, parameters in conditions.items():
            other = seen.setdefault(place(parameters), name)
            if other != name:
                review.add(
                    path,
                    f"is {_show(question)}, whose figure has one place for the conditions {_show_key(other)} and "
                    f"{_show_key(name)}; let them differ in {differ}, or leave the question out",
                )


def _liars_and_others(parameters: Mapping[str, Any]) -> tuple[int, frozenset[str]]:
    agents = parameters["agents"]
    return sum(name in LIARS for name in agents), frozenset(agents) - LIARS


# What tells the conditions of a study apart in a figure: in words, and as a value. RQ1 has a panel for each condition,
# RQ4 shows all together.
_PLACES: dict[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] = {
    "rq02": (
        "permission, or in the set of players",
        lambda given: (given["permission"], tuple(dict.fromkeys(given["agents"]))),
    ),
    "rq03": (
        "the fine, in audit_q times fine, or in who fishes",
        lambda given: (given["fine"], given["audit_q"] * given["fine"], frozenset(given["agents"])),
    ),
    "rq05": ("speech", lambda given: given["speech"]),
    "rq06": ("the number of liars, or in who the others are", _liars_and_others),
    "rq07": ("stock or memory", lambda given: (given["stock"], given["memory"])),
    "rq08": ("horizon", lambda given: given["horizon"]),
}


_GROUP = r"([1-9][0-9]{0,3}\*)?[^*]*"  # 4*salami, salami


def _check_agents(review: _Review, path: KeyPath, entry: str, known: Collection[str]) -> None:
    _, times, name = entry.rpartition("*")
    close = "".join(entry.split())
    if close != entry and re.fullmatch(_GROUP, close) and close.rpartition("*")[2] in known:
        review.add(path, f"is {_show(entry)}; expected it without spaces, {close}")
    elif times and not re.fullmatch(_GROUP, entry):
        review.add(path, f"is {_show(entry)}; expected a whole number from 1 to 9999 before the *")
    elif name not in known:
        noun = "player" if len(known) > len(COMMONS_PLAYERS) else "scripted player"
        review.add(path, f"is {_show(entry)}, which is no {noun}{_nearest(name, known)}")


def _check_dictator(review: _Review, study: KeyPath) -> None:
    """The strategy documents, and whether each oracle can answer for all of them."""
    folder = review.sound((*study, "strategies"))
    if folder is None:
        folder = _definition("dictator")["properties"]["strategies"]["default"]
        if review.at((*study, "strategies")) is not None:
            return
    if not any(locate(folder).glob("*.md")):
        review.add(
            (*study, "strategies"), f"is {_show(folder)}, where no strategy document (*.md) is; add one a strategy"
        )
        return
    try:
        documents = read_documents(locate(folder))
    except ValueError as faults:
        for fault in str(faults).splitlines():
            source, _, says = fault.partition(": ")
            review.add_file(source, says)
        return
    _check_models(review, study, "oracles", [study])
    if len(documents) == 1 and review.sound((*study, "self_play")) is False:
        says = "is false with one strategy document, so that nobody would play; add a document, or let it play itself"
        review.add((*study, "self_play"), says)
    names = [document.name for document in documents]
    seen: set[str] = set()
    for path in review.items((*study, "oracles")):
        entry = review.sound(path)
        if entry is None:
            continue
        for oracle in _oracles([entry], _sound_servers(review)):
            name, kind, file = oracle.name, oracle.kind, oracle.settings.get("decisions")
            if name in seen:
                review.add(path, f"is a second oracle named {name}; give it a name of its own")
            elif not is_name(name):
                review.add(path, f"needs a name: {_show(name)} cannot be one; add name: ..")
            seen.add(name)
            try:
                if kind == "published":
                    published(names)
                elif kind == "formal":
                    resolve(documents)
                elif file is not None:
                    decisions_file(locate(file), names)
            except OSError as fault:
                review.add(path, f"names the decision file {_show(file)}, which cannot be read: {fault.strerror}")
            except ValueError as faults:
                first, *more = str(faults).splitlines()
                review.add(path, f"cannot be asked: {first}{_and_more(len(more))}")


def _and_more(faults: int) -> str:
    return f" (and {faults} more fault{'' if faults == 1 else 's'})" if faults else ""


_CHECKS = {
    "prisoners_dilemma": _check_prisoners_dilemma,
    "commons": _check_commons,
    "dictator": _check_dictator,
}


# ── The schema, and what it finds in sentences ───────────────────────────────────────────────────────────────────


@cache
def _schema() -> dict[str, Any]:
    return yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))


def _definition(name: str) -> dict[str, Any]:
    return _schema()["$defs"][name]


def _default(key: str) -> Any:
    return _schema()["properties"][key]["default"]


def _check_schema(review: _Review) -> None:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import extend

    checker = FormatChecker(formats=())
    for name, (holds, _) in _FORMATS.items():
        checker.checks(name)(holds)
    validator = extend(Draft202012Validator, {"uniqueItems": _repeated_items})(  # type: ignore[no-untyped-call]
        _schema(), format_checker=checker
    )
    for error in validator.iter_errors(review.config):
        _add_schema_fault(review, error)


def is_name(text: str) -> bool:
    """Whether a study or a condition can be called so."""
    return bool(re.fullmatch(_definition("name")["pattern"], text)) and _can_be_a_wildcard(text)


def _can_be_a_wildcard(value: object) -> bool:
    """Whether Snakemake takes a name for a wildcard's value: not if its end repeats, as of a file made of itself."""
    return not isinstance(value, str) or len(value) > 64 or not re.search(r"(.+)\1{19}$", value)


def _can_be_a_path(value: object) -> bool:
    """Whether every part of a name, in bytes, is one that file systems hold."""
    parts = value.encode("utf-8", "surrogatepass").split(b"/") if isinstance(value, str) else []
    return all(len(part) <= 255 for part in parts)


def _can_be_an_address(value: object) -> bool:
    """Whether what begins as an address has a host and a port: not `http://[` or `http://x:999999`."""
    if not isinstance(value, str) or not value.startswith("http"):
        return True
    try:
        parts = urlsplit(value)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


# The formats of the schema: whether a value has it, and what is expected where it has not.
_FORMATS: dict[str, tuple[Callable[[object], bool], str]] = {
    "name": (_can_be_a_wildcard, "a name whose end is not 20 times the same, which Snakemake refuses"),
    "path": (_can_be_a_path, "a name without parts of more than 255 bytes"),
    "address": (_can_be_an_address, "an address such as http://127.0.0.1:8000/v1, its port at most 65535"),
}


def _repeated_items(validator: Any, unique: bool, items: Any, schema: Any) -> Iterator[Any]:
    """The keyword uniqueItems with one error for each item that came before, in linear time."""
    from jsonschema import ValidationError

    seen = set()
    for index, item in enumerate(items if unique and isinstance(items, list) else []):
        key = item if isinstance(item, int | float) and not isinstance(item, bool) else json.dumps(item, sort_keys=True)
        if key in seen:
            yield ValidationError("repeated", path=[index], instance=item)
        seen.add(key)


def _add_schema_fault(review: _Review, error: Any) -> None:
    path, found, schema = tuple(error.absolute_path), error.instance, error.schema
    secret = path[:1] == ("servers",) and isinstance(found, str) and re.search("[@?#=&]", found)  # of an address
    shown = "text that may hold a password or key, and so is not shown" if secret else _show(found)
    if path[-1:] == ("api_key",):  # which may be the key itself
        says = "is not the name of an environment variable; expected one such as OPENAI_API_KEY, or null"
        review.add(path, says)
    elif "propertyNames" in error.schema_path:
        expected = _FORMATS[schema["format"]][1] if error.validator == "format" else _expected(schema)
        review.add((*path, found), f"is not a name that can be used; expected {expected}")
    elif error.validator == "required":
        _add_missing_keys(review, path, found, schema)
    elif error.validator == "additionalProperties":
        _add_unknown_keys(review, path, found, schema)
    elif error.validator == "format":
        review.add(path, f"is {shown}; expected {_FORMATS[schema['format']][1]}")
    elif error.validator == "uniqueItems":
        review.add(path, f"is {shown} again; each may be there once only")
    elif error.validator == "enum":
        review.add(path, f"is {shown}{_nearest(found, error.validator_value)}")
    else:
        text = "the text " if error.validator == "type" and isinstance(found, str) and not secret else ""
        hint = _hint(found, schema, review.source(path))
        review.add(path, f"is {text}{shown}; expected {_expected(schema)}{hint}")


def _add_missing_keys(review: _Review, path: KeyPath, found: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    unknown = _unknown_keys(found, schema)
    for key in schema.get("required", ()):
        if key in found or any(_nearest_of(other, [key]) for other in unknown):
            continue  # a misspelling is reported in its own place
        if unknown and "string" in schema["type"]:  # a mapping of another kind, where a name would do as well
            review.add(path, f"is a mapping with {_list_of(found, 'key')}; expected {_expected(schema)}")
        else:
            review.add((*path, key), f"is missing; expected {_expected(_property(schema, key))}")


def _add_unknown_keys(review: _Review, path: KeyPath, found: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    _add_missing_keys(review, path, found, schema)
    if path not in review.faults:
        for key in _unknown_keys(found, schema):
            says = f"is an unknown key{_nearest(key, schema['properties'])}"
            review.add((*path, key), says)


def _unknown_keys(found: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    return [key for key in found if key not in schema["properties"]] if "additionalProperties" in schema else []


def _property(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    kind: Mapping[str, Any] = schema["properties"][key]
    return {**_definition(kind["$ref"].rpartition("/")[2]), **kind} if "$ref" in kind else kind


def _expected(schema: Mapping[str, Any]) -> str:
    """What a schema allows, in words: its title, or its type and range."""
    if "title" in schema:
        return str(schema["title"])
    kind, *rest = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = {"integer": "a whole number", "number": "a number", "string": "text"}[kind]
    if "exclusiveMinimum" in schema:
        words += f" above {schema['exclusiveMinimum']} and up to {schema['maximum']}"
    elif "minimum" in schema:
        words += f" from {schema['minimum']} to {schema['maximum']}"
    return " or ".join([words, *rest])


def _hint(found: Any, schema: Mapping[str, Any], source: str) -> str:
    """What to do about a value that merely looks as if it had the right type."""
    types = schema.get("type", ())
    if found is None and "object" in types and "required" not in schema:
        return "; write {} for an empty mapping"
    if isinstance(found, str) and ("integer" in types or "number" in types):
        try:
            number = float(found)
        except ValueError:
            return ""
        if source == _COMMAND_LINE:
            return "; inside a --config value everything is text, so write it in a --configfile"
        if math.isfinite(number):
            return f"; write {int(number) if number.is_integer() and abs(number) < 1e15 else number} without quotes"
    if isinstance(found, int | float) and types == "string" and source != _COMMAND_LINE:
        return f"; write it in quotes, '{found}'"
    return ""


_FEW = 12  # so many names fit in a sentence besides the one that was meant


def _nearest(name: Any, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is not known: what there is, and which one was probably meant."""
    known = list(known)
    near = _nearest_of(name, known)
    meant = f"; did you mean {_show_key(near)}?" if near else ""
    if near and len(known) > _FEW:
        return meant
    return f"; expected {'one of ' if len(known) > 1 else ''}{', '.join(map(_show_key, known)) or 'none'}{meant}"


def _nearest_of(name: Any, known: Iterable[str]) -> str | None:
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name[:100].casefold(), folded, n=1) if isinstance(name, str) else []
    return folded[near[0]] if near else None


# ── What is under review, and its faults ─────────────────────────────────────────────────────────────────────────

_COMMAND_LINE = "--config"
_MISSING = object()


class _Review:
    """A config while it is checked: the layers it was merged from (name, content), the merged tree, and the faults.

    Each place has one fault at most: a second one is an echo of the first.
    """

    def __init__(self) -> None:
        self.layers: list[tuple[str, Any]] = []
        self.config: Any = {}
        self.faults: dict[Any, str] = {}
        self._above_faults: set[KeyPath] = set()

    def add(self, path: KeyPath, says: str, source: str | None = None) -> None:
        """A fault at `path`; the sentence names source and path and goes on with `says`."""
        if path not in self.faults:
            self.faults[path] = visible(f"{source or self.source(path)}: {_show_path(path)} {says}")
            self._above_faults.update(path[:length] for length in range(len(path)))

    def add_file(self, source: str, says: str) -> None:
        """A fault of a file as a whole."""
        self.faults[source, says] = visible(f"{source}: {says}")

    def read(self, paths: Sequence[Path]) -> None:
        """Append a layer for each file that holds a mapping; a fault for each other one."""
        for path in paths:
            layer = _read(path, self)
            if layer is not None:
                self.layers.append((_show_file(path), layer))

    def at(self, path: KeyPath) -> Any:
        """The value at `path`, None where there is none."""
        value = _get(self.config, path)
        return None if value is _MISSING else value

    def sound(self, path: KeyPath) -> Any:
        """The value at `path`, None where there is none or something is wrong with it, in it or above it."""
        if path in self._above_faults or any(path[:length] in self.faults for length in range(len(path) + 1)):
            return None
        return self.at(path)

    def keys(self, path: KeyPath) -> list[str]:
        value = self.at(path)
        return list(value) if isinstance(value, Mapping) else []

    def items(self, path: KeyPath) -> list[KeyPath]:
        """Paths of the items of the list at `path`, none if it is not a list."""
        value = self.at(path)
        return [(*path, index) for index in range(len(value))] if isinstance(value, list) else []

    def source(self, path: KeyPath) -> str:
        """The layer that decides what is at `path`, or at the nearest place above that exists."""
        while path and _get(self.config, path) is _MISSING:
            path = path[:-1]
        value = _get(self.config, path)
        for name, layer in reversed(self.layers):
            here = _get(layer, path)
            if here is not _MISSING:
                return name if isinstance(value, Mapping) or here == value else _COMMAND_LINE
        return _COMMAND_LINE


def _get(tree: Any, path: KeyPath) -> Any:
    for key in path:
        inside = (isinstance(tree, Mapping) and key in tree) or (
            isinstance(tree, list) and isinstance(key, int) and key < len(tree)
        )
        if not inside:
            return _MISSING
        tree = tree[key]
    return tree


def _merge(base: Any, over: Mapping[str, Any]) -> Any:
    """`over` laid over `base` as Snakemake does it: mappings are merged, all else (lists too) is replaced."""
    if not over:
        return base
    merged = dict(base) if isinstance(base, Mapping) else {}
    for key, value in over.items():
        merged[key] = _merge(merged.get(key, {}), value) if isinstance(value, Mapping) else value
    return merged


# ── Reading files ────────────────────────────────────────────────────────────────────────────────────────────────

_TEMPLATE = "__use_yte__"  # makes a template of a file, see https://yte-template-engine.github.io
_DEEPEST = 32
_MOST_VALUES = 1_000_000
_HALF_SAYS = "half a character (a lone surrogate), which no file can hold; write UTF-8"


def _read(path: Path, review: _Review) -> Any:
    """The mapping in a YAML or JSON file, made of JSON values only; None, and a fault, if there is no mapping."""
    name = _show_file(path)
    try:
        text = path.read_bytes().decode("utf-8")
        document = _parse(text, name, review)
    except FileNotFoundError:
        review.add_file(name, "there is no such file; check the name after --configfile")
    except OSError as error:
        review.add_file(name, f"cannot be read: {error.strerror or type(error).__name__}")
    except UnicodeDecodeError as error:
        review.add_file(name, f"is not UTF-8 text (byte {error.start + 1}); save it as UTF-8")
    except yaml.YAMLError as error:
        review.add_file(name, _show_yaml_error(error))
    except RecursionError:
        review.add_file(name, f"is nested more than {_DEEPEST} levels deep; a config has no more than 7")
    except ValueError as error:
        review.add_file(name, f"cannot be read: {_cut(str(error))}")
    else:
        if isinstance(document, Mapping):
            if _TEMPLATE in document:
                review.add(
                    (_TEMPLATE,),
                    "makes Snakemake run Python that stands in the file; a config is data, so take it out",
                    name,
                )
            return _plain(document, review, name)
        found = "is empty" if document is None else f"holds {_show(document)} at the top"
        review.add_file(name, f"{found}; expected a mapping, such as studies: {{..}}")
    return None


def _parse(text: str, name: str, review: _Review) -> Any:
    """JSON where it is JSON, else YAML: the order in which Snakemake tries them."""
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        repeated.extend(key for index, key in enumerate(keys) if key in keys[:index])
        return dict(pairs)

    try:
        document = json.loads(text, object_pairs_hook=unique)
    except ValueError:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_keys(node, (), name, review, loader, set())
            return loader.construct_document(node)
        finally:
            loader.dispose()
    for key in repeated:
        review.add_file(name, f"the key {_show_key(key)} is written twice in one mapping; keep one of them")
    return document


class _Loader(yaml.SafeLoader):
    """SafeLoader that says where a value is that YAML cannot make, such as 2024-13-40, instead of raising whatever."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except NO_VALUE as error:
            raise yaml.constructor.ConstructorError(
                None, None, "found a value that it cannot make sense of", node.start_mark
            ) from error


def _check_keys(
    node: yaml.Node, path: KeyPath, name: str, review: _Review, loader: _Loader, seen: set[yaml.Node]
) -> None:
    """Faults for keys that are written twice, or that YAML takes for something other than text."""
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _check_keys(item, (*path, index), name, review, loader, seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.tag != "tag:yaml.org,2002:str":
            meant = _show(loader.construct_object(key))
            review.add(
                (*path, meant),
                f"is what YAML reads for the key {_show_key(key.value)} in line {line}; write the key in quotes",
                name,
            )
        elif key.value in lines:
            first = lines[key.value]
            review.add((*path, key.value), f"is written in line {first} and again in line {line}; keep one", name)
        lines.setdefault(key.value, line)
        _check_keys(value, (*path, key.value), name, review, loader, seen)


def _plain(tree: Any, review: _Review, source: str) -> Any:
    """A copy made of JSON values only; whatever is none becomes a fault and None, a key that is not text vanishes.

    Raises ConfigError at once where there is no end to it, as when an alias holds itself.
    """
    values = 0

    def copy(value: Any, path: KeyPath) -> Any:
        nonlocal values
        values += 1
        if values > _MOST_VALUES or len(path) > _DEEPEST:
            limit = f"more than {_MOST_VALUES} values" if values > _MOST_VALUES else f"more than {_DEEPEST} levels"
            review.add(path[:1], f"holds {limit}, perhaps because an alias holds itself", source)
            raise ConfigError(review.faults.values())
        if isinstance(value, Mapping):
            copied = {}
            for key, item in value.items():
                if isinstance(key, str) and not is_text(key):
                    review.add((*path, key), f"is a key with {_HALF_SAYS}", source)
                elif isinstance(key, str):
                    copied[key] = copy(item, (*path, key))
                else:
                    review.add((*path, _show(key)), "is a key that is not text; write it in quotes", source)
            return copied
        if isinstance(value, list):
            return [copy(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and not is_text(value):
            review.add(path, f"is {_show(value)}, text with {_HALF_SAYS}", source)
            return None
        if value is None or isinstance(value, str | bool):
            return value
        if isinstance(value, int) and abs(value) < 2**63:
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        expected = "a finite number" if isinstance(value, int | float) else "text, a number, a list or a mapping"
        review.add(path, f"is {_show(value)}; expected {expected}", source)
        return None

    return copy(tree, ())


# ── How things are shown ─────────────────────────────────────────────────────────────────────────────────────────

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


def _cut(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[: length - 2]}.."


def _show(value: Any) -> str:
    if isinstance(value, str):
        return repr(_cut(value))
    if value is None:
        return "empty (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 2**64 else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | Mapping):
        kind, unit = ("a list", "item") if isinstance(value, list) else ("a mapping", "key")
        return f"{kind} of {len(value)} {unit}{'' if len(value) == 1 else 's'}"
    return f"a {type(value).__name__}"


def _list_of(keys: Iterable[str], noun: str) -> str:
    shown = [_show_key(key) for key in keys]
    return f"the {noun}{'' if len(shown) == 1 else 's'} {_cut(', '.join(shown), 200)}"


def _show_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else repr(_cut(key, 40))


def _show_path(path: KeyPath) -> str:
    """`studies.round_robin.players[3]`, items of a list counted from 0."""
    shown = "".join(f"[{key}]" if isinstance(key, int) else f".{_show_key(key)}" for key in path)
    return _cut(shown.removeprefix("."), 300) or "the config"


def _show_file(path: Path) -> str:
    """A file as a reader would name it: below the working directory or the repository, else as it was given."""
    for folder in (Path.cwd(), _REPOSITORY):
        try:
            return str(path.resolve().relative_to(folder))
        except (ValueError, OSError, RuntimeError):
            continue
    return str(path)


def _show_yaml_error(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"is not YAML{place}: {_cut(str(problem), 200)}"
