"""The analysis of decision and payoff matrices: known traps, and what must hold on random ones."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from fishpool.analysis import properties
from fishpool.analysis.agreement import agreement
from fishpool.analysis.author_types import author_types, bloc_response, field_welfare, ranks
from fishpool.analysis.basins import boundary, wilson_interval
from fishpool.analysis.decomposition import decompose, harvest, second_order_gaps
from fishpool.analysis.dominance import Kind, dominance, pure_dominators
from fishpool.analysis.equilibria import (
    Dynamics,
    Ending,
    centre,
    equilibria,
    iterate,
    own_payoff,
    spectral_radius,
    trajectory,
    uniform_starts,
)
from fishpool.analysis.resampling import drawn_from_votes, drawn_with_noise, single_flips
from fishpool.games.dictator import payoff_matrix, scores, stakes, welfare_matrix

STAKES = stakes()


def profiles(low=2, high=7, *, missing=False):
    cells = st.sampled_from([0.0, 1.0, np.nan] if missing else [0.0, 1.0])
    return st.integers(low, high).flatmap(lambda n: hnp.arrays(np.float64, (n, n), elements=cells))


def games(low=2, high=6):
    """Small whole numbers, so that ties between rows are common."""
    return st.integers(low, high).flatmap(
        lambda n: hnp.arrays(np.float64, (n, n), elements=st.integers(0, 3).map(float))
    )


class TestDominance:
    def test_a_gain_in_one_column_with_ties_elsewhere_is_weak_dominance(self):
        # Maximising one common slack misses this: the tied columns hold it at 0.
        verdicts = dominance([[0, 1, 1], [2, 1, 1], [1, 1, 1]])
        assert [v.kind for v in verdicts] == [Kind.WEAK, Kind.NONE, Kind.WEAK]
        assert verdicts[2].dominators == (1,)
        assert verdicts[2].slack == pytest.approx(1)

    def test_a_small_difference_among_large_payoffs_is_dominance_and_not_equivalence(self):
        low, high = dominance([[1000, 1000], [1000.005, 1000.005]])
        assert (low.kind, low.dominators, high.kind) == (Kind.STRICT, (1,), Kind.NONE)
        assert low.slack == pytest.approx(0.01)

    def test_a_five_cycle_beats_a_sixth_strategy_by_its_uniform_mixture_only(self):
        A = np.full((6, 6), 0.3999)
        A[:5, :5] = [[(0, 1, 1, 0, 0)[(j - i) % 5] for j in range(5)] for i in range(5)]
        A[:5, 5] = 0.5
        sixth = dominance(A)[5]
        assert sixth.kind is Kind.STRICT
        assert sixth.dominators == ()
        assert sixth.mixture == pytest.approx(dict.fromkeys(range(5), 0.2), abs=0.005)

    def test_equal_rows_do_not_dominate_each_other(self):
        assert {v.kind for v in dominance(np.ones((4, 4)))} == {Kind.NONE}
        assert {v.kind for v in dominance([[1, 0, 2], [1, 0, 2], [0, 3, 0]])} == {Kind.NONE}

    def test_a_missing_payoff_is_a_fault(self):
        with pytest.raises(ValueError, match="missing"):
            dominance([[1, np.nan], [0, 1]])

    @given(games())
    @settings(max_examples=150, deadline=None)
    def test_agrees_with_best_responses_to_beliefs(self, A):
        # The dual: undominated (strictly) iff a best response to some belief, weakly iff to some full-support belief.
        for i, verdict in enumerate(dominance(A)):
            n = len(A)
            worse = np.delete(A, i, axis=0) - A[i]
            belief = linprog(
                np.append(np.zeros(n), -1),
                A_ub=np.vstack([np.hstack([worse, np.zeros((n - 1, 1))]), np.hstack([-np.eye(n), np.ones((n, 1))])]),
                b_ub=np.zeros(2 * n - 1),
                A_eq=np.append(np.ones(n), 0)[None],
                b_eq=[1],
            )
            strictly = belief.status == 2
            weakly = strictly or -belief.fun < 1e-9
            expected = Kind.STRICT if strictly else Kind.WEAK if weakly else Kind.NONE
            assert verdict.kind is expected

    @given(games())
    @settings(deadline=None)
    def test_the_mixture_certifies_the_verdict(self, A):
        pure = pure_dominators(A)
        for i, verdict in enumerate(dominance(A)):
            assert verdict.dominators == tuple(np.flatnonzero(pure[:, i]))
            if verdict.kind is Kind.NONE:
                assert not verdict.mixture
                continue
            assert i not in verdict.mixture
            gain = sum(weight * A[j] for j, weight in verdict.mixture.items()) - A[i]
            assert sum(verdict.mixture.values()) == pytest.approx(1)
            assert (gain > -1e-6).all()
            assert gain.sum() == pytest.approx(verdict.slack, abs=1e-5)
            assert verdict.slack > 0


class TestPropositions:
    @given(profiles(), st.integers(0, 2**32 - 1))
    @settings(deadline=None)
    def test_proposition_2_a_full_support_belief_ranks_a_dominated_strategy_below_its_mixture(self, D, seed):
        A = payoff_matrix(D, STAKES)
        belief = np.random.default_rng(seed).dirichlet(np.ones(len(A)))
        assume(belief.min() > 1e-4)
        for i, verdict in enumerate(dominance(A)):
            if verdict.kind is not Kind.NONE:
                mixed = sum(weight * (A @ belief)[j] for j, weight in verdict.mixture.items())
                assert mixed > (A @ belief)[i]

    @given(profiles(), st.sampled_from([0.5, 5.0, 20.0, 100.0]))
    @settings(max_examples=60, deadline=None)
    def test_proposition_3_a_fixed_point_exists_in_the_interior(self, D, beta):
        response = own_payoff(payoff_matrix(D, STAKES), beta)
        found = equilibria(response, uniform_starts(len(D), 60, 1), Dynamics.DAMPED)
        assert len(found.points) >= 1
        assert (found.points > 0).all()
        assert found.points.sum(axis=1) == pytest.approx(1)
        assert found.residuals.max() < 1e-9

    @given(profiles(), st.floats(1, 1e6))
    def test_equation_5_the_decomposition_is_the_row_sum_of_payoffs(self, D, endowment):
        parts = decompose(D, stakes(endowment))
        assert parts.score == pytest.approx(payoff_matrix(D, stakes(endowment)).sum(axis=1))
        assert parts.k_give.sum() == parts.k_recv.sum()

    @given(profiles(4, 8))
    @settings(max_examples=300)
    def test_proposition_1_the_unconditional_cooperator_loses_at_least_the_gain(self, D):
        # Put the cast of the proposition into a random pool: a defector, a cooperator, a second-order deterrent, and a
        # conditional cooperator whom no other strategy treats worse than the unconditional one.
        D = D.copy()
        defector, c_bar, deterrent, c = 0, 1, 2, 3
        D[:, c] = np.maximum(D[:, c], D[:, c_bar])
        D[defector], D[c_bar] = 0, 1
        D[deterrent, [defector, c_bar, c]] = 0, 0, 1
        D[c, [defector, c_bar, deterrent, c]] = 0, 1, 1, 1
        for other in range(4, len(D)):
            D[other, c] = max(D[other, c], D[other, c_bar])
            if D[other, defector]:  # a subsidizer
                D[deterrent, other] = 0
        assume(D[4:].any(axis=1).all() and not D[4:].all(axis=1).any())  # no further unconditional strategies
        gaps = [gap for gap in second_order_gaps(D, STAKES) if gap.unconditional == c_bar]
        assert gaps
        for gap in gaps:
            assert gap.gap >= STAKES.gain - 1e-9

    def test_proposition_1_needs_that_nobody_else_prefers_the_unconditional_cooperator(self):
        # Two strategies that share with the unconditional cooperator (1) and take from the conditional one (3): the
        # premise as printed holds, its conclusion does not. Such members are left out of C.
        D = np.array(
            [
                [0, 0, 0, 0, 0, 0],
                [1, 1, 1, 1, 1, 1],
                [0, 0, 1, 1, 0, 0],
                [0, 1, 1, 1, 0, 0],
                [0, 1, 0, 0, 1, 1],
                [0, 1, 0, 0, 1, 1],
            ],
            float,
        )
        parts = decompose(D, STAKES)
        assert parts.score[3] - parts.score[1] < STAKES.gain
        assert second_order_gaps(D, STAKES) == []


class TestFixedPoints:
    def test_matching_pennies_like_cycle(self):
        found = equilibria(own_payoff([[0, 1], [1, 0]], 20), uniform_starts(2, 200, 1))
        assert set(found.runs.endings) == {Ending.CYCLE}
        assert (found.basin == -1).all()
        assert found.points == pytest.approx(np.full((1, 2), 0.5))
        assert not found.stable[0]
        assert found.counts[0] == 0

    def test_damping_reaches_what_the_plain_iteration_cycles_around(self):
        found = equilibria(own_payoff([[0, 1], [1, 0]], 20), uniform_starts(2, 50, 1), Dynamics.DAMPED)
        assert found.counts[0] == 50
        assert found.stable[0]

    def test_a_saturated_response_is_no_cycle(self):
        # The response stands at (1, 0) to the last bit from the first step on; the damped field still moves there.
        response = own_payoff(payoff_matrix([[1, 0], [1, 1]], STAKES), 100.0)
        assert iterate(response, uniform_starts(2, 20, 1), Dynamics.DAMPED).converged.all()

    def test_a_cycle_of_three_is_a_cycle(self):
        found = iterate(own_payoff([[0, 0, 1], [1, 0, 0], [0, 1, 0]], 60.0), uniform_starts(3, 20, 1))
        assert set(found.endings) == {Ending.CYCLE}
        assert (found.iterations < 200).all()

    def test_identity_has_three_fixed_points(self):
        found = equilibria(own_payoff(np.eye(2), 20), uniform_starts(2, 200, 1))
        assert sorted(found.points[:, 0].round(3)) == [0, 0.5, 1]
        assert list(found.stable) == [True, True, False]
        assert found.counts.sum() == 200

    def test_a_five_cycle_game_has_the_uniform_mixture(self):
        A = np.array([[(0, 1, 1, -1, -1)[(j - i) % 5] for j in range(5)] for i in range(5)], float)
        for beta in (1, 10, 100):
            found = equilibria(own_payoff(A, beta), uniform_starts(5, 40, 1), Dynamics.DAMPED)
            assert found.points == pytest.approx(np.full((1, 5), 0.2), abs=1e-9)

    def test_no_selection_is_the_uniform_field(self):
        found = equilibria(own_payoff(np.random.default_rng(0).random((4, 4)), 1e-12), uniform_starts(4, 10, 1))
        assert found.points == pytest.approx(np.full((1, 4), 0.25), abs=1e-9)

    def test_a_missing_payoff_is_a_fault(self):
        with pytest.raises(ValueError, match="missing"):
            own_payoff([[1, np.nan], [0, 1]], 20)

    @given(profiles(), st.integers(0, 100))
    @settings(max_examples=40, deadline=None)
    def test_all_starts_together_move_as_each_alone(self, D, seed):
        response = own_payoff(payoff_matrix(D, STAKES), 7.0)
        starts = uniform_starts(len(D), 5, seed)
        together = iterate(response, starts)
        for i, start in enumerate(starts):
            alone = iterate(response, start)
            assert together.converged[i] == alone.converged[0]
            if together.converged[i]:  # where another run stood is chance: rounding grows along a chaotic orbit
                assert together.points[i] == pytest.approx(alone.points[0], abs=1e-9)

    @given(profiles())
    @settings(max_examples=40, deadline=None)
    def test_a_converged_run_ends_in_a_fixed_point_and_every_other_is_marked(self, D):
        response = own_payoff(payoff_matrix(D, STAKES), 20.0)
        runs = iterate(response, uniform_starts(len(D), 20, 4))
        change = np.abs(response(runs.points) - runs.points).max(axis=1)
        assert (change[runs.converged] < 1e-7).all()
        assert (change[~runs.converged] > 1e-9).all()

    @given(profiles(2, 5), st.integers(0, 50))
    @settings(max_examples=40, deadline=None)
    def test_the_jacobian_is_the_derivative(self, D, seed):
        A, W = payoff_matrix(D, STAKES), welfare_matrix(D, STAKES)
        response = author_types(A, W, 2.0)
        field = uniform_starts(len(D), 1, seed)
        step = 1e-6 * np.eye(len(D))
        numeric = (response(field + step) - response(field - step)).T / 2e-6
        assert response.jacobian(field)[0] == pytest.approx(numeric, abs=1e-5)

    def test_trajectory_starts_at_its_start_and_ends_where_iterate_does(self):
        response = own_payoff(np.eye(3), 5)
        start = uniform_starts(3, 1, 8)
        path, ending = trajectory(response, start)
        assert (path[0] == start[0]).all()
        assert ending is Ending.CONVERGED
        assert path[-1] == pytest.approx(iterate(response, start).points[0], abs=1e-8)

    def test_spectral_radius_of_a_known_map(self):
        # At (1/2, 1/2) of the identity the response's slope along the simplex is beta / 2.
        assert spectral_radius(own_payoff(np.eye(2), 3), [0.5, 0.5]) == pytest.approx(1.5)
        assert spectral_radius(own_payoff(np.eye(2), 3), [0.5, 0.5], Dynamics.DAMPED) == pytest.approx(1 + 0.02 * 0.5)


class TestAuthorTypes:
    def test_own_payoff_authors_alone_are_the_softmax_of_section_7(self):
        D = (np.random.default_rng(1).random((5, 5)) < 0.5).astype(float)
        A, W = payoff_matrix(D, STAKES), welfare_matrix(D, STAKES)
        fields = uniform_starts(5, 4, 0)
        assert author_types(A, W, 3.0, (1.0, 0.0, 0.0))(fields) == pytest.approx(own_payoff(A, 3.0)(fields))

    @given(profiles(2, 5), st.floats(0.01, 0.9))
    @settings(max_examples=30, deadline=None)
    def test_pinned_mass_stays_pinned_and_fields_stay_in_the_simplex(self, D, mass):
        response = bloc_response(payoff_matrix(D, STAKES), welfare_matrix(D, STAKES), 5.0, mass, 0)
        fields = response(uniform_starts(len(D), 5, 0))
        assert fields.sum(axis=1) == pytest.approx(1)
        assert (fields[:, 0] >= mass).all()

    def test_masses_must_sum_to_one(self):
        with pytest.raises(ValueError, match="sum to 1"):
            author_types(np.eye(2), np.eye(2), 1.0, (0.5, 0.4, 0.2))

    @given(profiles())
    def test_welfare_counts_both_parties(self, D):
        A, W = payoff_matrix(D, STAKES), welfare_matrix(D, STAKES)
        assert pytest.approx(A + A.T) == W
        assert (field_welfare(W, centre(len(D))) <= STAKES.first_best + 1e-9).all()

    def test_ranks_share_the_better_place_and_leave_missing_values_out(self):
        assert ranks([3.0, 5.0, 5.0, np.nan]) == pytest.approx([3, 1, 1, np.nan], nan_ok=True)


class TestProperties:
    @given(profiles(missing=True))
    @settings(max_examples=100)
    def test_a_verdict_on_missing_cells_holds_however_they_are_filled(self, D):
        filled = [np.where(np.isnan(D), value, D) for value in (0.0, 1.0)]
        rng = np.random.default_rng(0)
        filled += [np.where(np.isnan(D), rng.integers(0, 2, D.shape), D) for _ in range(3)]
        for judge in (
            properties.unconditional,
            properties.self_cooperating,
            properties.reciprocal,
            properties.exploited,
            properties.exploiter,
            properties.subsidizer,
            properties.first_order_deterrent,
            properties.second_order_deterrent,
        ):
            known = judge(D)
            for profile in filled:
                agrees = np.isnan(known) | (known == judge(profile))
                assert agrees.all(), judge.__name__

    @given(profiles())
    def test_definitions(self, D):
        n = len(D)
        exploiters = {r for r in range(n) if any(D[s, r] == 1 and D[r, s] == 0 for s in range(n))}
        subsidizers = {s for s in range(n) if any(D[s, r] == 1 for r in exploiters)}
        for s in range(n):
            assert properties.unconditional(D)[s] == (len(set(D[s])) == 1)
            assert properties.reciprocal(D)[s] == (D[s] == D[:, s]).all()
            assert properties.exploiter(D)[s] == (s in exploiters)
            assert properties.subsidizer(D)[s] == (s in subsidizers)
            deters = all(D[s, r] == 0 for r in exploiters)
            assert properties.first_order_deterrent(D)[s] == deters
            assert properties.second_order_deterrent(D)[s] == (deters and all(D[s, r] == 0 for r in subsidizers))
        assert (properties.extensional(D) == 1).all()

    def test_protection_needs_an_unconditional_cooperator(self):
        assert np.isnan(properties.protective(np.zeros((3, 3)))).all()
        D = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 1]], float)  # the third does as others do to the first
        assert list(properties.protective(D)) == [0, 0, 1]

    def test_without_self_play_the_diagonal_says_nothing(self):
        D = np.array([[np.nan, 1, 1], [0, np.nan, 0], [1, 0, np.nan]])
        assert list(properties.unconditional(D, self_play=False)) == [1, 1, 0]
        assert np.isnan(properties.unconditional(D)[:2]).all()
        assert np.isnan(properties.self_cooperating(D)).all()

    def test_equivalent_strategies_share_a_class(self):
        D = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]], float)
        assert list(properties.equivalence_classes(D)) == [0, 0, 1]

    def test_harvest_counts_cooperators_against_protectors(self):
        D = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 1]], float)
        sides = harvest(D, STAKES)
        assert (sides.cooperators, sides.protectors, sides.pays) == (1, 1, False)
        assert sides.threshold == pytest.approx(STAKES.exchange_rate)


class TestBasinsAndOracles:
    def test_wilson_interval_is_the_published_one(self):
        # Newcombe (1998), Statistics in Medicine 17:857: 81 of 263 has the score interval .2553 to .3662.
        assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
        assert wilson_interval(0, 0) is None
        assert wilson_interval(1, 1) is None

    def test_boundary_finds_a_line_that_divides(self):
        starts = uniform_starts(3, 4000, 3)
        second = starts[:, 0] > 0.1 + 0.7 * starts[:, 1]
        line = boundary(starts, second, (0, 1))
        assert (line.intercept, line.slopes[0]) == pytest.approx((0.1, 0.7), abs=0.02)
        assert line.accuracy > 0.99

    def test_boundary_of_one_basin_is_a_fault(self):
        with pytest.raises(ValueError, match="empty"):
            boundary(uniform_starts(3, 10, 0), np.zeros(10, bool), (0, 1))

    def test_agreement_leaves_missing_cells_out(self):
        both = agreement([[1, np.nan], [0, 1]], [[1, 1], [1, np.nan]])
        assert (both.cells, both.agree, both.rate) == (2, 1, 0.5)
        assert np.isnan(agreement([[np.nan]], [[1]]).rate)

    def test_unanimous_votes_are_never_redrawn(self):
        votes = np.array([[3, 0], [2, 0]])
        draws = drawn_from_votes(votes, np.array([[3, 3], [3, 0]]), 4000, 1)
        assert (draws[:, 0, 0] == 1).all()
        assert (draws[:, 0, 1] == 0).all()
        assert np.isnan(draws[:, 1, 1]).all()
        assert draws[:, 1, 0].mean() == pytest.approx(2 / 3, abs=0.03)

    def test_noise_turns_decisions_over_at_its_rate_and_leaves_missing_ones(self):
        D = np.array([[1, 0], [np.nan, 1]])
        draws = drawn_with_noise(D, 0.1, 5000, 2)
        assert (draws[:, 0, 1] == 1).mean() == pytest.approx(0.1, abs=0.015)
        assert np.isnan(draws[:, 1, 0]).all()
        assert (drawn_with_noise(D, 0.0, 3)[:, 0] == D[0]).all()

    @given(profiles(2, 4, missing=True))
    def test_every_flip_differs_in_one_decided_cell(self, D):
        flips = list(single_flips(D))
        assert len(flips) == (~np.isnan(D)).sum()
        for i, j, changed in flips:
            differs = ~((changed == D) | (np.isnan(changed) & np.isnan(D)))
            assert list(map(tuple, np.argwhere(differs))) == [(i, j)]

    def test_scores_of_a_missing_round_are_missing(self):
        D = np.array([[1, 1, 0], [1, np.nan, 0], [0, 0, 0]])
        assert list(np.isnan(scores(D, STAKES))) == [False, True, False]
