"""The referee: the one place where a reply becomes a move.

It asks a player, holds the lane's clock against it, and has what comes back read strictly: one JSON object, no
duplicate keys, no NaN, nothing around it. A reply that cannot be read, or that comes late, is a fault and never a move;
a player that breaks is nobody's move either. What a fault costs is the game's own rule.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from fishpool.models.faults import Stop
from fishpool.records import Status
from fishpool.screen import is_text, visible

MAX_REPLY = 64 * 1024  # characters or bytes; an action is two words
_LONGEST_FAULT = 1000  # characters


class Verdict(StrEnum):
    """What a single reply was; only of the first two is anything read."""

    MOVED = "moved"
    REPAIRED = "repaired"  # one legal object, found among other words
    INVALID = "invalid"
    TRUNCATED = "truncated"  # the server stopped it before its end
    REFUSAL = "refusal"


@dataclass(frozen=True)
class Reading:
    """What was read in one reply: `action` if the verdict is moved or repaired, else `fault`, a sentence of ours."""

    verdict: Verdict
    action: Any = None
    fault: str = ""

    @property
    def readable(self) -> bool:
        return self.verdict in (Verdict.MOVED, Verdict.REPAIRED)


class Player:
    """Whoever acts under an agent's id in one run. `repairs` is how often it is asked again after an unreadable reply.

    `act` gets the view, with the fault under the key `error` when it is asked again. Whatever it raises makes the run
    void, except `Fault`, which is the player's own.
    """

    repairs: int = 0

    async def act(self, view: Mapping[str, Any]) -> Any:
        """The reply to a view: the text (str or bytes) of one action, unless the player reads its replies itself."""
        raise NotImplementedError

    def read(self, reply: Any, legal: Callable[[Any], Any]) -> Reading:
        """Read a reply; `legal` makes the game's action of a decoded JSON value or raises ValueError."""
        try:
            return Reading(Verdict.MOVED, legal(decode(reply)))
        except ValueError as error:
            return Reading(Verdict.INVALID, fault=str(error))

    def seconds(self, reply: Any) -> float | None:
        """How long the reply took, where the player knows it better than a clock beside it; None otherwise."""
        return None

    @property
    def keeps_time(self) -> bool:
        """Whether `seconds` counts in place of the referee's clock, which then does not interrupt the player."""
        return False

    async def close(self) -> None:
        """The run is over."""


class Fault(Exception):
    """Raised by `act`: the player itself failed (died, flooded, closed its pipe), which counts as a rejected action."""


@dataclass(frozen=True)
class Turn:
    """What the referee made of one turn; `action` is set only if `status` is moved or repaired, else `fault` is.

    `replies` are all replies of the turn, in order, each with what was read in it.
    """

    status: Status
    action: Any = None
    fault: str = ""
    attempts: int = 1
    replies: tuple[tuple[Any, Reading], ...] = ()


async def ask(player: Player, view: Mapping[str, Any], legal: Callable[[Any], Any], turn_timeout: float) -> Turn:
    """One turn, with as many repair requests as the player has. The clock, in s, is for the whole turn.

    `legal` makes the game's action of a decoded JSON value or raises ValueError with the sentence for the player.
    """
    replies: list[tuple[Any, Reading]] = []
    turn = Turn(Status.INVALID)
    spent = 0.0
    try:
        async with asyncio.timeout(None if player.keeps_time else turn_timeout) as clock:
            while True:
                turn = replace(turn, attempts=len(replies) + 1)
                shown = {**view, "error": turn.fault} if replies else view
                # A copy of its own: what it writes there is seen by nobody.
                reply = await player.act(json.loads(json.dumps(shown)))
                reading = player.read(reply, legal)
                replies.append((reply, reading))
                turn = replace(turn, fault=reading.fault, replies=tuple(replies))
                spent += player.seconds(reply) or 0
                if spent > turn_timeout:
                    return replace(turn, status=Status.TIMEOUT, fault=_late(turn_timeout))
                if reading.readable:
                    unaided = reading.verdict is Verdict.MOVED and len(replies) == 1
                    return replace(turn, status=Status.MOVED if unaided else Status.REPAIRED, action=reading.action)
                if len(replies) > player.repairs:
                    return turn
    except Fault as error:
        return replace(turn, fault=_words(error))
    except TimeoutError as error:
        if clock.expired():
            return replace(turn, status=Status.TIMEOUT, fault=_late(turn_timeout))
        return replace(turn, status=Status.INFRASTRUCTURE, fault=_raised(error))
    except Stop:
        raise
    except asyncio.CancelledError as error:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        return replace(turn, status=Status.INFRASTRUCTURE, fault=_raised(error))  # something of the player's was ended
    except Exception as error:  # whatever else a player raises, the run is void and the rest goes on
        return replace(turn, status=Status.INFRASTRUCTURE, fault=_raised(error))


