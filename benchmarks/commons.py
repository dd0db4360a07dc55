"""How fast pools are played: 10,000 runs of five agents over twelve rounds, from the rules alone to records in files.

It is no test of what is played. Time is that of the processor: everything is one thread that never waits, and on a
shared machine the clock on the wall would measure the neighbours.

    python benchmarks/commons.py [runs]
"""

import json
import platform
import sys
import tempfile
import time
from pathlib import Path

from fishpool import records
from fishpool.games.commons import parameters_of, play
from fishpool.players.commons import seat
from fishpool.runners import commons as runner
from fishpool.shards import Progress, Shard, write

GROUPS = {
    "four honest, one salami": ["honest_sustainable"] * 4 + ["salami"],
    "five random": ["random"] * 5,
}
TWINS = ["forced_truth", "binding_promise", "honest"]
RESULT = Path("results/benchmarks/commons.json")


def main(runs: int) -> None:
    seconds = {}
    for name, agents in GROUPS.items():
        programs = {"play": rules_alone, "play and write": to_files, "play and write, with all twins": with_twins}
        for label, program in programs.items():
            start = time.process_time()
            program(agents, runs)
            seconds[f"{name}: {label}"] = time.process_time() - start
    result = {
        "game": "commons",
        "runs": runs,
        "clock": "process_time",
        "seconds": seconds,
        "python": platform.python_version(),
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    for what, took in seconds.items():
        print(f"{what}: {runs:,} runs in {took:.1f} s")


def rules_alone(agents: list[str], runs: int) -> None:
    parameters = parameters_of({"agents": agents})
    for seed in range(runs):
        play(parameters, seat(parameters, seed), seed)


def to_files(agents: list[str], runs: int, twins: list[str] | None = None) -> None:
    shard = Shard(
        "benchmark", "one", "all", "commons", {"agents": agents, "twins": twins or []}, (), 30, tuple(range(runs))
    )
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), records.GAME_TABLES["commons"], runner.play(shard), Progress("benchmark", runs))


def with_twins(agents: list[str], runs: int) -> None:
    to_files(agents, runs, TWINS)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
