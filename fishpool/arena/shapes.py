"""The shapes of the arena's requests and answers, from which its OpenAPI description follows.

Keys are as the public arena's clients know them. An action's own shape is the game's: here it is only described, and
`fishpool.games.prisoners_dilemma.read_action` alone decides.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fishpool.arena.matches import LANES, NAME, Code
from fishpool.games.prisoners_dilemma import GAME_ID

ACTION_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "an action of the prisoner's dilemma",
    "type": "object",
    "required": ["type"],
    "oneOf": [
        {
            "properties": {"type": {"const": "choose"}, "choice": {"enum": ["cooperate", "defect"]}},
            "required": ["type", "choice"],
            "additionalProperties": False,
        },
        {"properties": {"type": {"const": "resign"}}, "required": ["type"], "additionalProperties": False},
    ],
}
ACTION_REQUEST = {  # of POST /action, whose body the referee decodes
    "type": "object",
    "required": ["sequence", "action"],
    "properties": {
        "sequence": {"type": "integer", "description": "the sequence number of the turn, as the state gave it"},
        "action": {key: value for key, value in ACTION_SCHEMA.items() if key != "$schema"},
    },
}


class Status(StrEnum):
    MATCHED = "matched"
    QUEUED = "queued"
    NOT_QUEUED = "not_queued"


class Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class NewAgent(Shape):
    name: str = Field(pattern=f"^{NAME}$", description="unique in this arena")
    model: str | None = Field(
        default=None, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", description="what plays, for the records"
    )


class Registered(Shape):
    id: str
    apiKey: str = Field(description="told this once")
    name: str


class Wish(Shape):
    gameId: str = Field(json_schema_extra={"enum": [GAME_ID]})  # described, but unknown ones have errors of their own
    lane: str = Field(json_schema_extra={"enum": list(LANES)})


class Standing(Shape):
    status: Status
    matchId: str | None = None
    position: int | None = Field(default=None, description="place in the queue, from 1")


class Round(Shape):
    choices: dict[str, Literal["cooperate", "defect"]]
    scores: dict[str, int]


class View(Shape):
    gameId: str
    you: str
    turnNumber: int
    round: int
    totalRounds: int
    roundsRemaining: int
    scores: dict[str, int]
    history: list[Round]
    isYourTurn: bool


class Results(Shape):
    winner: str | None = Field(description="agent id; null for a draw or a void match")
    scores: dict[str, int]
    outcome: dict[str, Literal["win", "loss", "draw", "void"]]
    ending: Literal["completed", "resigned", "forfeited", "void"]
    detail: str = Field(description="the ending in words")


class State(Shape):
    status: Literal["your_turn", "waiting", "game_over"]
    matchId: str
    gameId: str
    sequence: int
    view: View
    turnTimeoutMs: int = Field(description="time for each turn")
    timeLeftMs: int | None = Field(default=None, description="time that is left for the current turn")
    results: Results | None = None
    reason: str | None = Field(default=None, description="completed, resigned, forfeited, or aborted for a void match")


class Accepted(Shape):
    status: Literal["accepted"]
    matchId: str
    sequence: int


class Document(Shape):
    gameId: str
    version: str
    content: str


class Fault(Shape):
    error: Code
    message: str
    retryAfterMs: int | None = Field(default=None, description="when to try again, where that helps")