def decode(reply: str | bytes) -> Any:
    """The reply as a JSON value; ValueError in one sentence for anything that is not exactly one JSON text.

    The sentence may be sent to a model, and so be part of a request that is looked up in a journal: it does not depend
    on the Python that says it.
    """
    if not isinstance(reply, str | bytes):
        raise ValueError(f"a reply is text, not {type(reply).__name__}")
    if len(reply) > MAX_REPLY:
        raise ValueError(f"the reply has {len(reply)} characters; at most {MAX_REPLY} are read")
    try:
        text = reply if isinstance(reply, str) else reply.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_object, parse_int=_whole)
        _check("the reply", value)
    except UnicodeDecodeError as error:
        raise ValueError(f"the reply is not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the reply is not JSON: {_why_not_json(error)}") from None
    except RecursionError:
        raise ValueError("the reply is nested too deeply") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        name = ascii(key[:40])[1:-1]
        _check(name, key)
        _check(name, value)
        if key in found:
            raise ValueError(f"{name}: the key stands twice in one object")
        found[key] = value
    return found


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 310 else float(digits)  # infinite: int() takes long, or refuses


def _check(name: str, value: Any) -> None:
    """Refuse what `json` lets through but no file of ours can hold; `name` is the key it stands under."""
    if isinstance(value, list):
        for item in value:
            _check(name, item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name}: expected a number, found {'NaN' if math.isnan(value) else 'one that is too large'}")
    elif isinstance(value, str) and not is_text(value):
        raise ValueError(f"{name}: found half of a surrogate pair, which is no character")


_TRAILING_COMMA = "a comma stands before a closing bracket"
_CAUSES = {  # how a message of `json` begins -> what to do about it
    "Illegal trailing comma": _TRAILING_COMMA,
    "Expecting property name": "a key is not in double quotes",
    "Expecting value": "a value is missing, or is text that is not in double quotes",
    "Expecting ':'": "a colon is missing after a key",
    "Expecting ','": "a comma or a closing brace is missing, or a double quote inside a text lacks its backslash",
    "Unterminated string": "a text has no closing double quote",
    "Invalid control character": r"a text holds a line break or a tab, which are written \n and \t",
    "Invalid": r"a backslash inside a text is written \\",
    "Extra data": "there is more after its end",
    "Unexpected UTF-8 BOM": "it begins with a byte order mark",
}


def _why_not_json(error: json.JSONDecodeError) -> str:
    if not error.doc.strip():
        return "it is empty"
    if error.msg.startswith("Expecting") and error.pos >= len(error.doc.rstrip()):
        return "it ends too early"
    if error.doc[error.pos] in "]}" and error.doc[: error.pos].rstrip().endswith(","):
        return _TRAILING_COMMA  # Python 3.13 has words of its own for it
    return next((cause for start, cause in _CAUSES.items() if error.msg.startswith(start)), "it breaks off")


def _late(turn_timeout: float) -> str:
    return f"no action within {turn_timeout:g} s"


def _raised(error: BaseException) -> str:
    return f"raised {type(error).__name__}: {_words(error)}"


def _words(error: BaseException) -> str:
    """What an exception says, as a record can hold it: one line, not long, of characters that print."""
    try:
        return visible(str(error)[:_LONGEST_FAULT])
    except Exception:
        return "it does not say what"
