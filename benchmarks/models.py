"""What a study costs a model's server: studies and the client alone against the bare backend; 10,000 replies replayed.

Answers come after a fixed time from a backend in this process and from a server on the loopback, through the real
`openai` backend; and from the embedded model, if the extra is there. Both programs of a pair ask the same questions
with the same number under way, in turn, on the wall clock, since waiting is what they do; the medians of the passes
count. A study is a shard of the prisoner's dilemma from its first request to its last record, with its opening. The
replay is timed on its own, per reply.

    python benchmarks/models.py [passes]
"""

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType

from measure import RESULTS, compare, report

from fishpool.models import publishing
from fishpool.models.calls import Model, Reply, Request
from fishpool.models.client import Client
from fishpool.models.journal import Entry, Journal, Sort
from fishpool.shards import Player, Shard, Site

QUESTIONS = 400
LOADS = [(4, 0.05), (32, 0.5)]  # requests at once, seconds a reply: a small server; a large one, batching
STUDIES = [("openai", (4, 0.05), 10), ("openai", (32, 0.5), 40), ("llamacpp", (1, 0.0), 5)]  # kind, load, seeds
REPLAYED = 10_000
PROMPT = [{"role": role, "content": "The rules of the game, and what happened. " * 12} for role in ("system", "user")]
SCHEMA = {"type": "object", "properties": {"reasoning": {"type": "string"}, "choice": {"enum": ["A", "B"]}}}
ANSWER = json.dumps({"reasoning": "Because they did, and I would rather not. " * 6, "choice": "A"})
AIM = 0.95


def main(passes: int) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    comparisons, rates_of = [], {}
    programs = [
        ("client", kind, load, partial(throughput, kind, *load)) for kind in ("fixed", "openai") for load in LOADS
    ]
    programs += [("study", kind, load, partial(study, kind, *load, seeds)) for kind, load, seeds in STUDIES]
    for asker, kind, (concurrency, latency), program in programs:
        what = f"models: a {asker} on {kind}, {concurrency} at once" + (f", {latency * 1000:g} ms" if latency else "")
        print(f"{what} ..", flush=True)
        rates: dict[str, list[float]] = {}
        try:
            for _ in range(passes):
                for name, rate in program().items():
                    rates.setdefault(name, []).append(rate)
        except ModuleNotFoundError as error:
            print(f"{what}: not measured, {error.name} is not there")
            continue
        rates_of[what] = rates
        comparisons.append(compare(rates, what, "replies", "the bare server", AIM))
        print(f"  {comparisons[-1].ratio:.3g} of the bare server", flush=True)
    replayed = replay(passes)
    details = {"clock": "wall", "questions": QUESTIONS, "rates": rates_of, "replay": replayed}
    report("models", comparisons, {**details, "sqlite": sqlite3.sqlite_version}, ["openai", "httpx"])
    for name, seconds in replayed["seconds"].items():
        print(f"{REPLAYED:,} replies, {name}: {median(seconds):.2f} s")


# ── Throughput ───────────────────────────────────────────────────────────────────────────────────────────────────


class Fixed:
    """A backend that takes a fixed time over every reply."""

    latency = 0.0

    async def reply(self, request):
        await asyncio.sleep(self.latency)
        return Reply(ANSWER, "", "stop", 300, 80, self.latency * 1000)

    async def digest(self, model):
        return "d" * 64

    async def warm_up(self, model, context):
        pass

    async def close(self):
        pass


def throughput(kind, concurrency, latency):
    """Replies a second of the bare backend and of the client."""
    programs = {"the bare server": bare, "ours": through_client}
    return {name: asyncio.run(timed(program, kind, concurrency, latency)) for name, program in programs.items()}


async def timed(program, kind, concurrency, latency):
    Fixed.latency = latency
    async with await asyncio.start_server(lambda *streams: serve(latency, *streams), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings = {
            "kind": kind,
            "endpoints": [f"http://127.0.0.1:{port}/v1"],
            "concurrency": concurrency,
            "request_timeout": 60,
            "retries": 3,
            "api_key": None,
        }
        return QUESTIONS / await program(settings)


async def bare(settings, requests=None):
    """Seconds for the questions (or `requests`), with as many workers as may be under way."""
    from importlib import import_module

    backend = import_module(f"fishpool.models.backends.{settings['kind']}").make(settings, settings["endpoints"][0])
    questions = requests or [request(number) for number in range(QUESTIONS)]
    await backend.reply(questions[0])
    left = iter(questions)

    async def work():
        for question in left:
            await backend.reply(question)

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(settings["concurrency"])))
    seconds = time.perf_counter() - start
    await backend.close()
    return seconds


async def through_client(settings):
    """The same, as games ask: twice as many at once as places, so that one game always waits for another."""
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        client = Client(Site(servers={"lab": settings}, journal=f"{folder}/journal.sqlite"), [MODEL], None)
        await client.open()
        await client.ask(MODEL, PROMPT, SCHEMA, **call(0))
        left = iter(range(1, QUESTIONS + 1))

        async def work():
            for number in left:
                await client.ask(MODEL, PROMPT, SCHEMA, **call(number))

        start = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(WORKERS_PER_PLACE * client.concurrency)))
        seconds = time.perf_counter() - start
        await client.close()
        return seconds


