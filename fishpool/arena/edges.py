"""The arena over HTTP and WebSocket: requests in, what `matches` says of them out, in the shapes of `shapes`.

Nothing is decided here but how much of a request is read and how long an answer may wait. A WebSocket is pushed the
state of its match, not a queue of events, so that who reconnects or reads slowly misses nothing that still matters.
"""

import asyncio
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from fishpool import __version__
from fishpool.arena import shapes
from fishpool.arena.matches import Arena, Code, Game, Refused, Standing, agent_id, read_action
from fishpool.arena.store import StoredAgent, StoreError
from fishpool.games import prisoners_dilemma as rules
from fishpool.records import Ending
from fishpool.referee import MAX_REPLY

_LOOPBACK = ["127.0.0.1", "localhost", "[::1]", "::1"]
_STATUS = {
    Code.INVALID_REQUEST: 400,
    Code.INVALID_NAME: 400,
    Code.INVALID_LANE: 400,
    Code.INVALID_ACTION: 400,
    Code.UNAUTHORIZED: 401,
    Code.NOT_FOUND: 404,
    Code.GAME_NOT_FOUND: 404,
    Code.MATCH_NOT_FOUND: 404,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.REQUEST_TIMEOUT: 408,
    Code.NAME_TAKEN: 409,
    Code.STALE_SEQUENCE: 409,
    Code.NOT_YOUR_TURN: 409,
    Code.BODY_TOO_LARGE: 413,
    Code.TOO_MANY_REQUESTS: 429,
    Code.TOO_MANY_AGENTS: 429,
    Code.TOO_MANY_CONNECTIONS: 429,
    Code.QUEUE_FULL: 429,
    Code.INTERNAL_ERROR: 500,
}

_MatchId = Annotated[str, Path(max_length=64)]
_GAME = {"enum": [rules.GAME_ID]}  # in the description; an unknown game has an error of its own
_GameId = Annotated[str, Path(max_length=64, json_schema_extra=_GAME)]


@dataclass(frozen=True)
class Allowance:
    """What one request or one agent may cost; times in s."""

    body: int = MAX_REPLY  # bytes of a request's body or a WebSocket's message
    body_seconds: float = 10.0  # for the whole body to arrive
    poll_seconds: float = 25.0  # that a long poll waits
    polls: int = 8  # long polls of one agent at a time
    connections: int = 8  # WebSockets of one agent
    calls_per_second: float = 100.0  # of one agent, on average
    burst: float = 200.0  # calls that it may make at once


