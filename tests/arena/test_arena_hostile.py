"""Hostile clients of a real arena: it answers in its own words, goes on serving others, and keeps its memory."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from arena_process import ArenaProcess
from clients import COOPERATE, HttpAgent, SocketAgent, always


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    with ArenaProcess(tmp_path_factory.mktemp("arena"), "--rounds=3", "--turn-timeout=fast=5") as process:
        yield process
        memory = Path(f"/proc/{process.process.pid}/status").read_text()
        peak = int(memory.split("VmHWM:")[1].split()[0])
        assert peak < 400_000, f"{peak} kB"
        log = process.errors.read_text()
        assert "Traceback" not in log, log
        assert "ERROR" not in log, log


@pytest.fixture(autouse=True)
def it_still_serves(arena):
    """After every attack, two honest agents can play a match, quickly."""
    yield

    async def run() -> None:
        agents = [HttpAgent(arena.url, always(COOPERATE), lane="standard"), SocketAgent(arena.url, always(COOPERATE))]
        agents[1].lane = "standard"
        for agent in agents:
            await agent.register()
        async with asyncio.timeout(10):
            overs = await asyncio.gather(*(agent.play() for agent in agents))
        assert [over["reason"] for over in overs] == ["completed", "completed"]

    asyncio.run(run())


def raw(arena: ArenaProcess, *parts: bytes, wait: float = 15.0) -> bytes:
    """What comes back for bytes on a connection, until it is closed."""
    with socket.create_connection(("127.0.0.1", arena.port), timeout=wait) as connection:
        received = b""
        try:
            for part in parts:
                connection.sendall(part)
            while more := connection.recv(65_536):
                received += more
        except OSError:  # closed while we were still sending
            pass
        return received


def post(arena: ArenaProcess, body: Any, path: str = "/api/agents", **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(arena.url + path, content=content, headers={"content-type": "application/json"} | headers)


def test_huge_bodies_are_not_read(arena):
    head = b"POST /api/agents HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    assert raw(arena, head + b"content-length: 1000000000\r\n\r\n").startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = raw(arena, head + b"transfer-encoding: chunked\r\n\r\n", *[chunk] * 50)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413")
    assert post(arena, b'{"name": "' + b"x" * 70_000 + b'"}').json()["error"] == "body_too_large"


def test_a_slow_body_is_given_up(arena):
    head = b"POST /api/agents HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n"
    began = time.monotonic()
    answer = raw(arena, head + b"{")
    assert answer.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began < 14


def test_a_body_that_is_not_there_when_the_arena_stops_is_answered(tmp_path):
    """It was cancelled with a traceback."""
    head = b"POST /api/agents HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n"
    with ArenaProcess(tmp_path) as own, socket.create_connection(("127.0.0.1", own.port), timeout=15) as connection:
        connection.sendall(head + b"{")
        time.sleep(0.5)  # until it waits for the rest
        own.stop()
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408")
        assert "Traceback" not in own.errors.read_text()


def test_header_floods_are_refused(arena):
    answer = raw(arena, b"GET / HTTP/1.1\r\n" + b"".join(b"x-%d: y\r\n" % number for number in range(100_000)))
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    answer = raw(arena, b"GET /" + b"a" * 1_000_000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"name": null}', b'{"name": 1}', b'{"name": ["a"]}', b'{"name": NaN}',
        b'{"name": "\\u0000"}', b'{"name": "\\ud800"}', b'{"name": "a\\u0000b"}', b'{"name": "a\\nb"}',
        b'{"name": "ok", "model": "\\u0000"}', b'{"name": "ok", "model": "\\ud800"}', b'{"name": "a\\n"}',
        b'{"name": "ok", "model": "a\\nINFO: forged"}', b'{"name": "ok", "model": "\\u001b[2J"}',
        b"[" * 30_000, b'{"name": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", b"9" * 60_000, b'{"name": "' + b"a" * 65,
    ],
)  # fmt: skip
def test_bodies_that_name_no_agent(arena, body):
    answer = post(arena, body)
    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_request", "invalid_name")
    assert len(answer.content) < 500


def test_a_page_in_a_browser_cannot_register_agents(arena):
    """A form's content type needs no leave of the server's; and a name that a page resolves to this machine is no
    name of the arena's."""
    assert post(arena, {"name": "from a page"}, **{"content-type": "text/plain"}).status_code == 400
    assert post(arena, {"name": "from a page"}, host="attacker.example").status_code == 400


