"""Seats players of all kinds at the games of one shard, and plays those games side by side.

A kind is a module of `fishpool.players` with a class `Kind`; it is imported by its name, so that scripted games depend
on no other kind. Nothing here knows a rule of any game; scripted players are seated by the games' own runners.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar

from fishpool import referee, shards
from fishpool.models.faults import Stop
from fishpool.shards import Shard, Site

Item = TypeVar("Item")
Result = TypeVar("Result")

SCRIPTED = "scripted"
_GAMES_AT_ONCE = 8  # where no kind asks for more


@dataclass(frozen=True)
class Seat:
    """One agent's place in one run: `number` counts agents from 0, `players` are all their names in that order."""

    run_id: str
    seed: int
    agent: str
    number: int
    players: tuple[str, ...]


class Kind(Protocol):
    """All players of one kind in one shard, with what they share (a model's server, a bot's process)."""

    def __init__(self, shard: Shard, site: Site, players: Sequence[shards.Player]): ...

    async def open(self) -> None:
        """Whatever must be done before the first game; raises models.faults.Stop if no game can be played."""

    async def close(self) -> None: ...

    def seat(self, player: shards.Player, seat: Seat) -> referee.Player:
        """A player for one seat in one run; it starts from nothing."""

    @property
    def games_at_once(self) -> int:
        """How many games keep this kind busy."""

    def versions(self) -> Mapping[str, Any]:
        """By player: what identifies what played, for the record of a run."""


class Table:
    """The kinds that a shard needs, open for its games."""

    def __init__(self, shard: Shard, site: Site):
        self._players = {player.name: player for player in shard.players}
        kinds = sorted({player.kind for player in shard.players} - {SCRIPTED})
        self._kinds: dict[str, Kind] = {
            kind: import_module(f"fishpool.players.{kind}").Kind(
                shard, site, [player for player in shard.players if player.kind == kind]
            )
            for kind in kinds
        }
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Table:
        async with AsyncExitStack() as stack:
            for kind in self._kinds.values():
                stack.push_async_callback(kind.close)
                await kind.open()
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    def seat(self, name: str, seat: Seat) -> referee.Player:
        player = self._players[name]
        return self._kinds[player.kind].seat(player, seat)

    @property
    def games_at_once(self) -> int:
        return max((kind.games_at_once for kind in self._kinds.values()), default=_GAMES_AT_ONCE)

    def versions(self) -> dict[str, Any]:
        """What identifies the players that are not scripted, by name."""
        return {name: version for kind in self._kinds.values() for name, version in kind.versions().items()}


def outsiders(shard: Shard) -> frozenset[str]:
    """The names of the players that are not scripted."""
    return frozenset(player.name for player in shard.players if player.kind != SCRIPTED)


def side_by_side(
    shard: Shard, site: Site, items: Sequence[Item], play: Callable[[Table, Item], Awaitable[Result]]
) -> Generator[tuple[Result, Table], None, None]:
    """Play the games `items`, as many at once as keep the players busy; results come in the order of the items."""
    stopped: list[Stop] = []
    with asyncio.Runner() as runner:
        table = runner.run(Table(shard, site).__aenter__())
        slots = asyncio.Semaphore(table.games_at_once)
        tasks: list[asyncio.Task[Result]] = []

        async def in_turn(item: Item) -> Result:
            async with slots:
                if stopped:
                    raise stopped[0]
                try:
                    return await play(table, item)
                except Stop as stop:  # no further game could do better, so none is begun
                    stopped.append(stop)
                    raise

        async def start() -> None:
            tasks.extend(asyncio.create_task(in_turn(item)) for item in items)

        async def result(task: asyncio.Task[Result]) -> Result:
            return await task

        async def end() -> None:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await table.__aexit__()

        try:
            runner.run(start())
            for task in tasks:
                yield runner.run(result(task)), table
        finally:
            runner.run(end())
