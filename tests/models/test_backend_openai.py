"""The chat completions of OpenAI-compatible servers: what is sent, what is read of the answer, and a real server."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from conftest import CONTEXT, EMBEDDED, SCHEMA, use_backend
from misbehaving import InThread

from fishpool.models.backends import openai
from fishpool.models.calls import Backend, Request
from fishpool.models.faults import Stop, TransportFault

Server = Callable[..., InThread]
Asked = Callable[..., Request]
use = partial(use_backend, openai, "/v1")


def test_everything_that_identifies_a_call_is_sent(misbehaving: Server, asked: Asked) -> None:
    server = misbehaving()
    sampling = {"temperature": 0.3, "top_p": 0.9, "top_k": 5, "min_p": 0.05}
    use(server.url, lambda backend: backend.reply(asked(options=sampling, thinking=True)))
    schema = {"name": "action", "strict": True, "schema": SCHEMA}
    assert server.server.bodies[0] == {
        "model": "test",
        "messages": [dict(message) for message in asked().messages],
        **sampling,
        "seed": 7,
        "max_tokens": 40,
        "response_format": {"type": "json_schema", "json_schema": schema},
        "chat_template_kwargs": {"enable_thinking": True},
    }


def test_nothing_is_sent_that_was_not_set(misbehaving: Server, asked: Asked) -> None:
    server = misbehaving()
    use(server.url, lambda backend: backend.reply(asked(schema=None)))
    assert set(server.server.bodies[0]) == {"model", "messages", "seed", "max_tokens"}


def test_a_model_that_refuses_max_tokens_is_asked_with_the_newer_name(misbehaving: Server, asked: Asked) -> None:
    reason = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    server = misbehaving([{"do": 400, "reason": reason}] * 2, latency=0.1)

    async def thrice(backend: Backend) -> None:
        await asyncio.gather(backend.reply(asked()), backend.reply(asked()))  # the second is on its way when it is told
        await backend.reply(asked())

    use(server.url, thrice, concurrency=2)
    limits = [[name for name in body if name.startswith("max_")] for body in server.server.bodies]
    assert limits == [["max_tokens"]] * 2 + [["max_completion_tokens"]] * 3


def test_a_refusal_is_told_apart(misbehaving: Server, asked: Asked) -> None:
    server = misbehaving([{"do": "answer", "refusal": "I cannot play."}])
    reply = use(server.url, lambda backend: backend.reply(asked()))
    assert (reply.text, reply.finish_reason) == ("I cannot play.", "refusal")


@pytest.mark.parametrize(
    "body",
    ["[]", "{}", '{"choices": []}', '{"choices": [{"message": {"content": 5}}]}', '"text"', "[" * 100_000, "null"],
)
def test_json_of_another_form_is_no_answer(body: str, misbehaving: Server, asked: Asked) -> None:
    with pytest.raises(TransportFault, match="not its protocol"):
        use(misbehaving([{"do": 200, "body": body}]).url, lambda backend: backend.reply(asked()))


def test_a_quota_that_is_used_up_stops(misbehaving: Server, asked: Asked) -> None:
    body = '{"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}'
    with pytest.raises(Stop, match="exceeded your current quota"):
        use(misbehaving([{"do": 429, "body": body}]).url, lambda backend: backend.reply(asked()))


def test_the_digest_stays_and_differs_by_model(misbehaving: Server) -> None:
    url = misbehaving(models=["test", "other"]).url
    one = use(url, lambda backend: backend.digest("test"))
    assert one == use(misbehaving().url, lambda backend: backend.digest("test"))
    assert one != use(url, lambda backend: backend.digest("other"))
    with pytest.raises(Stop, match=r'^model "gone" is not on the server .*; it has test, other$'):
        use(url, lambda backend: backend.digest("gone"))


def test_a_context_that_the_server_has_not_is_found_before_a_call(misbehaving: Server) -> None:
    server = misbehaving()
    use(server.url, lambda backend: backend.warm_up("test", 8192))
    with pytest.raises(Stop, match=r"has a context of 8192 tokens .* its `context` in the config is 8193"):
        use(server.url, lambda backend: backend.warm_up("test", 8193))
    assert server.server.calls == 0


@pytest.mark.embedded
def test_a_real_server_answers(embedded_server: str, asked: Asked) -> None:
    async def whole(backend: Backend) -> Any:
        await backend.warm_up(EMBEDDED, CONTEXT)
        one = await backend.digest(EMBEDDED)
        options = {"temperature": 0.0, "top_k": 1, "min_p": 0.05}
        return one, await backend.digest(EMBEDDED), await backend.reply(asked(model=EMBEDDED, options=options))

    one, again, reply = use(embedded_server, whole)
    assert one == again
    if reply.finish_reason == "stop":
        assert json.loads(reply.text)["choice"] in ("yes", "no")
    else:
        assert (reply.finish_reason, reply.tokens_out) == ("length", 40)
    assert reply.text.lstrip().startswith("{")
    assert reply.tokens_in > 10
    assert 0 < reply.tokens_out <= 40
    assert reply.latency_ms > 0


@pytest.mark.embedded
def test_a_real_server_tells_of_a_prompt_over_the_context(embedded_server: str, asked: Asked) -> None:
    request = asked(model=EMBEDDED, messages=({"role": "user", "content": "word " * 800},))
    with pytest.raises(Stop, match=f"over the context.*{CONTEXT}"):
        use(embedded_server, lambda backend: backend.reply(request))
    with pytest.raises(Stop, match=f"has a context of {CONTEXT} tokens"):
        use(embedded_server, lambda backend: backend.warm_up(EMBEDDED, CONTEXT + 1))


@pytest.mark.embedded
def test_a_real_server_refuses_a_schema_that_is_none(embedded_server: str, asked: Asked) -> None:
    with pytest.raises(Stop, match=r"400 .*banana"):
        use(embedded_server, lambda backend: backend.reply(asked(model=EMBEDDED, schema={"type": "banana"})))
