"""The client: every question to a model goes through it, to the journal first and else to the least busy endpoint.

It reads no reply (that is `reader`) and speaks no protocol (that is `backends`); it decides who is asked when, how
often again, and what becomes of a reply that does not come. Back-off is exponential with full jitter, after M. Brooker,
"Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from operator import methodcaller
from typing import Any, TypeVar

from fishpool.models.calls import Answered, Backend, Model, Reply, Request, key_of
from fishpool.models.faults import Exhausted, Stop, TransportFault
from fishpool.models.journal import Entry, Journal, Sort
from fishpool.models.publishing import Published
from fishpool.shards import Site

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds: most that is waited after the first fault, and after any
_LONGEST_ASKED = 300.0  # seconds: most that a server's Retry-After is given

Result = TypeVar("Result")
Sleep = Callable[[float], Awaitable[None]]


class Client:
    """What a shard's models are asked through. Nothing is opened before `open`; it belongs to one event loop.

    `models` are all that will be asked. `replay` names a published journal: every reply comes from it and nobody is
    called. `sleep` and `luck` (uniform numbers) time the tries, and are no part of any record.
    """

    def __init__(
        self,
        site: Site,
        models: Sequence[Model],
        replay: str | None,
        *,
        sleep: Sleep = asyncio.sleep,
        luck: random.Random | None = None,
    ):
        self._site = site
        self._models = tuple(dict.fromkeys(models))
        self._replay = replay
        self._sleep = sleep
        self._luck = luck or random.Random()
        self._servers: dict[str, _Server] = {}
        self._journal: Journal | None = None  # where replies are kept; None where nobody is asked
        self._records: Journal | Published | None = None  # where replies are looked up
        self._digests: dict[tuple[str, str], str] = {}
        self._asking: dict[str, asyncio.Task[Answered]] = {}

    @property
    def concurrency(self) -> int:
        """Requests at once over all servers that the models use."""
        settings = [self._settings(server) for server in {model.server for model in self._models}]
        return sum(len(server["endpoints"]) * server["concurrency"] for server in settings)

    def backend(self, model: Model) -> str:
        """The kind of the model's server: "ollama", "openai" or "llamacpp"."""
        kind: str = self._settings(model.server)["kind"]
        return kind

    def digest(self, model: Model) -> str:
        """What identifies the model's weights, once the client is open."""
        return model.digest or self._digests[model.server, model.name]

    async def open(self) -> None:
        """Learn each model's digest and have its weights loaded; Stop if a model cannot be asked."""
        for model in self._models:
            self._settings(model.server)
        if self._replay is not None:
            self._records = Published(self._replay, [model.name for model in self._models])
        elif self._site.journal is None:
            raise Stop("there is no place for the models' replies; set journal: FILE in the config")
        else:
            self._records = Journal(self._site.journal, read_only=self._site.offline)
        if isinstance(self._records, Journal) and not self._site.offline:
            self._journal = self._records
            await self._open_servers(self._journal)
        else:
            self._read_digests(self._records)

    async def close(self) -> None:
        """Give up what is being asked, keep what has been answered, and close everything."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        for server in self._servers.values():
            await server.close()
        if self._journal:
            await self._journal.written()
        if self._records:
            self._records.close()

    async def ask(
        self,
        model: Model,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any] | None,
        *,
        run_id: str,
        agent: str,
        round: int,
        phase: str,
        attempt: int,
        replicate: int = 1,
        seed: int = 0,
    ) -> Answered:
        """The reply to `messages`, kept in the journal before it is returned.

        Raises Exhausted if no reply came in all tries although the server is there, Stop if no other try could do
        better: the server cannot be reached or refuses, the prompt does not fit, the journal has no reply offline.
        """
        request = Request(
            backend=self.backend(model),
            model=model.name,
            digest=self.digest(model),
            messages=tuple({name: _unicode(text) for name, text in message.items()} for message in messages),
            schema=schema,
            options={**model.sampling, "seed": seed, "max_tokens": model.max_tokens, "context": model.context},
            thinking=model.thinking,
            run_id=run_id,
            agent=agent,
            round=round,
            phase=phase,
            attempt=attempt,
            replicate=replicate,
        )
        assert self._records, "the client is not open"
        text = request.to_json()
        key = key_of(text)
        entry = self._records.look_up(key)
        if self._journal is None:
            return self._recorded(request, entry)
        if answered := _answered(request, entry):
            return answered
        task = self._asking.get(key)
        if task is None:  # else the same request is being asked already
            task = asyncio.create_task(self._ask(self._journal, self._servers[model.server], request, key, text))
            self._asking[key] = task
            task.add_done_callback(lambda done: self._asked(key, done))
        return await asyncio.shield(task)

    def _settings(self, server: str) -> Mapping[str, Any]:
        try:
            settings: Mapping[str, Any] = self._site.servers[server]
        except KeyError:
            known = ", ".join(sorted(self._site.servers)) or "none"
            raise Stop(f'a model is on server "{server}", but servers in the config has only {known}') from None
        return settings

    async def _open_servers(self, journal: Journal) -> None:
        for name in sorted({model.server for model in self._models}):
            self._servers[name] = _Server(name, self._settings(name), self._sleep, self._luck)
        for server in self._servers.values():
            for model, digest in (await self._open_server(server)).items():
                self._digests[server.name, model] = digest
                journal.note_digest(server.name, model, digest)

    async def _open_server(self, server: _Server) -> dict[str, str]:
        """The digests of the server's models, on which all its endpoints that can be reached must agree."""
        models = [model for model in self._models if model.server == server.name]
        prepared = await asyncio.gather(
            *(_prepare(server, endpoint, models) for endpoint in server.endpoints), return_exceptions=True
        )
        found: dict[str, dict[str, str]] = {}
        for endpoint, digests in zip(server.endpoints, prepared, strict=True):
            if isinstance(digests, Exhausted):
                raise Stop(str(digests)) from digests
            if isinstance(digests, dict):
                found[endpoint.address] = digests
            elif not isinstance(digests, _Unreachable):
                raise digests
        if not found:
            raise next(fault for fault in prepared if isinstance(fault, _Unreachable))
        (first, agreed), *others = found.items()
        for other, theirs in others:
            for name, digest in theirs.items():
                if digest != agreed[name]:
                    raise Stop(
                        f'server {server.name}: model "{name}" has digest {agreed[name]} at {first} but {digest} at'
                        f" {other}; let all endpoints of a server hold the same weights"
                    )
        for model in models:
            if model.digest and not pins(model.digest, agreed[model.name]):
                raise Stop(
                    f'server {server.name}: model "{model.name}" has digest {agreed[model.name]}, but the config pins'
                    f" {model.digest}; install those weights or change digest in the config"
                )
        return agreed

    def _read_digests(self, records: Journal | Published) -> None:
        for model in self._models:
            digest = records.digest(model.server, model.name)
            if digest is None and model.digest is None:
                raise Stop(
                    f'{records.path}: no reply of model "{model.name}" on server {model.server} is recorded, so nothing'
                    " can be answered from it; name the journal that has it, or ask the server"
                )
            self._digests[model.server, model.name] = digest or ""

    async def _ask(self, journal: Journal, server: _Server, request: Request, key: str, text: str) -> Answered:
        async def reply(backend: Backend) -> Answered:
            # Another process may have asked the same while this one waited for its turn.
            if answered := _answered(request, journal.look_up(key)):
                return answered
            async with _within(server.request_timeout):
                answer = await backend.reply(request)
            answer = _clean(answer)
            _check_fit(request, answer)
            # The place is given up only now: were the next request sent first, a kill could cost more than the
            # replies that are under way, one a place.
            entry = await journal.keep(key, text, Entry(_sort(answer), answer))
            kept = entry.reply or answer
            return Answered(request, kept, from_journal=kept != answer)

        await journal.examined()
        try:
            return await server.call(reply, server.endpoints)
        except Exhausted as exhausted:
            sentence = f'model "{request.model}": {exhausted}'
            entry = await journal.keep(key, text, Entry(Sort.FAULT, fault=sentence))
            if answered := _answered(request, entry):
                return answered
            raise Exhausted(sentence) from exhausted

    def _asked(self, key: str, task: asyncio.Task[Answered]) -> None:
        del self._asking[key]
        if not task.cancelled():
            task.exception()  # whoever waited may be gone, and then nobody else looks at it

    def _recorded(self, request: Request, entry: Entry | None) -> Answered:
        """What the journal alone says: whatever came of the request then comes of it now."""
        assert self._records
        if entry is None:
            if isinstance(self._records, Journal):
                self._records.examine()
            remedy = (
                "replay it with the config and prompts that it was recorded with, or drop replay from the study"
                if self._replay is not None
                else "set offline: false to ask the model, or import the journal that has it (fishpool journal import)"
            )
            raise Stop(
                f'{self._records.path}: no reply is recorded for run "{request.run_id}", agent {request.agent}, round'
                f" {request.round}, phase {request.phase}, attempt {request.attempt}, replicate {request.replicate}"
                f' (model "{request.model}"): it was never asked, or prompt, model or options have changed since;'
                f" {remedy}"
            )
        if entry.reply is None:
            raise Exhausted(entry.fault)
        return Answered(request, entry.reply, from_journal=True)


