"""Rows as a page shows them: aligned, with a dash where there is no value."""

import pytest

from fishpool.report.tables import NOTHING, made, table, text


def test_the_numbers_of_a_column_have_the_same_decimals():
    (shown,) = [table("t", [{"who": "a", "score": 12.5}, {"who": "b", "score": 3.25}, {"who": "c", "score": None}])]
    assert [[cell.text for cell in row] for row in shown.rows] == [["a", "12.50"], ["b", "3.25"], ["c", NOTHING]]
    assert shown.numbers == {1}
    assert [row[1].numeric for row in shown.rows] == [True] * 3


def test_rows_that_are_left_off_are_counted():
    shown = table("t", [{"n": number} for number in range(10)], most=4)
    assert (len(shown.rows), shown.left_off) == (4, 6)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(True, "yes"), (-1234, "−1,234"), (-0.0001, "0.00"), (["a", "b"], "a, b"), ([], NOTHING), ({"a": 1}, '{"a": 1}')],
)
def test_values_as_text(value, shown):
    assert text(value) == shown


def test_a_column_of_texts_is_one_of_numbers_if_all_its_cells_are():
    columns = ("who", "share", "interval", "said")
    rows = [("a", "10 %", "5 % to 15 %", "1 or 2"), ("b", NOTHING, "none: nothing varies", "3")]
    assert made("t", columns, rows).numbers == {1, 2}
