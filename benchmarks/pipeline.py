"""What the workflow costs beside its work: the default reproduction against its commands in one process; many shards.

The bare run is the very commands that the workflow prints, in its order, each program's `main` called in one process
that imports everything once: one interpreter start instead of hundreds, no Snakemake. The workflow runs on as many
cores as asked for, the bare run on one, so there are two ratios: of the clock on the wall, which is what one waits, and
of processor time, which is what the workflow adds and does not depend on who else uses the machine. Shards: the time to
build the DAG when nothing is there, and to see that nothing is to be done when all is; the files are empty and marked
as made (`--touch`), for it is Snakemake that is timed.

    python benchmarks/pipeline.py [cores] [shards ...]
"""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from importlib import metadata, util
from pathlib import Path

import yaml
from measure import RESULTS, Comparison

from fishpool import study

ROOT = Path(__file__).resolve().parents[1]
RESULT = RESULTS / "pipeline.json"
SHARDS = (10, 1000, 10_000)
TARGET = 1.5
# as the workflow's jobs have them
THREADS = {"POLARS_MAX_THREADS": "2", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def main(cores: int, shards: tuple[int, ...]) -> None:
    result = {
        "cores": cores,
        "versions": {"python": platform.python_version(), "snakemake": metadata.version("snakemake")},
        "default": against_bare(cores) if cores else {},
        "shards": {},
    }
    if cores:
        rates = (1 / result["default"][run]["wall"] for run in ("workflow", "bare"))
        what, alternative = f"the default reproduction on {cores} cores, wall", "its commands in one process"
        one = Comparison(what, "reproductions", alternative, *rates, aim=1 / TARGET)
        result["comparisons"] = [{**vars(one), "ratio": one.ratio}]
    for count in shards:
        result["shards"][count] = over_shards(count)
        said = ", ".join(f"{name} {taken['processor']:.1f} s" for name, taken in result["shards"][count].items())
        print(f"{count:,} shards, processor time: {said}", flush=True)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")


# ── The default reproduction ─────────────────────────────────────────────────────────────────────────────────────


def against_bare(cores):
    with tempfile.TemporaryDirectory(dir=RESULT.parent) as folder:
        bare, workflow, commands = Path(folder, "bare"), Path(folder, "workflow"), Path(folder, "commands.json")
        printed = snakemake(bare, "--dry-run", "--printshellcmds", keep=True)
        commands.write_text(json.dumps([arguments for line in printed.splitlines() for arguments in parsed(line)]))
        site = json.dumps(asdict(study.load_files([]).site))
        alone = timed(
            [sys.executable, str(Path(__file__).resolve()), "--bare", str(commands.resolve())], bare, FISHPOOL_SITE=site
        )
        whole = timed(command(workflow, "--cores", str(cores), "--quiet", "all"))
        same = listing(bare) == listing(workflow)
        parts = json.loads(Path(folder, "parts.json").read_text())
        jobs = len(json.loads(commands.read_text()))
    if not same:
        sys.exit("benchmarks/pipeline.py: the bare run made other files than the workflow, so their times say nothing")
    ratio = {clock: whole[clock] / alone[clock] for clock in ("wall", "processor")}
    print(
        f"default reproduction, {jobs} jobs: workflow {whole['wall']:.0f} s on {cores} cores"
        f" ({whole['processor']:.0f} s of processor), bare {alone['wall']:.0f} s ({alone['processor']:.0f} s);"
        f" ratio {ratio['wall']:.2f} on the wall, {ratio['processor']:.2f} of processor time (aim: at most {TARGET})"
    )
    for part, seconds in parts.items():
        print(f"    {part:20} {seconds:7.1f} s of processor, bare")
    return {"jobs": jobs, "workflow": whole, "bare": alone, "ratio": ratio, "parts": parts}


def parsed(line):
    """The arguments of a printed shell command, as the shell sees them."""
    marker, _, text = line.partition("Shell command: python ")
    if marker or not text:
        return
    done = subprocess.run(
        ["bash", "-c", r"printf '%s\0' " + text.rpartition(" 2>&1 | tee ")[0]], capture_output=True, check=True
    )
    yield done.stdout.decode().split("\0")[:-1]


def run_bare(commands):
    """In a process of its own: every command in turn, and the processor seconds of each program."""
    parts = {}
    programs = {}
    for name, *arguments in json.loads(commands.read_text()):
        start = time.process_time()
        path = Path(name).resolve()
        if path not in programs:
            spec = util.spec_from_file_location(path.stem, path)
            programs[path] = util.module_from_spec(spec)
            spec.loader.exec_module(programs[path])
        sys.argv = [name, *arguments]
        programs[path].main()
        parts[path.stem] = parts.get(path.stem, 0.0) + time.process_time() - start
    (commands.parent / "parts.json").write_text(json.dumps(parts))


def listing(folder):
    files = (folder / "results").rglob("*")
    return sorted(file.relative_to(folder) for file in files if file.is_file() and "logs" not in file.parts)


# ── Many shards ──────────────────────────────────────────────────────────────────────────────────────────────────


def over_shards(count):
    """Seconds to build the DAG of one condition of so many shards, and to find that nothing is to be done."""
    study = {"game": "prisoners_dilemma", "seeds": count, "seeds_per_job": 1, "players": ["TitForTat", "Defector"]}
    with tempfile.TemporaryDirectory(dir=RESULT.parent) as name:
        folder = Path(name)
        config = folder / "many.yaml"
        config.write_text(yaml.safe_dump({"only": "many", "studies": {"many": {**study, "conditions": {"plain": {}}}}}))
        given = ("--configfile", str(config.resolve()))
        building = timed(command(folder, "--dry-run", "--quiet", "all", *given))
        for line in snakemake(folder, "--summary", *given, keep=True).splitlines():
            file = folder / line.split("\t")[0]
            if file.suffix and "\t" in line:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
        snakemake(folder, "--touch", "--cores", "1", "--quiet", "all", *given)
        said = snakemake(folder, "--dry-run", *given, keep=True)
        if "Nothing to be done" not in said:
            sys.exit(f"benchmarks/pipeline.py: something is left to be done with {count} shards:\n{said[-2000:]}")
        return {"building": building, "nothing to do": timed(command(folder, "--dry-run", "--quiet", "all", *given))}


# ── Snakemake ────────────────────────────────────────────────────────────────────────────────────────────────────


def command(folder, *options):
    folder.mkdir(parents=True, exist_ok=True)
    snakefile = str(ROOT / "workflow" / "Snakefile")
    return [sys.executable, "-m", "snakemake", "--snakefile", snakefile, "--directory", str(folder.resolve()), *options]


def snakemake(folder, *options, keep=False):
    pipe = subprocess.PIPE if keep else subprocess.DEVNULL
    done = subprocess.run(command(folder, *options), stdout=pipe, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"benchmarks/pipeline.py: snakemake {' '.join(options)} failed\n{done.stdout or ''}")
    return done.stdout


def timed(arguments, folder=None, **variables):
    """Seconds on the wall and of the processor, children included."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | THREADS | variables
    with tempfile.TemporaryFile() as said:
        code = subprocess.run(arguments, cwd=folder, env=environment, stdout=said, stderr=said, check=False).returncode
        if code:
            said.seek(0)
            sys.exit(f"benchmarks/pipeline.py: {arguments[1]} failed\n{said.read().decode()[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": time.perf_counter() - start, "processor": processor}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        run_bare(Path(sys.argv[2]))
    else:
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        numbers = [int(text) for text in sys.argv[1:]]
        main(numbers[0] if numbers else 2, tuple(numbers[1:]) or SHARDS)
