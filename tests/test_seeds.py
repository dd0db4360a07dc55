"""Random streams: what a draw depends on, what it must not depend on, and that the draws are uniform."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fishpool.seeds import draw, draws, happens, name_key, permutation, streams, uniforms

seeds = st.integers(0, 2**63 - 1)
names = st.lists(st.one_of(st.text(max_size=8), st.integers(0, 99)), min_size=1, max_size=4)


@given(seeds, names, st.integers(0, 10_000))
def test_one_draw_and_many_draws_agree(seed, who, counter):
    assert uniforms([seed], name_key(*who), [counter])[0] == draw(seed, *who, counter=counter)


@given(
    st.lists(seeds, min_size=1, max_size=3),
    st.lists(names, min_size=1, max_size=3),
    st.integers(0, 10_000),
    st.one_of(st.floats(0, 1), st.sampled_from([2**-53, 1 - 2**-53])),
)
def test_streams_side_by_side_draw_what_each_draws_alone(some_seeds, some_names, counter, probability):
    side_by_side = streams([[seed] for seed in some_seeds], [name_key(*who) for who in some_names])
    alone = np.array([[draw(seed, *who, counter=counter) for who in some_names] for seed in some_seeds])
    assert (draws(side_by_side, counter) == alone).all()
    assert (happens(side_by_side, counter, probability) == (alone < probability)).all()
    for edge in (*alone.flat, *np.nextafter(alone, 1).flat):  # where the comparison turns
        assert (happens(side_by_side, counter, edge) == (alone < edge)).all()


def test_splitmix64_published_sequence():
    # The first outputs of SplitMix64 from state 1234567, as published with the reference implementation.
    from fishpool.seeds import _GAMMA, _MASK, _mix

    state, outputs = 1234567, []
    for _ in range(3):
        state = (state + _GAMMA) & _MASK
        outputs.append(_mix(state))
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_names_do_not_run_together():
    assert name_key("a", "bc") != name_key("ab", "c") != name_key("abc")


def test_draws_are_uniform_and_streams_independent():
    seed_axis = np.arange(500)[:, None]
    first = uniforms(seed_axis, name_key("noise", "ann"), np.arange(100))
    second = uniforms(seed_axis, name_key("noise", "bob"), np.arange(100))
    assert stats.kstest(first.ravel(), "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 4 / np.sqrt(first.size)
    assert abs(np.corrcoef(first[:-1].ravel(), first[1:].ravel())[0, 1]) < 4 / np.sqrt(first.size)


@given(seeds, st.integers(0, 50), st.integers(0, 12))
def test_permutation_is_a_permutation(seed, counter, size):
    assert sorted(permutation(seed, "order", counter=counter, size=size)) == list(range(size))
