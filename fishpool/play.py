"""The command `fishpool play`: a person at the terminal takes a seat in a game, which is recorded as any run.

It makes one shard of one game, which the game's own runner plays; who may sit there and what a game can be is the
config's to say. The records are those of a recorded study, `played_GAME`, one seed a game, in the results folder.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishpool import shards, study
from fishpool.documents import NO_VALUE
from fishpool.files import FileFault
from fishpool.players.person import show_history
from fishpool.records import Ending
from fishpool.seats import SCRIPTED
from fishpool.shards import Player, Shard, Site
from fishpool.terminal import Console

if TYPE_CHECKING:
    import polars as pl

_STUDY = "played"  # of the options, for the config; a study of records has one game, so theirs are called after it
_STAND_IN = "honest_sustainable"  # for the person, where the config counts who fishes
_CONDITION = "game"
_PATIENCE = 10.0  # seconds until a game that could not be recorded is written again

Frames = dict[str, "pl.DataFrame"]


def play(arguments: argparse.Namespace) -> None:
    """One game, from the question who plays to its records; raises study.ConfigError or models.faults.Stop."""
    shard, config = _prepared(arguments)
    results = arguments.results or Path(config.results)
    console = Console()
    others = [player.name for player in shard.players[1:] if player.kind != SCRIPTED]
    if others:
        console.say(f"Making ready: {', '.join(others)} ..", "dim")
    with _reserved(results, shard, arguments.seed) as (shard, directory):
        site = replace(config.site, logs=str(results / "logs" / "play"))
        frames = _played(shard, site)
        _record(console, directory, shard, frames)
    _show_end(console, shard, frames)
    console.show([f"The records are in {directory}"], "dim")  # in one piece, to be copied


def _prepared(arguments: argparse.Namespace) -> tuple[Shard, study.Config]:
    """The shard, still without a seed, with the person in the first seat."""
    name = arguments.name
    given = {key: value for key in ("rounds", "noise", "lane") if (value := getattr(arguments, key)) is not None}
    players, agents = _opponents(arguments.game, arguments.against)
    base: dict[str, Any] = {**_set(arguments.set), **given}
    if arguments.game == "commons":
        if "agents" in base:
            raise study.ConfigError(["--set has agents; expected who fishes with you after --against"])
        base["agents"] = [_STAND_IN, *agents]
    entry = {"game": arguments.game, "seeds": 1, "base": base, "conditions": {_CONDITION: {}}}
    if players:
        entry["players"] = players
    overrides = study.overrides(arguments.config)
    overrides["studies"] = {**(overrides.get("studies") or {}), _STUDY: entry}
    try:
        config = study.load_files(arguments.configfile, overrides)
    except study.ConfigError as error:
        raise study.ConfigError(map(_as_option, error.faults)) from None
    [played] = (one for one in config.configured if one.name == _STUDY)
    [shard] = played.shards(played.conditions[0])
    others = [player.name for player in shard.players] + shard.parameters.get("agents", [])[1:]
    if study.name_of({"player": name}) != name or name in others:
        raise study.ConfigError(
            [f"--name is '{name}'; expected letters, digits, _, - and dots, and not the name of another player"]
        )
    parameters = shard.parameters
    if arguments.game == "commons":
        parameters = {**parameters, "agents": [name, *parameters["agents"][1:]], "twins": []}
    person = Player(name, "person", {"clock": arguments.lane is not None})
    condition = arguments.condition or _described({**base, **({"agents": agents} if agents else {})})
    if not study.is_name(condition):
        raise study.ConfigError([f"--condition is '{condition}'; expected at most 64 letters, digits, _ and -"])
    shard = replace(shard, study=f"{_STUDY}_{shard.game}", condition=condition)
    return replace(shard, parameters=parameters, players=(person, *shard.players)), config


def _described(base: Mapping[str, Any]) -> str:
    """A condition's name made of the parameters that were set: rounds-5_noise-0-1."""
    said = (f"{key}-{'-'.join(map(str, value)) if isinstance(value, list) else value}" for key, value in base.items())
    return re.sub(r"[^A-Za-z0-9_]+", "-", "_".join(said))[:64].strip("-_") or "plain"


def _opponents(game: str, against: Sequence[str]) -> tuple[list[Any], list[str]]:
    """The `players` of the study, and the `agents` of a pool, of what `--against` names."""
    players: list[Any] = []
    agents = []
    for said in against:
        times, star, who = said.partition("*") if re.match(r"[0-9]+\*", said) else ("", "", said)
        entry = _entry(who)
        if game == "prisoners_dilemma":
            players.append(entry)
        elif isinstance(entry, dict):
            entry = {**entry, "name": study.name_of(entry)}
            agents.append(f"{times}{star}{entry['name']}")
            if entry not in players:
                players.append(entry)
        else:
            agents.append(said)
    if game == "prisoners_dilemma" and len(against) != 1:
        raise study.ConfigError(
            [f"--against has {len(against)} players; in the prisoner's dilemma there is one opponent"]
        )
    return players, agents


