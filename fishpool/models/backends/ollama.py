"""The native protocol of Ollama, through the `ollama` package: the backend of a model name without a prefix.

It is not the OpenAI form that Ollama speaks too, which cannot set the context. Sources: the API's document
(docs/api.md in ollama/ollama); for prompts over the context, ollama/ollama pull requests 12519, 16712, 17944 and 18399.

Every call carries the same `num_ctx`, since another one loads the model anew. By default a prompt that does not fit is
shortened in silence, in 0.33 and 0.34 to half of the context, so that the count of its tokens tells nothing. `truncate`
and `shift` off make the server refuse it with 400 instead, and end an answer that reaches the context in place of
forgetting its prompt. Servers of before October 2025 know neither: there a prompt that was cut shows as one that fills
the context, which is stopped at, but whole messages that were left out show nowhere.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from fishpool.models.backends import wire
from fishpool.models.calls import Backend, Reply, Request

if TYPE_CHECKING:
    from ollama import ChatResponse

KEEP_ALIVE = "15m"  # since the last call; the server's default of 5 min is shorter than a slow study's pauses
OPTIONS = {"context": "num_ctx", "max_tokens": "num_predict"}  # the other options have Ollama's own names


def make(server: Mapping[str, Any], endpoint: str) -> Backend:
    """The backend of one endpoint of a server of the config; Stop if its key is not in the environment."""
    return Ollama(wire.Wire.of(server, endpoint))


class Ollama:
    """Talks to one Ollama server; see `calls.Backend`."""

    def __init__(self, connection: wire.Wire):
        import httpx
        from ollama import AsyncClient

        self._http = httpx
        self._wire = connection
        headers = {"Authorization": f"Bearer {connection.key}"} if connection.key else None
        self._client = AsyncClient(connection.endpoint, headers=headers, **connection.options(httpx))

    async def reply(self, request: Request) -> Reply:
        context = int(request.options["context"])
        async with self._wire.faults(self._http, request.model, _pull(request.model), context):
            started = time.perf_counter()
            text = thinking = ""
            last, endless = None, False
            try:
                async with aclosing(self._chat(request)) as parts:
                    async for part in parts:
                        text += part.message.content or ""
                        thinking += part.message.thinking or ""
                        last = part if part.done else None
                        endless = len(text) + len(thinking) > wire.MAX_CHARACTERS
                        if last or endless:
                            break
            except wire.Flood as flood:
                endless = True
                text = text if text or thinking else flood.text
            seconds = time.perf_counter() - started
            if endless:
                return self._wire.reply(text, thinking, "length", (None, None), seconds)
            if last is None:
                raise ValueError("the answer ended before its last line")
            if (last.prompt_eval_count or 0) >= context - 1:
                raise self._wire.over(request.model, context, f"its {last.prompt_eval_count} tokens fill it")
            counts = (last.prompt_eval_count, last.eval_count)
            seconds -= (last.load_duration or 0) / 1e9
            return self._wire.reply(text, thinking, last.done_reason or "stop", counts, seconds)

    async def digest(self, model: str) -> str:
        """The digest that /api/tags lists."""
        async with self._wire.faults(self._http, model, _pull(model)):
            listed = (await self._client.list()).models
        for entry in listed:
            if entry.model in (model, f"{model}:latest") and entry.digest:
                return self._wire.printable(entry.digest)
        raise self._wire.missing(model, _pull(model))

    async def warm_up(self, model: str, context: int) -> None:
        """A request without a prompt loads the weights, with the options that each later call loads them with."""
        from ollama import GenerateResponse

        # num_predict is for other servers of this protocol, which answer even an empty prompt
        options = {"num_ctx": context, "num_predict": 1}
        body = {"model": model, "stream": False, "shift": False, "keep_alive": KEEP_ALIVE, "options": options}
        async with self._wire.faults(self._http, model, _pull(model), context):
            # `generate` and `chat` of the package (0.6) know neither `shift` nor `truncate`
            await self._client._request(GenerateResponse, "POST", "/api/generate", json=body)

    async def close(self) -> None:
        await self._client.close()  # type: ignore[no-untyped-call]

    async def _chat(self, request: Request) -> AsyncGenerator[ChatResponse, None]:
        from ollama import ChatResponse, ResponseError

        body: dict[str, Any] = {
            "model": request.model,
            "messages": [dict(message) for message in request.messages],
            "options": {OPTIONS.get(name, name): value for name, value in request.options.items()},
            "stream": True,
            "truncate": False,
            "shift": False,
            "keep_alive": KEEP_ALIVE,
        }
        if request.schema is not None:
            body["format"] = request.schema
        if request.thinking is not None:
            body["think"] = request.thinking
        try:
            async for part in await self._client._request(ChatResponse, "POST", "/api/chat", json=body, stream=True):
                yield part
        except ResponseError as error:  # a line that holds an error, after a status of 200
            raise wire.Refused(200, str(error.error)) from None


def _pull(model: str) -> str:
    return f"ollama pull {wire.printable(model)}"
