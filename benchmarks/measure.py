"""What the benchmarks share: programs timed in turn on the processor's clock, and one JSON a benchmark.

It is no benchmark. Time is that of the processor, all threads of the process together, because on a shared machine the
clock on the wall would measure the neighbours; a program that only waits must not be measured here. Whoever imports
this first gets libraries with one thread each, as the jobs of the workflow do.
"""

import gc
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(variable, "1")  # read when numpy and polars are imported

RESULTS = Path("results/benchmarks")


@dataclass(frozen=True)
class Comparison:
    """Ours beside the alternative, as rates (`unit`: what is counted, a second): more is better."""

    what: str
    unit: str
    alternative: str
    ours_rate: float
    alternative_rate: float
    aim: float
    floor: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours_rate / self.alternative_rate


def in_turn(programs, passes):
    """Units of work a processor second, one rate a pass, by program; the programs take turns.

    `programs`: name -> function without arguments that does the work and returns how many units it has done.
    """
    gc.collect()
    gc.freeze()  # a library's import may leave a heap that every collection would walk, at everybody's cost
    rates = {name: [] for name in programs}
    for _ in range(passes):
        for name, program in programs.items():
            start = time.process_time()
            done = program()
            rates[name].append(done / (time.process_time() - start))
    return rates


def compare(rates, what, unit, alternative, aim, floor=None, ours="ours"):
    """The comparison of two of the programs of `in_turn` by their medians."""
    return Comparison(what, unit, alternative, median(rates[ours]), median(rates[alternative]), aim, floor)


# A program's peak counts from that of the process which started it, so a small one stands between.
_START = """
import json, os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
json.dump([status, usage.ru_maxrss, usage.ru_utime + usage.ru_stime], sys.stdout)
"""


def peak_and_seconds(program, *arguments):
    """Peak resident memory (MiB) and processor seconds of a Python program of its own, start and imports included."""
    command = [sys.executable, "-c", _START, sys.executable, program, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    status, peak, seconds = json.loads(done.stdout)
    if status:
        sys.exit(f"{program} ended with status {status}")
    return peak / (2**20 if sys.platform == "darwin" else 2**10), seconds


def report(name, comparisons, details, libraries=()):
    """Print the comparisons and write results/benchmarks/NAME.json."""
    for one in comparisons:
        floor = f", floor {one.floor:g}" if one.floor else ""
        print(f"{one.what}")
        print(f"  ours                 {one.ours_rate:14,.0f} {one.unit}/s")
        print(f"  {one.alternative:20} {one.alternative_rate:14,.0f} {one.unit}/s")
        print(f"  ratio                {one.ratio:14,.3g}   aim {one.aim:g}{floor}", flush=True)
    versions = {library: importlib.metadata.version(library) for library in ("numpy", *libraries)}
    result = {
        "clock": "processor",
        "comparisons": [{**vars(one), "ratio": one.ratio} for one in comparisons],
        **details,
        "versions": {"python": platform.python_version(), **versions},
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
