"""Runs one bot under limits, and ends it with everything that it started, whatever becomes of whoever asked for it.

It is a program of its own, `python -I -S warden.py CONTROL MEMORY SECONDS COMMAND ..`, and needs no other module of the
package: small and with one thread, so that it may fork. It is no sandbox: a bot reads files and opens connections as
its user does. The manual pages are fork(2), unshare(2), pid_namespaces(7), prctl(2), setrlimit(2) and proc(5) of Linux.

CONTROL is the file descriptor of a socket. When its other end closes (also by a kill -9), the bot is ended. On it the
warden says one word and a number as to why the bot ended ("exit 1", "signal 9", "exec ERRNO", "memory 0", "tasks 0");
it closes when nothing that the bot started is left. MEMORY is in MiB, SECONDS of processor time a process.

Three processes: the warden itself watches; its child, the keeper, is the first process of a PID namespace of its own,
so that the kernel ends whatever is in there with it; the keeper's child becomes the bot. In a user namespace of its own
the bot cannot read other processes' environments. Where namespaces are not to be had, nothing that the bot starts may
leave its process group (setsid and setpgid fail), so that one signal ends them all; and the warden adopts what is left
behind. Without Linux there is the process group alone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import select
import signal
import struct
import sys
from contextlib import suppress

TYPE_CHECKING = False  # as in typing, which is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

TASKS = 256  # processes and threads of one bot
_FILES = 256  # open at once
_FILE_SIZE = 64 << 20  # bytes
_WATCH = 50  # ms between two looks at the bot
_CLONE_NEWUSER, _CLONE_NEWPID = 0x10000000, 0x20000000
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
# By machine: the architecture as audit.h of Linux numbers it, and its numbers of the calls setsid and setpgid.
_CALLS = {"x86_64": (0xC000003E, 112, 109), "aarch64": (0xC00000B7, 157, 154)}


def main(arguments: list[str]) -> None:
    control, memory, seconds = map(int, arguments[:3])
    os.set_inheritable(control, False)
    contained = _contain()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    keeper = os.fork()
    if not keeper:
        _keep(control, memory << 20, seconds, arguments[3:], contained)
    _let_go()
    said = _watch(control, woken, keeper, memory << 20)
    if said:
        with suppress(OSError):
            os.write(control, said)
    _end(keeper, woken)


def _contain() -> bool:
    """Children from here on are in namespaces of their own, under the same user and group; whether that worked."""
    user, group = os.getuid(), os.getgid()
    try:
        if ctypes.CDLL(None).unshare(_CLONE_NEWUSER | _CLONE_NEWPID):
            return False
    except (OSError, AttributeError):
        return False
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with suppress(OSError), open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 (pathlib is slow to import)
            file.write(text)
    return True


def _prctl(option: int, value: int, pointer: ctypes.c_void_p | None = None) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), pointer, None, None)


def _let_go() -> None:
    """Hold none of the bot's pipes, or nobody would see it close them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


# ── The keeper and the bot ───────────────────────────────────────────────────────────────────────────────────────


def _keep(control: int, memory: int, seconds: int, command: list[str], contained: bool) -> NoReturn:
    """Start the bot, wait for its end, say how it ended; the end of this process is the end of the namespace."""
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        bot = os.fork()
        if not bot:
            _become(control, memory, seconds, command, contained)
        _let_go()
        status = None
        while status is None:
            pid, code = os.wait()
            if pid == bot:
                status = os.waitstatus_to_exitcode(code)
        os.write(control, b"exit %d\n" % status if status >= 0 else b"signal %d\n" % -status)
    finally:
        os._exit(0)


def _become(control: int, memory: int, seconds: int, command: list[str], contained: bool) -> NoReturn:
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, which a program would inherit
            signal.signal(ignored, signal.SIG_DFL)
        # private memory that can be written; address space that is only reserved, as by a Java machine, costs nothing
        _limit(resource.RLIMIT_DATA, memory)
        _limit(resource.RLIMIT_CPU, seconds, seconds + 1)  # first SIGXCPU, which tells why
        _limit(resource.RLIMIT_FSIZE, _FILE_SIZE)
        _limit(resource.RLIMIT_NOFILE, _FILES)
        _limit(resource.RLIMIT_CORE, 0)
        if contained:
            _limit(resource.RLIMIT_NPROC, TASKS)  # elsewhere it would count everything that the user runs
        else:
            _stay_in_group()
        os.execvp(command[0], command)
    except OSError as error:
        os.write(control, b"exec %d\n" % (error.errno or 0))
    finally:
        os._exit(127)


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    _, most = resource.getrlimit(kind)
    limits = (soft, soft if hard is None else hard)
    resource.setrlimit(kind, limits if most == resource.RLIM_INFINITY else (min(soft, most), min(limits[1], most)))


def _stay_in_group() -> None:
    """Have the calls that would leave the process group fail with EPERM, in this process and all that it starts."""
    if os.uname().machine not in _CALLS:
        return
    architecture, *calls = _CALLS[os.uname().machine]
    load, jump_if_equal, unmask, answer = 0x20, 0x15, 0x54, 0x06  # a program in the language of bpf(4)
    allowed, refused = 0x7FFF0000, 0x00050000 | errno.EPERM
    program = [
        (load, 0, 0, 4),  # the architecture,
        (jump_if_equal, 0, 4, architecture),
        (load, 0, 0, 0),  # the call,
        (unmask, 0, 0, 0x3FFFFFFF),  # in either of its two numberings
        (jump_if_equal, 2, 0, calls[0]),
        (jump_if_equal, 1, 0, calls[1]),
        (answer, 0, 0, allowed),
        (answer, 0, 0, refused),
    ]
    steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    whole = ctypes.create_string_buffer(struct.pack("HP", len(program), ctypes.addressof(steps)))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, 2, ctypes.cast(whole, ctypes.c_void_p))


# ── The warden ───────────────────────────────────────────────────────────────────────────────────────────────────


def _watch(control: int, woken: int, keeper: int, memory: int) -> bytes:
    """Until the bot is to be ended or has ended, or uses too much; returns what the warden itself has to say."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(_WATCH)}
        if control in ready:  # nobody ever writes to it: it was closed
            return b""
        if woken in ready:
            os.read(woken, 512)
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                if pid == keeper:
                    return b""
        used = tasks = 0
        for pid in _descendants():
            if pid == keeper:
                continue
            tasks += len(_listed(f"/proc/{pid}/task"))
            used += _resident(pid)
            if tasks > TASKS:
                return b"tasks 0\n"
            if used > memory:
                return b"memory 0\n"


def _end(keeper: int, woken: int) -> None:
    """End all descendants; what they leave behind becomes this process's own child and is found the next time."""
    with suppress(OSError):
        os.killpg(keeper, signal.SIGKILL)  # at one stroke: none of the group can fork meanwhile
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _descendants():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        select.select([woken], [], [], 0.001)


def _descendants() -> Iterator[int]:
    """All processes below this one, parents first; none without Linux's /proc."""
    found = [os.getpid()]
    for pid in found:
        for task in _listed(f"/proc/{pid}/task"):
            found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
        if pid != found[0]:
            yield pid


def _resident(pid: int) -> int:
    """Memory of a process that is in use, in bytes."""
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * resource.getpagesize() if fields else 0


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _read(name: str) -> bytes:
    try:
        with open(name, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # at once; there is nothing to tidy up