class Bell:
    """Wakes those who wait for something to happen to a match or an agent."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = defaultdict(set)
        self.closing = False

    def ring(self, topic: str) -> None:
        for event in self._listeners.get(topic, ()):
            event.set()

    def close(self) -> None:
        """Wake everybody, for the arena closes."""
        self.closing = True
        for topic in self._listeners:
            self.ring(topic)

    @contextmanager
    def listen(self, topic: str) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        self._listeners[topic].add(event)
        try:
            yield event
        finally:
            self._listeners[topic].discard(event)
            if not self._listeners[topic]:
                del self._listeners[topic]


class Meter:
    """How many calls each agent may still make: a bucket that fills with time."""

    def __init__(self, allowance: Allowance):
        self._rate, self._burst = allowance.calls_per_second, allowance.burst
        self._buckets: dict[int, tuple[float, float]] = {}  # agent's number -> (calls left, when)

    def count(self, agent: StoredAgent) -> None:
        now = time.monotonic()
        left, then = self._buckets.get(agent.number, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        if left < 1:
            raise Refused(
                Code.TOO_MANY_REQUESTS,
                f"an agent may make {self._rate:g} calls a second; wait, or let the state's long poll wait",
                (1 - left) / self._rate,
            )
        self._buckets[agent.number] = (left - 1, now)


def application(
    arena: Arena,
    bell: Bell,
    allowance: Allowance = Allowance(),
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
    loopback: bool = True,
) -> FastAPI:
    """The ASGI application. `bell` must be what the arena's `changed` rings; `loopback` admits no other host names."""
    app = FastAPI(
        title="fishpool arena",
        description="The iterated prisoner's dilemma between agents of all makes.",
        version=__version__,
        docs_url=None,  # these pages would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_middleware(_WholeBodies, allowance=allowance)
    if loopback:  # else a web page could reach the arena through a name of its own that it resolves to this machine
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=_LOOPBACK, www_redirect=False)
    app.add_exception_handler(Refused, _answer_refused)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(StoreError, _answer_unkept)
    app.add_exception_handler(Exception, _answer_error)
    meter = Meter(allowance)
    polls: Counter[int] = Counter()
    bearer = HTTPBearer(auto_error=False, description="the apiKey of an agent")

    async def caller(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> StoredAgent:
        agent = arena.authenticate(credentials.credentials if credentials else "")
        meter.count(agent)
        return agent

    Caller = Annotated[StoredAgent, Depends(caller)]

    @app.post(
        "/api/agents",
        status_code=201,
        response_model=shapes.Registered,
        responses=_faults(400, 408, 409, 413, 429),
        summary="Register an agent",
    )
    async def register(body: shapes.NewAgent) -> Any:
        agent, key = arena.register(body.name, body.model)
        return {"id": agent_id(agent.number), "apiKey": key, "name": agent.name}

    @app.post(
        "/api/matchmaking/queue",
        response_model=shapes.Standing,
        response_model_exclude_unset=True,
        responses=_faults(400, 401, 404, 408, 413, 429),
        summary="Queue for a match; with a live match, that match",
    )
    async def queue(body: shapes.Wish, agent: Caller) -> Any:
        _check_game(body.gameId)
        return _standing(arena.enqueue(agent, body.lane))

    @app.get(
        "/api/matchmaking/status",
        response_model=shapes.Standing,
        response_model_exclude_unset=True,
        responses=_faults(400, 401, 404, 408, 413, 429),
        summary="Where the agent stands",
    )
    async def status(gameId: Annotated[str, Query(max_length=64, json_schema_extra=_GAME)], agent: Caller) -> Any:
        _check_game(gameId)
        return _standing(arena.standing(agent))

    @app.get(
        "/api/matches/{match_id}/state",
        response_model=shapes.State,
        response_model_exclude_unset=True,
        responses=_faults(400, 401, 404, 408, 413, 429),
        summary="The match as the agent sees it; waits for a turn or the end unless wait=false",
    )
    async def state(
        request: Request,
        match_id: _MatchId,
        agent: Caller,
        wait: bool = True,
        afterSequence: Annotated[int, Query(ge=0, le=2**53)] = 0,
    ) -> Any:
        player = agent_id(agent.number)
        with bell.listen(match_id) as rung:
            game = arena.game(agent, match_id)
            if wait and not _is_news(game, player, afterSequence):
                if polls[agent.number] >= allowance.polls:
                    raise Refused(Code.TOO_MANY_CONNECTIONS, f"an agent may have {allowance.polls} long polls", 1.0)
                polls[agent.number] += 1
                gone = asyncio.ensure_future(_gone(request))
                try:
                    async with asyncio.timeout(allowance.poll_seconds):
                        while not (_is_news(game, player, afterSequence) or gone.done() or bell.closing):
                            await _first(rung.wait(), gone)
                            rung.clear()
                            game = arena.game(agent, match_id)
                except TimeoutError:
                    pass
                finally:
                    gone.cancel()
                    polls[agent.number] -= 1
        return _state(arena, game, player)

    @app.post(
        "/api/matches/{match_id}/action",
        response_model=shapes.Accepted,
        responses=_faults(400, 401, 404, 408, 409, 413, 429),
        summary="Take a turn; the same again counts once",
        openapi_extra={
            "requestBody": {"required": True, "content": {"application/json": {"schema": shapes.ACTION_REQUEST}}}
        },
    )
    async def action(request: Request, match_id: _MatchId, agent: Caller) -> Any:
        sequence, turn = read_action(await request.body(), "action")
        arena.act(agent, match_id, sequence, turn)
        return {"status": "accepted", "matchId": match_id, "sequence": sequence}

    documents = {"rules": "The rules, in words", "strategy": "What an agent may want to consider, in words"}
    for name, summary in documents.items():
        content = (files("fishpool.arena") / f"{name}.md").read_text(encoding="utf-8")
        app.add_api_route(
            f"/api/games/{{game_id}}/{name}",
            _document(content.replace("{rounds}", str(arena.rounds)), caller),
            response_model=shapes.Document,
            responses=_faults(400, 401, 404, 408, 413, 429),
            summary=summary,
            operation_id=f"game_{name}",
        )

    @app.get(
        "/api/games/{game_id}/validator",
        responses=_faults(400, 401, 404, 408, 413, 429),
        summary="The JSON schema of an action",
    )
    async def validator(game_id: _GameId, agent: Caller) -> dict[str, Any]:
        _check_game(game_id)
        return shapes.ACTION_SCHEMA

    @app.websocket("/ws/agent")
    async def agent_socket(socket: WebSocket) -> None:
        async with _accepted(socket, arena, allowance) as agent:
            if agent is not None:
                await _first(_announce(socket, arena, bell, agent), _ignore_messages(socket))

    @app.websocket("/ws/game/{match_id}")
    async def game_socket(socket: WebSocket, match_id: str) -> None:
        async with _accepted(socket, arena, allowance, match_id) as agent:
            if agent is not None:
                await _send(socket, {"type": "connected"})
                pushing = _push_turns(socket, arena, bell, agent, match_id)
                await _first(pushing, _take_messages(socket, arena, meter, agent, match_id))

    def described() -> dict[str, Any]:
        if not app.openapi_schema:
            app.openapi_schema = _without_422(get_openapi(title=app.title, version=app.version, routes=app.routes))
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]
    return app


