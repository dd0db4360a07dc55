"""The one schema: frames obey it, and every column says what it holds."""

import pytest

from fishpool import records


@pytest.mark.parametrize(("game", "table"), [(game, table) for game, ts in records.GAME_TABLES.items() for table in ts])
def test_every_column_has_a_comment_and_a_unique_name(game, table):
    columns = records.columns(game, table)
    assert len({column.name for column in columns}) == len(columns)
    assert all(column.comment for column in columns)
    assert list(records.schema(game, table)) == [column.name for column in columns]


def values(**changes):
    row = {
        "run_id": "r",
        "round": 1,
        "phase": "choose",
        "agent": "a",
        "player": "p",
        "action": None,
        "status": "timeout",
        "fallback": False,
        "attempts": 1,
        "choice": None,
        "flipped": False,
        "payoff": None,
    }
    return {name: [value] for name, value in {**row, **changes}.items()}


def test_a_frame_has_the_schema():
    frame = records.frame("prisoners_dilemma", "turns", values())
    assert dict(frame.schema) == records.schema("prisoners_dilemma", "turns")


@pytest.mark.parametrize("changes", [{"round": 1.5}, {"round": "1"}, {"agent": None}, {"agent": 7}, {"extra": 1}])
def test_a_frame_that_does_not_fit_raises(changes):
    with pytest.raises((ValueError, TypeError)):
        records.frame("prisoners_dilemma", "turns", values(**changes))


def test_a_missing_column_raises():
    short = values()
    del short["payoff"]
    with pytest.raises(ValueError, match="payoff"):
        records.frame("prisoners_dilemma", "turns", short)
