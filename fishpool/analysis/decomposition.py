"""What a score is made of: shares given, shares received, and the rate at which one pays for the other.

No equilibrium is computed here; it is arithmetic on one decision matrix D of shape (dictators, recipients), with
1 share, 0 take and NaN missing.
The source is section 4 of the paper named in `fishpool.games.dictator`: equations 4 to 7 and Proposition 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fishpool.analysis import properties
from fishpool.games.dictator import Stakes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Decomposition:
    """Equation 5 term by term: score = rounds u(E) - cost k_give + gain k_recv; arrays of shape (strategies,)."""

    rounds: Matrix
    k_give: Matrix
    k_recv: Matrix
    score: Matrix


def decompose(decisions: Any, stakes: Stakes, *, self_play: bool = True) -> Decomposition:
    """Split every strategy's score; NaN where one of its own rounds is missing.

    `rounds` counts the opponents met in each role: all strategies, or all others without self-play.
    """
    shared = np.array(decisions, np.float64)
    size = len(shared)
    if not self_play:
        np.fill_diagonal(shared, 0.0)
    rounds = np.full(size, float(size if self_play else size - 1))
    give, receive = shared.sum(axis=1), shared.sum(axis=0)
    score = rounds * (stakes.take + stakes.nothing) - stakes.cost * give + stakes.gain * receive
    return Decomposition(rounds, give, receive, score)


@dataclass(frozen=True)
class Harvest:
    """Inequality 7: exploiting unconditional cooperators pays if there are more than rho of them to a protector."""

    cooperators: int
    protectors: int
    threshold: float
    pays: bool


def harvest(decisions: Any, stakes: Stakes) -> Harvest:
    """Count both sides of inequality 7 in the pool; a strategy whose property is undetermined counts for neither."""
    cooperators = int((properties.unconditional_cooperator(decisions) == 1).sum())
    protectors = int((properties.protective(decisions) == 1).sum())
    threshold = stakes.exchange_rate * protectors if protectors else 0.0
    return Harvest(cooperators, protectors, threshold, cooperators > threshold)


@dataclass(frozen=True)
class SecondOrderGap:
    """Proposition 1 on the pool: one second-order deterrent, the conditional cooperators C, an unconditional one.

    `gap` is the least score of C minus the unconditional cooperator's; the proposition says gap >= gain.
    """

    deterrent: int
    cooperators: tuple[int, ...]
    unconditional: int
    gap: float


def second_order_gaps(decisions: Any, stakes: Stakes) -> list[SecondOrderGap]:
    """Every (deterrent, unconditional cooperator) of the pool for which the premise of Proposition 1 holds.

    Deterrence is judged relative to the unconditional defectors. C is the set of strategies that share with each other,
    with the deterrent and with the unconditional cooperator, and with which the deterrent shares. The paper's proof
    counts only the deterrent among the dictators that treat the two differently, so a third strategy that shares with
    the unconditional cooperator and takes from a member of C breaks the conclusion; such members are left out of C.
    """
    shared = np.asarray(decisions, np.float64)
    defectors = properties.unconditional_defector(shared) == 1
    unconditional = properties.unconditional_cooperator(shared) == 1
    deterrents = properties.second_order_deterrent(shared, exploiters=defectors.astype(float)) == 1
    score = decompose(shared, stakes).score
    gaps = []
    for c_bar in np.flatnonzero(unconditional):
        for s_2 in np.flatnonzero(deterrents) if defectors.any() else ():
            members = (shared[:, s_2] == 1) & (shared[:, c_bar] == 1) & (shared[s_2] == 1) & ~unconditional
            members &= (shared >= shared[:, [c_bar]]).all(axis=0)
            members[s_2] = False
            chosen = _mutually_sharing(shared, members)
            if chosen.any():
                gap = float(score[chosen].min() - score[c_bar])
                gaps.append(SecondOrderGap(int(s_2), tuple(map(int, np.flatnonzero(chosen))), int(c_bar), gap))
    return gaps


def _mutually_sharing(shared: Matrix, members: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Drop the member with the fewest mutual shares until all that are left share with each other and themselves."""
    members = members.copy()
    mutual = (shared == 1) & (shared.T == 1)
    while members.any():
        inside = mutual[np.ix_(members, members)].sum(axis=1)
        if (inside == members.sum()).all():
            break
        members[np.flatnonzero(members)[inside.argmin()]] = False
    return members
