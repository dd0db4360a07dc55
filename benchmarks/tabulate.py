"""How fast records become Parquet and metrics: ours against DuckDB's read_json and COPY, which check nothing.

Ours reads each file twice, for the checksum and for the rows, under the strict schema; DuckDB gets the same columns,
row groups and compression, as the bare limit. The peak memory is that of the workflow's own program. It refuses to
time two conversions that do not give the same table.

    python benchmarks/tabulate.py [passes] [shards of 506,000 turns]
"""

import sys
import tempfile
import time
from pathlib import Path

from measure import (
    RESULTS,
    compare,
    in_turn,
    peak_and_seconds,
    report,
)  # first, for it says how many threads libraries may use

# isort: split
import duckdb
import polars as pl
from end_to_end import METRICS, SQL, write_shard

from fishpool import records, shards
from fishpool.database import query_in_turn
from fishpool.tabulate import tabulate

SEEDS_OF_A_SHARD = 50
TYPES = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}


def main(passes: int, number: int) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RESULTS) as name:
        folder = Path(name)
        blocks = [range(i, i + SEEDS_OF_A_SHARD) for i in range(0, number * SEEDS_OF_A_SHARD, SEEDS_OF_A_SHARD)]
        folders = [write_shard(folder / str(i), block) for i, block in enumerate(blocks)]
        ours, theirs = folder / "turns.parquet", folder / "duckdb.parquet"
        tabulate("prisoners_dilemma", "turns", folders, ours)
        by_duckdb(folders, theirs)
        if not pl.read_parquet(ours).equals(pl.read_parquet(theirs)):
            sys.exit("benchmarks/tabulate.py: the two tables differ, so their times say nothing")
        rows = pl.scan_parquet(ours).select(pl.len()).collect().item()
        rates = in_turn(
            {
                "ours": lambda: tabulate("prisoners_dilemma", "turns", folders, ours) or rows,
                "DuckDB": lambda: by_duckdb(folders, theirs) or rows,
            },
            passes,
        )
        sums = [str(shard / shards.CHECKSUMS) for shard in folders]
        peak, _ = peak_and_seconds(
            "scripts/tabulate.py", "--game=prisoners_dilemma", "--table=turns", f"--output={ours}", *sums
        )
        print(f"{rows:,} turns; peak of scripts/tabulate.py {peak:,.0f} MiB", flush=True)
        tabulate("prisoners_dilemma", "runs", folders, folder / "runs.parquet")
        metrics = metric_seconds(folder)
    comparison = compare(rates, "JSONL to Parquet, strict schema", "rows", "DuckDB", 0.8)
    details = {"rows": rows, "peak_mib": peak, "metric_seconds": metrics, "rates": rates}
    report("tabulate", [comparison], details, ["polars", "duckdb"])


def by_duckdb(folders: list[Path], output: Path) -> None:
    columns = {column.name: TYPES[column.type] for column in records.columns("prisoners_dilemma", "turns")}
    with duckdb.connect(config={"threads": 1}) as connection:
        files = [str(shard / "turns.jsonl") for shard in folders]
        rows = connection.read_json(files, columns=columns, format="newline_delimited")
        rows.write_parquet(str(output), compression="zstd", row_group_size=100_000)


def metric_seconds(folder: Path) -> dict[str, float]:
    seconds = {}
    tables = {table: [folder / f"{table}.parquet"] for table in ("runs", "turns")}
    for metric in METRICS:
        start, output = time.process_time(), folder / f"{metric}.parquet"
        query_in_turn({SQL / f"{metric}.sql": output}, tables)
        tables[metric] = [output]
        seconds[metric] = time.process_time() - start
        print(f"    {metric:20} {seconds[metric]:8.2f} s", flush=True)
    return seconds


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*given, *(3, 10)[len(given) :])
