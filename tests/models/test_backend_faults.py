"""What each failure of a server means, the same for every protocol: another try, or the end with one clear sentence."""

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate
from importlib import import_module
from typing import Any

import pytest
from conftest import free_port
from misbehaving import InThread

from fishpool.models.backends import wire
from fishpool.models.calls import Reply, Request
from fishpool.models.faults import Stop, TransportFault

pytestmark = pytest.mark.parametrize("kind", ["ollama", "openai"])


def ask(kind: str, url: str, request: Request, seconds: float = 10, **server: Any) -> Reply:
    """The reply of one call, on a fresh connection."""
    settings = {"kind": kind, "request_timeout": seconds, "concurrency": 2, "api_key": None} | server
    endpoint = url + ("/v1" if kind == "openai" else "")

    async def one() -> Reply:
        backend = import_module(f"fishpool.models.backends.{kind}").make(settings, endpoint)
        try:
            return await backend.reply(request)
        finally:
            await backend.close()

    return asyncio.run(one())


Server = Callable[..., InThread]
Asked = Callable[..., Request]


def test_a_reply_is_kept_as_it_came(kind: str, misbehaving: Server, asked: Asked) -> None:
    text = '{"choice": "yes"} \u2603\n'
    server = misbehaving([{"do": "answer", "text": text, "thinking": "well", "finish": "length"}], latency=0.1)
    reply = ask(kind, server.url, asked())
    assert (reply.text, reply.thinking, reply.finish_reason) == (text, "well", "length")
    assert reply.tokens_in is not None
    assert reply.tokens_out == len(text) // 4
    assert 100 <= reply.latency_ms < 5000


def test_a_request_is_asked_once_whatever_comes_of_it(kind: str, misbehaving: Server, asked: Asked) -> None:
    for behaviour in (500, 429, 503, "reset", "close", "not_json", "error_line"):
        server = misbehaving([behaviour])
        with pytest.raises(TransportFault):
            ask(kind, server.url, asked())
        assert server.server.calls == 1


def test_a_closed_port_is_unreachable(kind: str, asked: Asked) -> None:
    with pytest.raises(TransportFault, match="no connection to") as caught:
        ask(kind, f"http://127.0.0.1:{free_port()}", asked())
    assert caught.value.unreachable


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("reset", "broke off"),
        ("close", "broke off"),
        ("not_json", "not its protocol"),
        ("error_line", r"llama runner process has terminated"),
        (408, "408"),
        (429, "429"),
        (500, "500"),
        (502, "502"),
        (
            {"do": 503, "reason": "server busy, please try again.  maximum pending requests exceeded"},
            "503.*server busy",
        ),
        ({"do": 502, "body": "<html>bad gateway</html>"}, "502.*bad gateway"),
        (504, "504"),
    ],
)
def test_what_another_try_may_mend(kind: str, behaviour: Any, words: str, misbehaving: Server, asked: Asked) -> None:
    server = misbehaving([behaviour])
    with pytest.raises(TransportFault, match=words) as caught:
        ask(kind, server.url, asked())
    assert not caught.value.unreachable
    assert server.url in str(caught.value)


def test_an_answer_that_never_ends_is_given_up(kind: str, misbehaving: Server, asked: Asked) -> None:
    started = time.monotonic()
    with pytest.raises(TransportFault, match=r"no whole answer within 0\.5 s") as caught:
        ask(kind, misbehaving(["hang"]).url, asked(), seconds=0.5)
    assert not caught.value.unreachable
    assert time.monotonic() - started < 5


def test_a_slow_load_before_the_first_token_is_waited_for(
    kind: str, misbehaving: Server, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "CONNECT", 0.2)
    reply = ask(kind, misbehaving([{"do": "answer", "load": 1.0, "text": "{}"}]).url, asked(), seconds=5)
    assert reply.text == "{}"
    if kind == "ollama":  # it tells how long loading took, which is no part of the latency
        assert reply.latency_ms < 900


