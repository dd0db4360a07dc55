"""The rules of the sheet over HTTP and WebSocket, against a real server: how a match ends, and what counts once."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from typing import Any

import httpx
import pytest
import websockets
from arena_process import ArenaProcess
from clients import COOPERATE, DEFECT, RESIGN, HttpAgent, SocketAgent, always, later

ROUNDS = 4
WRONG = {"type": "choose", "choice": "Cooperate"}
SILENCE = None


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    options = (f"--rounds={ROUNDS}", "--turn-timeout=fast=0.6", "--turn-timeout=standard=30")
    with ArenaProcess(tmp_path_factory.mktemp("arena"), *options) as process:
        yield process


async def together(*agents: Any) -> list[dict[str, Any]]:
    for agent in agents:  # who registers first queues first
        await agent.register()
    return await asyncio.gather(*(agent.play() for agent in agents))


# what each does from round r on (both cooperate before) -> who wins (0, 1 or nobody), reason
ENDINGS = [
    (1, COOPERATE, COOPERATE, None, "completed"),
    (1, DEFECT, COOPERATE, 0, "completed"),
    (1, RESIGN, COOPERATE, 1, "resigned"),
    (2, COOPERATE, RESIGN, 0, "resigned"),
    (1, RESIGN, RESIGN, None, "resigned"),
    (1, SILENCE, COOPERATE, None, "aborted"),
    (1, SILENCE, SILENCE, None, "aborted"),
    (2, SILENCE, COOPERATE, 1, "forfeited"),
    (2, SILENCE, SILENCE, None, "forfeited"),
    (1, WRONG, COOPERATE, None, "aborted"),
    (2, COOPERATE, WRONG, 0, "forfeited"),
    (2, WRONG, WRONG, None, "forfeited"),
    (1, WRONG, RESIGN, None, "aborted"),
    (2, WRONG, RESIGN, None, "forfeited"),
    (2, SILENCE, RESIGN, None, "forfeited"),
]


@pytest.mark.parametrize("kinds", [(HttpAgent, HttpAgent), (SocketAgent, SocketAgent), (HttpAgent, SocketAgent)])
def test_every_ending_of_the_sheet(arena, kinds):
    """All of them at the same time, each in a match of its own."""

    async def one(begin, actions) -> Any:
        agents = [kind(arena.url, later(action, begin)) for kind, action in zip(kinds, actions, strict=True)]
        async with asyncio.timeout(20):
            # One match is made before the next two agents queue, so that these two meet.
            async with queueing:
                for agent in agents:
                    await agent.register()
                first = asyncio.create_task(agents[0].play())
                while not await waits(agents[0]):
                    await asyncio.sleep(0.01)
                second = asyncio.create_task(agents[1].play())
                while not (agents[0].match and agents[1].match):
                    await asyncio.sleep(0.01)
            assert agents[0].match == agents[1].match
            return agents, await asyncio.gather(first, second)

    async def waits(agent: Any) -> bool:
        with sqlite3.connect(arena.database) as database:
            number = int(agent.id.removeprefix("agent-"))
            return bool(database.execute("SELECT 1 FROM queue WHERE agent = ?", (number,)).fetchone())

    async def everything() -> list[Any]:
        return await asyncio.gather(*(one(begin, actions) for begin, *actions, _, _ in ENDINGS))

    queueing = asyncio.Lock()
    for (begin, *_, winner, reason), (agents, overs) in zip(ENDINGS, asyncio.run(everything()), strict=True):
        for over in overs:
            results = over["results"]
            assert (over["reason"], results["winner"]) == (reason, None if winner is None else agents[winner].id)
            outcomes = [results["outcome"][agent.id] for agent in agents]
            if reason == "aborted":
                assert outcomes == ["void", "void"]
            elif winner is None:
                assert outcomes == ["draw", "draw"]
            else:
                assert (outcomes[winner], outcomes[1 - winner]) == ("win", "loss")
            if reason != "completed":  # the round that ended it is not scored
                assert results["scores"] == {agent.id: 3 * (begin - 1) for agent in agents}


async def pair(arena: ArenaProcess, lane: str = "standard") -> list[HttpAgent]:
    agents = [HttpAgent(arena.url, always(COOPERATE), lane=lane) for _ in "ab"]
    for agent in agents:
        await agent.register()
    await asyncio.gather(*(agent.find_match() for agent in agents))
    assert agents[0].match == agents[1].match
    return agents


def test_an_action_sent_twice_counts_once_and_another_one_is_stale(arena):
    async def run() -> None:
        first, second = await pair(arena)
        for _ in range(3):
            assert (await first.act(1, COOPERATE)).status_code == 200
        answer = await first.act(1, DEFECT)
        assert (answer.status_code, answer.json()["error"]) == (409, "stale_sequence")
        assert (await first.state(wait=False))["status"] == "waiting"
        assert (await second.act(1, DEFECT)).status_code == 200
        for action, status in ((COOPERATE, 200), (DEFECT, 409), (RESIGN, 409), (WRONG, 409)):  # the round is over
            assert (await first.act(1, action)).status_code == status
        state = await first.state()
        assert (state["sequence"], state["view"]["scores"]) == (2, {first.id: 0, second.id: 5})
        assert len(state["view"]["history"]) == 1
        for sequence in (3, 99, -1, 2**70):
            answer = await first.act(sequence, COOPERATE)
            assert (answer.status_code, answer.json()["error"]) == (409, "not_your_turn")

    asyncio.run(run())


def test_of_two_actions_at_the_same_moment_one_counts(arena):
    async def run() -> None:
        for _ in range(5):
            first, second = await pair(arena)
            answers = await asyncio.gather(*(first.act(1, action) for action in (COOPERATE, DEFECT, RESIGN) * 3))
            assert sorted(answer.status_code for answer in answers) == [200] * 3 + [409] * 6
            counted = {action["type"] + action.get("choice", "") for _, action in first.accepted}
            assert len(counted) == 1
            await second.act(1, COOPERATE)
            state = await second.state(after=1)
            if state["status"] == "your_turn":
                assert counted == {"choose" + state["view"]["history"][0]["choices"][first.id]}
            else:
                assert (counted, state["reason"]) == ({"resign"}, "resigned")

    asyncio.run(run())


def test_a_view_has_exactly_the_keys_of_the_sheet_and_never_shows_a_choice_before_the_round_is_over(arena):
    async def run() -> None:
        first, second = await pair(arena)
        before = (await second.state(wait=False))["view"]
        assert list(before) == [
            "gameId", "you", "turnNumber", "round", "totalRounds", "roundsRemaining", "scores", "history", "isYourTurn"
        ]  # fmt: skip
        await first.act(1, DEFECT)
        after = await second.state(wait=False)
        assert (after["view"], after["status"]) == (before, "your_turn")

    asyncio.run(run())


def test_a_long_poll_wakes_when_the_round_is_over_and_not_before(arena):
    async def run() -> None:
        first, second = await pair(arena)
        await first.act(1, COOPERATE)
        poll = asyncio.create_task(first.state(after=1))
        await asyncio.sleep(0.3)
        assert not poll.done()
        began = time.perf_counter()
        await second.act(1, COOPERATE)
        state = await poll
        assert (state["status"], state["sequence"]) == ("your_turn", 2)
        assert time.perf_counter() - began < 1

    asyncio.run(run())


def test_a_client_that_gives_up_its_long_polls_can_go_on_polling(arena):
    """Twelve are more than one agent may have at a time."""

    async def run() -> None:
        first, second = await pair(arena)
        await first.act(1, COOPERATE)
        async with httpx.AsyncClient(base_url=arena.url, timeout=0.05, headers=first.headers) as hasty:
            for _ in range(12):
                with pytest.raises(httpx.TimeoutException):
                    await hasty.get(f"/api/matches/{first.match}/state?afterSequence=1")
        await second.act(1, COOPERATE)
        assert (await first.state(after=1))["sequence"] == 2

    asyncio.run(run())


def test_what_is_no_action_costs_nothing_and_what_is_rejected_ends_the_match(arena):
    """A sequence number that cannot be told, or of another turn, is nobody's action; see docs/arena.md."""
    free = [
        b"", b"{", b"[]", b"null", b"\xff", b'{"sequence": 1}', b'{"action": {"type": "resign"}}',
        b'{"sequence": "1", "action": {"type": "resign"}}', b'{"sequence": true, "action": {"type": "resign"}}',
        b'{"sequence": 1.0, "action": {"type": "resign"}}', b'{"sequence": NaN, "action": {"type": "resign"}}',
        b'{"sequence": 1, "sequence": 1, "action": {"type": "resign"}}',
        b'{"sequence": 1, "action": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    ]  # fmt: skip
    rejected = [
        b"null", b'"cooperate"', b"[]", b"{}", b'{"type": "choose"}', b'{"type": "choose", "choice": "COOPERATE"}',
        b'{"type": "choose", "choice": "cooperate", "choice": "defect"}', b'{"type": "resign", "why": 1}',
        b'{"type": "choose", "choice": NaN}',
    ]  # fmt: skip

    async def run() -> None:
        first, second = await pair(arena)
        path = f"/api/matches/{first.match}/action"
        for body in free:
            answer = await first.http.post(path, content=body, headers=first.headers)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), body
        answer = await first.http.post(path, content=b" " * 70_000, headers=first.headers)
        assert (answer.status_code, answer.json()["error"]) == (413, "body_too_large")
        for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": f"Basic {first.id}"}):
            assert (await first.http.post(path, json={}, headers=headers)).status_code == 401
        assert (await first.act(1, COOPERATE)).status_code == 200
        await second.act(1, COOPERATE)
        assert (await first.state())["view"]["turnNumber"] == 1

        for action in rejected:
            one, other = await pair(arena)
            path = f"/api/matches/{one.match}/action"
            body = b'{"sequence": 1, "action": ' + action + b"}"
            for _ in range(2):  # the same answer for the same mistake, which counts once
                answer = await one.http.post(path, content=body, headers=one.headers)
                assert (answer.status_code, answer.json()["error"]) == (400, "invalid_action"), action
            assert (await one.act(1, COOPERATE)).status_code == 409
            assert (await other.act(1, COOPERATE)).status_code == 200
            assert [(await agent.state())["reason"] for agent in (one, other)] == ["aborted", "aborted"]

    asyncio.run(run())


