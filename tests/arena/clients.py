"""Two independent clients of the arena, one over HTTP (httpx), one over WebSocket (websockets).

Both are written from the table of calls alone and import nothing of fishpool. `choose` makes an action of a view, or
None to let the turn pass. `log` holds (call, seconds) of every call that does not wait for somebody else.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import websockets

GAME = "prisoners-dilemma"
COOPERATE = {"type": "choose", "choice": "cooperate"}
DEFECT = {"type": "choose", "choice": "defect"}
RESIGN = {"type": "resign"}
Choose = Callable[[dict[str, Any]], Any]
_numbers = itertools.count(1)


def always(action: Any) -> Choose:
    return lambda view: action


def later(action: Any, until: int, before: Any = COOPERATE) -> Choose:
    """`before` in the rounds before `until`, then `action`."""
    return lambda view: action if view["round"] >= until else before


def fresh_name(kind: str = "bot") -> str:
    return f"{kind}-{next(_numbers)}-{time.time_ns() % 10**9}"


PATIENCE = 120  # seconds after which a test is failed instead of waiting for ever


class HttpAgent:
    def __init__(self, url: str, choose: Choose, lane: str = "fast"):
        self.choose, self.lane = choose, lane
        self.http = httpx.AsyncClient(base_url=url, timeout=60, verify=False, trust_env=False)  # no TLS to set up
        self.headers: dict[str, str] = {}
        self.id = ""
        self.match = ""
        self.log: list[tuple[str, float]] = []
        self.accepted: list[tuple[int, Any]] = []

    async def call(self, method: str, path: str, timed: bool = True, **more: Any) -> httpx.Response:
        """One call; again after a while if there is no connection, as during a restart, or if the arena says so."""
        give_up = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < give_up, f"no answer to {path} within {PATIENCE} s"
            began = time.perf_counter()
            try:
                answer = await self.http.request(method, path, headers=self.headers, **more)
            except httpx.TransportError:
                await asyncio.sleep(0.1)
                continue
            if timed:
                self.log.append((path.rpartition("/")[2].partition("?")[0], time.perf_counter() - began))
            if answer.status_code != 429:
                return answer
            await asyncio.sleep(answer.json()["retryAfterMs"] / 1000)

    async def register(self) -> None:
        answer = await self.call("POST", "/api/agents", json={"name": fresh_name("http")})
        assert answer.status_code == 201, answer.text
        self.id = answer.json()["id"]
        self.headers = {"Authorization": f"Bearer {answer.json()['apiKey']}"}

    async def find_match(self) -> str:
        answer = (await self.call("POST", "/api/matchmaking/queue", json={"gameId": GAME, "lane": self.lane})).json()
        give_up = time.monotonic() + PATIENCE
        while answer["status"] != "matched":
            assert time.monotonic() < give_up, f"no opponent within {PATIENCE} s"
            await asyncio.sleep(0.25)
            answer = (await self.call("GET", f"/api/matchmaking/status?gameId={GAME}")).json()
        self.match = answer["matchId"]
        return self.match

    async def act(self, sequence: int, action: Any) -> httpx.Response:
        path = f"/api/matches/{self.match}/action"
        answer = await self.call("POST", path, json={"sequence": sequence, "action": action})
        if answer.status_code == 200:
            self.accepted.append((sequence, action))
        return answer

    async def state(self, after: int = 0, wait: bool = True) -> dict[str, Any]:
        path = f"/api/matches/{self.match}/state?afterSequence={after}" + ("" if wait else "&wait=false")
        return (await self.call("GET", path, timed=not wait)).json()

    async def play(self) -> dict[str, Any]:
        """Register, find a match, play it; the state at its end."""
        if not self.id:
            await self.register()
        await self.find_match()
        sequence = 0
        while True:
            state = await self.state(sequence)
            if state["status"] == "game_over":
                return state
            if state["status"] == "your_turn":
                sequence = state["sequence"]
                action = self.choose(state["view"])
                if action is not None:
                    await self.act(sequence, action)


class SocketAgent:
    def __init__(self, url: str, choose: Choose, lane: str = "fast"):
        self.url, self.choose, self.lane = url, choose, lane
        self.key = self.id = self.match = ""
        self.errors: list[dict[str, Any]] = []
        self.sent: dict[int, Any] = {}

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The two calls that are made over HTTP only, with the standard library."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        return json.loads(await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=60).read()))

    def connect(self, path: str) -> Any:
        return websockets.connect(
            self.url.replace("http", "ws", 1) + path, additional_headers={"Authorization": f"Bearer {self.key}"}
        )

    async def register(self) -> None:
        answer = await self.post("/api/agents", {"name": fresh_name("socket")})
        self.id, self.key = answer["id"], answer["apiKey"]

    async def find_match(self) -> str:
        async with self.connect("/ws/agent") as socket:
            await self.post("/api/matchmaking/queue", {"gameId": GAME, "lane": self.lane})
            found = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
        assert (found["type"], found["gameId"]) == ("match_found", GAME)
        self.match = found["matchId"]
        return self.match

    async def play(self) -> dict[str, Any]:
        """Register, find a match, play it; the message at its end."""
        if not self.id:
            await self.register()
        await self.find_match()
        while True:
            with suppress(websockets.ConnectionClosed, OSError, websockets.InvalidHandshake):
                async with self.connect(f"/ws/game/{self.match}") as socket:
                    assert json.loads(await socket.recv()) == {"type": "connected"}
                    over = await self.follow(socket)
                    if over:
                        return over
            await asyncio.sleep(0.1)

    async def follow(self, socket: Any) -> dict[str, Any] | None:
        async for text in socket:
            message = json.loads(text)
            if message["type"] == "game_over":
                return message
            if message["type"] == "error":
                self.errors.append(message)
            if message["type"] == "your_turn":
                sequence = message["sequence"]
                action = self.sent.setdefault(sequence, self.choose(message["view"]))
                if action is not None:
                    await socket.send(json.dumps({"type": "action", "sequence": sequence, "payload": action}))
        return None
