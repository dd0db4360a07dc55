"""Play one shard and write its records as JSONL: play.py --shard JSON --directory DIR."""

import argparse
from importlib import import_module
from pathlib import Path

from fishpool import records, shards


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shard", required=True, type=shards.Shard.from_json, help="the shard as JSON")
    parser.add_argument("--directory", required=True, type=Path, help="where the JSONL files go")
    arguments = parser.parse_args()
    shard = arguments.shard
    runner = import_module(f"fishpool.runners.{shard.game}")
    progress = shards.Progress(f"{shard.study}/{shard.condition}/{shard.name}", runner.number_of_runs(shard))
    shards.write(arguments.directory, records.GAME_TABLES[shard.game], runner.play(shard), progress)


if __name__ == "__main__":
    main()