def test_nobody_sees_or_plays_a_match_of_others(arena):
    async def run() -> None:
        first, _ = await pair(arena)
        stranger = HttpAgent(arena.url, always(DEFECT))
        await stranger.register()
        for match in (first.match, "match-999999", "match-0", "match-01", "..%2f..%2fetc", "%00", "x" * 60, "1e400"):
            stranger.match = match
            for answer in (
                await stranger.call("GET", f"/api/matches/{match}/state?wait=false"),
                await stranger.act(1, DEFECT),
            ):
                assert answer.status_code == 404, match
                assert answer.json()["error"] in ("match_not_found", "not_found")
            with pytest.raises(websockets.InvalidStatus) as refused:
                await websockets.connect(
                    f"{arena.url.replace('http', 'ws')}/ws/game/{match}", additional_headers=stranger.headers
                )
            assert refused.value.response.status_code in (403, 404)

    asyncio.run(run())


def test_a_socket_without_a_key_is_refused(arena):
    async def run() -> None:
        for headers in ({}, {"Authorization": "Bearer agent-1." + "A" * 43}):
            with pytest.raises(websockets.InvalidStatus) as refused:
                await websockets.connect(f"{arena.url.replace('http', 'ws')}/ws/agent", additional_headers=headers)
            assert refused.value.response.status_code == 401

    asyncio.run(run())