@pytest.mark.parametrize(
    ("behaviour", "low", "high"),
    [
        ({"do": 429, "headers": {"Retry-After": "7"}}, 7, 7),
        ({"do": 503, "headers": {"Retry-After": "2.5"}}, 2.5, 2.5),
        ({"do": 429, "headers": {"retry-after-ms": "1500"}}, 1.5, 1.5),
        ({"do": 429, "reason": "Rate limit reached. Please try again in 1.25s."}, 1.25, 1.25),
        ({"do": 429, "reason": "Please try again in 340ms."}, 0.34, 0.34),
        ({"do": 429, "reason": "Please try again in 6m3s."}, 363, 363),
        ({"do": 429, "body": '{"error": {"message": "slow", "details": [{"retryDelay": "34s"}]}}'}, 34, 34),
        ({"do": 429, "body": '{"error": {"message": "slow", "retry_after": 3}}'}, 3, 3),
    ],
)
def test_the_wait_that_the_server_asks_for(
    kind: str, behaviour: Any, low: float, high: float, misbehaving: Server, asked: Asked
) -> None:
    with pytest.raises(TransportFault) as caught:
        ask(kind, misbehaving([behaviour]).url, asked())
    assert caught.value.retry_after is not None
    assert low <= caught.value.retry_after <= high


@pytest.mark.parametrize(("later", "low", "high"), [(-60, 0, 0), (3600, 3500, 3601)])
def test_the_wait_may_be_given_as_a_date(
    kind: str, later: int, low: float, high: float, misbehaving: Server, asked: Asked
) -> None:
    date = formatdate(time.time() + later, usegmt=True)
    with pytest.raises(TransportFault) as caught:
        ask(kind, misbehaving([{"do": 429, "headers": {"Retry-After": date}}]).url, asked())
    assert caught.value.retry_after is not None
    assert low <= caught.value.retry_after <= high


@pytest.mark.parametrize(
    "behaviour",
    [
        429,
        {"do": 429, "headers": {"Retry-After": "soon"}},
        {"do": 503, "headers": {"Retry-After": "nan"}},
        "error_line",
    ],
)
def test_no_wait_is_made_up(kind: str, behaviour: Any, misbehaving: Server, asked: Asked) -> None:
    with pytest.raises(TransportFault) as caught:
        ask(kind, misbehaving([behaviour]).url, asked())
    assert caught.value.retry_after is None


def test_a_model_that_is_not_there_stops(kind: str, misbehaving: Server, asked: Asked) -> None:
    server = misbehaving([404])
    with pytest.raises(Stop, match=f'^model "test" is not on the server {server.url}.*; ') as caught:
        ask(kind, server.url, asked())
    if kind == "ollama":
        assert str(caught.value).endswith("; ollama pull test")


def test_another_404_is_a_wrong_address(kind: str, misbehaving: Server, asked: Asked) -> None:
    with pytest.raises(Stop, match="correct `endpoints`"):
        ask(kind, misbehaving([{"do": 404, "body": "404 page not found"}]).url, asked())