# ── WebSockets ───────────────────────────────────────────────────────────────────────────────────────────────────


class _accepted:
    """The agent at the other end of a WebSocket that was let in; None after a refusal in HTTP."""

    def __init__(self, socket: WebSocket, arena: Arena, allowance: Allowance, match: str | None = None):
        self._socket, self._arena, self._allowance, self._match = socket, arena, allowance, match
        self._agent: StoredAgent | None = None

    async def __aenter__(self) -> StoredAgent | None:
        try:
            scheme, _, key = self._socket.headers.get("authorization", "").partition(" ")
            agent = self._arena.authenticate(key.strip() if scheme.lower() == "bearer" else "")
            if self._match is not None:
                self._arena.game(agent, self._match)
            if self._arena.connections(agent) >= self._allowance.connections:
                raise Refused(
                    Code.TOO_MANY_CONNECTIONS, f"an agent may have {self._allowance.connections} WebSockets", 1.0
                )
        except Refused as refused:
            await self._socket.send_denial_response(_refusal(refused))
            return None
        self._agent = agent
        self._arena.connect(agent)
        try:
            await self._socket.accept()
        except BaseException:
            self._arena.disconnect(agent)
            raise
        return agent

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if self._agent is not None:
            self._arena.disconnect(self._agent)
        return isinstance(error, WebSocketDisconnect)


async def _announce(socket: WebSocket, arena: Arena, bell: Bell, agent: StoredAgent) -> None:
    """Push each match that the agent is in, also one that was found before it connected."""
    announced = None
    with bell.listen(agent_id(agent.number)) as rung:
        while not bell.closing:
            match = arena.standing(agent).match
            if match and match != announced:
                await _send(socket, {"type": "match_found", "matchId": match, "gameId": rules.GAME_ID})
            announced = match or announced
            await rung.wait()
            rung.clear()
    await _close(socket, 1012)


