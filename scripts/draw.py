"""Draw a research question's figure: draw.py --figures FILE.svg FILE.png .. --question Q TABLE=FILE..

The files differ in their endings alone, which are svg, png, html (offline), json (Vega-Lite) and pdf.
"""

import argparse
from importlib import import_module
from pathlib import Path

from fishpool.database import read
from fishpool.figures.files import save
from fishpool.files import run
from fishpool.inputs import add_tables, grouped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", required=True, nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--question", required=True)
    add_tables(parser)
    arguments = parser.parse_args()
    tables = {table: read(files) for table, files in grouped(arguments.tables).items()}
    chart = import_module(f"fishpool.figures.{arguments.question}").chart(**tables)
    save(chart, arguments.figures[0].with_suffix(""), [file.suffix.lstrip(".") for file in arguments.figures])


if __name__ == "__main__":
    run(main)
