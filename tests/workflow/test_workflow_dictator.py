"""A dictator study from its documents to its figures: what a run makes, an edit makes again, and a fault stops."""

import shutil
from dataclasses import dataclass

import pytest
from workflow_checkout import Checkout

pytestmark = pytest.mark.workflow

CONFIG = ("--configfile", "tests/config/dictator.yaml")
ONLY = ("only=pool",)
TABLES = (
    "decisions payoffs scores pool dominance equilibria trajectories basins boundary sensitivity type_masses bloc"
    " flips draws robustness agreement"
)


@dataclass(frozen=True)
class Pool(Checkout):
    """A checkout whose small study is the dictator game's."""

    def snakemake(self, *options, config=ONLY):
        return Checkout(self.root, self.environment).snakemake(*CONFIG, *options, config=config)


@pytest.fixture(scope="module")
def pool(sources, tmp_path_factory):
    checkout = Pool(shutil.copytree(sources, tmp_path_factory.mktemp("dictator") / "checkout"))
    outcome = checkout.snakemake()
    assert outcome.code == 0, outcome.text
    return checkout


@pytest.fixture
def copy(pool, tmp_path):
    return Pool(shutil.copytree(pool.root, tmp_path / "checkout"))


def test_a_run_makes_every_table_and_figure_and_a_second_one_nothing(pool):
    for oracle in ("published", "holed"):
        for table in TABLES.split():
            assert (pool.results / f"parquet/dictator_{table}/pool/{oracle}.parquet").is_file(), table
    for question in ("rq12", "rq13", "rq14"):
        for ending in ("svg", "png", "html", "json"):
            assert (pool.results / f"figures/{question}.{ending}").stat().st_size > 1000
    assert pool.snakemake("-n").had_nothing_to_do


def test_the_published_figures_come_out_of_the_database(pool):
    scores = "SELECT strategy, round(score, 3) FROM dictator_scores WHERE oracle = 'published' ORDER BY rank LIMIT 2"
    assert pool.ask(scores) == [("mirror", 59.055), ("cooperation-coalition", 59.005)]
    kinds = "SELECT kind, count(*) FROM dictator_dominance WHERE oracle = 'published' GROUP BY kind ORDER BY kind"
    assert pool.ask(kinds) == [("none", 3), ("weak", 6)]
    saddle = (
        "SELECT round(spectral_radius, 3), round(frequency, 3) FROM dictator_equilibria WHERE oracle = 'published'"
        " AND model = 'own_payoff' AND beta = 20 AND dynamics = 'plain' AND NOT stable AND strategy = 'mirror'"
    )
    assert pool.ask(saddle) == [(2.107, 0.744)]
    assert pool.ask("SELECT cells, agree FROM dictator_agreement WHERE oracle_b = 'holed' ORDER BY oracle_a") == [
        (80, 80)
    ]


def test_a_missing_decision_is_missing_in_every_table(pool):
    holed = "WHERE oracle = 'holed'"
    assert pool.ask(f"SELECT count(*) FROM dictator_decisions {holed} AND decision IS NULL") == [(1,)]
    assert pool.ask(f"SELECT count(*) FROM dictator_payoffs {holed} AND payoff IS NULL") == [(2,)]
    assert pool.ask(f"SELECT count(*) FROM dictator_scores {holed} AND score IS NULL") == [(2,)]
    for table, column in (("equilibria", "frequency"), ("dominance", "kind"), ("bloc", "welfare")):
        assert pool.ask(f"SELECT count({column}) FROM dictator_{table} {holed}") == [(0,)]
    assert pool.ask("SELECT player, invalid, validity_rate < 1 FROM validity ORDER BY player") == [
        ("holed", 1, True),
        ("published", 0, False),
    ]


def test_an_edited_document_is_played_again_by_every_oracle_and_a_touched_one_by_none(copy):
    document = copy.root / "config/strategies/mirror.md"
    document.touch()
    assert copy.snakemake("-n").had_nothing_to_do
    document.write_text(document.read_text() + "\nMore words.\n")
    jobs = copy.snakemake("-n").jobs
    assert {"play pool/published/seeds-0", "play pool/holed/seeds-0"} <= jobs


def test_an_edited_decision_file_is_played_again_by_its_oracle_only(copy):
    file = copy.root / "tests/config/holed.csv"
    file.write_text(file.read_text().replace("mirror,selfish,TAKE", "mirror,selfish,SHARE"))
    jobs = copy.snakemake("-n").jobs
    assert "play pool/holed/seeds-0" in jobs
    assert "play pool/published/seeds-0" not in jobs


def test_what_the_analysis_varies_is_analysed_again_and_not_played(copy):
    copy.replace("tests/config/dictator.yaml", "starts: 100", "starts: 50")
    jobs = copy.snakemake("-n").jobs
    assert "analyse tournament pool under oracle published" in jobs
    assert not [job for job in jobs if job.startswith("play")]


def test_a_new_document_without_decisions_starts_nothing(copy):
    (copy.root / "config/strategies/new.md").write_text("---\nname: new\nfamily: test\n---\nI am new.\n")
    outcome = copy.snakemake()
    assert outcome.code != 0
    assert not outcome.jobs
    assert 'oracles[0] cannot be asked: published: has no decisions about "new"' in outcome.text
    assert "oracles[1] cannot be asked: tests/config/holed.csv: the cell" in outcome.text
    assert "Traceback" not in outcome.text


def test_faulty_documents_are_told_by_check(copy):
    (copy.root / "config/strategies/mirror.md").write_text("")
    outcome = copy.fishpool("check", *CONFIG)
    assert outcome.code == 2
    assert [
        line for line in outcome.text.splitlines() if line.startswith("config/strategies/mirror.md: the file is empty")
    ]