async def socket_pair(arena: ArenaProcess) -> list[SocketAgent]:
    agents = [SocketAgent(arena.url, always(COOPERATE), lane="standard") for _ in "ab"]
    for agent in agents:
        await agent.register()
    await asyncio.gather(*(agent.find_match() for agent in agents))
    return agents


def test_a_pending_turn_is_sent_again_on_reconnect_and_messages_of_no_turn_are_errors(arena):
    async def run() -> None:
        first, second = await socket_pair(arena)
        path = f"/ws/game/{first.match}"

        async def receive(socket: Any) -> dict[str, Any]:
            async with asyncio.timeout(5):
                return json.loads(await socket.recv())

        def message(sequence: Any, action: Any) -> str:
            return json.dumps({"type": "action", "sequence": sequence, "payload": action})

        for _ in range(2):
            async with first.connect(path) as socket:
                assert (await receive(socket))["type"] == "connected"
                assert (await receive(socket))["type"] == "your_turn"
        async with first.connect(path) as socket, second.connect(path) as other:
            for each in (socket, other):
                assert (await receive(each))["type"] == "connected"
                turn = await receive(each)
                assert (turn["type"], turn["sequence"], turn["view"]["round"]) == ("your_turn", 1, 1)
            for text, error in [
                ("nonsense", "invalid_request"),
                (b"\x00\x01", "invalid_request"),
                (json.dumps({"type": "action", "payload": COOPERATE}), "invalid_request"),
                (json.dumps({"type": "note", "sequence": 1, "payload": RESIGN}), "invalid_request"),
                (message(2, COOPERATE), "not_your_turn"),
            ]:
                await socket.send(text)
                answer = await receive(socket)
                assert (answer["type"], answer["error"]) == ("error", error), text
            for _ in range(2):
                await socket.send(message(1, COOPERATE))
            await socket.send(message(1, DEFECT))
            assert (await receive(socket))["error"] == "stale_sequence"
            await other.send(message(1, DEFECT))
            for each in (socket, other):
                turn = await receive(each)
                assert (turn["type"], turn["sequence"]) == ("your_turn", 2)
                assert turn["view"]["history"][0]["choices"] == {first.id: "cooperate", second.id: "defect"}
            await socket.send(message(2, WRONG))
            assert (await receive(socket))["error"] == "invalid_action"
            await other.send(message(2, COOPERATE))
            for each in (socket, other):
                over = await receive(each)
                assert (over["type"], over["reason"]) == ("game_over", "forfeited")
                assert over["results"]["winner"] == second.id
        async with first.connect(path) as socket:  # also long after the end
            assert [(await receive(socket))["type"] for _ in range(2)] == ["connected", "game_over"]

    asyncio.run(run())


