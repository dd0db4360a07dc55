import polars as pl
import pytest
from made_up import HOSTILE, marks, matchups, ranking, rounds, svg_of, texts

from fishpool.figures import rq09, style

PLAYERS = ["Zed", "TitForTat", "Abe"]


def draw(players=PLAYERS, **options):
    return rq09.chart(
        pd_matchups=matchups(players, intervals=options.get("intervals", True)),
        pd_ranking=ranking(players, **options),
        pd_rounds=rounds(players),
    )


@pytest.fixture(scope="module")
def spec():
    return draw().to_dict()


@pytest.fixture(scope="module")
def shown():
    return texts(draw())


@pytest.fixture(scope="module")
def shown_without():
    return texts(draw(intervals=False, strengths=False))


def test_every_player_meets_every_other_and_itself_once_in_each_heatmap(spec):
    pairs = {(player, opponent) for player in PLAYERS for opponent in PLAYERS}
    for field in ("mean_score", "cooperation_rate"):
        every, own = marks(spec, "rect", field)
        assert len(every) == len(pairs)
        assert {(row["player"], row["opponent"]) for row in every} == pairs
        assert {(row["player"], row["opponent"]) for row in own} == {(player, player) for player in PLAYERS}


def test_players_stand_in_the_order_of_their_ranks(shown):
    names = [text for text in shown if text in PLAYERS]
    assert names == PLAYERS * 3  # rows, and columns of both heatmaps; the made-up ranks are in the order of this list


def test_what_has_no_interval_has_no_bar(spec, shown, shown_without):
    with_bars, without = spec, draw(intervals=False).to_dict()
    for field in ("score_low", "strength_low"):
        (rows,) = marks(with_bars, "rule", field)
        assert [row["player"] for row in rows] == PLAYERS
        assert marks(without, "rule", field) == [[]]
    assert [len(rows) for rows in marks(without, "point")] == [3, 3]
    assert "1 [1–2]" in shown
    assert "1" in shown_without


def test_a_strength_that_does_not_exist_is_not_drawn_as_a_number(shown, shown_without):
    assert shown_without.count("n/a") == len(PLAYERS)
    assert marks(draw(strengths=False), "point")[1] == []
    assert "n/a" not in shown


@pytest.mark.parametrize("missing", ["row", "rate"])
def test_a_cell_without_a_scored_round_is_left_open_and_said_to_be(missing, spec):
    table = matchups(PLAYERS)
    first = (pl.col("player") == "Zed") & (pl.col("opponent") == "Abe")
    if missing == "row":
        table = table.filter(~first)
    else:
        table = table.with_columns(cooperation_rate=pl.when(~first).then("cooperation_rate"))
    chart = rq09.chart(pd_matchups=table, pd_ranking=ranking(PLAYERS), pd_rounds=rounds(PLAYERS))
    assert len(marks(chart, "rect", "cooperation_rate")[0]) == 8
    assert "Empty cells: no scored round." in chart.to_dict()["title"]["subtitle"]
    assert "Empty cells: no scored round." not in spec["title"]["subtitle"]


def test_the_length_of_a_match_and_the_matches_come_from_the_tables(shown):
    unbroken = [text.replace(" ", "") for text in shown]  # lines of one text follow each other without a space
    assert "meanscore(pointsamatchof4rounds)" in unbroken
    assert "8 matches a cell; 16 matches a player" in " ".join(shown)


def test_hostile_names_are_shown_as_they_are():
    svg = texts(draw(HOSTILE))
    for name in HOSTILE:
        assert svg.count(name) == 3  # a row, and a column of each heatmap


def test_several_studies_and_conditions_get_a_row_each():
    tables = [
        pl.concat([make(["A", "B"], "plain", "one"), make(["A", "B"], "noisy", "one"), make(["C"], "plain", "two")])
        for make in (matchups, ranking, rounds)
    ]
    chart = rq09.chart(*tables).to_dict()
    assert [row["title"]["text"] for row in chart["vconcat"]] == ["one: plain", "one: noisy", "two: plain"]


def test_a_single_player_that_no_ranking_has():
    chart = rq09.chart(matchups(["Alone"]), ranking(["Alone"]).clear(), rounds(["Alone"]).clear())
    assert texts(chart).count("Alone") == 3


def test_the_conditions_of_a_small_study_share_their_columns_and_scales():
    names = ["plain", "noisy"]
    tables = [pl.concat([make(PLAYERS, condition) for condition in names]) for make in (matchups, ranking, rounds)]
    turned = pl.when(pl.col("condition") == "noisy").then(4 - pl.col("rank")).otherwise("rank")
    tables[1] = tables[1].with_columns(rank=turned)
    chart = rq09.chart(*tables)
    svg = texts(chart)
    assert [name for name in svg if name in PLAYERS] == PLAYERS * 4  # rows of both, columns of both heatmaps once
    assert svg.count("opponent") == 2
    assert len([text for text in svg if text.startswith("cooperation rate")]) == 1
    assert "by that in its first condition" in chart.to_dict()["title"]["subtitle"][0]


def test_a_strength_that_only_one_condition_has_is_on_an_axis_with_labels():
    tables = [pl.concat([make(["A", "B"], name) for name in ("one", "two")]) for make in (matchups, ranking, rounds)]
    tables[1] = tables[1].with_columns(
        pl.when(pl.col("condition") == "one").then(name).alias(name)
        for name in ("strength", "strength_low", "strength_high")
    )
    rows = rq09.chart(*tables).to_dict()["vconcat"]
    axis = rows[-1]["hconcat"][-1]["layer"][2]["encoding"]["x"]["axis"]
    assert axis["labels"]
    assert axis["title"] == ["strength", "(log scale)"]


def test_of_a_hundred_players_a_page_shows_the_first_and_says_so():
    players = [f"Player{number}" for number in range(100)]
    chart = draw(players, intervals=False)
    every, _ = marks(chart.to_dict(), "rect", "mean_score")
    assert {row["player"] for row in every} == {row["opponent"] for row in every} == set(players[: style.MOST])
    assert "study: of 100 players the first 24 by rank are shown" in " ".join(chart.to_dict()["title"]["subtitle"])
    assert len(svg_of(chart)) < 300_000
