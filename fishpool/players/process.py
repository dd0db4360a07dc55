"""Players that are programs of their own: bots in any language, for every game where an agent acts.

A bot is sent one view a line (JSON) and answers one action a line; the referee reads the line as strictly as any reply.
Here are its pipes and its life; its limits and its end are in `fishpool.players.warden`, the rules in the games. What a
bot can rely on is written down in `examples/bots/README.md`.

To the game's view is added `matchId`: the same in all views of one agent's match and different in every other match,
telling neither study nor condition. A bot that draws lots can seed itself with it.

A bot fails by its own fault if it dies, closes a pipe, writes a line without end, more than one line, or a line before
it has read the view that asks for it. It is ended then, as it is when it misses the deadline, so that a late answer is
never the next turn's action; where the game goes on, its next turn starts a new process. To start is part of a turn.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import io
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fishpool import referee, shards
from fishpool.models.faults import Stop
from fishpool.players import warden
from fishpool.referee import MAX_REPLY, Fault
from fishpool.seats import Seat
from fishpool.shards import Shard, Site

_WARDEN = Path(warden.__file__)
# What a bot sees of the environment: where programs are, language and time zone; no key of anything.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
_REPAIRS = {"prisoners_dilemma": 0, "commons": 1}  # requests after an action that is rejected, by the rules of the game
_GRACE = 0.5  # s that a bot has to end by itself once its input is closed
_LAST_WORDS = 0.2  # s that are waited to learn why a pipe was closed
_LONGEST_END = 10.0  # s after which the warden itself is given up
_CHUNK = 64 * 1024
_MAX_ERRORS = 16 * 1024 * 1024  # bytes on standard error in the life of a process
_LOGGED_MATCH = 64 * 1024  # of which so many are kept a match,
_LOGGED = 4 * 1024 * 1024  # and so many in a log


@dataclass(frozen=True)
class Bot:
    """A bot as the config gives it: `memory` in MiB for all its processes together, `cpu_seconds` for each of them."""

    process: str
    keep_alive: bool = False
    memory: int = 1024
    cpu_seconds: int = 600

    @property
    def command(self) -> tuple[str, ...]:
        return parse(self.process)


def parse(command: str) -> tuple[str, ...]:
    """The program and its arguments, split as a shell would, but run without one; ValueError says why it cannot be."""
    words = tuple(shlex.split(command))
    if not words or not words[0]:
        raise ValueError("it names no program")
    if "\0" in command:
        raise ValueError("it holds a NUL character")
    return words


def files_of(command: str) -> list[Path]:
    """The files that a command names and that exist, in order: what to watch for a change of the bot.

    A program that is found on the PATH (an interpreter) is none of them.
    """
    program, *arguments = parse(command)
    words = [program, *arguments] if "/" in program else arguments
    return [path for path in dict.fromkeys(map(Path, words)) if _is_file(path)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # an argument that is too long for a name
        return False


class Kind:
    """All bots of a shard. A match gets a process of its own, with `keep_alive` one that an earlier match has left."""

    def __init__(self, shard: Shard, site: Site, players: Sequence[shards.Player]):
        self._bots = {player.name: Bot(**player.settings) for player in players}
        self._repairs = _REPAIRS[shard.game]
        self._logs = {
            name: Log(Path(site.logs), Path(shard.study, shard.condition, shard.name, f"{quote(name, safe=' ')}.log"))
            for name in self._bots
            if site.logs is not None
        }
        self._idle: dict[str, list[Process]] = {name: [] for name in self._bots}
        self._versions: dict[str, Any] = {}

    async def open(self) -> None:
        for name, bot in self._bots.items():
            if shutil.which(bot.command[0]) is None:
                raise Stop(f"player {name}: found no program {bot.command[0]!r} that can be run; correct its `process`")
        for log in self._logs.values():
            log.clear()
        self._versions = {name: _version(bot) for name, bot in self._bots.items()}

    async def close(self) -> None:
        await asyncio.gather(*(process.end(_GRACE) for some in self._idle.values() for process in some))

    def seat(self, player: shards.Player, seat: Seat) -> ProcessPlayer:
        name = player.name
        return ProcessPlayer(self._bots[name], seat, self._repairs, self._logs.get(name), self._idle[name])

    @property
    def games_at_once(self) -> int:
        return os.cpu_count() or 1

    def versions(self) -> dict[str, Any]:
        return self._versions


def _version(bot: Bot) -> dict[str, Any]:
    return {**asdict(bot), "files": {str(path): _sha256(path) for path in files_of(bot.process)}}


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise Stop(f"{path}: a bot's `process` names this file, which cannot be read: {error.strerror}") from None


class ProcessPlayer(referee.Player):
    """A bot in one match. `idle` are the processes of this bot that wait for a match."""

    def __init__(self, bot: Bot, seat: Seat, repairs: int, log: Log | None = None, idle: list[Process] | None = None):
        self.repairs = repairs
        self._bot = bot
        self._title = f"{seat.run_id} {seat.agent}"
        self._match = hashlib.sha256(self._title.encode()).hexdigest()[:16]
        self._log = log
        self._idle = [] if idle is None else idle
        self._process: Process | None = None
        self._answered = True  # whether the process has answered all that it was asked

    async def act(self, view: Mapping[str, Any]) -> bytes:
        if not self._answered:
            await self.close()
        if self._process is None:
            self._process = await self._start()
        line = json.dumps({**view, "matchId": self._match}, allow_nan=False).encode() + b"\n"
        self._answered = False
        try:
            reply = await self._process.ask(line)
        except Fault as fault:
            await self._process.end()
            more = f"; see the log {self._log.name}" if self._log and self._process.errors else ""
            raise Fault(f"{fault}{more}") from None
        except asyncio.CancelledError:  # the deadline
            self._process.kill()
            raise
        self._answered = True
        return reply

    async def _start(self) -> Process:
        while self._idle:
            process = self._idle.pop()
            if process.running:
                return process
            await process.end()
        return Process(self._bot)

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if self._answered and self._bot.keep_alive:
            process.hear_errors()
            self._idle.append(process)
        else:
            await process.end(_GRACE if self._answered else 0)
        if self._log:
            self._log.write(self._title, process.errors)
        process.errors.clear()
        self._answered = True


class Log:
    """What a bot writes to standard error, by match, of limited size; `name` is its name within the folder of logs."""

    def __init__(self, folder: Path, name: Path):
        self.name = name
        self._path = folder / name
        self._room = _LOGGED

    def clear(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(b"")

    def write(self, title: str, errors: bytes | bytearray) -> None:
        """Add what was written in one match, with what could steer a terminal made visible."""
        if not errors or not self._room:
            return
        text = "".join(
            character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
            for character in errors.decode("utf-8", "backslashreplace")
        )
        block = f"--- {title}\n{text.removesuffix(chr(10))}\n".encode()
        if len(block) <= self._room:
            self._room -= len(block)
        else:
            block, self._room = f"--- the rest is left out: this log holds at most {_LOGGED} bytes\n".encode(), 0
        with self._path.open("ab") as file:
            file.write(block)


class Process:
    """A running bot, with pipes that never block; made and used within one event loop.

    `errors` is what it wrote to standard error since they were last cleared, as much as is kept of it.
    """

    def __init__(self, bot: Bot):
        self.errors = bytearray()
        self._bot = bot
        self._heard = bytearray()  # standard output that is not yet returned
        self._flood = 0  # bytes on standard error so far
        self._report = bytearray()  # from the warden
        self._over = asyncio.Event()  # nothing that the bot started is left
        self._loop = asyncio.get_running_loop()
        with ExitStack() as theirs, ExitStack() as ours:
            stdin, self._stdin = _pipe(theirs, ours)
            self._stdout, stdout = _pipe(ours, theirs)
            self._stderr, stderr = _pipe(ours, theirs)
            mine, control = socket.socketpair()
            self._control = ours.enter_context(mine)
            theirs.enter_context(control)
            limits = (control.fileno(), bot.memory, bot.cpu_seconds)
            self._warden = subprocess.Popen(
                [sys.executable, "-I", "-S", _WARDEN, *map(str, limits), *bot.command],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=[control.fileno()],
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                start_new_session=True,  # a Ctrl-C at the terminal is not the bot's business
            )
            self._open = ours.pop_all()
        for end in (self._stdin, self._stdout, self._stderr, self._control):
            os.set_blocking(end.fileno(), False)
        self._loop.add_reader(self._stderr, self.hear_errors)
        self._loop.add_reader(self._control, self._hear_warden)

    @property
    def running(self) -> bool:
        return not self._over.is_set()

    async def ask(self, view: bytes) -> bytes:
        """One line for another, without its end; Fault if the bot does anything else. The deadline is the caller's."""
        try:
            if self._hear():
                raise Fault("the process wrote to its standard output before it was asked")
            while view:
                sent = self._stdin.write(view)
                view = view[sent or 0 :]
                if view:
                    await self._ready(self._loop.add_writer, self._loop.remove_writer, self._stdin)
            while b"\n" not in self._heard:
                if len(self._heard) > MAX_REPLY:
                    raise Fault(f"the process wrote a line of more than {MAX_REPLY} bytes")
                await self._ready(self._loop.add_reader, self._loop.remove_reader, self._stdout)
                self._hear()
        except BrokenPipeError:
            raise Fault(await self._why("closed its standard input")) from None
        except EOFError:
            raise Fault(await self._why("closed its standard output")) from None
        line, _, rest = self._heard.partition(b"\n")
        if rest:
            raise Fault("the process wrote more than one line for one view")
        if self._unread():
            raise Fault("the process answered before it had read the view")
        self._heard.clear()
        return bytes(line)

    def kill(self) -> None:
        """Have everything ended at once, without waiting for it."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    async def end(self, grace: float = 0) -> None:
        """Close the bot's pipes, give it `grace` seconds to end by itself, then end it with all that it started."""
        if self._warden.returncode is not None:
            return
        self._stdin.close()
        self._stdout.close()
        for seconds in (grace, _LONGEST_END):
            try:
                async with asyncio.timeout(seconds):
                    await self._over.wait()
                break
            except TimeoutError:
                self.kill()
        else:
            self._warden.kill()  # with it goes the keeper, and the namespace
        self._warden.wait()
        self.hear_errors()
        for reader in (self._stderr, self._control):
            self._loop.remove_reader(reader)
        self._open.close()

    def hear_errors(self) -> None:
        """Take what is there of standard error; a pipe holds no more than one chunk."""
        chunk = self._stderr.read(_CHUNK)
        if chunk:
            self._flood += len(chunk)
            self.errors += chunk[: _LOGGED_MATCH - len(self.errors)]
        if self._flood > _MAX_ERRORS:
            self.kill()
        if chunk == b"" or self._flood > _MAX_ERRORS:
            self._loop.remove_reader(self._stderr)

    def _hear_warden(self) -> None:
        try:
            word = self._control.recv(_CHUNK)
        except OSError:
            word = b""
        self._report += word
        if not word:
            self._loop.remove_reader(self._control)
            self._over.set()

    def _hear(self) -> bool:
        """Take what is there of standard output, if anything is; EOFError if nothing ever will be."""
        chunk = self._stdout.read(_CHUNK)
        if chunk == b"":
            raise EOFError
        self._heard += chunk or b""
        return bool(chunk)

    async def _ready(self, add: Callable[..., None], remove: Callable[[io.FileIO], bool], pipe: io.FileIO) -> None:
        ready = asyncio.Event()
        add(pipe, ready.set)
        try:
            await ready.wait()
        finally:
            remove(pipe)

    def _unread(self) -> int:
        """How many bytes of its input the bot has not taken from the pipe."""
        return int.from_bytes(fcntl.ioctl(self._stdin, termios.FIONREAD, bytes(4)), sys.byteorder)

    async def _why(self, otherwise: str) -> str:
        """Why the bot closed a pipe; `otherwise` if it goes on without it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._over.wait()
        where = " in the middle of a line" if self._heard else ""
        return f"the process {self._how() or otherwise}{where}"

    def _how(self) -> str:
        if self._flood > _MAX_ERRORS:
            return f"wrote more than {_MAX_ERRORS >> 20} MiB to its standard error"
        if not self._report:
            return "" if self.running else "was ended from outside"
        word, number = self._report.split()[:2]
        match word, int(number):
            case b"exec", code:
                return f"could not be started: {os.strerror(code)}"
            case b"exit", code:
                return f"ended with exit code {code}"
            case b"memory", _:
                return f"used more than {self._bot.memory} MiB of memory"
            case b"tasks", _:
                return f"started more than {warden.TASKS} processes and threads"
            case _, signal.SIGXCPU:
                return f"used more than {self._bot.cpu_seconds} s of processor time"
            case _, code:
                return f"was ended by signal {code} ({signal.strsignal(code)})"
        return ""


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[io.FileIO, io.FileIO]:
    """A pipe, each end of which is closed with its stack; no other process inherits it."""
    read, write = os.pipe()
    return reading.enter_context(io.FileIO(read, "rb")), writing.enter_context(io.FileIO(write, "wb"))