def test_who_disconnects_and_stays_away_is_timed_out_though_nobody_asks(arena):
    """The opponent is told by the server's clock: no call of anybody's ends the turn."""

    async def run() -> None:
        agents = [SocketAgent(arena.url, always(COOPERATE)) for _ in "ab"]
        for agent in agents:
            await agent.register()
        await asyncio.gather(*(agent.find_match() for agent in agents))
        with sqlite3.connect(arena.database) as database:
            number = int(agents[0].match.removeprefix("match-"))
            query = "SELECT ending FROM matches WHERE number = ?"
            assert database.execute(query, (number,)).fetchone() == (None,)
            await asyncio.sleep(1.2)
            assert database.execute(query, (number,)).fetchone() == ("void",)

    asyncio.run(run())


def test_queueing_with_a_live_match_gives_that_match_and_queueing_twice_one_place(arena):
    async def run() -> None:
        first, _ = await pair(arena)
        answer = await first.call(
            "POST", "/api/matchmaking/queue", json={"gameId": "prisoners-dilemma", "lane": "fast"}
        )
        assert answer.json() == {"status": "matched", "matchId": first.match}
        alone = HttpAgent(arena.url, always(COOPERATE), lane="standard")
        await alone.register()
        for _ in range(3):
            answer = await alone.call(
                "POST", "/api/matchmaking/queue", json={"gameId": "prisoners-dilemma", "lane": "standard"}
            )
            assert answer.json() == {"status": "queued", "position": 1}
        other = HttpAgent(arena.url, always(COOPERATE), lane="standard")
        await other.register()
        assert (await other.call("GET", "/api/matchmaking/status?gameId=prisoners-dilemma")).json() == {
            "status": "not_queued"
        }
        await asyncio.gather(other.find_match(), alone.find_match())  # so that nobody is left in the queue
        assert other.match == alone.match

    asyncio.run(run())


def test_games_and_lanes_that_there_are_not(arena):
    async def run() -> None:
        agent = HttpAgent(arena.url, always(COOPERATE))
        await agent.register()
        for method, path, body, status, error in [
            ("POST", "/api/matchmaking/queue", {"gameId": "chess", "lane": "fast"}, 404, "game_not_found"),
            ("POST", "/api/matchmaking/queue", {"gameId": "prisoners-dilemma", "lane": "slow"}, 400, "invalid_lane"),
            ("POST", "/api/matchmaking/queue", {}, 400, "invalid_request"),
            ("GET", "/api/matchmaking/status?gameId=chess", None, 404, "game_not_found"),
            ("GET", "/api/matchmaking/status", None, 400, "invalid_request"),
            ("GET", "/api/matches/match-1/state?wait=perhaps", None, 400, "invalid_request"),
            ("GET", "/api/matches/match-1/state?afterSequence=-1", None, 400, "invalid_request"),
            ("GET", "/api/matches/match-1/state?afterSequence=1e9", None, 400, "invalid_request"),
            ("GET", "/api/games/chess/rules", None, 404, "game_not_found"),
            ("GET", "/api/nothing", None, 404, "not_found"),
            ("DELETE", "/api/agents", None, 405, "method_not_allowed"),
        ]:
            answer = await agent.call(method, path, json=body)
            assert (answer.status_code, answer.json()["error"]) == (status, error)
        for document in ("rules", "strategy"):
            content = (await agent.call("GET", f"/api/games/prisoners-dilemma/{document}")).json()
            assert set(content) == {"gameId", "version", "content"}
            assert f"{ROUNDS} rounds" in content["content"]

    asyncio.run(run())


def test_the_validator_and_the_referee_agree(arena):
    from jsonschema import Draft202012Validator

    from fishpool.games.prisoners_dilemma import read_action

    async def fetch() -> Any:
        agent = HttpAgent(arena.url, always(COOPERATE))
        await agent.register()
        return (await agent.call("GET", "/api/games/prisoners-dilemma/validator")).json()

    validator = Draft202012Validator(asyncio.run(fetch()))
    for action in [
        COOPERATE, DEFECT, RESIGN, WRONG, {}, [], None, "resign", {"type": "resign", "choice": "cooperate"},
        {"type": "choose"}, {"choice": "cooperate"}, {"type": "choose", "choice": "defect", "x": 1}, {"type": "pass"},
        {"type": "choose", "choice": None},
    ]:  # fmt: skip
        try:
            read_action(action)
            legal = True
        except ValueError:
            legal = False
        assert validator.is_valid(action) is legal, action
