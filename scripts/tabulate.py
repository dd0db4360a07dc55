"""Convert one condition's JSONL to Parquet: tabulate.py --game GAME --table TABLE --output FILE SHARD_DIRECTORY..."""

import argparse
import sys
from pathlib import Path

from fishpool.tabulate import FaultyRecords, tabulate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("shards", nargs="+", type=Path, metavar="SHARD_DIRECTORY")
    arguments = parser.parse_args()
    try:
        tabulate(arguments.game, arguments.table, arguments.shards, arguments.output)
    except FaultyRecords as fault:
        sys.exit(str(fault))


if __name__ == "__main__":
    main()