class _Unreachable(Stop):
    """Nothing answered at all."""


class _Endpoint:
    """One address of a server, with what is under way there."""

    def __init__(self, address: str, backend: Backend):
        self.backend = backend
        self.address = address
        self.busy = 0
        self.resting = False


class _Server:
    """A server of the config: its endpoints, who waits for them, and how often it is asked again.

    An endpoint that cannot be reached, or that asks for time, rests: nobody is sent there until its wait is over.
    """

    def __init__(self, name: str, settings: Mapping[str, Any], sleep: Sleep, luck: random.Random):
        make = import_module(f"fishpool.models.backends.{settings['kind']}").make
        self.name = name
        self.endpoints = [_Endpoint(str(address), make(settings, address)) for address in settings["endpoints"]]
        self.request_timeout: float = settings["request_timeout"]
        self._retries: int = settings["retries"]
        self._concurrency: int = settings["concurrency"]
        self._sleep = sleep
        self._luck = luck
        self._waiting: deque[tuple[Sequence[_Endpoint], asyncio.Future[_Endpoint]]] = deque()
        self._rests: set[asyncio.Task[None]] = set()

    async def call(self, call: Callable[[Backend], Awaitable[Result]], endpoints: Sequence[_Endpoint]) -> Result:
        """What `call` gives on one of the endpoints, tried again on another where it can be.

        Raises Exhausted after the last try, or Stop if by then no endpoint that was tried is there at all.
        """
        last: dict[_Endpoint, TransportFault] = {}
        among = endpoints
        for tried in range(self._retries + 1):
            async with self._place(among) as endpoint:
                try:
                    return await call(endpoint.backend)
                except TransportFault as error:
                    fault = error
                last[endpoint] = fault
                wait = self._wait(tried, fault)
                rests = fault.unreachable or fault.retry_after is not None
                if rests:  # before the next one is sent there
                    self._rest(endpoint, wait)
            if not rests and tried < self._retries:
                await self._sleep(wait)
            among = [other for other in endpoints if other is not endpoint and not other.resting] or endpoints
        said = f"server {self.name} at {endpoint.address}"
        if all(fault.unreachable for fault in last.values()):
            raise _Unreachable(
                f"{said} cannot be reached: {fault}; start it or correct its endpoints in the config (offline: true"
                " answers from the journal alone)"
            )
        raise Exhausted(f"{said} gave no reply in {self._retries + 1} tries; the last: {fault}")

    async def close(self) -> None:
        for rest in self._rests:
            rest.cancel()
        await asyncio.gather(*self._rests, *(e.backend.close() for e in self.endpoints), return_exceptions=True)

    @asynccontextmanager
    async def _place(self, among: Sequence[_Endpoint]) -> AsyncIterator[_Endpoint]:
        """The least busy endpoint of `among`, as soon as one has a place free; who came first is served first."""
        endpoint = None if self._waiting else self._free(among)
        if endpoint:
            endpoint.busy += 1
        else:
            given: asyncio.Future[_Endpoint] = asyncio.get_running_loop().create_future()
            self._waiting.append((among, given))
            self._fill()
            try:
                endpoint = await given
            except asyncio.CancelledError:
                if given.done() and not given.cancelled():
                    self._leave(given.result())
                raise
        try:
            yield endpoint
        finally:
            self._leave(endpoint)

    def _free(self, among: Sequence[_Endpoint]) -> _Endpoint | None:
        free = (endpoint for endpoint in among if endpoint.busy < self._concurrency and not endpoint.resting)
        return min(free, key=lambda endpoint: endpoint.busy, default=None)

    def _leave(self, endpoint: _Endpoint) -> None:
        endpoint.busy -= 1
        self._fill()

    def _fill(self) -> None:
        """Give free places to those who wait; one who waits for certain endpoints holds up nobody else."""
        still: deque[tuple[Sequence[_Endpoint], asyncio.Future[_Endpoint]]] = deque()
        while self._waiting and self._free(self.endpoints):
            among, given = self._waiting.popleft()
            if given.done():  # cancelled
                continue
            if endpoint := self._free(among):
                endpoint.busy += 1
                given.set_result(endpoint)
            else:
                still.append((among, given))
        self._waiting.extendleft(reversed(still))

    def _wait(self, tried: int, fault: TransportFault) -> float:
        """Seconds until the next try; what the server asked for is the least of it."""
        least = min(fault.retry_after or 0.0, _LONGEST_ASKED)
        return least + self._luck.uniform(0, min(_LONGEST_WAIT, _FIRST_WAIT * 2**tried))

    def _rest(self, endpoint: _Endpoint, seconds: float) -> None:
        async def rest() -> None:
            await self._sleep(seconds)
            endpoint.resting = False
            self._fill()

        if not endpoint.resting:
            endpoint.resting = True
            task = asyncio.create_task(rest())
            self._rests.add(task)
            task.add_done_callback(self._rests.discard)


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """Raises TransportFault if what is awaited inside takes longer."""
    try:
        async with asyncio.timeout(seconds) as clock:
            yield
    except TimeoutError as error:
        if not clock.expired():
            raise
        raise TransportFault(f"no answer within {seconds:g} s") from error