def test_nothing_that_a_client_sends_stands_in_the_log(arena):
    forged = "forged line"
    said = arena.errors.read_text()
    for path in (f"/api/%0a{forged}", f"/api/matches/%0a{forged}/state", f"/ws/game/%1b{forged}"):
        httpx.get(arena.url + path.replace(" ", "%20"))
    raw(arena, b"nonsense\r\n" + forged.encode() + b"\r\n\r\n")
    assert forged not in arena.errors.read_text()[len(said) :]


def test_an_agent_that_calls_without_end_is_slowed_down_and_nobody_else(arena):
    async def run() -> None:
        agent, other = HttpAgent(arena.url, always(COOPERATE)), HttpAgent(arena.url, always(COOPERATE))
        await agent.register()
        await other.register()
        path = "/api/matchmaking/status?gameId=prisoners-dilemma"
        call = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: {agent.headers['Authorization']}\r\n"
        calls, last = f"{call}\r\n" * 1_500, f"{call}connection: close\r\n\r\n"
        answers = (await asyncio.to_thread(raw, arena, calls.encode(), last.encode())).decode()
        assert answers.count("HTTP/1.1 ") == 1_501
        assert 200 <= answers.count("HTTP/1.1 200 ") < 1_501
        assert answers.count("HTTP/1.1 429 ") == answers.count('{"error":"too_many_requests"') > 0
        assert answers.count('"retryAfterMs":') == answers.count("HTTP/1.1 429 ")
        assert (await other.http.get(path, headers=other.headers)).status_code == 200

    asyncio.run(run())


def test_sockets_that_flood_send_huge_messages_or_never_read(arena):
    async def run() -> None:
        agents = [SocketAgent(arena.url, always(COOPERATE), lane="standard") for _ in "ab"]
        for agent in agents:
            await agent.register()
        await asyncio.gather(*(agent.find_match() for agent in agents))
        path = f"/ws/game/{agents[0].match}"
        async with agents[0].connect(path) as connection:
            await connection.send("x" * 1_000_000)
            await connection.wait_closed()
            assert connection.close_code == 1009
        connection = await agents[0].connect(path)  # floods, and reads nothing of what is answered
        try:
            async with asyncio.timeout(1):
                while True:
                    await connection.send("x" * 60_000)
        except (TimeoutError, websockets.ConnectionClosed):
            pass
        connection.transport.abort()
        connections = [await agents[1].connect(path) for _ in range(8)]
        with pytest.raises(websockets.InvalidStatus) as refused:
            await agents[1].connect(path)
        assert refused.value.response.status_code == 429
        for connection in connections:
            await connection.close()
        await (await agents[1].connect(path)).close()

    asyncio.run(run())


def test_connections_that_say_nothing_or_break_off_do_not_add_up(arena):
    silent = [socket.create_connection(("127.0.0.1", arena.port)) for _ in range(300)]
    for connection in silent[:150]:
        connection.sendall(b"GET /api/match")
    assert httpx.get(arena.url + "/openapi.json").status_code == 200
    for connection in silent:
        connection.close()
    descriptors = Path(f"/proc/{arena.process.pid}/fd")
    for _ in range(100):
        if len(list(descriptors.iterdir())) < 100:
            return
        time.sleep(0.05)
    raise AssertionError("connections that were closed are still open in the arena")


def test_it_listens_on_this_machine_alone(arena):
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    addresses = [line.split()[1] for line in listening if line.split()[3] == "0A"]
    assert f"0100007F:{arena.port:04X}" in addresses
    assert f"00000000:{arena.port:04X}" not in addresses
