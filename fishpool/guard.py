"""Checks the config files of a `snakemake` command before Snakemake reads them; each profile of the workflow starts it.

It is not the check of what a config says, which the workflow makes itself. Snakemake would run Python that a config
file holds under `__use_yte__: true`, and shows a traceback for many a file that it cannot read, both too early.
Exit codes: 0, or 2 after one sentence a fault on standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fishpool import study


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[], type=Path)
    parser.add_argument("--config", "-C", nargs="*")  # so that an abbreviation means here what it means to Snakemake
    given, _ = parser.parse_known_args(arguments)
    try:
        study.read_files(given.configfile)
    except study.ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
