"""Incremental reruns: an edit makes again what hangs on it and nothing else; what changes no content makes nothing.

A dry run says what would be made and why; for each kind of edit there is a real run as well.
"""

import ast
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from workflow_checkout import CONFIG, Checkout, contents, stamps

from fishpool import records

pytestmark = pytest.mark.workflow

COLLECT = "collect all tables into results/fishpool.duckdb"
REPORT = "write the report"


def of_condition(jobs, condition):
    return {job for job in jobs if f"tiny/{condition}" in job}


def kinds(jobs, *words):
    return {job for job in jobs if job.split()[0] in words}


def with_conditions(job):
    return {f"{job} of tiny/plain", f"{job} of tiny/noisy"}


def over_all(jobs):
    """Jobs over all conditions: the database, the figures and the report."""
    return kinds(jobs, "collect", "draw", "write")


def figures_of(table, checkout):
    """The jobs that draw a figure whose chart takes this table."""
    jobs = set()
    for file in checkout.root.glob("fishpool/figures/rq*.py"):
        for node in ast.parse(file.read_text()).body:
            is_chart = isinstance(node, ast.FunctionDef) and node.name == "chart"
            if is_chart and table in {argument.arg for argument in node.args.args}:
                jobs.add(f"draw {file.stem}")
    return jobs


