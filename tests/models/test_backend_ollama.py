"""The native protocol of Ollama: what is sent, what is read of the answer, and a real server of the protocol."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from conftest import EMBEDDED, SCHEMA, use_backend
from misbehaving import InThread, hash_of

from fishpool.models.backends import ollama
from fishpool.models.calls import Backend, Request
from fishpool.models.faults import Stop, TransportFault

Server = Callable[..., InThread]
Asked = Callable[..., Request]
use = partial(use_backend, ollama, "")


def test_everything_that_identifies_a_call_is_sent(misbehaving: Server, asked: Asked) -> None:
    server = misbehaving()
    sampling = {"temperature": 0.3, "top_p": 0.9, "top_k": 5, "min_p": 0.05}
    use(server.url, lambda backend: backend.reply(asked(options=sampling, thinking=False)))
    body = server.server.bodies[0]
    assert body["options"] == {**sampling, "seed": 7, "num_predict": 40, "num_ctx": 512}
    assert body["format"] == SCHEMA
    assert body["think"] is False
    assert body["messages"] == [dict(message) for message in asked().messages]
    # else the server drops the oldest of a prompt that does not fit, and says nothing
    assert (body["truncate"], body["shift"]) == (False, False)


def test_nothing_is_sent_that_was_not_set(misbehaving: Server, asked: Asked) -> None:
    server = misbehaving()
    use(server.url, lambda backend: backend.reply(asked(schema=None)))
    assert {"format", "think"}.isdisjoint(server.server.bodies[0])


def test_an_answer_without_its_last_line_is_no_answer(misbehaving: Server, asked: Asked) -> None:
    with pytest.raises(TransportFault, match="ended before its last line"):
        use(misbehaving(["no_end"]).url, lambda backend: backend.reply(asked()))


def test_the_digest_is_the_listed_one(misbehaving: Server) -> None:
    url = misbehaving(models=["test:latest", "test:1b"]).url
    assert use(url, lambda backend: backend.digest("test")) == hash_of("test:latest")
    assert use(url, lambda backend: backend.digest("test:1b")) == hash_of("test:1b")
    with pytest.raises(Stop, match=f'^model "gone" is not on the server {url}; ollama pull gone$'):
        use(url, lambda backend: backend.digest("gone"))


def test_the_weights_are_loaded_as_the_calls_need_them(misbehaving: Server, asked: Asked) -> None:
    server = misbehaving()

    async def both(backend: Backend) -> None:
        await backend.warm_up("test", 512)
        await backend.reply(asked())

    use(server.url, both)
    [(path, body)] = server.server.others
    assert path == "/api/generate"
    assert not body.get("prompt")
    later = server.server.bodies[0]
    assert body["options"]["num_ctx"] == later["options"]["num_ctx"]
    assert (body["shift"], body["keep_alive"]) == (later["shift"], later["keep_alive"])


@pytest.mark.embedded
def test_a_real_server_of_the_protocol_answers(ollama_proxy: str, asked: Asked) -> None:
    name = f"local/{EMBEDDED}"

    async def whole(backend: Backend) -> Any:
        await backend.warm_up(name, 512)
        return await backend.digest(name), await backend.reply(asked(model=name, options={"temperature": 0.0}))

    digest, reply = use(ollama_proxy, whole)
    assert digest.startswith("sha256:")
    # this server says "stop" whatever ended the answer, so that one that is not whole is told by its JSON alone
    if reply.text.rstrip().endswith("}"):
        assert json.loads(reply.text)["choice"] in ("yes", "no")
    assert reply.text.lstrip().startswith("{")
    assert reply.finish_reason == "stop"
    assert reply.tokens_in
    assert reply.tokens_out
    assert reply.latency_ms > 0


@pytest.mark.embedded
def test_a_real_server_tells_of_a_prompt_over_the_context(ollama_proxy: str, asked: Asked) -> None:
    request = asked(model=f"local/{EMBEDDED}", messages=({"role": "user", "content": "word " * 800},))
    with pytest.raises(Stop, match="over the context"):
        use(ollama_proxy, lambda backend: backend.reply(request))


@pytest.mark.parametrize("call", [lambda backend: backend.digest("test"), lambda backend: backend.warm_up("test", 512)])
def test_a_server_that_is_not_there_is_unreachable_before_the_first_call_too(call):
    backend = ollama.make({"request_timeout": 5, "concurrency": 1, "api_key": None}, "http://127.0.0.1:9")
    with pytest.raises(TransportFault) as caught:
        asyncio.run(call(backend))
    assert caught.value.unreachable
