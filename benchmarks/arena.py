"""How quickly the arena answers while many matches are played: python benchmarks/arena.py [--matches N] [--think S].

Agents think for a random time (exponential, mean S seconds; 0: not at all, which shows the most calls a second).
Latencies are those that a client sees, without long polls that wait for the opponent. The client is bare HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from typing import Any

ACTIONS = [{"type": "choose", "choice": choice} for choice in ("cooperate", "defect")]
GAME = "prisoners-dilemma"
TIMES: dict[str, list[float]] = defaultdict(list)


class Agent:
    """One agent on one connection that is kept open."""

    def __init__(self, port: int, number: int, think: float):
        self.port, self.number, self.think = port, number, think
        self.key = ""

    async def call(self, what: str, method: str, path: str, body: Any = None) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        head += f"authorization: Bearer {self.key}\r\ncontent-length: {len(content)}\r\n\r\n"
        began = time.perf_counter()
        for _ in range(3):
            try:
                self.writer.write(head.encode() + content)
                status = await self.reader.readuntil(b"\r\n\r\n")
                break
            except (AttributeError, asyncio.IncompleteReadError, ConnectionError):  # none yet, or closed after a while
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        length = int(re.search(rb"content-length: (\d+)", status)[1])
        answer = json.loads(await self.reader.readexactly(length))
        if what:
            TIMES[what].append(time.perf_counter() - began)
        assert status.startswith(b"HTTP/1.1 20"), (path, answer)
        return answer

    async def play(self) -> str:
        self.key = (await self.call("register", "POST", "/api/agents", {"name": f"agent {self.number}"}))["apiKey"]
        found = await self.call("queue", "POST", "/api/matchmaking/queue", {"gameId": GAME, "lane": "standard"})
        while found["status"] != "matched":
            await asyncio.sleep(1)
            found = await self.call("status", "GET", f"/api/matchmaking/status?gameId={GAME}")
        match = f"/api/matches/{found['matchId']}"
        sequence = 0
        while True:
            state = await self.call("", "GET", f"{match}/state?afterSequence={sequence}")
            if state["status"] == "game_over":
                return state["reason"]
            if state["status"] == "waiting":
                continue
            sequence = state["sequence"]
            await asyncio.sleep(random.expovariate(1 / self.think) if self.think else 0)
            await self.call("state", "GET", f"{match}/state?wait=false")
            await self.call(
                "action", "POST", f"{match}/action", {"sequence": sequence, "action": random.choice(ACTIONS)}
            )


async def play_all(port: int, matches: int, think: float) -> list[str]:
    return await asyncio.gather(*(Agent(port, number, think).play() for number in range(2 * matches)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--think", type=float, default=1.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "fishpool.cli", "arena", "--port=0", f"--rounds={arguments.rounds}"]
        command += [f"--database={folder}/arena.sqlite", f"--results={folder}"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)", server.stderr.readline())[1])
            began = time.perf_counter()
            reasons = asyncio.run(play_all(port, arguments.matches, arguments.think))
            seconds = time.perf_counter() - began
        finally:
            server.kill()
    calls = sum(map(len, TIMES.values()))
    ended = {reason: reasons.count(reason) // 2 for reason in sorted(set(reasons))}
    print(f"{arguments.matches} matches at once, {arguments.rounds} rounds, {seconds:.1f} s, ended: {ended}")
    print(f"{calls:,} calls, {calls / seconds:,.0f} a second")
    for call, times in TIMES.items():
        times.sort()
        p50, p99 = (times[int(len(times) * share)] * 1000 for share in (0.5, 0.99))
        print(f"{call:>8}: p50 {p50:6.1f} ms, p99 {p99:6.1f} ms, of {len(times):,}")


if __name__ == "__main__":
    main()
