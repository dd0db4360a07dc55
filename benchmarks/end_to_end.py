"""How fast a study is made: play, JSONL, Parquet and metrics, against Axelrod-Python's tournament, CSV and result set.

Same pairs, rounds, noise and repetitions for both. It is no even match: ours writes every turn as a record of its own,
with checksums, and bootstraps its intervals; the library writes a line a match side, and no interval. So the bytes of
ours, written to the disk and read once by a program that does nothing else, are timed too: no program that keeps every
turn could be faster. The seconds of each step of ours are in the JSON.

    python benchmarks/end_to_end.py [passes] [repetitions]
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from statistics import median

from measure import RESULTS, compare, in_turn, report  # first, for it says how many threads libraries may use

# isort: split
import axelrod
from play import NAMESAKES, NOISE, ROUNDS

from fishpool import shards
from fishpool.database import query_in_turn
from fishpool.players.scripted import STRATEGIES
from fishpool.records import GAME_TABLES
from fishpool.runners import prisoners_dilemma
from fishpool.shards import Player, Shard
from fishpool.tabulate import tabulate

SQL = Path(__file__).parents[1] / "workflow" / "sql" / "prisoners_dilemma"
BYTES = "our bytes alone"
METRICS = ("pd_individual", "pd_matchups", "pd_profiles", "pd_rounds")


def main(passes: int, repetitions: int) -> None:
    matches = repetitions * len(list(combinations_with_replacement(STRATEGIES, 2)))
    steps: dict[str, list[float]] = {}
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        rates = in_turn(
            {
                "ours": lambda: by_fishpool(Path(folder), repetitions, steps) or matches,
                "Axelrod's tournament": lambda: by_axelrod(Path(folder), repetitions) or matches,
                BYTES: lambda: copy_records(Path(folder)) or matches,
            },
            passes,
        )
    comparison = compare(rates, "prisoner's dilemma: play, write, tables", "matches", "Axelrod's tournament", 100)
    details = {
        "matches": matches,
        "rounds": ROUNDS,
        "noise": NOISE,
        "rates": rates,
        "seconds_of_steps": {step: median(seconds) for step, seconds in steps.items()},
    }
    report("end_to_end", [comparison], details, ["axelrod", "polars", "duckdb"])
    limit = median(rates[BYTES])
    print(f"  {BYTES:20} {limit:14,.0f} matches/s, {limit / comparison.alternative_rate:,.0f} times the tournament")
    for step, seconds in details["seconds_of_steps"].items():
        print(f"    {step:20} {seconds:8.2f} s")


def by_fishpool(folder: Path, repetitions: int, steps: dict[str, list[float]]) -> None:
    last = time.process_time()

    def done(step: str) -> None:
        nonlocal last
        now = time.process_time()
        steps.setdefault(step, []).append(now - last)
        last = now

    write_shard(folder, range(repetitions))
    done("play and write")
    tables = {table: [folder / f"{table}.parquet"] for table in GAME_TABLES["prisoners_dilemma"]}
    for table, [file] in tables.items():
        tabulate("prisoners_dilemma", table, [folder], file)
    done("tabulate")
    for metric in METRICS:
        file = folder / f"{metric}.parquet"
        query_in_turn({SQL / f"{metric}.sql": file}, tables)
        tables[metric] = [file]
        done(metric)


def copy_records(folder: Path) -> None:
    """Write bytes like the shard's, flushed to the disk as its own are, and read them."""
    copy = folder / "copy"
    for file in sorted(folder.glob("*.jsonl")):
        piece = file.read_bytes()
        with copy.open("wb") as out:
            out.write(piece)
            out.flush()
            os.fsync(out.fileno())


def a_shard(seeds: Sequence[int]) -> Shard:
    return Shard(
        study="bench",
        condition="noisy",
        name="seeds-0",
        game="prisoners_dilemma",
        parameters={"rounds": ROUNDS, "noise": NOISE, "lane": "standard", "agent_ids": ["agent_1", "agent_2"]},
        players=tuple(Player(name, "scripted", {"strategy": name}) for name in STRATEGIES),
        turn_timeout=5.0,
        seeds=tuple(seeds),
    )


def write_shard(folder: Path, seeds: Sequence[int]) -> Path:
    shard = a_shard(seeds)
    shards.write(folder, shard.tables, prisoners_dilemma.play(shard))
    return folder


def by_axelrod(folder: Path, repetitions: int) -> None:
    players = [getattr(axelrod, NAMESAKES.get(name, name))() for name in STRATEGIES]
    tournament = axelrod.Tournament(players, turns=ROUNDS, repetitions=repetitions, noise=NOISE, seed=1)
    results = tournament.play(filename=str(folder / "axelrod.csv"), progress_bar=False)
    results.summarise()


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*given, *(5, 50)[len(given) :])
