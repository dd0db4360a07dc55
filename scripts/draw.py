"""Draw a research question's figure as SVG, PNG and offline HTML: draw.py --question Q --directory DIR TABLE=FILE..."""

import argparse
from importlib import import_module
from pathlib import Path

from fishpool.database import read
from fishpool.figures.files import save
from fishpool.inputs import add_tables, grouped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--question", required=True)
    parser.add_argument("--directory", required=True, type=Path)
    add_tables(parser)
    arguments = parser.parse_args()
    tables = {table: read(files) for table, files in grouped(arguments.tables).items()}
    chart = import_module(f"fishpool.figures.{arguments.question}").chart(**tables)
    save(chart, arguments.directory / arguments.question)


if __name__ == "__main__":
    main()
