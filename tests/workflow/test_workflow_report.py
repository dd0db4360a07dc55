"""The report of `snakemake --report`: one archive with the figures in their categories, made without a network."""

import ast
import json
import re
import zipfile
from dataclasses import replace

import pytest
from docutils.core import publish_string
from workflow_checkout import REPOSITORY

NOWHERE = "http://127.0.0.1:9"  # the discard port, where nothing answers


@pytest.mark.workflow
def test_a_report_holds_the_figures_by_game_and_question(finished, tmp_path):
    offline = replace(finished, environment=dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), NOWHERE))
    outcome = offline.snakemake("--report", str(tmp_path / "report.zip"))
    assert outcome.code == 0, outcome.text
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        files = {name.rpartition("/")[2]: archive.read(name) for name in archive.namelist()}
    page = files.pop("report.html").decode()
    figures = [f"{question}.{ending}" for question in ("rq09", "rq10", "rq11") for ending in ("html", "svg")]
    assert files == {name: (finished.results / "figures" / name).read_bytes() for name in figures}
    assert assigned(page, "categories") == {
        "Prisoner's dilemma": {"Other": [f"results/figures/{name}" for name in figures]}
    }
    results = assigned(page, "results")
    assert results["results/figures/rq09.svg"]["labels"] == {
        "question": "RQ09: Who cooperates with whom?",
        "format": "print (SVG)",
    }
    assert "best first: rank, mean score" in results["results/figures/rq09.html"]["caption"]
    assert "games are played by seed" in page
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?http", page)


def assigned(page, name):
    """What a script of the page gives the variable, a JSON value."""
    (start,) = (found.end() for found in re.finditer(rf"var {name} = (?={{\")", page))
    return json.JSONDecoder().raw_decode(page, start)[0]


@pytest.mark.parametrize(
    "file", sorted((REPOSITORY / "fishpool" / "figures").glob("rq*.py")), ids=lambda file: file.stem
)
def test_what_a_figure_says_of_itself_is_a_caption(file):
    caption = ast.get_docstring(ast.parse(file.read_text()))
    assert re.match(rf'RQ{int(file.stem[2:])}, "[^"]+\?": ', caption)
    publish_string(caption, settings_overrides={"halt_level": 2, "report_level": 5})  # raises on a warning
