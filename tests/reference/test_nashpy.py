"""Our fixed points against the symmetric Nash equilibria that nashpy finds by vertex enumeration."""

import numpy as np
import pytest

from fishpool.analysis.equilibria import Dynamics, equilibria, own_payoff, uniform_starts

nashpy = pytest.importorskip("nashpy")
pytestmark = pytest.mark.reference


def symmetric_equilibria(A):
    pairs = nashpy.Game(A, A.T).vertex_enumeration()
    return [row for row, column in pairs if np.abs(row - column).max() < 1e-6]


@pytest.mark.parametrize("seed", range(12))
def test_fixed_points_tend_to_symmetric_equilibria_as_beta_grows(seed):
    # Random payoffs are nondegenerate, so the equilibria are isolated and vertex enumeration finds all of them.
    A = np.random.default_rng(seed).random((3 + seed % 3,) * 2)
    nash = np.array(symmetric_equilibria(A))
    furthest = []
    for beta in (50.0, 500.0, 5000.0):
        response = own_payoff(A, beta)
        starts = uniform_starts(len(A), 60, seed)
        points = np.vstack([equilibria(response, starts, dynamics).points for dynamics in Dynamics])
        assert len(points)
        furthest.append(max(np.abs(nash - point).max(axis=1).min() for point in points))
    assert furthest[-1] < 5e-3
    assert furthest[-1] <= max(furthest[0], 1e-3)


def test_a_strict_symmetric_equilibrium_attracts():
    A = np.array([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    pure = {tuple(row.round(6)) for row in symmetric_equilibria(A) if row.max() > 1 - 1e-9}
    found = equilibria(own_payoff(A, 20.0), uniform_starts(3, 300, 1))
    assert {tuple(point.round(6)) for point in found.points[found.stable]} == pure
    # Vertex enumeration finds the mixed ones too: each pair and all three.
    assert len(found.points) == len(symmetric_equilibria(A)) == 7
