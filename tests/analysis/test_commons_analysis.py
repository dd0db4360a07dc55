"""Twins, deviations and the best possible: the figures of the rule sheet, exactly."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fishpool.analysis.commons import DeviationClass, TwinKind, classify, continuation, deviations, optimum, twins
from fishpool.games.commons import Channel, Parameters, Speech, play, regrown
from fishpool.players.commons import seat


def played(agents, seed=0, **parameters):
    condition = Parameters(agents=tuple(agents), **parameters)
    return play(condition, seat(condition, seed), seed)


def one_round(promises, demands):
    """A run whose first round has these promises and demands."""
    turns = {
        "pledge": [{"intention": 0, "promise": promise} for promise in promises],
        "catch": [{"catch": demand} for demand in demands],
    }

    def player(agent):
        return lambda view: (
            turns[view["phase"]][agent] if view["round"] == 1 else {"catch": 0, "intention": 0, "promise": 0}
        )

    def act(agent):
        scripted = player(agent)

        def answer(view):
            keys = {"pledge": ("intention", "promise"), "catch": ("catch",)}[view["phase"]]
            return {key: scripted(view)[key] for key in keys}

        return answer

    parameters = Parameters(channels=frozenset({Channel.PROMISE}))
    return play(parameters, [act(agent) for agent in range(5)], 0)


def test_the_best_possible_total_is_650_and_645_if_the_pool_must_survive():
    assert (optimum(Parameters()), optimum(Parameters(), survive=True)) == (650, 645)


@given(st.integers(4, 14), st.sampled_from([1.5, 2, 3]), st.integers(0, 4), st.integers(1, 4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_best_possible_total_is_what_trying_everything_finds(capacity, growth, collapse, rounds, survive):
    after = regrown(capacity, growth)

    @cache
    def best(stock, left):
        if left == 0:
            return 0
        totals = []
        for remaining in range(stock + 1):
            if remaining >= collapse:
                totals.append(stock - remaining + best(after[remaining], left - 1))
            elif not survive:
                totals.append(stock - remaining)
        return max(totals, default=float("-inf"))

    parameters = Parameters(agents=("grim",), capacity=capacity, growth=growth, collapse=collapse, rounds=rounds)
    assert optimum(parameters, survive=survive) == max(0, best(capacity, rounds))


@pytest.mark.parametrize(("stock", "value"), [(100, 550), (98, 548), (80, 530), (0, 0)])
def test_what_the_future_is_worth(stock, value):
    assert continuation(100, 2, 50, stock, 11) == value


@pytest.mark.parametrize(
    ("promises", "demands", "du", "dw", "kind"),
    [
        ((10,) * 5, (11, 10, 10, 10, 10), 0.6, -1, "selfish"),
        ((10,) * 5, (100, 10, 10, 10, 10), -48, -500, "sabotaging"),
        ((10,) * 5, (8, 10, 10, 10, 10), -2, -2, "sabotaging"),
        ((8,) * 5, (10, 8, 8, 8, 8), 2, 2, "win-win"),
        ((12,) * 5, (10, 12, 12, 12, 12), -1.2, 2, "altruistic"),
    ],
)
def test_whom_a_departure_serves(promises, demands, du, dw, kind):
    first = next(deviations(one_round(promises, demands)))
    assert (first.number, first.agent, first.du, first.dw, first.kind) == (1, 0, du, dw, kind)


def test_a_kept_promise_is_no_departure_and_a_last_round_grab_costs_nobody_a_future():
    assert list(deviations(played(["honest_sustainable"] * 5))) == []
    grabs = list(deviations(played(["opportunist"] * 5)))
    assert {(grab.number, grab.kind, grab.dw) for grab in grabs} == {(12, DeviationClass.WIN_WIN, 0)}


@given(st.integers(-3, 3), st.integers(-3, 3))
def test_classes_cover_the_plane_as_the_sheet_draws_it(du, dw):
    expected = (
        "neutral" if du == dw == 0
        else "win-win" if du >= 0 and dw >= 0
        else "selfish" if du > 0 > dw
        else "altruistic" if du < 0 < dw
        else "sabotaging"
    )  # fmt: skip
    assert classify(du, dw) == expected


def test_a_rationed_excess_is_no_change():
    # everybody promised and demanded all there is; asking for less than that still gets its share
    [first, *_] = deviations(one_round((100,) * 5, (100, 100, 100, 100, 99)))
    assert first.agent == 4
    assert (first.dw, abs(first.du) <= 1) == (0, True)


def price_of_lying(run):
    [truth] = twins(run, seat, {TwinKind.FORCED_TRUTH})
    return truth.welfare - run.welfare


def test_the_price_of_lying_of_four_conditional_and_one_salami_is_minus_336():
    assert price_of_lying(played(["conditional"] * 4 + ["salami"])) == -336


@given(
    st.lists(st.sampled_from(["salami", "random", "conditional", "grim", "white_liar"]), min_size=2, max_size=5),
    st.integers(0, 1000),
)
@settings(max_examples=30, deadline=None)
def test_twins_are_what_playing_the_changed_condition_gives(agents, seed):
    run = played(agents, seed, audit_q=0.3, fine=2)
    for twin in twins(run, seat):
        if twin.kind is TwinKind.HONEST:
            changed = replace(
                run.parameters, agents=(*agents[: twin.agent], "honest_sustainable", *agents[twin.agent + 1 :])
            )
        else:
            changed = replace(run.parameters, speech=Speech(twin.kind))
        again = play(changed, seat(changed, seed), seed)
        assert twin.welfare == again.welfare
        assert twin.rounds == len(again.rounds)
        assert twin.payoff == (None if twin.agent is None else again.payoffs[twin.agent])


def test_there_is_no_twin_where_there_is_nothing_to_change():
    quiet = played(["grim"] * 2, channels=frozenset({Channel.CHAT}))
    assert {twin.kind for twin in twins(quiet, seat)} == {TwinKind.HONEST}
    bound = played(["grim"] * 2, speech=Speech.BINDING_PROMISE)
    assert {twin.kind for twin in twins(bound, seat)} == {TwinKind.HONEST, TwinKind.BINDING_PROMISE}
