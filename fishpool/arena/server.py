"""Runs the arena: the database, the clock, uvicorn, and the records at the end.

It binds to loopback unless it is told otherwise, says where it listens once it does, and, when it is stopped by a
signal, answers those who wait, closes, and writes the finished matches as records. A killed one loses nothing either.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import resource
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
import websockets  # noqa: F401  (without it uvicorn would serve no WebSocket, and not say so)
from fastapi import FastAPI

from fishpool.arena.edges import Allowance, Bell, application
from fishpool.arena.matches import LANES, Arena, Limits
from fishpool.arena.results import export
from fishpool.arena.store import Store, StoreError
from fishpool.files import FileFault, sentence

_BACKLOG = 1_024  # connections that wait to be taken
_CONNECTIONS = 4_000  # at a time; further requests are answered 503
_MAX_HEAD = 16 * 1024  # bytes of a request's line and headers


def serve(
    database: Path,
    results: Path,
    study: str = "arena",
    host: str = "127.0.0.1",
    port: int = 8765,
    rounds: int = 20,
    lanes: Mapping[str, float] = LANES,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    allowance: Allowance = Allowance(),  # noqa: B008  (frozen)
) -> None:
    """Serve until a signal comes. Port 0 is any free one. `lanes` are turn timeouts in s.

    Raises OSError if nothing can listen there, store.StoreError if the database cannot be used.
    """
    store = Store(database, rounds)
    _allow_connections()
    try:
        with _listener(host, port) as listener:
            bell = Bell()
            arena = Arena(store, time.monotonic, lanes, limits, bell.ring)

            @asynccontextmanager
            async def lifespan(app: FastAPI) -> AsyncIterator[None]:
                keeper = asyncio.create_task(_keep_time(arena))
                _say(f"arena: listening on {_address(listener)}, turns of {_times(lanes)}; stop it with Ctrl-C")
                yield
                keeper.cancel()
                _export(database, results, study)

            app = application(arena, bell, allowance, lifespan, loopback=_is_loopback(host))
            _Server(app, bell, allowance).run(sockets=[listener])
    finally:
        store.close()


class _Server(uvicorn.Server):
    def __init__(self, app: FastAPI, bell: Bell, allowance: Allowance):
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",  # whose headers are bounded
                h11_max_incomplete_event_size=_MAX_HEAD,
                ws="websockets-sansio",
                ws_max_size=allowance.body,
                ws_per_message_deflate=False,  # or a small message could unfold to a large one
                limit_concurrency=_CONNECTIONS,
                timeout_graceful_shutdown=3,
                backlog=_BACKLOG,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )
        # A handshake that is refused with an answer in HTTP, as ours are, is no error, but uvicorn takes it for one.
        logging.getLogger("uvicorn.error").addFilter(lambda said: "completing handshake" not in said.getMessage())
        self._bell = bell

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._bell.close()
        await super().shutdown(sockets)


async def _keep_time(arena: Arena) -> None:
    """End turns whose time is up, whoever asks or does not ask."""
    shortest = min(arena.lanes.values())
    while True:
        try:
            arena.expire()
        except StoreError as error:  # the turns are still there, and are ended once it can be written to
            _say(f"arena: {error}")
            await asyncio.sleep(1)
            continue
        except Exception:
            logging.getLogger("uvicorn.error").exception("turns could not be ended; trying again")
            await asyncio.sleep(1)
            continue
        due = arena.next_deadline()
        # A turn that is offered meanwhile is not over before a whole turn timeout has passed.
        await asyncio.sleep(shortest if due is None else min(shortest, max(0.0, due - time.monotonic())))


def _export(database: Path, results: Path, study: str) -> None:
    try:
        for directory in export(database, results, study):
            _say(f"arena: matches are in {directory}")
    except (FileFault, StoreError) as fault:
        _say(f"arena: {fault} (fishpool arena export writes the records of the matches that are in {database})")
    except OSError as error:
        _say(f"arena: {sentence(error)} (fishpool arena export writes the records of the matches in {database})")


def _allow_connections() -> None:
    """Let this process have as many files open as connections are taken, if the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + 100 if hard == resource.RLIM_INFINITY else min(_CONNECTIONS + 100, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise OSError(error.errno, error.strerror, host) from None
    except UnicodeError:
        raise OSError(errno.EINVAL, "no host can be called so", host) from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)  # from now on whoever connects waits, at worst, until the arena is ready
    except OSError as error:
        listener.close()
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _times(lanes: Mapping[str, float]) -> str:
    return ", ".join(f"{seconds:g} s ({lane})" for lane, seconds in lanes.items())


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