async def _prepare(server: _Server, endpoint: _Endpoint, models: Sequence[Model]) -> dict[str, str]:
    """The digests of the models at one endpoint, once their weights are loaded there."""
    digests = {}
    for name in dict.fromkeys(model.name for model in models):
        digests[name] = await server.call(methodcaller("digest", name), [endpoint])
    for name, context in dict.fromkeys((model.name, model.context) for model in models):
        await server.call(methodcaller("warm_up", name, context), [endpoint])
    return digests


def _answered(request: Request, entry: Entry | None) -> Answered | None:
    if entry is None or entry.sort is not Sort.ANSWER or entry.reply is None:
        return None
    return Answered(request, entry.reply, from_journal=True)


def _sort(reply: Reply) -> Sort:
    """A reply that was cut short is an answer even without text: the model spent its tokens unseen."""
    empty = not (reply.text.strip() or reply.thinking.strip()) and reply.finish_reason != "length"
    return Sort.EMPTY if empty else Sort.ANSWER


def _check_fit(request: Request, reply: Reply) -> None:
    """Stop if the context was too short for prompt and reply: some of the prompt was dropped, or the reply cut."""
    context, used, made = request.options["context"], reply.tokens_in or 0, reply.tokens_out or 0
    cut = reply.finish_reason == "length" and made < request.options["max_tokens"] and used + made >= context
    if used >= context or cut:
        raise Stop(
            f'model "{request.model}": the prompt of run "{request.run_id}", agent {request.agent}, round'
            f" {request.round} has {used} tokens, which leaves no room for a reply in a context of {context};"
            " set a longer context for the model in the config"
        )


def _clean(reply: Reply) -> Reply:
    return Reply(
        _unicode(reply.text),
        _unicode(reply.thinking),
        _unicode(reply.finish_reason),
        reply.tokens_in,
        reply.tokens_out,
        float(reply.latency_ms),
    )


def _unicode(text: str) -> str:
    """The text with U+FFFD for what is no character (half of a surrogate pair), which no file could hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not text.isascii() else text


def pins(pinned: str, digest: str) -> bool:
    """Whether a digest is the pinned one, of which the start is enough.

    Where the server's is of another kind (as `listed:` of a server that knows no digest of its weights) nothing can be
    compared, and the config's word counts.
    """
    (kind, start), (of_server, whole) = (_split(text) for text in (pinned, digest))
    return kind != of_server or whole.startswith(start)


def _split(digest: str) -> tuple[str, str]:
    kind, _, value = digest.rpartition(":")
    return kind or "sha256", value
