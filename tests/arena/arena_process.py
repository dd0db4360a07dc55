"""A real arena in a process of its own, as `fishpool arena` starts it, on a free port of this machine."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class ArenaProcess:
    def __init__(self, folder: Path, *options: str):
        self.folder, self.options = folder, options
        self.database, self.results = folder / "arena.sqlite", folder / "results"
        self.errors = folder / "stderr.txt"
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, again on the same port after the first time."""
        command = [sys.executable, "-m", "fishpool.cli", "arena", f"--port={self.port}"]
        command += [f"--database={self.database}", f"--results={self.results}", *self.options]
        with self.errors.open("a") as errors:
            said = self.errors.stat().st_size
            self.process = subprocess.Popen(command, cwd=ROOT, stderr=errors)
        for _ in range(600):
            found = re.search(r"http://127\.0\.0\.1:(\d+)", self.errors.read_text()[said:])
            if found:
                self.port, self.url = int(found[1]), found[0]
                return
            assert self.process.poll() is None, self.errors.read_text()
            time.sleep(0.05)
        raise AssertionError("the arena does not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """As Ctrl-C does; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)

    def __enter__(self) -> ArenaProcess:
        return self

    def __exit__(self, *error: Any) -> None:
        if self.process.poll() is None:
            self.kill()
