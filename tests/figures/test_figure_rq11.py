import polars as pl
from made_up import HOSTILE, marks, ranking, shares, svg_of, texts

from fishpool.figures import rq11

PLAYERS = ["Zed", "TitForTat", "Abe"]


def draw(players=PLAYERS, **options):
    return rq11.chart(pd_strategy_shares=shares(players, **options), pd_ranking=ranking(players))


def test_every_player_has_every_strategy_once_in_the_order_of_the_ranking():
    (points,) = marks(draw(), "point")
    assert [(row["player"], row["strategy"]) for row in points] == [
        (player, strategy) for player in PLAYERS for strategy in ("Stay", "Leave", "Either", "Or")
    ]
    svg = texts(draw())
    assert [text for text in svg if text in PLAYERS] == PLAYERS
    assert [text for text in svg if text in ("Stay", "Leave", "Either", "Or")] == ["Stay", "Leave", "Either", "Or"]
    assert svg.count("cannot be told apart") == 1  # the legend


def test_what_cannot_be_told_apart_is_hollow():
    (points,) = marks(draw(), "point", "filling")
    assert {row["strategy"] for row in points if row["filling"] != row["condition"]} == {"Either", "Or"}
    fill = draw().to_dict()["vconcat"][0]["spec"]["layer"][-1]["encoding"]["fill"]["scale"]
    assert dict(zip(fill["domain"], fill["range"], strict=True))["cannot be told apart"] == "white"


def test_what_has_no_interval_has_no_bar():
    spec = draw().to_dict()
    (bars,) = marks(spec, "rule", "low")
    assert {row["strategy"] for row in bars if row["low"] is not None} == {"Stay", "Leave"}
    drawn = [svg_of(draw(intervals=intervals)).count(b'stroke-width="1.2"') for intervals in (True, False)]
    legend = 2  # symbols, as thick as a bar
    assert drawn == [2 * len(PLAYERS) + legend, legend]


def test_hostile_names_are_shown_as_they_are():
    svg = texts(draw(HOSTILE))
    for name in HOSTILE:
        assert svg.count(name) == 1


def test_several_studies_and_conditions():
    parts = [(["A", "B"], "plain", "one"), (["A", "B"], "noisy", "one"), (["C"], "other", "two")]
    chart = rq11.chart(*(pl.concat([make(*part) for part in parts]) for make in (shares, ranking)))
    assert [block["title"]["text"] for block in chart.to_dict()["vconcat"]] == ["one", "two"]


def test_the_number_of_matches_is_said_if_the_table_has_it():
    table = shares(PLAYERS).with_columns(matches=pl.lit(1600))
    assert "1,600 matches a player" in rq11.chart(table, ranking(PLAYERS)).to_dict()["title"]["subtitle"][0]
    assert "matches a player" not in draw().to_dict()["title"]["subtitle"][0]


def test_the_implementation_error_is_a_row_of_its_own_if_the_table_has_it():
    table = shares(PLAYERS).with_columns(implementation_error=pl.lit(0.05))
    chart = rq11.chart(table, ranking(PLAYERS)).to_dict()
    (points,) = marks(chart, "point")
    errors = [row for row in points if row["strategy"] == "implementation error"]
    assert [(row["player"], row["share"], row["low"]) for row in errors] == [(name, 0.05, None) for name in PLAYERS]
    assert "implementation error" not in {row["strategy"] for row in marks(draw(), "point")[0]}


def test_of_a_hundred_players_a_page_shows_the_first_and_says_so():
    players = [f"Player{number}" for number in range(100)]
    chart = draw(players, intervals=False)
    assert [text for text in dict.fromkeys(texts(chart)) if text in players] == players[:24]
    assert "of 100 players the first 24 by rank are shown; all are in pd_strategy_shares." in " ".join(
        chart.to_dict()["title"]["subtitle"]
    )
