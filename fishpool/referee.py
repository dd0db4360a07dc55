"""The referee: the one place where a reply becomes a move.

It asks a player, holds the lane's clock against it, and reads what comes back strictly: one JSON object, no duplicate
keys, no NaN, nothing around it. A reply that cannot be read, or that comes late, is a fault and never a move; a player
that breaks is nobody's move either. What a fault costs is the game's own rule.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fishpool.records import Status

MAX_REPLY = 64 * 1024  # characters or bytes; an action is two words


class Player(Protocol):
    async def act(self, view: Mapping[str, Any]) -> str | bytes:
        """The player's reply to a view: the text of one action. May raise: then the match is void."""


@dataclass(frozen=True)
class Turn:
    """What the referee made of one reply; `action` is set only when `status` is moved, `fault` only when it is not."""

    status: Status
    action: Any = None
    fault: str = ""


async def ask(player: Player, view: Mapping[str, Any], read: Callable[[Any], Any], turn_timeout: float) -> Turn:
    """Ask once. `read` turns a decoded JSON value into the game's action or raises ValueError; the clock is in s."""
    try:
        async with asyncio.timeout(turn_timeout) as clock:
            reply = await player.act(view)
    except TimeoutError as error:
        if clock.expired():
            return Turn(Status.TIMEOUT, fault=f"no action within {turn_timeout:g} s")
        return Turn(Status.INFRASTRUCTURE, fault=_raised(error))
    except Exception as error:  # whatever a player raises, the match is void and the rest goes on
        return Turn(Status.INFRASTRUCTURE, fault=_raised(error))
    try:
        return Turn(Status.MOVED, read(decode(reply)))
    except ValueError as error:
        return Turn(Status.INVALID, fault=str(error))


def decode(reply: str | bytes) -> Any:
    """The reply as a JSON value; ValueError in one sentence for anything that is not exactly one JSON text."""
    if not isinstance(reply, str | bytes):
        raise ValueError(f"a reply is text, not {type(reply).__name__}")
    if len(reply) > MAX_REPLY:
        raise ValueError(f"the reply has {len(reply)} characters; at most {MAX_REPLY} are read")
    try:
        text = reply if isinstance(reply, str) else reply.decode("utf-8")
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"the reply is not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the reply is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError("the reply is nested too deeply") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the reply has a key twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"the reply holds {name}, which is not JSON")


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}"