def test_a_refused_request_stops_with_the_reason_in_short(kind: str, misbehaving: Server, asked: Asked) -> None:
    reason = "the schema\x1b[31m\n is\u202e odd " + "x" * 5000
    with pytest.raises(Stop, match="400") as caught:
        ask(kind, misbehaving([{"do": 400, "reason": reason}]).url, asked())
    assert "the schema [31m is odd xxx" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_is_never_named_in_an_error(
    kind: str, status: int, misbehaving: Server, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FISH_KEY", "sk-secret")
    server = misbehaving([{"do": status, "reason": "bad key sk-secret"}, {"do": 400, "reason": "bad key sk-secret"}])
    for _ in range(2):
        with pytest.raises(Stop) as caught:
            ask(kind, server.url, asked(), api_key="FISH_KEY")
        assert "sk-secret" not in str(caught.value)
        assert "FISH_KEY" in str(caught.value) or "400" in str(caught.value)
    assert server.server.headers[0]["authorization"] == "Bearer sk-secret"


def test_a_key_that_a_server_repeats_is_in_no_reply(
    kind: str, misbehaving: Server, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FISH_KEY", "sk-secret")
    said = {"do": "answer", "text": "a sk-secret", "thinking": "b sk-secret", "finish": "c sk-secret"}
    reply = ask(kind, misbehaving([said]).url, asked(), api_key="FISH_KEY")
    assert (reply.text, reply.thinking, reply.finish_reason) == ("a ***", "b ***", "c ***")
    monkeypatch.setenv("FISH_KEY", "EMPTY")  # no secret: what the model says stays as it is
    reply = ask(kind, misbehaving([{**said, "text": "EMPTY"}]).url, asked(), api_key="FISH_KEY")
    assert reply.text == "EMPTY"


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-secr\u0435t", "sk-\x1bsecret"])
def test_what_cannot_be_a_key_stops_and_is_not_shown(
    kind: str, key: str, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FISH_KEY", key)
    with pytest.raises(Stop, match="environment variable FISH_KEY holds") as caught:
        ask(kind, "http://127.0.0.1:1", asked(), api_key="FISH_KEY")
    assert "sk-" not in str(caught.value)


def test_a_key_that_is_not_set_stops(kind: str, asked: Asked) -> None:
    with pytest.raises(Stop, match="environment variable FISH_KEY is not set"):
        ask(kind, "http://127.0.0.1:1", asked(), api_key="FISH_KEY")


@pytest.mark.parametrize("url", ["localhost:11434", "file:///etc/passwd", ""])
def test_an_endpoint_that_is_no_address_stops(kind: str, url: str, asked: Asked) -> None:
    with pytest.raises(Stop, match="is no address like http"):
        ask(kind, url, asked())


def test_a_server_without_a_key_is_sent_none(
    kind: str, misbehaving: Server, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OLLAMA_API_KEY", "OPENAI_API_KEY"):  # both packages read theirs unasked
        monkeypatch.setenv(name, "sk-of-another-server")
    server = misbehaving()
    ask(kind, server.url, asked())
    assert "authorization" not in server.server.headers[0]


def test_a_prompt_over_the_context_stops(kind: str, misbehaving: Server, asked: Asked) -> None:
    for behaviour in (
        "overflow",
        "cut",
        {"do": "error_line", "reason": "the input length exceeds the context length"},
        {"do": 500, "reason": "the prompt is longer than the context length currently available to the model"},
    ):
        with pytest.raises(Stop, match=r'over the context of model "test".*`context`, now 512'):
            ask(kind, misbehaving([behaviour]).url, asked())


@pytest.mark.parametrize("flood", ["flood", "flood_line"])
def test_a_flood_is_cut_and_counts_as_truncated(kind: str, flood: str, misbehaving: Server, asked: Asked) -> None:
    reply = ask(kind, misbehaving([flood]).url, asked())
    assert reply.finish_reason == "length"
    assert 0 < len(reply.text) <= wire.MAX_CHARACTERS


def test_a_flood_after_an_error_is_still_the_error(kind: str, misbehaving: Server, asked: Asked) -> None:
    with pytest.raises(TransportFault, match="500"):
        ask(kind, misbehaving([{"do": "flood", "status": 500}]).url, asked())


def test_a_compressed_body_is_not_unpacked(kind: str, misbehaving: Server, asked: Asked) -> None:
    server = misbehaving([{"do": 200, "body": "{}", "headers": {"Content-Encoding": "gzip"}}])
    with pytest.raises(TransportFault, match="compressed"):
        ask(kind, server.url, asked())
    assert server.server.headers[0]["accept-encoding"] == "identity"


def test_the_pool_is_as_large_as_the_concurrency(kind: str, misbehaving: Server, asked: Asked) -> None:
    server = misbehaving(latency=0.1)
    settings = {"kind": kind, "request_timeout": 10, "concurrency": 3, "api_key": None}

    async def many() -> None:
        endpoint = server.url + ("/v1" if kind == "openai" else "")
        backend = import_module(f"fishpool.models.backends.{kind}").make(settings, endpoint)
        await asyncio.gather(*(backend.reply(asked(options={"seed": seed})) for seed in range(9)))
        await backend.close()

    asyncio.run(many())
    assert server.server.calls == 9
    assert server.server.peak == 3
