"""What a model call is: the request with all that identifies it, and the reply with all that is kept of it.

Nothing here sends anything. How a call is transported (endpoints, concurrency, retries, keys of an API) is no part of
a request, so that a reply is the same reply whichever server gave it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Model:
    """A model as a player or oracle uses it: `server` is a name in the config's `servers`, `name` the server's own.

    `sampling` holds the options that were set (temperature, top_p, ..), none that were not; `context` and `max_tokens`
    are tokens; `thinking` is None where the model's own default counts. `digest` pins the weights if it is set.
    """

    server: str
    name: str
    digest: str | None = None
    context: int = 8192
    max_tokens: int = 1024
    sampling: Mapping[str, Any] = field(default_factory=dict, hash=False)
    thinking: bool | None = None
    reasoning: bool = True  # whether the form of the answer asks for reasons before the decision
    repairs: int | None = None  # requests after a reply that cannot be read; None: what the game says

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Model:
        """The model of a player's or oracle's settings; how many answers an oracle gives is no part of it."""
        return Model(**{key: value for key, value in values.items() if key != "replicates"})


@dataclass(frozen=True)
class Request:
    """One call: what is asked of which model, and which of all the calls of a study it is.

    `options` holds the sampling options, seed, max_tokens and context; `messages` are role and content.
    """

    backend: str  # "ollama", "openai" or "llamacpp"
    model: str
    digest: str
    messages: tuple[Mapping[str, str], ...] = field(hash=False)
    schema: Mapping[str, Any] | None = field(hash=False)
    options: Mapping[str, Any] = field(hash=False)
    thinking: bool | None
    run_id: str
    agent: str
    round: int
    phase: str
    attempt: int  # counted from 1
    replicate: int = 1

    def to_json(self) -> str:
        """Canonical: equal requests give equal text."""
        return canonical(vars(self))

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON: what the journal knows the reply by."""
        return key_of(self.to_json())

    @property
    def prompt_sha256(self) -> str:
        """SHA-256 of the messages alone: equal prompts of two runs or replicates have it in common."""
        text = json.dumps([dict(message) for message in self.messages], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical(values: Mapping[str, Any]) -> str:
    """A request's fields as JSON: keys in order, no white space, nothing but numbers that are numbers."""
    return json.dumps(dict(values), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def key_of(text: str) -> str:
    """SHA-256 of a request's canonical JSON."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Reply:
    """What a server answered, as received. `finish_reason` is "stop", "length", or the server's own word.

    `latency_ms` runs from the request that was answered to the end of its answer, without waiting for a free server,
    retries or the loading of weights.
    """

    text: str
    thinking: str
    finish_reason: str
    tokens_in: int | None
    tokens_out: int | None
    latency_ms: float


@dataclass(frozen=True)
class Answered:
    """A request with its reply; `from_journal` says that the reply was read there and not asked for now."""

    request: Request
    reply: Reply
    from_journal: bool


class Backend(Protocol):
    """One server, or engine in this process. Raises the faults of `fishpool.models.faults` and nothing else."""

    async def reply(self, request: Request) -> Reply: ...

    async def digest(self, model: str) -> str:
        """What identifies the weights of a model on this server; Stop if there is no such model."""
        ...

    async def warm_up(self, model: str, context: int) -> None:
        """Load the weights, so that no turn waits for it."""
        ...

    async def close(self) -> None: ...
