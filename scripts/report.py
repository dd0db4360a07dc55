"""Write the report: report.py --database FILE --figures DIR --questions JSON --runs JSON --notes JSON --output FILE.

Exit code 1 with one sentence where more runs are asked for than a page can hold, or one that was not played.
"""

import argparse
import json
import sys
from pathlib import Path

from fishpool.files import run
from fishpool.report.page import build
from fishpool.report.sample import FaultyChoice
from fishpool.screen import visible


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", required=True, type=Path)
    parser.add_argument("--figures", required=True, type=Path, help="the folder of the figures")
    parser.add_argument("--questions", required=True, type=json.loads, help="by question: conditions by study")
    parser.add_argument("--runs", default="sample", type=json.loads, help='"sample", "all" or a list of run ids')
    parser.add_argument("--notes", default={}, type=json.loads, help="by study: what a reader should know of it")
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    try:
        build(
            arguments.database,
            arguments.figures,
            arguments.questions,
            arguments.output,
            arguments.runs,
            arguments.notes,
        )
    except FaultyChoice as fault:
        sys.exit(visible(str(fault)))


if __name__ == "__main__":
    run(main)