def study(kind, concurrency, latency, seeds):
    return asyncio.run(play_and_repeat(kind, concurrency, latency, seeds))


async def play_and_repeat(kind, concurrency, latency, seeds):
    """Replies a second of a shard of matches, and of the bare backend for the same requests."""
    from fishpool.runners import prisoners_dilemma

    async with await asyncio.start_server(lambda *streams: serve(latency, *streams), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        endpoint = "embedded" if kind == "llamacpp" else f"http://127.0.0.1:{port}/v1"
        settings = {
            "kind": kind,
            "endpoints": [endpoint],
            "concurrency": concurrency,
            "request_timeout": 600,
            "retries": 3,
            "api_key": None,
            "threads": 1,
        }
        name = "gemma3-270m" if kind == "llamacpp" else MODEL.name
        model = {"server": "lab", "name": name, "max_tokens": 40, "context": 2048, "reasoning": kind != "llamacpp"}
        shard = Shard(
            study="bench",
            condition="plain",
            name="seeds-0",
            game="prisoners_dilemma",
            parameters={
                "rounds": 3 if kind == "llamacpp" else 20,
                "noise": 0.0,
                "lane": "standard",
                "agent_ids": ["agent_1", "agent_2"],
                "prompts": "config/prompts",
                "labels": ["A", "B"],
                "label_order": "cooperate_first",
            },
            players=(Player("Tit", "scripted", {"strategy": "TitForTat"}), Player("m", "model", model)),
            turn_timeout=600,
            seeds=tuple(range(seeds)),
        )
        with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
            site = Site(servers={"lab": settings}, journal=f"{folder}/journal.sqlite")
            start = time.perf_counter()
            frames = await asyncio.to_thread(lambda: list(prisoners_dilemma.play(shard, site)))
            played = time.perf_counter() - start
        asked = [json.loads(text) for frame in frames for text in frame["replies"]["request"]]
        requests = [Request(**{**values, "messages": tuple(values["messages"])}) for values in asked]
        return {"the bare server": len(requests) / await bare(settings, requests), "ours": len(requests) / played}


async def serve(latency, reader, writer):
    """An OpenAI-compatible server of the least kind: one model, one answer, after a fixed time."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = head.decode().split("\r\n")
            lengths = [line.split(":")[1] for line in lines if line.lower().startswith("content-length:")]
            await reader.readexactly(int(lengths[0]) if lengths else 0)
            if "/chat/completions" in lines[0]:
                await asyncio.sleep(latency)
                body = COMPLETION
            else:
                body = {"object": "list", "data": [{"id": MODEL.name, "object": "model", "created": 0, "owned_by": ""}]}
            text = json.dumps(body).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text))
            writer.write(text)
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        pass
    finally:
        writer.close()


# ── Replay ───────────────────────────────────────────────────────────────────────────────────────────────────────


def replay(passes):
    """Seconds to answer all questions from a journal, and from its published form, opening included."""
    seconds = {"offline from the journal": [], "replay of the published file": []}
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        path, file = Path(folder) / "journal.sqlite", Path(folder) / "journal.jsonl.xz"
        with closing(Journal(path)) as journal:
            requests = [request(number) for number in range(REPLAYED)]
            reply = Entry(Sort.ANSWER, Reply(ANSWER, "", "stop", 300, 80, 50.0))
            journal.keep_all((request.key, request.to_json(), reply) for request in requests)
            journal.note_digest("lab", MODEL.name, "d" * 64)
            publishing.export(journal, file)
        sizes = {"journal_bytes": path.stat().st_size, "published_bytes": file.stat().st_size}
        for _ in range(passes):
            for name, published in zip(seconds, (None, str(file)), strict=True):
                start = time.perf_counter()
                asyncio.run(answer_all(str(path), published))
                seconds[name].append(time.perf_counter() - start)
    return {"replies": REPLAYED, "seconds": seconds, **sizes}


async def answer_all(path, published):
    settings = {"kind": "fixed", "endpoints": [], "concurrency": 1}
    client = Client(Site(servers={"lab": settings}, journal=path, offline=True), [MODEL], published)
    await client.open()
    for number in range(REPLAYED):
        await client.ask(MODEL, PROMPT, SCHEMA, **call(number))
    await client.close()


# ── The questions ────────────────────────────────────────────────────────────────────────────────────────────────

WORKERS_PER_PLACE = 2
MODEL = Model("lab", "tiny", sampling={"temperature": 0.7})
COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": MODEL.name,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
    "usage": {"prompt_tokens": 300, "completion_tokens": 80, "total_tokens": 380},
}


def call(number):
    return {"run_id": f"bench:plain:{number}:a-b", "agent": "a", "round": 1, "phase": "choose", "attempt": 1}


def request(number):
    options = {"temperature": 0.7, "seed": 0, "max_tokens": MODEL.max_tokens, "context": MODEL.context}
    return Request("fixed", MODEL.name, "d" * 64, tuple(PROMPT), SCHEMA, options, None, **call(number))


if __name__ == "__main__":
    module = ModuleType("fishpool.models.backends.fixed")
    module.make = lambda settings, endpoint: Fixed()
    sys.modules[module.__name__] = module
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
