"""Compute one table that SQL cannot: solve.py --function MODULE.FUNCTION --output FILE [--parameters J] TABLE=FILE...

The function, one of fishpool.analysis, gets the input tables as lazy frames in the order given, the parameters
(JSON) by name, and returns a frame.
"""

import argparse
import json
from importlib import import_module
from pathlib import Path

from fishpool.database import scan, write
from fishpool.files import run
from fishpool.inputs import add_tables, grouped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--function", required=True)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--parameters", default={}, type=json.loads)
    add_tables(parser)
    arguments = parser.parse_args()
    module, _, name = arguments.function.rpartition(".")
    solve = getattr(import_module(f"fishpool.analysis.{module}"), name)
    tables = {table: scan(files) for table, files in grouped(arguments.tables).items()}
    write(solve(*tables.values(), **arguments.parameters), arguments.output)


if __name__ == "__main__":
    run(main)
