"""Collect all tables into the database: collect.py --output FILE --comments FILE [--sql FILE]... TABLE=FILE..."""

import argparse
from pathlib import Path

import yaml

from fishpool.database import build, header
from fishpool.files import run
from fishpool.inputs import add_tables, grouped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--comments", required=True, type=Path, help="YAML: comments of tables without SQL")
    parser.add_argument(
        "--sql", action="append", default=[], type=Path, help="a metric's SQL; its header is the comment"
    )
    parser.add_argument("--threads", type=int, default=1)
    add_tables(parser)
    arguments = parser.parse_args()
    comments = yaml.safe_load(arguments.comments.read_text(encoding="utf-8"))
    comments |= {file.stem: header(file.read_text(encoding="utf-8")) for file in arguments.sql}
    build(grouped(arguments.tables), comments, arguments.output, arguments.threads)


if __name__ == "__main__":
    run(main)
