"""Numbers in words: no share is rounded to certainty, and no difference is claimed that the data do not show."""

from hypothesis import given
from hypothesis import strategies as st

from fishpool.report.words import bounds, contrast, counted, estimate, listed, number, percent, probability, side


def row(**given):
    usual = {
        "metric": "broken_rate", "player": None, "condition_a": "loud", "condition_b": "calm", "pairs": 200,
        "mean_a": 0.5, "mean_b": 0.25, "mean_difference": 0.25, "low": 0.2, "high": 0.3, "p": 0.0001, "p_holm": 0.001,
        "effect": 0.6, "test": "sign flip", "note": "",
    }  # fmt: skip
    return usual | given


def claims(sentence):
    return "higher" in sentence or "lower" in sentence


def test_a_difference_is_claimed_with_its_interval_its_pairs_and_its_p():
    assert contrast(row()) == (
        "broken rate: higher under loud than under calm (0.50 under loud, 0.25 under calm; difference 0.25, "
        "95 % interval 0.20 to 0.30, 200 pairs, Holm-corrected p = 0.001, Cliff’s δ 0.60)."
    )
    assert "lower under loud than under calm" in contrast(row(mean_difference=-0.25, low=-0.3, high=-0.2))
    assert contrast(row(player="salami", metric="payoff")).startswith("payoff of salami: higher")


def test_no_difference_is_claimed_where_the_interval_holds_zero_or_the_corrected_p_is_large():
    for doubtful in (row(low=-0.01), row(p_holm=0.05), row(p_holm=0.8), row(p=None, p_holm=None), row(low=0.0)):
        sentence = contrast(doubtful)
        assert "no difference between loud and calm can be claimed" in sentence
        assert not claims(sentence)


@given(
    st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(2, 400)
)  # fmt: skip
def test_a_claim_never_goes_beyond_its_interval(difference, below, above, p, pairs):
    low, high = difference - below, difference + above
    sentence = contrast(row(mean_difference=difference, low=low, high=high, p_holm=p, pairs=pairs))
    assert claims(sentence) == ((low > 0 or high < 0) and p < 0.05)


def test_where_nothing_varies_there_is_no_interval_and_the_sentence_says_so():
    same = row(mean_difference=0.0, low=None, high=None, p=1.0, p_holm=1.0)
    assert contrast(same).endswith("the same in each of 200 pairs.")
    always = row(low=None, high=None, p=None, p_holm=None)
    assert "higher by 0.250 in each of 200 pairs" in contrast(always)
    assert "nothing varies, so there is no test" in contrast(always)


def test_a_single_pair_and_no_pair_claim_nothing():
    one = contrast(row(pairs=1, low=None, high=None))
    assert "nothing is claimed" in one
    none = contrast(row(pairs=0, mean_difference=None, note="no seed was observed in both conditions"))
    assert none == "broken rate, loud against calm: nothing can be said, as no seed was observed in both conditions."


@given(st.floats(0, 1))
def test_a_share_is_rounded_to_none_or_all_only_if_it_is(share):
    assert (percent(share) in ("0 %", "100 %")) == (share in (0, 1))


def test_numbers_have_a_true_minus_and_no_negative_zero():
    assert [number(value) for value in (-1.5, -0.001, 1234.5, None)] == ["−1.50", "0.00", "1,234.50", "no value"]
    assert [percent(value) for value in (0.995, 0.9996, 0.0004, 0.5)] == [
        "99.5 %",
        "over 99.9 %",
        "under 0.1 %",
        "50 %",
    ]
    assert [probability(value) for value in (0.0001, 0.01, 0.5, None)] == ["p < 0.001", "p = 0.010", "p = 0.50", "no p"]


def test_an_estimate_says_why_it_has_no_interval():
    assert estimate(0.5, 0.4, 0.6) == "0.50 (95 % interval 0.40 to 0.60)"
    assert estimate(0.5, None, None, runs=200) == "0.50 (no interval, as nothing varies)"
    assert estimate(0.5, None, None, runs=1) == "0.50 (a single run, so no interval)"
    assert estimate(None, None, None) == "no value"
    assert [bounds(0.1, 0.2, percent), bounds(None, None), bounds(None, None, runs=1)] == [
        "10 % to 20 %", "none: nothing varies", "none: a single run",
    ]  # fmt: skip


def test_a_single_run_is_on_no_side_of_anything():
    assert side(1.0, None, None, of=0.5, runs=1) == 0
    assert side(1.0, None, None, of=0.5, runs=2) == 1
    assert [side(0.6, 0.4, 0.7, 0.5), side(0.6, 0.55, 0.7, 0.5), side(0.2, 0.1, 0.3, 0.5)] == [0, 1, -1]
    assert side(None, None, None, 0) == 0


def test_lists_and_counts():
    assert [listed([]), listed("a"), listed("ab"), listed("abc")] == ["none", "a", "a and b", "a, b and c"]
    assert [counted(1, "run"), counted(2, "match", "matches"), counted(1000, "run")] == [
        "1 run",
        "2 matches",
        "1,000 runs",
    ]
