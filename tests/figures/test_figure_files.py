import json
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
import vl_convert
from made_up import matchups, profiles, ranking, rounds, shares, svg_of, texts

from fishpool.figures import files, rq09, rq10, rq11, style

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


def test_the_svg_and_the_png_carry_the_description():
    chart = rq11.chart(shares(["<&>"]), ranking(["<&>"]))
    specification = files.specification_of(chart)
    assert ElementTree.fromstring(files._svg(specification)).get("aria-label") == chart.description
    assert dict(chunks(files._png(specification)))[b"iTXt"] == b"Description" + bytes(5) + chart.description.encode()


def chunks(png):
    """(kind, content) of each chunk, its checksum checked; of several of a kind the last counts."""
    place = 8
    while place < len(png):
        (length,) = struct.unpack_from(">I", png, place)
        kind, content = png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", png, place + 8 + length) == (zlib.crc32(kind + content),)
        yield kind, content
        place += 12 + length


def test_a_pdf_has_the_size_of_the_svg_in_print_and_its_fonts_inside(tmp_path):
    chart = rq09.chart(matchups(PLAYERS), ranking(PLAYERS), rounds(PLAYERS))
    files.save(chart, tmp_path / "figure", ["pdf"])
    assert [path.name for path in tmp_path.iterdir()] == ["figure.pdf"]
    pdf = (tmp_path / "figure.pdf").read_bytes()
    image = ElementTree.fromstring(svg_of(chart))
    width, height = (float(image.attrib[side]) for side in ("width", "height"))
    (box,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert [float(side) for side in box] == [width * 72 / 96, height * 72 / 96]
    fonts = set(re.findall(rb"/FontName /[A-Z]{6}\+(\S+)", pdf))
    assert fonts == {b"LiberationSans", b"LiberationSans-Bold"}
    assert pdf.count(b"/FontFile2") == len(fonts)


def test_groups_that_only_move_are_resolved_and_the_image_stays_the_same():
    svg = svg_of(rq09.chart(matchups(PLAYERS), ranking(PLAYERS), rounds(PLAYERS))).decode()
    image = ElementTree.fromstring(svg)
    files._flatten(image)
    assert depth(image) < depth(ElementTree.fromstring(svg))
    flat = ElementTree.tostring(image, encoding="unicode")
    assert vl_convert.svg_to_png(flat) == vl_convert.svg_to_png(svg)


def test_an_image_nested_deeper_than_a_pdf_becomes_one():
    # as the panels of a figure are, each in the group of its row, and that in the group of its part
    nested = '<g transform="translate(1,0)"><rect x="{n}" width="1" height="1"/>'
    inside = "".join(nested.format(n=n) for n in range(40)) + "</g>" * 40
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="50" height="2">{inside}</svg>'
    with pytest.raises(RuntimeError, match="depth"):
        vl_convert.svg_to_pdf(svg)
    image = ElementTree.fromstring(svg)
    files._flatten(image)
    assert vl_convert.svg_to_pdf(ElementTree.tostring(image, encoding="unicode")).startswith(b"%PDF")


def depth(element):
    return 1 + max(map(depth, element), default=0)


@pytest.mark.parametrize("figure", TABLES, ids=lambda figure: figure.__name__[-4:])
def test_a_figure_fits_a_page_and_no_text_is_below_five_points(figure):
    players = [f"SuspiciousPlayer{number}" for number in range(22)]
    parts = [(players, "plain", "many"), (players, "noisy", "many")]
    parts += [(PLAYERS, f"condition_{number}", "few") for number in range(4)]
    svg = svg_of(figure.chart(*(pl.concat([make(*part) for part in parts]) for make in TABLES[figure])))
    width = float(ElementTree.fromstring(svg).attrib["width"])
    smallest = min(map(float, re.findall(rb'font-size="([\d.]+)px"', svg)))
    in_print = min(1, style.WIDTH / width)  # a wider figure is made smaller
    assert smallest * in_print * 72 / 96 >= 5


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