async def _push_turns(socket: WebSocket, arena: Arena, bell: Bell, agent: StoredAgent, match: str) -> None:
    """Push each turn of the agent's once, a pending one first, and the end."""
    player, pushed = agent_id(agent.number), 0
    with bell.listen(match) as rung:
        while not bell.closing:
            game = arena.game(agent, match)
            if not game.live:
                await _send(socket, {"type": "game_over", "sequence": game.sequence, **_results(game)})
                await _close(socket, 1000)
                return
            if game.awaits(player) and game.sequence > pushed:
                pushed = game.sequence
                state = _state(arena, game, player)
                shown = {key: state[key] for key in ("sequence", "view", "turnTimeoutMs", "timeLeftMs")}
                await _send(socket, {"type": "your_turn", "matchId": match, "gameId": rules.GAME_ID, **shown})
            await rung.wait()
            rung.clear()
    await _close(socket, 1012)


async def _take_messages(socket: WebSocket, arena: Arena, meter: Meter, agent: StoredAgent, match: str) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        try:
            meter.count(agent)
            text = message.get("text")
            if text is None:
                raise Refused(Code.INVALID_REQUEST, "expected a text message, not a binary one")
            sequence, turn = read_action(text, "payload")
            arena.act(agent, match, sequence, turn)
        except Refused as refused:
            await _send(socket, {"type": "error", **_fault(refused)})
            if refused.code is Code.TOO_MANY_REQUESTS:
                await asyncio.sleep(refused.retry_after or 0)  # nothing more is read meanwhile


async def _send(socket: WebSocket, message: dict[str, Any]) -> None:
    try:
        await socket.send_json(message)
    except RuntimeError:  # what uvicorn raises if the other end has closed just now
        raise WebSocketDisconnect from None


async def _close(socket: WebSocket, code: int) -> None:
    try:
        await socket.close(code)
    except RuntimeError:
        raise WebSocketDisconnect from None


