"""The chat completions of any OpenAI-compatible server (vLLM, llama.cpp, SGLang, hosted), through the `openai` package.

It asks for whole answers, not streams, since the servers agree most on those. Sources: OpenAI's API reference, vLLM's
and llama.cpp's server documents.

The length is asked for as `max_tokens`: several servers pass over `max_completion_tokens` in silence and then write on
without a bound (llama.cpp before its pull request 19831 of 2026, llama-cpp-python issue 1907, ik_llama.cpp before its
pull request 2321), while OpenAI's reasoning models refuse `max_tokens` aloud, and are then asked with the other name.
The context is the server's own and cannot be asked for; a prompt over the one that the config says is stopped at all
the same, so that a model's context is what its config says on each server.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

from fishpool.models.backends import wire
from fishpool.models.calls import Backend, Reply, Request
from fishpool.models.faults import Stop

NAMED = ("temperature", "top_p", "seed")  # options of OpenAI's own; top_k, min_p and others are extensions
CHOOSE = "choose one that its /models lists"
CHANGING = ("n_ctx",)  # what a listing says of a server and not of its weights


def make(server: Mapping[str, Any], endpoint: str) -> Backend:
    """The backend of one endpoint of a server of the config; Stop if its key is not in the environment."""
    return OpenAI(wire.Wire.of(server, endpoint))


class OpenAI:
    """Talks to one server; see `calls.Backend`."""

    def __init__(self, connection: wire.Wire):
        import httpx2
        import openai

        options = connection.options(httpx2)
        self._http = httpx2
        self._wire = connection
        self._limit = "max_tokens"
        self._client = openai.AsyncOpenAI(
            api_key=connection.key or "none",
            base_url=connection.endpoint,
            max_retries=0,
            timeout=options["timeout"],
            http_client=openai.DefaultAsyncHttpxClient(**options),
        )
        # looked up here, since the package imports half of itself at the first use, which is no latency of a model
        self._create = self._client.chat.completions.with_raw_response.create
        self._list = self._client.models.with_raw_response.list

    async def reply(self, request: Request) -> Reply:
        context = int(request.options["context"])
        async with self._wire.faults(self._http, request.model, CHOOSE, context):
            started = time.perf_counter()
            try:
                try:
                    limit = self._limit
                    body = await self._complete(request, limit)
                except wire.Refused as refused:
                    if limit != "max_tokens" or "max_completion_tokens" not in refused.body:
                        raise
                    self._limit = "max_completion_tokens"
                    started = time.perf_counter()
                    body = await self._complete(request, self._limit)
            except wire.Flood as flood:
                return self._wire.reply(flood.text, "", "length", (None, None), time.perf_counter() - started)
            seconds = time.perf_counter() - started
            if body.get("error"):
                raise wire.Refused(200, json.dumps(body))
            choice, usage = body["choices"][0], body.get("usage") or {}
            message = choice["message"]
            tokens_in, tokens_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
            if (tokens_in or 0) > context:
                raise self._wire.over(request.model, context, f"it has {tokens_in} tokens")
            text, finish_reason = message.get("content") or "", choice.get("finish_reason") or "stop"
            if message.get("refusal"):
                text, finish_reason = text + message["refusal"], "refusal"
            thinking = message.get("reasoning_content") or message.get("reasoning") or ""  # the latter: newer vLLM
            return self._wire.reply(text, thinking, finish_reason, (tokens_in, tokens_out), seconds)

    async def digest(self, model: str) -> str:
        """SHA-256 of what the server's list says of the model: its name, and the weights' as far as they are told.

        No server tells a digest of the weights. vLLM's list has `root` (their path), llama.cpp's has `meta` (their
        parameters, size and quantisation), a hosted model's dated name is all there is. `created` is left out: vLLM and
        llama.cpp put the time of the request there.
        """
        entry = await self._listed(model)
        told = {"id": model, "root": entry.get("root"), "meta": entry.get("meta")}
        if isinstance(told["meta"], dict):
            told["meta"] = {name: value for name, value in told["meta"].items() if name not in CHANGING}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return f"listed:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"

    async def warm_up(self, model: str, context: int) -> None:
        """Calls nothing: these servers load their weights before they listen. Stop if their context is too small."""
        entry = await self._listed(model)
        meta = entry.get("meta")
        window = meta.get("n_ctx") if isinstance(meta, dict) else entry.get("max_model_len")  # llama.cpp; vLLM
        if isinstance(window, int) and window < context:
            raise Stop(
                f'model "{wire.printable(model)}" has a context of {window} tokens on {self._wire.where}, '
                f"its `context` in the config is {context}; start the server with more, or lower `context`"
            )

    async def close(self) -> None:
        await self._client.close()

    async def _complete(self, request: Request, limit: str) -> Any:
        sampling = {name: value for name, value in request.options.items() if name not in ("context", "max_tokens")}
        named = {name: sampling.pop(name) for name in NAMED if name in sampling}
        named[limit] = request.options["max_tokens"]
        if request.schema is not None:
            schema = {"name": "action", "strict": True, "schema": request.schema}
            named["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.thinking is not None:  # the word of vLLM, SGLang and llama.cpp; hosted servers have their own
            sampling["chat_template_kwargs"] = {"enable_thinking": request.thinking}
        return await self._ask(
            self._create,
            model=request.model,
            messages=[dict(message) for message in request.messages],
            extra_body=sampling or None,
            **named,
        )

    async def _listed(self, model: str) -> dict[str, Any]:
        async with self._wire.faults(self._http, model, CHOOSE):
            listed = (await self._ask(self._list))["data"]
            named = [entry for entry in listed if model == entry["id"] or model in (entry.get("aliases") or ())]
            names = ", ".join(str(entry["id"]) for entry in listed)
        if not named:
            raise self._wire.missing(model, f"it has {self._wire.printable(names) or 'none'}")
        return named[0]

    async def _ask(self, call: Any, **arguments: Any) -> Any:
        """The decoded body, as the server sent it: the package's own classes would take anything for an answer."""
        import openai

        try:
            return json.loads((await call(**arguments)).content)
        except openai.APIConnectionError as error:  # hides what the HTTP client raised
            raise error.__cause__ or error from None
