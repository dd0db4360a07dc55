# The config, validated before any job starts, and the paths and source dependencies that all rules share.

import ast
import functools
import json
import os
import re
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from snakemake.exceptions import WorkflowError

# Relative to the working directory, so that a checkout can be moved without anything being made again.
ROOT = Path(os.path.relpath(Path(workflow.basedir).parent))
sys.path.insert(0, str(ROOT.resolve()))
from fishpool import records, study
from fishpool.remarks import failures, remarks


configfile: str(ROOT / "config" / "config.yaml")


try:
    CONFIG = study.load(config, files=[Path(file) for file in workflow.configfiles])
except study.ConfigError as error:
    sys.exit("\n".join(error.faults))  # a WorkflowError would wrap the sentences in places of this file

RESULTS = CONFIG.results
LOGS = f"{RESULTS}/logs"
# Jobs run the Python that runs Snakemake, on the sources of this checkout: those that `code` lists as their inputs. Where
# models are asked is known to every job by its environment, and so is no reason to play anything again.
SITE = json.dumps(asdict(CONFIG.site), sort_keys=True)
PROGRAMS, SOURCES = str(Path(sys.executable).parent), str(ROOT.resolve())
for folder in (PROGRAMS, SOURCES):
    # A colon parts the folders of PATH and PYTHONPATH: jobs would run some other fishpool. Snakemake fills in braces.
    if found := re.search("[:{}]", folder):
        sys.exit(f"{folder}: a path with {found[0]} in it cannot be used; move the checkout and its environment")
shell.prefix(
    "set -euo pipefail; "
    f"export PATH={shlex.quote(PROGRAMS)}:$PATH PYTHONPATH={shlex.quote(SOURCES)}"
    " POLARS_MAX_THREADS=2 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1"
    " FISHPOOL_SITE={SITE:q}; "
)
STUDIES = {one.name: one for one in CONFIG.studies}
CONDITIONS = {(one.name, condition.name): condition for one in CONFIG.studies for condition in one.conditions}
# condition -> its shards by name
SHARDS = {
    (one.name, condition.name): {shard.name: shard for shard in one.shards(condition)}
    for one in CONFIG.studies
    for condition in one.conditions
}
GAMES = sorted({one.game for one in CONFIG.studies})


def one_of(names):
    """A wildcard constraint that admits just these names (nothing, if there are none)."""
    return "|".join(map(re.escape, names)) or "(?!)"


def places(keys):
    """A wildcard constraint that admits just these STUDY/CONDITION.

    A study that is there as a whole is one alternative: every file of a run is held against all of them.
    """
    keys = set(keys)
    whole = [
        name for name, one in STUDIES.items() if all((name, condition.name) in keys for condition in one.conditions)
    ]
    single = sorted(f"{study}/{condition}" for study, condition in keys if study not in whole)
    return f"(?:{one_of(whole)})/[^/]+|{one_of(single)}"


# Conditions and shards are too many to be listed in the pattern of every file; `shards_of` knows them.
wildcard_constraints:
    study=one_of(STUDIES),
    condition="[^/]+",
    shard="[^/]+",


def source(path):
    """A file of this checkout, as a job's input."""
    return str(ROOT / path)


@functools.cache
def code(script, *modules):
    """The source files that a job depends on: a program in scripts/ and all of fishpool that it imports.

    Imports are followed in the source text, also those inside functions, but not those that only type checkers see.
    `modules` are those that the program imports by a name it gets as an argument.
    """
    if "import_module" in Path(source(script)).read_text(encoding="utf-8") and not modules:
        raise WorkflowError(f"{script} imports by name: its rule must say which modules, code({script!r}, ...)")
    found, waiting = [], [script, *modules]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.append(path)
            waiting += imported(path)
    return [source(path) for path in sorted(found)]


@functools.cache
def imported(path):
    """The files of fishpool that one source file imports; raises on an import that cannot be followed."""
    tree = ast.parse(Path(source(path)).read_text(encoding="utf-8"), path)
    unseen = {
        node
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for statement in branch.body
        for node in ast.walk(statement)
    }
    names = set()
    for node in ast.walk(tree):
        if node in unseen:
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            raise WorkflowError(f"{path} line {node.lineno}: relative imports are not followed; import from fishpool")
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "fishpool":
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.split(".")[0] == "fishpool"}
    packages = {".".join(name.split(".")[: n + 1]) for name in names for n in range(len(name.split(".")))}
    paths = [Path(*name.split(".")) for name in packages]
    files = {str(file) for path in paths for file in (path.with_suffix(".py"), path / "__init__.py")}
    return [file for file in files if Path(source(file)).is_file()]


