import polars as pl
import pytest
from made_up import HOSTILE, marks, profiles, ranking, rounds, texts

from fishpool.figures import rq10

PLAYERS = ["Zed", "TitForTat", "Abe"]


def draw(players=PLAYERS, **options):
    return rq10.chart(
        pd_rounds=rounds(players, **options), pd_profiles=profiles(players, **options), pd_ranking=ranking(players)
    )


@pytest.fixture(scope="module")
def spec():
    return draw().to_dict()


@pytest.fixture(scope="module")
def shown():
    return texts(draw())


def test_every_player_has_a_panel_and_a_row_in_the_order_of_the_ranking(shown):
    assert [text for text in shown if text in PLAYERS] == PLAYERS * 2


def test_every_round_of_every_player_is_on_its_line(spec):
    (line,) = marks(spec, "line")
    assert {(row["panel"], row["round"], row["cooperation_rate"]) for row in line} == {
        (player, number, 0.5) for player in PLAYERS for number in (1, 2, 3, 4)
    }


def test_the_count_stands_behind_every_rate_and_nothing_is_not_zero(spec, shown):
    assert shown.count("1,234") == shown.count("17") == shown.count("n/a") == len(PLAYERS)
    assert "0" not in {row["count"] for rows in marks(spec, "text", "count") for row in rows}
    (points,) = [rows for rows in marks(spec, "point", "cooperation_rate") if "state" in rows[0]]
    assert {row["state"] for row in points if row["cooperation_rate"] is None} == {"CD"}


def test_the_last_two_rounds_are_shaded_where_all_matches_have_the_same_length(spec):
    assert marks(spec, "rect", "round") == [[{"round": 2.5, "end": 4.5}]]
    assert "Shaded: the last two rounds" in spec["title"]["subtitle"][0]
    two = [
        pl.concat([make(PLAYERS, "plain"), make(PLAYERS, "noisy", **length)])
        for make, length in ((rounds, {"last": 7}), (profiles, {}), (ranking, {}))
    ]
    unequal = rq10.chart(*two).to_dict()
    assert marks(unequal, "rect", "round") == []
    assert "Shaded" not in unequal["title"]["subtitle"][0]


def test_a_round_without_an_interval_breaks_the_band_and_a_lone_one_has_a_bar():
    table = rounds(["A"], last=6).with_columns(
        pl.when(~pl.col("round").is_in([3, 5])).then(name).alias(name) for name in ("low", "high")
    )
    chart = rq10.chart(pd_rounds=table, pd_profiles=profiles(["A"]), pd_ranking=ranking(["A"]))
    (band,) = marks(chart, "area")
    assert {row["round"]: row["low"] is None for row in band} == {1: 0, 2: 0, 3: 1, 4: 0, 5: 1, 6: 0}
    (bars,) = marks(chart, "rule", "alone_low")
    assert [row["round"] for row in bars if row["alone_low"] is not None] == [4, 6]


def test_hostile_names_are_shown_as_they_are():
    svg = texts(draw(HOSTILE, intervals=False))
    for name in HOSTILE:
        assert svg.count(name) == 2  # a panel and a row


def test_several_studies_with_conditions_of_their_own():
    parts = [(["A", "B"], "plain", "one"), (["A", "B"], "noisy", "one"), (["C"], "other", "two")]
    tables = [pl.concat([make(*part) for part in parts]) for make in (rounds, profiles, ranking)]
    chart = rq10.chart(*tables)
    svg = texts(chart)
    assert [text for text in svg if text in ("one", "two")] == ["one", "two"]
    assert all(svg.count(condition) == 1 for condition in ("plain", "noisy", "other"))  # one legend


def test_of_a_hundred_players_a_page_shows_the_first_and_says_so():
    players = [f"Player{number}" for number in range(100)]
    chart = draw(players, intervals=False)
    assert [text for text in dict.fromkeys(texts(chart)) if text in players] == players[:24]
    assert "of 100 players the first 24 by rank are shown; all are in pd_rounds and pd_profiles." in " ".join(
        chart.to_dict()["title"]["subtitle"]
    )