def _entry(who: str) -> Any:
    """A player as a config would have it: `model:NAME` is {model: NAME}; for more keys they are written like that."""
    kind, colon, what = who.partition(":")
    if colon and kind in ("process", "model"):
        return {kind: what}
    if not who.startswith("{"):
        return who
    import yaml

    try:
        entry = yaml.safe_load(who)
    except (yaml.YAMLError, *NO_VALUE, RecursionError):
        entry = None
    if not isinstance(entry, dict) or not any(isinstance(entry.get(key), str) for key in ("model", "process")):
        raise study.ConfigError(
            [f"--against is '{who[:60]}'; expected a mapping such as {{model: NAME, temperature: 0}}"]
        )
    return entry


def _set(entries: Sequence[str]) -> dict[str, Any]:
    try:
        return study.overrides(entries)
    except study.ConfigError as error:
        raise study.ConfigError(
            f.replace("--config", "--set").replace("only=round_robin", "rounds=5") for f in error.faults
        ) from None


def _as_option(fault: str) -> str:
    """A fault in the study that the options make up, in the words of the options."""
    fault = re.sub(r"^--config: (studies\.played\.)", r"\1", fault)
    fault = re.sub(r"^studies\.played\.(players|base\.agents)\[\d+\]", "--against", fault)
    return re.sub(r"^studies\.played\.(base|conditions\.game)\.", "", fault)


@contextmanager
def _reserved(results: Path, shard: Shard, seed: int | None) -> Iterator[tuple[Shard, Path]]:
    """The shard with its seed, or the first that is free, and its folder, which goes again if there is no game."""
    folder = results / "jsonl" / shard.study / shard.condition
    for played in sorted(folder.glob("*/runs.jsonl")):
        with played.open(encoding="utf-8") as lines:
            parameters = json.loads(json.loads(lines.readline())["parameters"])
        if parameters != shard.parameters:
            raise study.ConfigError([f"{folder} holds games with other parameters; name another --condition"])
    for number in count(1) if seed is None else [seed]:
        directory = folder / f"seeds-{number}"
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        break
    else:
        raise study.ConfigError([f"--seed {seed} has been played already ({directory}); choose another one"])
    try:
        yield replace(shard, name=directory.name, seeds=(number,)), directory
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)  # a game that could not be recorded whole
        with suppress(OSError):  # of folders that are not empty
            for path in (folder, folder.parent):
                path.rmdir()
        raise


def _played(shard: Shard, site: Site) -> Frames:
    runner = import_module(f"fishpool.runners.{shard.game}")
    if shard.game == "prisoners_dilemma":
        [frames] = runner.play_pairs(shard, [tuple(player.name for player in shard.players)], site)
    else:
        [frames] = runner.play(shard, site)
    played: Frames = frames
    return played


def _record(console: Console, directory: Path, shard: Shard, frames: Frames) -> None:
    """Write the game down; where the disk has no room for it, whoever has just played it can make some."""
    while True:
        try:
            shards.mark_recorded(directory)
            shards.write(directory, shard.tables, [frames])
        except FileFault as fault:
            if not sys.stdin.isatty():
                raise
            console.say(f"{fault}. The game is kept meanwhile; Ctrl-C gives it up.", "bold")
            time.sleep(_PATIENCE)
        else:
            return


# ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _show_end(console: Console, shard: Shard, frames: Frames) -> None:
    """How the game ended, who was who, and what each made of it, from the records."""
    run = frames["runs"].row(0, named=True)
    turns = frames["turns"].rows(named=True)
    players: Mapping[str, str] = json.loads(run["agents"])
    you = next(iter(players))
    console.say()
    if run["ending"] == Ending.VOID:
        console.say(f"The game is void: {run['end_reason']}.", "bold")
    elif shard.game == "commons":
        console.say(f"The game is over: {run['end_reason']}.", "bold")
    else:
        verdict = "a draw" if run["winner"] is None else "you win" if run["winner"] == you else "you lose"
        console.say(f"The game is over, {verdict}: {run['end_reason']}.", "bold")
    if shard.game == "prisoners_dilemma":
        scored = [turn for turn in turns if turn["choice"] is not None]
        choices = [tuple(turn["choice"] for turn in scored[i : i + 2]) for i in range(0, len(scored), 2)]
        show_history(console, ["you", *list(players)[1:]], choices)
        totals = {agent: sum(turn["payoff"] for turn in scored if turn["agent"] == agent) for agent in players}
        points = [(agent, player, str(totals[agent])) for agent, player in players.items()]
        console.table(["agent", "player", "points"], points)
    else:
        accounts = [
            (agent, player, *(f"{amount:g}" for amount in _account(turns, agent, run["price"])))
            for agent, player in players.items()
        ]
        console.table(["agent", "player", "tons", "fines", "payoff"], accounts)


def _account(turns: Sequence[Mapping[str, Any]], agent: str, price: float) -> tuple[float, float, float]:
    """Tons, fines less shares of others' fines, and payoff of an agent over the rounds that were finished."""
    mine = [turn for turn in turns if turn["agent"] == agent]
    tons = sum(turn["catch"] or 0 for turn in mine)
    fines = sum((turn["fine"] or 0) - (turn["refund"] or 0) for turn in mine)
    return tons, fines, price * tons - fines