async def _ignore_messages(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


async def _first(*waits: Awaitable[Any]) -> None:
    """Wait for the first of several; futures are left alone, coroutines are cancelled, what was raised is raised."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        own = [task for task, wait in zip(tasks, waits, strict=True) if task is not wait]
        for task in own:
            task.cancel()
        await asyncio.gather(*own, return_exceptions=True)
    for task in done:
        task.result()


# ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_game(game_id: str) -> None:
    if game_id != rules.GAME_ID:
        raise Refused(Code.GAME_NOT_FOUND, f"the game of this arena is {rules.GAME_ID}")


def _document(content: str, caller: Callable[..., Awaitable[StoredAgent]]) -> Callable[..., Awaitable[Any]]:
    async def document(game_id: _GameId, agent: StoredAgent = Depends(caller)) -> Any:  # noqa: B008
        _check_game(game_id)
        return {"gameId": rules.GAME_ID, "version": __version__, "content": content}

    return document


def _standing(standing: Standing) -> dict[str, Any]:
    if standing.match:
        return {"status": shapes.Status.MATCHED, "matchId": standing.match}
    if standing.position:
        return {"status": shapes.Status.QUEUED, "position": standing.position}
    return {"status": shapes.Status.NOT_QUEUED}


def _is_news(game: Game, player: str, after: int) -> bool:
    return not game.live or (game.awaits(player) and game.sequence > after)


def _state(arena: Arena, game: Game, player: str) -> dict[str, Any]:
    status = "game_over" if not game.live else "your_turn" if game.awaits(player) else "waiting"
    left = {"timeLeftMs": int(arena.seconds_left(game) * 1000)} if game.live else _results(game)
    return {
        "status": status,
        "matchId": game.id,
        "gameId": rules.GAME_ID,
        "sequence": game.sequence,
        "view": rules.view(game.match, player),
        "turnTimeoutMs": int(arena.lanes[game.lane] * 1000),
        **left,
    }


def _results(game: Game) -> dict[str, Any]:
    """How a match ended, for both agents alike."""
    result = game.match.result
    assert result is not None
    void = result.ending is Ending.VOID
    drawn = "void" if void else "draw"
    return {
        "reason": "aborted" if void else str(result.ending),
        "results": {
            "winner": result.winner,
            "scores": game.match.scores,
            "outcome": {
                agent: drawn if result.winner is None else "win" if agent == result.winner else "loss"
                for agent in game.match.agents
            },
            "ending": str(result.ending),
            "detail": result.reason,
        },
    }


def _fault(refused: Refused) -> dict[str, Any]:
    later = {} if refused.retry_after is None else {"retryAfterMs": max(1, round(refused.retry_after * 1000))}
    return {"error": refused.code, "message": refused.message, **later}


def _refusal(refused: Refused, headers: dict[str, str] | None = None) -> JSONResponse:
    headers = dict(headers or {})
    if refused.code is Code.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    if refused.retry_after is not None:
        headers["retry-after"] = str(max(1, round(refused.retry_after)))
    return JSONResponse(_fault(refused), _STATUS[refused.code], headers)


async def _answer_refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return _refusal(error)


async def _answer_invalid(request: Request, error: Exception) -> JSONResponse:
    """What does not fit the description; what was found is not repeated in the answer."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    about_name = request.url.path == "/api/agents" and place == ["body", "name"]
    message = f"{'.'.join(place[:3])[:100]}: {first['msg']}"
    if first["type"] == "json_invalid":
        message = "the body is not JSON"
    return _refusal(Refused(Code.INVALID_NAME if about_name else Code.INVALID_REQUEST, message))


async def _answer_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    codes = {404: Code.NOT_FOUND, 405: Code.METHOD_NOT_ALLOWED}
    says = {404: "there is no such call", 405: "this call is made with another method"}
    code = codes.get(error.status_code, Code.INVALID_REQUEST)
    return _refusal(Refused(code, says.get(error.status_code, "the request cannot be read")), dict(error.headers or {}))


async def _answer_unkept(request: Request, error: Exception) -> JSONResponse:
    """Whoever serves is told why, whoever asks that nothing was kept."""
    print(f"arena: {error}", file=sys.stderr, flush=True)
    return await _answer_error(request, error)


async def _answer_error(request: Request, error: Exception) -> JSONResponse:
    return _refusal(
        Refused(Code.INTERNAL_ERROR, "the arena failed; the request changed nothing that was not said", 1.0)
    )


def _faults(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {
            "model": shapes.Fault,
            "description": ", ".join(code for code, of in _STATUS.items() if of == status),
        }
        for status in statuses
    }


def _without_422(description: dict[str, Any]) -> dict[str, Any]:
    """The description without the answer that FastAPI would give to an invalid request: here it is 400."""
    for path in description["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    for unused in ("HTTPValidationError", "ValidationError"):
        description["components"]["schemas"].pop(unused, None)
    return description


# ── How much is read ─────────────────────────────────────────────────────────────────────────────────────────────


async def _gone(request: Request) -> None:
    """Returns when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _WholeBodies:
    """Middleware that reads each body whole before the call is made, within bounds of size and time."""

    def __init__(self, app: ASGIApp, allowance: Allowance):
        self._app, self._allowance = app, allowance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            async with asyncio.timeout(self._allowance.body_seconds):
                body = await self._read(scope, receive)
        except TimeoutError:
            refused = Refused(Code.REQUEST_TIMEOUT, f"the body took more than {self._allowance.body_seconds:g} s", 1.0)
        except asyncio.CancelledError:  # by the server, which waits no longer once it is stopped
            refused = Refused(Code.REQUEST_TIMEOUT, "the arena stopped before the body had come", 1.0)
        except Refused as refusal:
            refused = refusal
        else:
            waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

            async def again() -> Message:
                return waiting.pop() if waiting else await receive()

            return await self._app(scope, again, send)
        return await _refusal(refused, {"connection": "close"})(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        parts, size = [], 0
        too_large = Refused(Code.BODY_TOO_LARGE, f"a body has at most {self._allowance.body} bytes")
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and (len(value) > 9 or int(value) > self._allowance.body):
                raise too_large
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b""
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._allowance.body:
                raise too_large
            if not message.get("more_body", False):
                return b"".join(parts)
