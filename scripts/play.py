"""Play one shard and write its records as JSONL: play.py --shard JSON --directory DIR.

The environment variable FISHPOOL_SITE holds the fields of `shards.Site` as JSON: where models are asked. Exit code 1
with one sentence where no game can be played, such as a model's server that is not there.
"""

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path

from fishpool import shards
from fishpool.files import run
from fishpool.models.faults import Stop
from fishpool.screen import visible


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shard", required=True, type=shards.Shard.from_json, help="the shard as JSON")
    parser.add_argument("--directory", required=True, type=Path, help="where the JSONL files go")
    arguments = parser.parse_args()
    shard = arguments.shard
    site = shards.Site(**json.loads(os.environ.get("FISHPOOL_SITE", "{}")))
    runner = import_module(f"fishpool.runners.{shard.game}")
    progress = shards.Progress(f"{shard.study}/{shard.condition}/{shard.name}", runner.number_of_runs(shard))
    try:
        shards.write(arguments.directory, shard.tables, runner.play(shard, site), progress)
    except Stop as stop:
        sys.exit(visible(f"{shard.study}/{shard.condition}/{shard.name}: {stop}"))


if __name__ == "__main__":
    run(main)
