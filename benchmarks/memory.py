"""How much memory each step takes, by number of games: peak resident of the workflow's own programs, run one by one.

Play, conversion and queries are bounded; `solve`, the strategy shares, holds a few bytes of every turn. It compares
nothing and has no alternative; the figure beside the JSON draws peaks against turns.

    python benchmarks/memory.py [numbers of shards...]
"""

import json
import sys
import tempfile
from pathlib import Path

from end_to_end import SQL, a_shard, write_shard
from measure import RESULTS, peak_and_seconds, report
from play import ROUNDS

from fishpool.figures import style
from fishpool.figures.files import save
from fishpool.runners.prisoners_dilemma import number_of_runs

SHARDS = (2, 8, 32)
SEEDS_OF_A_SHARD = 20
STRATEGY_SET = ["Cooperator", "Defector", "TitForTat", "Grudger", "WinStayLoseShift", "Alternator"]


def main(sizes: list[int]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = [row for number in sizes for row in steps(number)]
    report("memory", [], {"peaks": rows}, ["polars", "duckdb"])
    draw(rows)


def steps(number: int) -> list[dict[str, object]]:
    """Peaks for so many shards. To play, they are one shard, which must not cost more for being large."""
    with tempfile.TemporaryDirectory(dir=RESULTS) as name:
        folder = Path(name)
        blocks = [range(i, i + SEEDS_OF_A_SHARD) for i in range(0, number * SEEDS_OF_A_SHARD, SEEDS_OF_A_SHARD)]
        sums = [str(write_shard(folder / str(i), block) / "SHA256SUMS") for i, block in enumerate(blocks)]
        whole = a_shard(range(number * SEEDS_OF_A_SHARD))
        turns, runs, individual, shares = (
            folder / f"{table}.parquet" for table in ("turns", "runs", "pd_individual", "pd_strategy_shares")
        )
        both = ["--table=turns", f"--output={turns}", "--table=runs", f"--output={runs}"]
        metric = [f"--sql={SQL / 'pd_individual.sql'}", f"--output={individual}"]
        estimate = ["--function=strategy_frequencies.shares_of_players", f"--output={shares}"]
        strategies = f"--parameters={json.dumps({'strategy_set': STRATEGY_SET})}"
        commands = {
            "play": ["play.py", f"--shard={whole.to_json()}", f"--directory={folder / 'whole'}"],
            "tabulate": ["tabulate.py", "--game=prisoners_dilemma", *both, *sums],
            "query": ["query.py", *metric, f"turns={turns}", f"runs={runs}"],
            "solve": ["solve.py", *estimate, strategies, f"turns={turns}", f"pd_individual={individual}"],
        }
        found = []
        for step, (program, *arguments) in commands.items():
            peak, seconds = peak_and_seconds(f"scripts/{program}", *arguments)
            count = number_of_runs(whole) * 2 * ROUNDS
            found.append({"step": step, "turns": count, "peak_mib": peak, "seconds": seconds})
            print(f"  {count:12,} turns  {step:10} {peak:8,.0f} MiB {seconds:8.1f} s", flush=True)
        return found


def draw(rows: list[dict[str, object]]) -> None:
    import altair as alt
    import polars as pl

    chart = (
        alt.Chart(pl.DataFrame(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("turns:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")),
            y=alt.Y("peak_mib:Q", axis=alt.Axis(title="peak resident memory (MiB)")),
            color=alt.Color("step:N", title=None, sort=["play", "tabulate", "query", "solve"]),
        )
        .properties(width=320, height=200)
    )
    notes = ["Prisoner's dilemma, 22 players; a program of its own each, imports included. n = 1."]
    save(style.page(chart, "What a step keeps in memory", notes, "Peak memory by number of turns."), RESULTS / "memory")


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or list(SHARDS))
