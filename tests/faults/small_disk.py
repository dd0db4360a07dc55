"""A small disk of one's own for tests, which can be really full and really read-only, and programs that run on it.

It is the machinery of the tests beside it and holds no test. The disk is a tmpfs in a mount namespace that one process
has for itself (user namespaces where it is not root's), so that nothing is left mounted whatever happens.
"""

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import resource
import runpy
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER of sched.h
_PAGE = 4096  # bytes: tmpfs gives no less

# Libraries are imported once; what needs a disk is a fork of the process that has them, before they start threads.
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["pytest", "duckdb", "polars", "altair", "fishpool.cli", "scripted_backend"])


class Disk:
    """The disk that is mounted at `root`."""

    def __init__(self, root: Path):
        self.root = root
        self._filler = root / ".filler"

    @contextlib.contextmanager
    def room(self, free: int) -> Iterator[None]:
        """While nothing but so many bytes is free."""
        there = os.statvfs(self.root)
        with self._filler.open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, max(there.f_bavail * there.f_bsize - free // _PAGE * _PAGE, 1))
        try:
            yield
        finally:
            self._filler.unlink()

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        _mount("-o", "remount,ro", str(self.root))
        try:
            yield
        finally:
            _mount("-o", "remount,rw", str(self.root))


def on_disk(root: Path, megabytes: int, work: Callable[..., Any], *arguments: Any) -> Any:
    """What `work(disk, ..)` gives in a process of its own that has a disk at `root`; None where there can be none."""
    receiving, sending = _SERVER.Pipe(duplex=False)
    process = _SERVER.Process(target=_with_disk, args=(sending, root, megabytes, work, arguments))
    process.start()
    sending.close()
    try:
        fault, given = receiving.recv()
    except EOFError:
        fault, given = "the process ended", None
    process.join()
    assert not fault, fault
    return given


def _with_disk(
    sending: Connection, root: Path, megabytes: int, work: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    try:
        given = work(Disk(root), *arguments) if _mounted(root, megabytes) else None
    except BaseException:
        sending.send((traceback.format_exc(), None))
    else:
        sending.send(("", given))


def _mounted(root: Path, megabytes: int) -> bool:
    """Whether a new tmpfs could be mounted at `root`."""
    library, user, group = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
    if library.unshare(_NEW_MOUNTS):
        if library.unshare(_NEW_MOUNTS | _NEW_USER):
            return False
        for file, text in (("uid_map", f"0 {user} 1"), ("setgroups", "deny"), ("gid_map", f"0 {group} 1")):
            Path("/proc/self", file).write_text(text)
    try:
        _mount("--make-rprivate", "/")
        _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(root))
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def run(program: Callable[[], Any], largest_file: int = 0) -> tuple[int, str]:
    """Exit code and output of a program in a fork of this process."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        code = 1
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  (the server's own may be a file)
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        if largest_file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        try:
            code = program() or 0
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            else:
                code = end.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with open(reading, "rb") as output:  # noqa: PTH123
        said = output.read().decode()
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), said


def forked(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives in a fork of this process, so that it starts no threads in this one, which forks again."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        with open(writing, "wb") as given:  # noqa: PTH123
            try:
                pickle.dump((None, function(*arguments)), given)
            except BaseException:
                pickle.dump((traceback.format_exc(), None), given)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as given:  # noqa: PTH123
        fault, value = pickle.load(given)
    os.waitpid(process, 0)
    assert not fault, fault
    return value


def script(root: Path, arguments: list[str]) -> None:
    """A program of the checkout at `root`, as a job of the workflow runs it there."""
    os.chdir(root)
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
