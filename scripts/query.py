"""Compute one metric table in SQL: query.py --sql FILE --output FILE TABLE=FILE..."""

import argparse
from pathlib import Path

from fishpool.database import query
from fishpool.inputs import add_tables, grouped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sql", required=True, type=Path)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--threads", type=int, default=1)
    add_tables(parser)
    arguments = parser.parse_args()
    query(arguments.sql.read_text(encoding="utf-8"), grouped(arguments.tables), arguments.output, arguments.threads)


if __name__ == "__main__":
    main()
