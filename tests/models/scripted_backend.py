"""A backend in this process that answers by a script, counts what it is asked, and is found by its kind "scripted"."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from fishpool.models.calls import Model, Reply, Request
from fishpool.shards import Site

KIND = "scripted"
MODEL = Model("lab", "tiny", sampling={"temperature": 0.7})


class Scripted:
    """One endpoint: each call waits for the server's `gate`, then gives or raises what its `answer` says."""

    def __init__(self, server: Server, address: str):
        self.server, self.address = server, address
        self.calls: list[Request] = []
        self.busy = self.busiest = 0
        self.warmed: list[tuple[str, int]] = []
        self.closed = False

    async def reply(self, request: Request) -> Reply:
        self.calls.append(request)
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            await self.server.gate(self)
            found = self.server.answer(self, request)
        finally:
            self.busy -= 1
        if isinstance(found, BaseException):
            raise found
        return found

    async def digest(self, model: str) -> str:
        found = self.server.digest(self, model)
        if isinstance(found, BaseException):
            raise found
        return found

    async def warm_up(self, model: str, context: int) -> None:
        self.warmed.append((model, context))

    async def close(self) -> None:
        self.closed = True


class Server:
    """All endpoints of the server "lab", and the site that has it. Registers itself as the backend "scripted"."""

    def __init__(
        self,
        journal: Path | str | None,
        answer: Callable[[Scripted, Request], Any] = lambda endpoint, request: a_reply(),
        *,
        addresses: tuple[str, ...] = ("http://one:1",),
        concurrency: int = 2,
        retries: int = 3,
        request_timeout: float = 10,
        latency: float = 0,
        digest: Callable[[Scripted, str], Any] = lambda endpoint, model: "d" * 64,
        offline: bool = False,
        api_key: str | None = None,
    ):
        self.answer, self.digest = answer, digest
        self.gate: Callable[[Scripted], Awaitable[Any]] = lambda endpoint: asyncio.sleep(latency)
        self.endpoints: list[Scripted] = []
        settings = {
            "kind": KIND,
            "endpoints": list(addresses),
            "concurrency": concurrency,
            "retries": retries,
            "request_timeout": request_timeout,
            "api_key": api_key,
        }
        self.site = Site(servers={"lab": settings}, journal=journal and str(journal), offline=offline)
        module = ModuleType(f"fishpool.models.backends.{KIND}")
        module.make = self._make  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module

    @property
    def calls(self) -> list[Request]:
        return [call for endpoint in self.endpoints for call in endpoint.calls]

    def _make(self, settings: Any, address: str) -> Scripted:
        self.endpoints.append(Scripted(self, address))
        return self.endpoints[-1]


class Clock:
    """Sleeps that take no time and are remembered, and luck that is always the longest wait."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    def uniform(self, low: float, high: float) -> float:
        return high


def a_reply(text: str = '{"choice": "cooperate"}', **fields: Any) -> Reply:
    given = {"thinking": "", "finish_reason": "stop", "tokens_in": 10, "tokens_out": 5, "latency_ms": 0.1 + 0.2}
    return Reply(text, **(given | fields))


def question(**fields: Any) -> dict[str, Any]:
    """The arguments of `Client.ask` after the model."""
    given = {
        "messages": [{"role": "user", "content": "Cooperate or defect?"}],
        "schema": {"type": "object"},
        "run_id": "study:plain:0:a-b",
        "agent": "a",
        "round": 1,
        "phase": "choose",
        "attempt": 1,
    }
    return given | fields
