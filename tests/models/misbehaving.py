"""A loopback server that speaks Ollama's and OpenAI's chat protocols and misbehaves on command.

It is no model: without a command it answers with an instance of the schema it is sent, chosen by the prompt and seed.
Each chat call takes the next behaviour of the script (a name, a status, or {"do": name, ..}), then "answer" for ever.

In a test: the fixture `misbehaving`. As a process that outlives a killed pipeline:
`python tests/models/misbehaving.py --port-file F --script JSON --count-file F`; the count file gets one JSON line a
chat call (prompt and seed), the port file the port once it listens. GET /stats tells `calls` and `peak` (most at once).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

REASONS = {400: "the request is malformed", 401: "no such key", 404: 'model "x" not found, try pulling it first'}


def instance(schema: Any, luck: int) -> Any:
    """A value that fits a flat JSON schema; `luck` picks among the values of an enum and the whole numbers."""
    schema = schema if isinstance(schema, dict) else {}
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][luck % len(schema["enum"])]
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], luck)
    kind = schema.get("type", "object")
    if kind == "object":
        return {key: instance(value, luck) for key, value in schema.get("properties", {}).items()}
    low = schema.get("minimum", 0)
    number = low + luck % (int(schema.get("maximum", low + 10)) - low + 1)
    return {"string": "because", "boolean": True, "array": [], "integer": number, "number": number}.get(kind)


class Misbehaving:
    """The server. `answer(body)` gives the text of an ordinary answer; `latency` is in s, for each chat call."""

    def __init__(
        self,
        script: Sequence[Any] = (),
        answer: Callable[[dict[str, Any]], str] | str | None = None,
        latency: float = 0.0,
        models: Sequence[str] = ("test",),
        count_file: Path | None = None,
    ):
        self.script, self.answer, self.latency, self.models = list(script), answer, latency, models
        self.bodies: list[dict[str, Any]] = []  # of the chat calls
        self.headers: list[dict[str, str]] = []
        self.others: list[tuple[str, dict[str, Any]]] = []  # path and body of the other calls
        self.peak = self._now = 0
        self._count_file = count_file

    @property
    def calls(self) -> int:
        return len(self.bodies)

    async def start(self, port: int = 0) -> int:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", port, limit=1 << 24)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                path = head[0].split(" ")[1]
                await self._respond(path, headers, json.loads(body or b"{}"), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _respond(self, path: str, headers: dict[str, str], body: dict[str, Any], writer: Any) -> None:
        if path in ("/api/chat", "/v1/chat/completions"):
            self.bodies.append(body)
            self.headers.append(headers)
            do = self.script.pop(0) if self.script else "answer"
            if self._count_file:
                options = body.get("options", body)
                line = json.dumps({"prompt": hash_of(body["messages"]), "seed": options.get("seed")})
                with self._count_file.open("a") as file:
                    file.write(line + "\n")
            self._now += 1
            self.peak = max(self.peak, self._now)
            try:
                await asyncio.sleep(self.latency)
                do = do if isinstance(do, dict) else {"do": do}
                await self._chat(path == "/api/chat", do, body, writer)
            finally:
                self._now -= 1
            return
        self.others.append((path, body))
        found: Any = {"error": f"no such path {path}"}
        if path == "/stats":
            found = {"calls": self.calls, "peak": self.peak}
        elif path == "/api/tags":
            found = {"models": [{"name": n, "model": n, "digest": hash_of(n)} for n in self.models]}
        elif path == "/api/generate":
            found = {"model": body["model"], "response": "", "done": True, "done_reason": "load"}
        elif path == "/v1/models":
            now = int(time.time())
            found = {
                "data": [{"id": n, "root": f"root/{n}", "created": now, "max_model_len": 8192} for n in self.models]
            }
        await self._send(writer, 404 if "error" in found else 200, json.dumps(found))

    async def _send(self, writer: Any, status: int, body: str, headers: dict[str, str] | None = None) -> None:
        lines = [f"{name}: {value}\r\n" for name, value in (headers or {}).items()]
        text = body.encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n"
        writer.write((head + "".join(lines) + "\r\n").encode() + text)
        await writer.drain()

    async def _chat(self, ollama: bool, do: dict[str, Any], body: dict[str, Any], writer: Any) -> None:
        name = do["do"]
        if isinstance(name, int):
            reason = do.get("reason", REASONS.get(name, "not now"))
            error = do.get("body", {"error": reason} if ollama else {"error": {"message": reason, "code": name}})
            await self._send(writer, name, error if isinstance(error, str) else json.dumps(error), do.get("headers"))
        elif name == "close":
            writer.transport.abort()
        elif name == "overflow":
            error = {"code": 400, "message": "request (9000 tokens) exceeds the available context size (64 tokens)"}
            error |= {"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 64}
            await self._send(writer, 400, json.dumps({"error": json.dumps({"error": error}) if ollama else error}))
        elif name == "not_json":
            await self._send(writer, 200, "<html>Bad gateway</html>\n")
        elif name in ("flood", "flood_line"):
            status = do.get("status", 200)
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n\r\n".encode())
            line = json.dumps({"model": "m", "message": {"role": "assistant", "content": " " * 1000}, "done": False})
            part = line + "\n" if ollama and name == "flood" else '{"choices": [' + " " * 1000
            while not writer.transport.is_closing():
                writer.write(part.encode())
                await writer.drain()
        else:
            await asyncio.sleep(do.get("load", 0))
            text = self._ollama(do, body) if ollama else self._openai(do, body)
            if name == "error_line":
                error = {"error": do.get("reason", "llama runner process has terminated")}
                text = text.split("\n")[0] + "\n" + json.dumps(error) + "\n" if ollama else json.dumps(error)
            if name == "no_end":
                text = text.split("\n")[0] + "\n"
            if name in ("reset", "hang"):
                writer.write(f"HTTP/1.1 200 X\r\nContent-Length: {len(text)}\r\n\r\n{text[: len(text) // 2]}".encode())
                await writer.drain()
                await asyncio.sleep(0.05 if name == "reset" else 3600)
                writer.transport.abort()
            else:
                await self._send(writer, 200, text)

    def _text(self, do: dict[str, Any], body: dict[str, Any], schema: Any) -> str:
        if "text" in do:
            return do["text"]
        if callable(self.answer):
            return self.answer(body)
        if self.answer is not None:
            return self.answer
        seed = body.get("options", body).get("seed")
        return json.dumps(instance(schema, int(hash_of([body["messages"], seed])[:12], 16)))

    def _ollama(self, do: dict[str, Any], body: dict[str, Any]) -> str:
        text = self._text(do, body, body.get("format"))
        first = {"role": "assistant", "content": text, "thinking": do.get("thinking", "")}
        tokens = body["options"]["num_ctx"] if do["do"] == "cut" else len(str(body["messages"])) // 4
        last = {"done": True, "done_reason": do.get("finish", "stop"), "eval_count": len(text) // 4}
        last |= {"prompt_eval_count": tokens, "load_duration": int(do.get("load", 0) * 1e9)}
        messages = ({"message": first, "done": False}, {"message": {"role": "assistant", "content": ""}, **last})
        return "".join(json.dumps({"model": body["model"], **part}) + "\n" for part in messages)

    def _openai(self, do: dict[str, Any], body: dict[str, Any]) -> str:
        text = self._text(do, body, body.get("response_format", {}).get("json_schema", {}).get("schema"))
        message = {"role": "assistant", "content": text, "reasoning_content": do.get("thinking")}
        if "refusal" in do:
            message |= {"content": None, "refusal": do["refusal"]}
        tokens = 1_000_000 if do["do"] == "cut" else len(str(body["messages"])) // 4
        usage = {"prompt_tokens": tokens, "completion_tokens": len(text) // 4}
        choice = {"index": 0, "message": message, "finish_reason": do.get("finish", "stop")}
        return json.dumps({"model": body["model"], "choices": [choice], "usage": usage})


def hash_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class InThread:
    """A Misbehaving on a thread of its own, so that tests with loops of their own can call it; `url` has no path."""

    def __init__(self, server: Misbehaving):
        self.server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(server.start(), self._loop).result(10)
        self.url = f"http://127.0.0.1:{server.port}"

    def close(self) -> None:
        async def end() -> None:
            self.server._server.close()
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--count-file", type=Path)
    parser.add_argument("--script", type=json.loads, default=[], help="JSON list of behaviours")
    parser.add_argument("--answer", help="text of every ordinary answer")
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--models", nargs="+", default=["test"])
    given = parser.parse_args()

    async def serve() -> None:
        server = Misbehaving(given.script, given.answer, given.latency, given.models, given.count_file)
        part = given.port_file.with_suffix(".part")
        part.write_text(str(await server.start()))
        part.rename(given.port_file)  # so that whoever waits for it never reads half a number
        await server._server.serve_forever()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
