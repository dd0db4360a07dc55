"""Convert records of a condition to Parquet: tabulate.py --game GAME (--table TABLE --output FILE)... SHA256SUMS...

Each SHA256SUMS stands for the shard in whose folder it lies.
"""

import argparse
import sys
from pathlib import Path

from fishpool.screen import visible
from fishpool.tabulate import FaultyRecords, tabulate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", required=True)
    parser.add_argument("--table", action="append", required=True)
    parser.add_argument("--output", action="append", required=True, type=Path, help="where each --table goes")
    parser.add_argument("sums", nargs="+", type=Path, metavar="SHA256SUMS")
    arguments = parser.parse_args()
    try:
        shards = [sums.parent for sums in arguments.sums]
        for table, output in zip(arguments.table, arguments.output, strict=True):
            tabulate(arguments.game, table, shards, output)
    except FaultyRecords as fault:
        sys.exit(visible(str(fault)))


if __name__ == "__main__":
    main()
