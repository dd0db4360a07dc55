"""The doctor: what a study's models need, tried for real before it runs, one line a check with the remedy.

It plays nothing and keeps no reply; every number that it prints is a server's own or measured by a few requests. Source
of the checks: what made real studies go wrong (a model that is missing or another one, a context that is cut in
silence, a form of the answer that is ignored).
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from fishpool import costs
from fishpool.documents import locate, shown
from fishpool.models.calls import Backend, Model, Reply, Request
from fishpool.models.faults import Stop, TransportFault
from fishpool.screen import visible
from fishpool.study import Config

SCHEMA = {
    "type": "object",
    "properties": {
        "choice": {"type": "string", "enum": ["cooperate", "defect"]},
        "tons": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"type": "null"}]},
    },
    "required": ["choice", "tons"],
    "additionalProperties": False,
}
_QUESTION = 'Choose "cooperate" or "defect", and from 0 to 9 tons. Answer with the keys choice and tons.'
_SPEED = 64  # tokens that are made to learn how fast they are
_CONNECT = 10.0  # s
_UNUSED_CONTEXT = 2048  # of an embedded engine that no study uses


@dataclass(frozen=True)
class Rate:
    """Tokens a second, one request at a time: read of a prompt, and made."""

    tokens_in: float
    tokens_out: float


Rates: TypeAlias = dict[tuple[str, str], Rate]  # by (server, model)


class _Failed(Exception):
    """A check failed, and has said so; what depends on it is left out."""


class _Report:
    """Prints the lines; `failed` says whether one of them failed."""

    def __init__(self) -> None:
        self.failed = False

    def ok(self, subject: str, says: str) -> None:
        self._line("ok", subject, says)

    def fails(self, subject: str, says: str) -> None:
        self.failed = True
        self._line("fails", subject, says)

    @contextmanager
    def check(self, subject: str) -> Iterator[None]:
        """A failure inside becomes a line, and then `_Failed`."""
        try:
            yield
        except Stop as stop:
            self.fails(subject, str(stop))
        except TransportFault as fault:
            remedy = "start it, or correct its endpoints in the config" if fault.unreachable else "look at its own log"
            self.fails(subject, f"{fault}; {remedy}")
        except ImportError as error:
            self.fails(subject, f"{error}; install what fishpool depends on again (pip install fishpool)")
        else:
            return
        raise _Failed

    def _line(self, verdict: str, subject: str, says: str) -> None:
        print(visible(f"{verdict:<5}  {subject}: {' '.join(says.splitlines())}"), flush=True)


def examine(config: Config) -> bool:
    """Check all that the selected studies need (or every server, if no study has a model); whether nothing failed."""
    return asyncio.run(_examine(config))


async def _examine(config: Config) -> bool:
    report = _Report()
    models: dict[str, list[Model]] = {}
    for study in config.studies:
        for condition in study.conditions:
            for model in costs.live_models(condition):
                known = models.setdefault(model.server, [])
                if all(_weights_of(model) != _weights_of(other) for other in known):
                    known.append(model)
    rates: Rates = {}
    has_models = any(player.kind == "model" for study in config.studies for player in study.players)
    if config.offline:
        _examine_journal(config, models, report)
    else:
        for name in models if has_models else config.servers:
            await _examine_server(name, config.servers[name], models.get(name, []), rates, report)
    _tell_costs(config, rates, report)
    _examine_replays(config, report)
    return not report.failed


def _weights_of(model: Model) -> tuple[object, ...]:
    """What makes two models the same to a server; how they are sampled is no matter."""
    return model.name, model.digest, model.context, model.thinking


async def _examine_server(
    name: str, settings: Mapping[str, Any], models: list[Model], rates: Rates, report: _Report
) -> None:
    """Every endpoint, and every model there; what fails with one is no reason not to look at the next."""
    if not models and settings["kind"] == "llamacpp":
        from fishpool.models.backends.llamacpp import PACKAGED

        models = [Model(name, PACKAGED, context=_UNUSED_CONTEXT)]
    for endpoint in settings["endpoints"]:
        where = f"server {name} at {endpoint}"
        with suppress(_Failed):
            with report.check(where):
                make = import_module(f"fishpool.models.backends.{settings['kind']}").make
                backend: Backend = make(settings, endpoint)
            if not models:
                await _connect(where, endpoint, report)
            for model in models:
                with suppress(_Failed):
                    await _examine_model(f"{where}, {model.name}", settings["kind"], backend, model, rates, report)
            await backend.close()


async def _connect(where: str, endpoint: str, report: _Report) -> None:
    """A server that no study uses is only knocked at."""
    address = urlsplit(endpoint)
    port = address.port or (443 if address.scheme == "https" else 80)
    with report.check(where):
        try:
            async with asyncio.timeout(_CONNECT):
                _, writer = await asyncio.open_connection(address.hostname, port)
            writer.close()
        except (OSError, TimeoutError) as error:
            raise TransportFault(f"no connection to it ({error})", unreachable=True) from error
        report.ok(where, "it can be reached; no study uses it")


async def _examine_model(where: str, kind: str, backend: Backend, model: Model, rates: Rates, report: _Report) -> None:
    """Its slowest rate over the endpoints goes into `rates`."""
    from jsonschema import Draft202012Validator

    from fishpool.models.client import pins

    def request(text: str, max_tokens: int, schema: Mapping[str, Any] | None = None) -> Request:
        return Request(
            backend=kind,
            model=model.name,
            digest=digest,
            messages=({"role": "user", "content": text},),
            schema=schema,
            options={**model.sampling, "seed": 0, "max_tokens": max_tokens, "context": model.context},
            thinking=model.thinking,
            run_id="doctor",
            agent="doctor",
            round=1,
            phase="doctor",
            attempt=1,
        )

    with report.check(where):
        digest = await backend.digest(model.name)
        if model.digest and not pins(model.digest, digest):
            raise Stop(
                f"its digest is {digest}, but the config pins {model.digest}; install those weights or change it"
            )
        report.ok(where, f"the model is there, digest {digest}")
    with report.check(where):
        started = time.perf_counter()
        await backend.warm_up(model.name, model.context)
        report.ok(where, f"loaded in {time.perf_counter() - started:.1f} s for a context of {model.context:,} tokens")
    with report.check(where):
        words = max(model.context * 3 // 4 - 64, 1)
        # begins like no other prompt, so that no cache has it; a fish is one token
        reply = await backend.reply(request(f"{secrets.token_hex(4)}{' fish' * words}", 1))
        rate_in = _rate(reply.tokens_in, reply)
        _judge_context(where, model, words, reply, report)
    with report.check(where):
        reply = await backend.reply(request("Once upon a time", _SPEED))
        rate = Rate(rate_in, _rate(reply.tokens_out, reply))
        slowest = rates.get((model.server, model.name), rate)
        rates[model.server, model.name] = min(slowest, rate, key=lambda each: each.tokens_out)
        report.ok(where, f"reads {rate.tokens_in:,.0f} and makes {rate.tokens_out:,.1f} tokens a second")
    with report.check(where):
        reply = await backend.reply(request(_QUESTION, model.max_tokens, SCHEMA))
        fault = _disobedience(reply, Draft202012Validator(SCHEMA))
        if fault:
            raise Stop(
                f"a JSON schema is not obeyed: {fault}; replies will need repairs, so use a newer server or another"
                " model, or a larger max_tokens"
            )
        report.ok(where, f"a JSON schema is obeyed, with {reply.tokens_out} tokens")


def _judge_context(where: str, model: Model, words: int, reply: Reply, report: _Report) -> None:
    if reply.tokens_in is None:
        report.ok(where, "the server counts no tokens, so whether it keeps a long prompt whole cannot be told")
    elif reply.tokens_in < words:
        raise Stop(
            f"of a prompt of {words:,} tokens it read {reply.tokens_in:,}, so its real context is shorter than"
            f" {model.context:,}; start it with a longer one, or lower the model's `context`"
        )
    else:
        report.ok(where, f"a prompt of {reply.tokens_in:,} tokens is read whole (context: {model.context:,})")


def _disobedience(reply: Reply, validator: Any) -> str:
    """What is wrong with the answer to the probe; nothing if it has the form."""
    if reply.finish_reason == "length":
        return f"the answer is cut off after {reply.tokens_out} tokens"
    try:
        validator.validate(json.loads(reply.text))
    except ValueError:
        return f"found {shown(reply.text)}"
    except Exception as error:  # jsonschema's own
        return f"{shown(reply.text)}: {getattr(error, 'message', error)}"
    return ""


def _rate(tokens: int | None, reply: Reply) -> float:
    return (tokens or 0) / max(reply.latency_ms / 1000, 1e-6)


def _tell_costs(config: Config, rates: Rates, report: _Report) -> None:
    """What each study asks of its models, and how long that takes at most, one request at a time."""
    every = costs.estimate(config)
    for study in dict.fromkeys(cost.study for cost in every):
        own = [cost for cost in every if cost.study == study]
        says = (
            f"{sum(cost.calls for cost in own):,} calls, about {sum(cost.tokens_in for cost in own):,} tokens in,"
            f" at most {sum(cost.tokens_out for cost in own):,} out"
        )
        seconds = [_seconds(cost, rates.get((cost.server, cost.model))) for cost in own]
        if config.offline:
            says += "; none is made while offline"
        elif all(seconds):
            says += f", at most {_duration(sum(seconds))} one request at a time"
        else:
            says += "; how long it takes is not known, because of what fails"
        report.ok(f"study {study}", says)


def _seconds(cost: costs.Cost, rate: Rate | None) -> float:
    if rate is None or not rate.tokens_in or not rate.tokens_out:
        return 0.0
    return cost.tokens_in / rate.tokens_in + cost.tokens_out / rate.tokens_out


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} hours"


def _examine_journal(config: Config, models: Mapping[str, list[Model]], report: _Report) -> None:
    """While offline: whether the journal knows the models."""
    from fishpool.models.journal import Journal

    for model in [model for each in models.values() for model in each]:
        subject = f"journal {config.journal}, {model.server}/{model.name}"
        with suppress(_Failed), report.check(subject):
            with closing(Journal(Path(config.journal), read_only=True)) as journal:
                digest = journal.digest(model.server, model.name)
            if digest is None:
                raise Stop("it has no reply of the model; set offline: false, or import the journal that has it")
            report.ok(subject, f"it has replies, digest {digest}")


def _examine_replays(config: Config, report: _Report) -> None:
    """Whether each published journal of the selected studies can be read and has the study's models."""
    from fishpool.models.publishing import contents

    wanted: dict[str, set[str]] = {}
    for study in config.studies:
        for condition in study.conditions:
            if condition.replay:
                names = {player.settings["name"] for player in condition.players if player.kind == "model"}
                wanted.setdefault(condition.replay, set()).update(names)
    for file, names in wanted.items():
        subject = f"replay {file}"
        with suppress(_Failed), report.check(subject):
            found = contents(locate(file))
            missing = sorted(names - {model for model, _ in found})
            if missing:
                raise Stop(f"it has no reply of {', '.join(missing)}; name the journal that was recorded with it")
            counts = [f"{count:,} replies of {model} ({digest[:19]})" for (model, digest), count in found.items()]
            report.ok(subject, ", ".join(counts))
