"""Players of the Axelrod library: each of its strategies as a player of the prisoner's dilemma, by its class name.

No strategy is written or changed here: one is shown the history that its own match would show it, choices as carried
out after noise, and its choice goes to the referee like anybody else's. The library is Axelrod 4.13 (Knight et al.
2016, doi:10.5334/jors.125), an optional extra whose import takes 10 to 20 s, so that names are read without importing.
"""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fishpool import referee, shards
from fishpool.models.faults import Stop
from fishpool.seats import Seat
from fishpool.seeds import draw
from fishpool.shards import Shard, Site

MISSING = "which needs the Axelrod library, which is not installed; install it with pip install 'fishpool[axelrod]'"
CHEATS = {"Darwin": "learns across matches and looks at who calls it"}  # the library's cheating_strategies


@cache
def names() -> tuple[str, ...]:
    """All strategies of the installed library, by class name, in its order; () if it is not installed."""
    spec = find_spec("axelrod")
    if spec is None or spec.origin is None:
        return ()
    folder = Path(spec.origin).parent / "strategies"
    sources = [(folder / name).read_text(encoding="utf-8") for name in ("_strategies.py", "__init__.py")]
    lists = [
        node.value
        for source in sources
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign | ast.AugAssign) and isinstance(node.value, ast.List)
        if ast.unparse(node.target if isinstance(node, ast.AugAssign) else node.targets[0]) == "all_strategies"
    ]
    return tuple(element.id for each in lists for element in each.elts if isinstance(element, ast.Name))


def fault_of(strategy: str) -> str | None:
    """Why this strategy cannot be played, as a clause about it (which ..); None if it can. Imports nothing."""
    if not names():
        return MISSING
    if strategy in CHEATS:
        return f"which {CHEATS[strategy]}; no match here can let it do that, so choose another one"
    if strategy in names():
        return None
    near = get_close_matches(strategy, names(), n=1, cutoff=0.5)
    meant = f"; did you mean {near[0]}?" if near else "; its strategies go by their class names, such as TitForTat"
    return f"which is no strategy of Axelrod {version('axelrod')}{meant}"


class Kind:
    """The players of one shard: they share the imported library and nothing else."""

    games_at_once = 1  # they compute in this process, so that a second game would only wait for the first

    def __init__(self, shard: Shard, site: Site, players: Sequence[shards.Player]):
        self._players = players
        self._noise = float(shard.parameters["noise"])  # which the library tells its players; none of today's asks

    async def open(self) -> None:
        for player in self._players:
            found = fault_of(player.settings["strategy"])
            if found:
                raise Stop(f"{player.name} is axelrod:{player.settings['strategy']}, {found}")
        self._library = import_module("axelrod")

    async def close(self) -> None:
        """Nothing is open."""

    def seat(self, player: shards.Player, seat: Seat) -> referee.Player:
        seed = int(draw(seat.seed, "axelrod", *seat.players, seat.number) * 2**32)
        return AxelrodPlayer(self._library, player.settings["strategy"], seed, self._noise)

    def versions(self) -> Mapping[str, Any]:
        library = f"axelrod {version('axelrod')}"
        return {player.name: {"library": library, "strategy": player.settings["strategy"]} for player in self._players}


class AxelrodPlayer(referee.Player):
    """One strategy in one match, against a stand-in that has the opponent's history and no will of its own.

    `seed` is of its own generator (0 to 2^32 - 1); the game's payoffs are the library's defaults, 5, 3, 1 and 0.
    """

    def __init__(self, library: Any, strategy: str, seed: int, noise: float):
        self._cooperate, self._defect = library.Action.C, library.Action.D
        self._player = getattr(library, strategy)()
        self._opponent = library.Player()
        self._slow = library.Classifiers["long_run_time"](self._player)
        self._seed, self._noise = seed, noise

    @property
    def keeps_time(self) -> bool:
        """It is a script, whose matches end alike on any machine: no clock is held against it."""
        return True

    async def act(self, view: Mapping[str, Any]) -> str:
        # some take a second for a move, in which whoever else is asked must not be kept from answering
        chosen = await asyncio.to_thread(self._choose, view) if self._slow else self._choose(view)
        return json.dumps({"type": "choose", "choice": "cooperate" if chosen == self._cooperate else "defect"})

    def _choose(self, view: Mapping[str, Any]) -> Any:
        you = view["you"]
        [other] = (agent for agent in view["scores"] if agent != you)
        if not view["history"]:
            self._player.set_match_attributes(length=view["totalRounds"], noise=self._noise)
            self._player.set_seed(self._seed)
        for past in view["history"][len(self._player.history) :]:
            mine, theirs = (self._action(past["choices"][agent]) for agent in (you, other))
            self._player.update_history(mine, theirs)
            self._opponent.update_history(theirs, mine)
        return self._player.strategy(self._opponent)

    def _action(self, choice: str) -> Any:
        return self._cooperate if choice == "cooperate" else self._defect
