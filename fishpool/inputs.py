"""How the programs in `scripts/` name their input tables on the command line: TABLE=FILE, repeated for more files."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path


def add_tables(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tables", nargs="+", type=_table, metavar="TABLE=FILE", help="an input table's Parquet file")


def grouped(tables: Iterable[tuple[str, Path]]) -> dict[str, list[Path]]:
    """Files by table, both in the order in which they were given."""
    files: dict[str, list[Path]] = {}
    for table, file in tables:
        files.setdefault(table, []).append(file)
    return files


def _table(text: str) -> tuple[str, Path]:
    table, _, file = text.partition("=")
    if not file:
        raise argparse.ArgumentTypeError(f"{text!r} is not TABLE=FILE")
    return table, Path(file)