def changed(before, after):
    """Files that were written, made or removed."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def test_a_further_seed_plays_its_shard_only(checkout, every_job):
    checkout.configure(lambda study: study.update(seeds=5))
    would = checkout.snakemake("-n").jobs
    assert kinds(would, "play") == {"play tiny/plain/seeds-4", "play tiny/noisy/seeds-4"}
    assert would - kinds(would, "play") == every_job - kinds(every_job, "play")
    before = stamps(checkout.results)
    outcome = checkout.snakemake("--until", "tabulate")
    assert outcome.code == 0, outcome.text
    assert outcome.jobs == kinds(would, "play", "tabulate")
    after = stamps(checkout.results)
    assert {name.rsplit("/", 1)[0] for name in changed(before, after)} == {
        "jsonl/tiny/plain/seeds-4",
        "jsonl/tiny/noisy/seeds-4",
        "parquet/runs/tiny",
        "parquet/turns/tiny",
    }
    runs = pl.read_parquet(checkout.results / "parquet/runs/tiny/noisy.parquet")
    assert runs["seed"].unique().sort().to_list() == [0, 1, 2, 3, 4]


def test_fewer_seeds_and_conditions_play_nothing_and_clean_removes_the_orphans(checkout, every_job):
    checkout.configure(lambda study: study.update(seeds=[1, 0]))
    would = checkout.snakemake("-n").jobs
    assert would == every_job - kinds(every_job, "play")
    checkout.configure(lambda study: study.update(seeds=4, conditions={"plain": {}}))
    assert checkout.snakemake("-n").jobs == over_all(every_job)

    checkout.configure(lambda study: study.update(seeds=2))
    cleaned = checkout.fishpool("clean", "--stale", "--configfile", CONFIG)
    assert cleaned.code == 0, cleaned.text
    left = {name for name in stamps(checkout.results) if name.startswith(("jsonl", "parquet"))}
    assert not [name for name in left if "noisy" in name or "seeds-2" in name]
    assert {"jsonl/tiny/plain/seeds-0/runs.jsonl", "parquet/runs/tiny/plain.parquet"} <= left
    outcome = checkout.snakemake("--until", "tabulate")
    assert outcome.code == 0, outcome.text
    assert outcome.jobs == {"tabulate runs of tiny/plain", "tabulate turns of tiny/plain"}
    runs = pl.read_parquet(checkout.results / "parquet/runs/tiny/plain.parquet")
    assert runs["seed"].unique().sort().to_list() == [0, 1]


def test_a_further_condition_plays_itself_only(checkout, every_job):
    checkout.configure(lambda study: study["conditions"].update(loud={"noise": 0.2}))
    would = checkout.snakemake("-n").jobs
    loud = {job.replace("tiny/plain", "tiny/loud") for job in of_condition(every_job, "plain")}
    assert would == loud | over_all(every_job)
    checkout.configure(lambda study: study["conditions"]["noisy"].update(noise=0.1))
    assert checkout.snakemake("-n").jobs == would | of_condition(every_job, "noisy")


def test_a_changed_metric_makes_itself_and_what_shows_it(checkout, every_job):
    sql = "workflow/sql/prisoners_dilemma/{}.sql"
    checkout.append(sql.format("pd_rounds"), "-- a remark\n")
    expected = with_conditions("query pd_rounds") | ({COLLECT, REPORT} | figures_of("pd_rounds", checkout)) & every_job
    assert checkout.snakemake("-n").jobs == expected

    text = (checkout.root / sql.format("pd_matchups")).read_text()
    (checkout.root / sql.format("pd_matchups")).write_text(f"SELECT *, 42 AS answer\nFROM (\n{text}\n)\nORDER BY ALL\n")
    expected |= with_conditions("query pd_matchups") | figures_of("pd_matchups", checkout) & every_job
    before = stamps(checkout.results)
    outcome = checkout.snakemake()
    assert outcome.code == 0, outcome.text
    assert outcome.jobs == expected
    written = changed(before, stamps(checkout.results))
    assert {name for name in written if name.startswith(("jsonl", "parquet"))} == {
        f"parquet/{table}/tiny/{condition}.parquet"
        for table in ("pd_rounds", "pd_matchups")
        for condition in ("plain", "noisy")
    }
    assert checkout.ask("SELECT DISTINCT answer FROM pd_matchups") == [(42,)]


def test_a_changed_figure_is_drawn_again_and_nothing_else(checkout, every_job):
    figures = sorted(job.split()[1] for job in kinds(every_job, "draw"))
    if not figures:
        pytest.skip("there are no figures yet")
    checkout.append(f"fishpool/figures/{figures[0]}.py", "\n# a remark\n")
    before = stamps(checkout.results)
    outcome = checkout.snakemake()
    assert outcome.code == 0, outcome.text
    assert outcome.jobs == {f"draw {figures[0]}", REPORT}
    after = stamps(checkout.results)
    endings = ("svg", "png", "html", "json")
    assert changed(before, after) == {"report.html", *(f"figures/{figures[0]}.{ending}" for ending in endings)}
    assert {name: bytes_ for name, (_, bytes_) in before.items()} == {
        name: bytes_ for name, (_, bytes_) in after.items()
    }


def test_changed_rules_play_the_game_again_with_the_code_of_this_checkout(checkout, every_job):
    checkout.replace(
        "fishpool/games/prisoners_dilemma.py",
        "(Choice.COOPERATE, Choice.COOPERATE): 3",
        "(Choice.COOPERATE, Choice.COOPERATE): 4",
    )
    assert checkout.snakemake("-n").jobs == every_job
    outcome = checkout.snakemake("--until", "tabulate")
    assert outcome.code == 0, outcome.text
    assert outcome.jobs == kinds(every_job, "play", "tabulate")
    payoffs = pl.read_parquet(checkout.results / "parquet/turns/tiny/plain.parquet")["payoff"]
    assert payoffs.unique().sort().to_list() == [0, 1, 4, 5]


def test_a_shard_depends_on_the_rules_of_its_own_game_only(finished):
    summary = finished.snakemake("--detailed-summary").text
    shards = [line for line in summary.splitlines() if line.startswith("results/jsonl/")]
    assert shards
    for line in shards:
        games = [game for game in records.GAME_TABLES if f"fishpool/games/{game}.py" in line]
        assert games == ["prisoners_dilemma"], line


def test_what_changes_no_content_makes_nothing(checkout, tmp_path):
    """Touched files, reverted edits, reordered keys, another place, remarks in modules that no job imports."""
    rules = checkout.root / "fishpool/games/prisoners_dilemma.py"
    text = rules.read_text()
    rules.write_text(text.replace("5", "6"))
    rules.write_text(text)
    for path in ("fishpool/study.py", "fishpool/cli.py", "fishpool/stale.py", "fishpool/ask.py", "fishpool/screen.py"):
        checkout.append(path, "\n# a remark\n")
    checkout.configure(_reverse_keys)
    for folder in ("fishpool", "scripts", "workflow", "config", "results"):
        for file in (checkout.root / folder).rglob("*"):
            if file.is_file():
                os.utime(file)
    before = stamps(checkout.results)
    moved = Checkout(Path(shutil.move(checkout.root, tmp_path / "it's elsewhere")))
    outcome = moved.snakemake("-n")
    assert outcome.had_nothing_to_do, outcome.text
    outcome = moved.snakemake()
    assert outcome.had_nothing_to_do, outcome.text
    assert stamps(moved.results) == before

    (moved.results / "parquet/pd_matchups/tiny/plain.parquet").unlink()
    outcome = moved.snakemake("--until", "query_pd_matchups")
    assert outcome.code == 0, outcome.text
    assert outcome.jobs == {"query pd_matchups of tiny/plain"}
    assert contents(moved.results).keys() == before.keys()


def _reverse_keys(study):
    items = list(study.items())
    study.clear()
    study.update(reversed(items))


def test_the_order_of_conditions_is_that_of_the_figures_only(checkout, every_job):
    checkout.configure(lambda study: study.update(conditions=dict(reversed(study["conditions"].items()))))
    assert checkout.snakemake("-n").jobs == kinds(every_job, "draw", "write")


def test_a_remark_in_the_figures_style_plays_nothing(checkout, every_job):
    style = "fishpool/figures/style.py"
    if not (checkout.root / style).exists():
        pytest.skip("there are no figures yet")
    checkout.append(style, "\n# a remark\n")
    assert checkout.snakemake("-n").jobs == kinds(every_job, "draw", "write")


def test_a_deleted_file_is_made_again_with_what_hangs_on_it(checkout, every_job, finished):
    figures = sorted(name for name in stamps(checkout.results) if name.startswith("figures/"))
    deleted = ["fishpool.duckdb", "parquet/pd_profiles/tiny/plain.parquet", *figures[:1]]
    expected = {
        COLLECT,
        REPORT,
        "query pd_profiles of tiny/plain",
        *({f"draw {Path(name).stem}" for name in figures[:1]}),
    }
    expected |= figures_of("pd_profiles", checkout) & every_job
    for name in deleted:
        (checkout.results / name).unlink()
    outcome = checkout.snakemake()
    assert outcome.code == 0, outcome.text
    assert outcome.jobs == expected
    assert contents(checkout.results) == contents(finished.results)

    (checkout.results / "jsonl/tiny/noisy/seeds-2/turns.jsonl").unlink()
    would = checkout.snakemake("-n").jobs
    assert kinds(would, "play") == {"play tiny/noisy/seeds-2"}
    assert not of_condition(would, "plain")
