"""A person's terminal: what is printed there, made safe and fitted to its width, and the lines that are typed.

It knows no game. Whatever is printed may hold what a model or a stranger said, so everything goes through `visible`;
colours are left out where nobody would see them (a pipe, a dumb terminal, NO_COLOR as on no-color.org).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterable
from contextlib import suppress
from threading import Thread

from fishpool.screen import aligned, screen, visible

_INPUT = 0  # the descriptor of standard input
_WIDEST = 100  # longer lines are hard to read


class Console:
    """Standard output and standard input, which is read in a thread of its own while others play."""

    def __init__(self) -> None:
        self._typed: asyncio.Queue[str | None] = asyncio.Queue()
        self._left = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def width(self) -> int:
        return max(20, min(shutil.get_terminal_size().columns, _WIDEST))

    def say(self, text: str = "", style: str = "", indent: str = "") -> None:
        """One paragraph, wrapped, in a style of `Screen.paint`; further lines are indented by `indent`."""
        self.show(textwrap.wrap(visible(text), self.width, subsequent_indent=indent) or [""], style)

    def show(self, lines: Iterable[str], style: str = "") -> None:
        """Lines as they are laid out."""
        shown = screen(sys.stdout)
        for line in map(visible, lines):
            print(shown.paint(line, style) if style else line)
        sys.stdout.flush()

    def table(self, header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
        """Aligned columns: the first to the left, all others to the right."""
        lines = list(aligned([[visible(cell) for cell in row] for row in (header, *rows)], left=1))
        self.show(lines[:1], "dim")
        self.show(lines[1:])

    # ── What is typed ────────────────────────────────────────────────────────────────────────────────────────────

    def open(self) -> None:
        """Begin to read; Ctrl-C counts as the end of the input once, and interrupts the second time."""
        self._loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # an event loop without signals, where Ctrl-C just interrupts
            self._loop.add_signal_handler(signal.SIGINT, self._interrupted)
        Thread(target=self._read, args=(self._loop,), daemon=True).start()

    def close(self) -> None:
        if self._loop:
            with suppress(NotImplementedError):
                self._loop.remove_signal_handler(signal.SIGINT)

    async def line(self, prompt: str) -> str | None:
        """The next line, without its end; None once the input has ended."""
        if not self._left:
            print(visible(prompt), end="", flush=True)
            typed = await self._typed.get()
            if not os.isatty(_INPUT):
                print()  # which a terminal's echo has done
            self._left = self._left or typed is None
            if not self._left:
                return typed
            if os.isatty(_INPUT):
                print()
        return None

    def forget(self) -> None:
        """Drop what was typed and not yet asked for: it answered a question that is over."""
        while not self._typed.empty():
            self._left = self._typed.get_nowait() is None or self._left

    def _interrupted(self) -> None:
        self._left = True
        self._typed.put_nowait(None)
        self.close()
        self.say("^C: leaving at your next turn; a second Ctrl-C stops at once, and then nothing is recorded")

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Every line to the queue, then None. Reads the descriptor itself: a stream would be locked at the exit."""
        held = b""
        with suppress(RuntimeError):  # the loop is closed: the game is over
            with suppress(OSError):  # a terminal that has gone
                while found := os.read(_INPUT, 65_536):
                    *lines, held = (held + found).split(b"\n")
                    for line in lines:
                        loop.call_soon_threadsafe(self._typed.put_nowait, _text(line))
            if held:
                loop.call_soon_threadsafe(self._typed.put_nowait, _text(held))
            loop.call_soon_threadsafe(self._typed.put_nowait, None)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").rstrip("\r")
