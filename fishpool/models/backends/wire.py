"""One endpoint as HTTP: its key, its pool, its clock, the bound on what it may send, and what each failure means.

Nothing here knows a protocol, retries, or reads a reply. Whatever a server says passes through here, and leaves without
the key that it was sent: replies and sentences are recorded and published. Both clients (`ollama` on httpx, `openai` on
httpx2) are given the same hooks, so that a status means the same fault whichever client saw it. Sources: RFC 9110,
sections 10.2.3 (Retry-After) and 15 (status codes); the errors' forms are those of the servers' own documentation and
issue trackers.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from fishpool.models.calls import Reply
from fishpool.models.faults import Stop, TransportFault

MAX_BODY = 8 * 1024 * 1024  # bytes of one answer; a streamed token takes about 200
MAX_CHARACTERS = 256 * 1024  # of one reply that are kept
SHORTEST_KEY = 8  # characters; a shorter one ("EMPTY", "ollama") is no secret, and a word that a model may well say
CONNECT = 10.0  # s; a server that is there takes a connection at once, however long its model takes to load

# llama.cpp, OpenAI, Ollama's own check, Ollama 0.12's runner, vLLM
OVERFLOW = re.compile(
    r"exceed_context_size|context_length_exceeded|exceeds the (available )?context|longer than the context"
    r"|maximum context length|max_model_len",
    re.IGNORECASE,
)
# "Please try again in 6m3s" (OpenAI), "retryDelay": "34s" (Google), "retry_after": 3
AGAIN = re.compile(r"(?:try again in|retry.?after|retry.?delay)\W*(?:(\d+)m(?!s))?(?:([\d.]+)(ms)?)?", re.IGNORECASE)


class Refused(Exception):
    """An error status of the server, or an error that it wrote into an answer (then `status` is 200)."""

    def __init__(self, status: int, body: str, headers: Mapping[str, str] | None = None):
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers or {}


class Flood(Exception):
    """More than MAX_BODY bytes; `text` is the beginning, as it came."""

    def __init__(self, head: bytes):
        super().__init__("flood")
        self.text = head.decode("utf-8", "replace")


@dataclass(frozen=True)
class Wire:
    """An endpoint of a server of the config. `variable` names the environment variable of its key, None without one."""

    endpoint: str
    seconds: float
    concurrency: int
    variable: str | None
    key: str | None = field(repr=False)

    @staticmethod
    def of(server: Mapping[str, Any], endpoint: str) -> Wire:
        variable = server.get("api_key")
        key = os.environ.get(variable) if variable else None
        if urlsplit(endpoint).scheme not in ("http", "https"):
            raise Stop(f'the endpoint "{printable(endpoint)}" is no address like http://127.0.0.1:8000')
        if variable and not key:
            raise Stop(f"the environment variable {variable} is not set; it should hold the key that `api_key` names")
        if key and not (key.isascii() and key.isprintable()):
            raise Stop(
                f"the environment variable {variable} holds what no key has, such as a line end or a letter beyond"
                " ASCII; set it to the key and nothing else"
            )
        return Wire(endpoint, float(server["request_timeout"]), int(server["concurrency"]), variable, key)

    @property
    def where(self) -> str:
        """The endpoint for sentences."""
        return printable(self.endpoint)

    def public(self, text: str) -> str:
        """What the server said, without the key."""
        return text.replace(self.key, "***") if self.key and len(self.key) >= SHORTEST_KEY else text

    def printable(self, text: str) -> str:
        """The same on one line, as a sentence can hold it."""
        return printable(self.public(text))

    def reply(
        self, text: str, thinking: str, finish_reason: str, counts: tuple[int | None, int | None], latency: float
    ) -> Reply:
        """A Reply of at most MAX_CHARACTERS, truncated if there was more; `latency` in s. TypeError if not text."""
        if not all(isinstance(value, str) for value in (text, thinking, finish_reason)):
            raise TypeError("the message is not text")
        text, thinking, finish_reason = self.public(text), self.public(thinking), self.printable(finish_reason)
        if len(text) + len(thinking) > MAX_CHARACTERS:
            thinking = thinking[:MAX_CHARACTERS]
            text, finish_reason = text[: MAX_CHARACTERS - len(thinking)], "length"
        return Reply(text, thinking, finish_reason, *counts, latency_ms=max(latency, 0.0) * 1000)

    def options(self, http: ModuleType) -> dict[str, Any]:
        """Keyword arguments of an AsyncClient of `http`, which is httpx or httpx2."""

        class Bounded(http.AsyncByteStream):  # type: ignore[misc, name-defined]
            def __init__(self, stream: Any):
                self._stream = stream

            async def __aiter__(self) -> AsyncIterator[bytes]:
                size, head = 0, bytearray()
                async for part in self._stream:
                    size += len(part)
                    head += part[: 4 * MAX_CHARACTERS - len(head)]
                    if size > MAX_BODY:
                        raise Flood(bytes(head))
                    yield part

            async def aclose(self) -> None:
                await self._stream.aclose()

        async def prepare(request: Any) -> None:
            request.headers["Accept-Encoding"] = "identity"  # so that a bound on bytes is one on text
            if not self.key:  # the packages put keys of their own variables there
                request.headers.pop("Authorization", None)

        async def bound(response: Any) -> None:
            response.stream = Bounded(response.stream)
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ValueError("a compressed body, which was not asked for")
            if response.status_code >= 400:
                try:
                    await response.aread()
                    body = response.text
                except Flood as flood:
                    body = flood.text
                raise Refused(response.status_code, body, response.headers)

        return {
            "timeout": http.Timeout(None, connect=min(CONNECT, self.seconds)),
            "limits": http.Limits(max_connections=self.concurrency, max_keepalive_connections=self.concurrency),
            "event_hooks": {"request": [prepare], "response": [bound]},
        }

    @asynccontextmanager
    async def faults(
        self, http: ModuleType, model: str, advice: str, context: int | None = None
    ) -> AsyncIterator[None]:
        """Turn whatever goes wrong inside into a TransportFault or a Stop; the clock is for all of it.

        `advice` says what to do about a model that is not there; `context` is the one that a prompt may be over.
        """
        where = self.where
        try:
            async with asyncio.timeout(self.seconds):
                yield
        except (http.ConnectError, http.ConnectTimeout, ConnectionRefusedError) as error:
            sentence = f"no connection to {where} ({self.printable(str(error)) or type(error).__name__})"
            raise TransportFault(sentence, unreachable=True) from error
        except Refused as refused:
            raise self._fault(refused, model, advice, context) from None
        except Flood:
            raise TransportFault(f"{where} answered with more than {MAX_BODY} bytes") from None
        except (TimeoutError, http.TimeoutException) as error:
            raise TransportFault(f"{where} gave no whole answer within {self.seconds:g} s") from error
        except (http.HTTPError, OSError) as error:
            if isinstance(error.__context__, http.ConnectError):  # for which `ollama` raises ConnectionError
                raise TransportFault(f"no connection to {where} ({error.__context__})", unreachable=True) from error
            raise TransportFault(f"{where} broke off its answer ({type(error).__name__})") from error
        # a body that is not JSON, or JSON of another form than the protocol's
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            sentence = f"{where} answered with what is not its protocol ({self.printable(str(error))})"
            raise TransportFault(sentence) from error

    def over(self, model: str, context: int | None, reason: str) -> Stop:
        """What a prompt over the context is answered with."""
        return Stop(
            f'a prompt is over the context of model "{printable(model)}" on {self.where} ({reason}); '
            f"make the model's `context`{f', now {context},' if context else ''} larger, or the game shorter"
        )

    def missing(self, model: str, advice: str) -> Stop:
        """What a model that is not there is answered with."""
        return Stop(f'model "{printable(model)}" is not on the server {self.where}; {advice}')

    def _fault(self, refused: Refused, model: str, advice: str, context: int | None) -> Exception:
        where, status = self.where, refused.status
        reason = self.printable(_reason(refused.body)) or "without a reason"
        if OVERFLOW.search(refused.body):
            return self.over(model, context, reason)
        if status in (401, 403):
            key = f"the key in {self.variable}" if self.variable else "a request without a key (`api_key` names none)"
            return Stop(f"{where} answered {status}: it does not accept {key}")
        if status == 404:
            if "model" in reason.lower():
                return self.missing(model, advice)
            return Stop(
                f"{where} answered 404 ({reason}): there is no such server at this address; correct `endpoints`"
            )
        # a quota that is used up comes as 429 too, and no waiting helps (OpenAI, error codes)
        if 400 <= status < 500 and (status not in (408, 425, 429) or "insufficient_quota" in refused.body):
            return Stop(f'{where} refused a request for model "{printable(model)}" with {status} ({reason})')
        how = "an error inside an answer" if status < 400 else str(status)
        return TransportFault(f"{where} answered {how} ({reason})", retry_after(refused.headers, refused.body))


def retry_after(headers: Mapping[str, str], body: str = "") -> float | None:
    """Seconds that the server asks to wait: its headers (seconds or a date), else a hint in its words; else None."""
    header = headers.get("retry-after", "").strip()
    try:
        if "retry-after-ms" in headers:  # Azure
            return _waiting(float(headers["retry-after-ms"]) / 1000)
        return _waiting(float(header))
    except ValueError:
        pass
    try:
        return _waiting(parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        pass
    try:
        found = AGAIN.search(body)
        minutes, number, unit = found.groups() if found else (None, None, None)
        if minutes is None and number is None:
            return None
        return _waiting(60 * int(minutes or 0) + float(number or 0) / (1000 if unit == "ms" else 1))
    except ValueError:
        return None


def printable(text: str, length: int = 200) -> str:
    """Foreign text on one line, without control characters, shortened."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text[: 4 * length]).split())
    return line if len(line) <= length else line[: length - 1] + "…"


def _waiting(seconds: float) -> float | None:
    return max(seconds, 0.0) if seconds < 1e9 else None  # also not NaN


def _reason(body: str, depth: int = 4) -> str:
    """The server's words in an error body; some wrap one error in the text of another."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return body
    while isinstance(found, dict):
        found = next((found[key] for key in ("error", "message", "detail") if found.get(key)), None)
    if isinstance(found, str):
        return _reason(found, depth - 1) if depth else found
    return body
