import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import vl_convert
from made_up import matchups, profiles, ranking, rounds, shares, texts

from fishpool.figures import files, rq09, rq10, rq11

HERE = Path(__file__).parent
PLAYERS = ["B", "A"]
TABLES = {
    rq09: (matchups, ranking, rounds),
    rq10: (rounds, profiles, ranking),
    rq11: (shares, ranking),
}
DRAW = """
import sys
from pathlib import Path
from made_up import HOSTILE, matchups, ranking, rounds
from fishpool.figures import files, rq09
files.save(rq09.chart(*(make(HOSTILE) for make in (matchups, ranking, rounds))), Path(sys.argv[1]))
"""


def test_the_same_data_give_the_same_files_in_another_process_and_they_are_whole_and_safe(tmp_path):
    for stem, seed in {"one": "1", "two": "2"}.items():  # of hashes: the order of sets must not show
        environment = {"PYTHONPATH": f"{HERE}:{HERE.parents[1]}", "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", DRAW, str(tmp_path / stem / "rq09")], check=True, env=environment)
    for ending in ("svg", "png", "html", "json"):
        one, two = ((tmp_path / stem / f"rq09.{ending}").read_bytes() for stem in ("one", "two"))
        assert one == two
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        f"rq09.{ending}" for ending in ("html", "json", "png", "svg")
    ]
    html = (tmp_path / "one" / "rq09.html").read_text()
    assert html.count("<script") == html.count("</script>") == 2  # the renderer and the figure; names start none
    assert "<script src" not in html  # no network
    assert (tmp_path / "one" / "rq09.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("figure", TABLES, ids=lambda figure: figure.__name__[-4:])
def test_a_table_without_rows_says_that_there_is_no_data(figure):
    assert "no data" in texts(figure.chart(*(make(PLAYERS).clear() for make in TABLES[figure])))


def test_the_svg_carries_the_description():
    chart = rq11.chart(shares(["<&>"]), ranking(["<&>"]))
    assert ElementTree.fromstring(files._svg(chart)).get("aria-label") == chart.description


@pytest.mark.parametrize("figure", TABLES, ids=lambda figure: figure.__name__[-4:])
def test_a_chart_describes_itself_and_no_name_enters_an_expression_unless_quoted(figure):
    names = ["zqx' + alert(1) + '", 'zqx" + alert(2) + "', "zqx\\"]
    condition = "zqx' + \" + alert(3) + \\"
    chart = figure.chart(*(make(names, condition=condition, study='zqx"s') for make in TABLES[figure]))
    spec = chart.to_dict()
    assert spec["description"].startswith(spec["title"]["text"])
    compiled = vl_convert.vegalite_to_vega(spec)
    assert "zqx" in str(compiled)
    found = [text.replace(json.dumps(condition), "") for text in expressions(compiled)]
    assert [text for text in found if "zqx" in text] == []


def expressions(spec):
    """All texts of a Vega specification that Vega would evaluate."""
    if isinstance(spec, list):
        return [text for part in spec for text in expressions(part)]
    if not isinstance(spec, dict):
        return []
    own = [text for key, text in spec.items() if key in ("signal", "expr", "test", "update") and isinstance(text, str)]
    return own + expressions(list(spec.values()))
