"""What fills a journal and an arena, for tests of the files in which they keep it; it holds no test."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripted_backend import MODEL, Server, a_reply, question

from fishpool.arena.matches import Arena
from fishpool.arena.store import Store
from fishpool.games.prisoners_dilemma import Choice
from fishpool.models.calls import Request
from fishpool.models.client import Client
from fishpool.models.faults import Stop, TransportFault
from fishpool.records import Status
from fishpool.referee import Turn

QUESTIONS = [question(run_id=f"duel:noisy:{number % 7}:a-b", round=number) for number in range(1, 41)]


def ask_all(path: Path, says: Callable[[Request], str], *, offline: bool = False) -> list[str]:
    """The replies to all questions, through a journal, or why there is none, which is so of the fifth; raises Stop."""

    def answer(endpoint: Any, request: Request) -> Any:
        if request.round == 5:
            return TransportFault("503 busy")
        return a_reply(says(request) + " and so on" * (9 * (request.round % 9)))

    async def ask() -> list[Any]:
        client = Client(Server(path, answer, retries=0, offline=offline).site, [MODEL], None)
        await client.open()
        try:
            return await asyncio.gather(*(client.ask(MODEL, **one) for one in QUESTIONS), return_exceptions=True)
        finally:
            await client.close()

    replies = asyncio.run(ask())
    for reply in replies:
        if isinstance(reply, Stop):
            raise reply
    return [str(reply) if isinstance(reply, Exception) else str(reply.reply) for reply in replies]


def play_matches(store: Store) -> None:
    """Eight that are over and one that is not, of three new agents, one of whom is in the queue then."""
    arena = Arena(store, lambda: 0.0)
    many = len(store.agents())
    agents = [arena.register(f"{name} {many}", "llama3.1")[0] for name in ("Ann", "Bob", "Cid")]
    for number in range(9):
        pair = agents[number % 2], agents[2]
        match = [arena.enqueue(agent, "standard").match for agent in pair][1]
        for round_number in range(1, 4 if number < 8 else 3):
            for agent in pair:
                arena.act(agent, match, round_number, Turn(Status.MOVED, list(Choice)[number % 3 == round_number % 2]))
    arena.enqueue(agents[1], "fast")
