"""Compute metric tables in SQL, one after the other: query.py (--sql FILE --output FILE)... TABLE=FILE...

A metric may read the given tables and the metrics before it, each under the name of its SQL file.
"""

import argparse
from pathlib import Path

from fishpool.database import query_in_turn
from fishpool.files import run
from fishpool.inputs import add_tables, grouped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sql", action="append", required=True, type=Path)
    parser.add_argument("--output", action="append", required=True, type=Path, help="where the rows of each --sql go")
    parser.add_argument("--threads", type=int, default=1)
    add_tables(parser)
    arguments = parser.parse_args()
    metrics = dict(zip(arguments.sql, arguments.output, strict=True))
    query_in_turn(metrics, grouped(arguments.tables), arguments.threads)


if __name__ == "__main__":
    run(main)
