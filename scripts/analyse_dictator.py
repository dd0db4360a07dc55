"""Compute all tables of one tournament: analyse_dictator.py --decisions FILE --settings JSON TABLE=FILE..."""

import argparse
import json
from pathlib import Path

from fishpool.analysis.dictator import Settings, dictator_tables, read_pools
from fishpool.database import read, write
from fishpool.files import run
from fishpool.inputs import add_tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", required=True, type=Path, help="the table dictator_decisions, as Parquet")
    parser.add_argument("--settings", required=True, type=json.loads, help="what the analysis varies, as JSON")
    add_tables(parser)
    arguments = parser.parse_args()
    settings = Settings.from_config(arguments.settings)
    tables = dictator_tables(read_pools(read([arguments.decisions]), settings))
    for table, file in arguments.tables:
        write(tables[table], file)


if __name__ == "__main__":
    run(main)