def shard_file(study, condition, shard, name):
    return f"{RESULTS}/jsonl/{study}/{condition}/{shard}/{name}"


def shards_of(study, condition):
    """The shards of a condition by name."""
    if (study, condition) not in SHARDS:
        raise WorkflowError(f"{study} has no condition {condition}; fishpool check lists what the config names")
    return SHARDS[study, condition]


def shard_of(place, name):
    """The shard that is played at STUDY/CONDITION under this name."""
    shards = shards_of(*place.split("/"))
    if name not in shards:
        raise WorkflowError(f"{place} has no shard {name}; its shards are {', '.join(shards)}")
    return shards[name]


def shard_files(study, condition, name):
    """The file of this name in every shard of a condition."""
    return [shard_file(study, condition, shard, name) for shard in shards_of(study, condition)]


# Tables of the games whose metrics in Python share what is costly: one job a condition computes them (rules/GAME.smk).
ANALYSED = {
    "dictator": [
        "dictator_payoffs",
        "dictator_scores",
        "dictator_pool",
        "dictator_dominance",
        "dictator_equilibria",
        "dictator_trajectories",
        "dictator_basins",
        "dictator_boundary",
        "dictator_sensitivity",
        "dictator_type_masses",
        "dictator_bloc",
        "dictator_flips",
        "dictator_draws",
        "dictator_robustness",
        "dictator_agreement",
    ],
}

# Metrics in SQL of the games whose studies have many small conditions: one job a condition computes them all, in this
# order, each from the record tables and those before it; another one tabulates all its records (rules/chains.smk).
CHAINS = {
    "commons": [
        "validity",
        "commons_agent_rounds",
        "commons_rounds",
        "commons_lies",
        "commons_individual",
        "commons_deviations",
        "commons_deviation_classes",
        "commons_deviation_points",
        "commons_societal",
        "commons_conditions",
        "commons_observations",
        "commons_estimates",
        "commons_survival",
        "commons_lies_rounds",
    ],
}


def sql_file(metric):
    chained = [game for game, metrics in CHAINS.items() if metric in metrics and metric not in QUERIED]
    game = chained[0] if chained else QUERIED[metric][-1]
    return source(f"workflow/sql/{game}/{metric}.sql" if game else f"workflow/sql/{metric}.sql")


def tables_of(game):
    """All tables that a game's studies have: its record tables, and the metrics of rules/metrics.smk."""
    metrics = {**QUERIED, **SOLVED}
    own = [metric for metric, entry in metrics.items() if entry[-1] in (game, None)]
    return list(dict.fromkeys([*records.GAME_TABLES[game], *own, *CHAINS.get(game, ()), *ANALYSED.get(game, ())]))


def table_file(table, study, condition):
    return f"{RESULTS}/parquet/{table}/{study}/{condition}.parquet"


def conditions_of(game):
    """(study, condition) of all selected studies of a game; of all games where it is None."""
    return [key for key, condition in CONDITIONS.items() if game in (condition.game, None)]


def tables_at(key):
    """All tables that a condition has."""
    condition = CONDITIONS[key]
    return list(dict.fromkeys([*tables_of(condition.game), *condition.tables]))


def table_files(tables, game=None):
    """The Parquet files of these tables, over all selected conditions of the games that have them."""
    return [table_file(table, *key) for table in tables for key in conditions_of(game) if table in tables_at(key)]


def table_arguments(tables, game=None):
    """The same as command-line arguments, TABLE=FILE."""
    return [f"{table}={file}" for table in tables for file in table_files([table], game)]


def condition_arguments(tables):
    """The same for the one condition of a job."""
    return lambda wildcards: [f"{table}={table_file(table, wildcards.study, wildcards.condition)}" for table in tables]


def oracles_from(study, condition):
    """The decisions of one oracle of a study, then those of the oracles after it: so each pair is compared once."""
    names = [one.name for one in STUDIES[study].conditions]
    return [table_file("dictator_decisions", study, name) for name in names[names.index(condition) :]]
