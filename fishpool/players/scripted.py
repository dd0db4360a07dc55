"""Scripted strategies of the iterated prisoner's dilemma: each a pure function of what one agent has seen.

A strategy is defined once, over many matches at a time: it reads a `History` and returns one choice per match, True for
cooperate. It keeps no state, so the same definition plays in columns, serves the referee as a batch of one, and says
what it *would* have chosen in any recorded history. Definitions follow Axelrod-Python 4.13, against which tests hold
them move for move; the sources of the strategies themselves are given there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass
class History:
    """What one side of each match has seen: choices after noise, shape (rounds, matches), True is cooperate.

    Only the first `resolved` rows count. `luck` gives each match's uniform draw for the round to come; a strategy
    that never asks for it is deterministic. Counts are kept up to date from one round to the next.
    """

    own: np.ndarray
    other: np.ndarray
    total_rounds: int
    luck: Callable[[int], np.ndarray]
    resolved: int = 0
    _counts: dict[Hashable, tuple[int, np.ndarray]] = field(default_factory=dict)

    @property
    def opening(self) -> bool:
        return self.resolved == 0

    @property
    def remaining(self) -> int:
        """Rounds left, this one included."""
        return self.total_rounds - self.resolved

    def always(self, cooperate: bool) -> np.ndarray:
        import numpy as np

        return np.full(self.own.shape[1], cooperate)

    def mine(self, back: int = 1) -> np.ndarray:
        return self.own[self.resolved - back]

    def theirs(self, back: int = 1) -> np.ndarray:
        return self.other[self.resolved - back]

    def theirs_in(self, round_number: int) -> np.ndarray:
        """The opponent's choice in a round, counted from 1."""
        return self.other[round_number - 1]

    def rounds_of(self, mine: bool, theirs: bool) -> np.ndarray:
        """How many resolved rounds had these two choices, by match."""
        return self._count((mine, theirs), lambda past: (self.own[past] == mine) & (self.other[past] == theirs))

    @property
    def defections(self) -> np.ndarray:
        """How often the opponent has defected, by match."""
        return self._count("defections", lambda past: ~self.other[past])

    def _count(self, what: Hashable, happened: Callable[[int], np.ndarray]) -> np.ndarray:
        import numpy as np

        counted, count = self._counts.get(what, (0, np.zeros(self.own.shape[1], np.int32)))
        for past in range(counted, self.resolved):
            count = count + happened(past)
        self._counts[what] = (self.resolved, count)
        return count

    def chance(self, probability: float | np.ndarray) -> np.ndarray:
        return self.luck(self.resolved) < probability


@dataclass(frozen=True)
class Strategy:
    """A named strategy; `choose` maps a history to one choice per match."""

    name: str
    choose: Callable[[History], np.ndarray]
    stochastic: bool


STRATEGIES: dict[str, Strategy] = {}


def _strategy(
    name: str, *, stochastic: bool = False
) -> Callable[[Callable[[History], np.ndarray]], Callable[[History], np.ndarray]]:
    def register(choose: Callable[[History], np.ndarray]) -> Callable[[History], np.ndarray]:
        STRATEGIES[name] = Strategy(name, choose, stochastic)
        return choose

    return register


def prescribe(strategy: Strategy, own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """What a deterministic strategy would have chosen in each round of recorded matches, given what was seen by then.

    `own`, `other`: bool of shape (rounds, matches), one whole match a column. Returns the same shape.
    """
    import numpy as np

    if strategy.stochastic:
        raise ValueError(f"{strategy.name} draws lots, so it prescribes no single choice; use a deterministic strategy")
    history = History(own, other, len(own), luck=no_luck)
    prescribed = np.empty_like(own)
    for resolved in range(len(own)):
        history.resolved = resolved
        prescribed[resolved] = strategy.choose(history)
    return prescribed


def no_luck(resolved: int) -> np.ndarray:
    """The luck of deterministic strategies."""
    raise ValueError("a strategy that is declared deterministic asked for a random draw")


# ── Unconditional ────────────────────────────────────────────────────────────────────────────────────────────────


@_strategy("Cooperator")
def cooperator(seen: History) -> np.ndarray:
    return seen.always(True)


@_strategy("Defector")
def defector(seen: History) -> np.ndarray:
    return seen.always(False)


@_strategy("Random", stochastic=True)
def random(seen: History) -> np.ndarray:
    return seen.chance(1 / 2)


@_strategy("Alternator")
def alternator(seen: History) -> np.ndarray:
    return seen.always(True) if seen.opening else ~seen.mine()


# ── Tit for tat and its kin ──────────────────────────────────────────────────────────────────────────────────────


@_strategy("TitForTat")
def tit_for_tat(seen: History) -> np.ndarray:
    return seen.always(True) if seen.opening else seen.theirs()


@_strategy("SuspiciousTitForTat")
def suspicious_tit_for_tat(seen: History) -> np.ndarray:
    return seen.always(False) if seen.opening else seen.theirs()


@_strategy("TitForTwoTats")
def tit_for_two_tats(seen: History) -> np.ndarray:
    """Defects when the opponent's last two were both defections."""
    return seen.always(True) if seen.resolved < 2 else seen.theirs(1) | seen.theirs(2)


@_strategy("TwoTitsForTat")
def two_tits_for_tat(seen: History) -> np.ndarray:
    """Defects when either of the opponent's last two was a defection."""
    if seen.resolved < 2:
        return tit_for_tat(seen)
    return seen.theirs(1) & seen.theirs(2)


@_strategy("GenerousTitForTat", stochastic=True)
def generous_tit_for_tat(seen: History) -> np.ndarray:
    """Forgives a defection with probability min(1 - (T-R)/(R-S), (R-P)/(T-P)) = 1/3."""
    return seen.always(True) if seen.opening else seen.theirs() | seen.chance(1 / 3)


@_strategy("Joss", stochastic=True)
def joss(seen: History) -> np.ndarray:
    return seen.always(True) if seen.opening else seen.theirs() & seen.chance(0.9)


@_strategy("Grudger")
def grudger(seen: History) -> np.ndarray:
    return seen.defections == 0


@_strategy("WinStayLoseShift")
def win_stay_lose_shift(seen: History) -> np.ndarray:
    return seen.always(True) if seen.opening else seen.mine() == seen.theirs()


# ── Counting ─────────────────────────────────────────────────────────────────────────────────────────────────────


@_strategy("SoftMajority")
def soft_majority(seen: History) -> np.ndarray:
    return 2 * seen.defections <= seen.resolved


@_strategy("HardMajority")
def hard_majority(seen: History) -> np.ndarray:
    return 2 * seen.defections < seen.resolved


@_strategy("BackStabber")
def back_stabber(seen: History) -> np.ndarray:
    """Defects on the last two rounds, and once the opponent has defected more than three times."""
    return seen.always(False) if seen.remaining <= 2 else seen.defections <= 3


@_strategy("Adaptive")
def adaptive(seen: History) -> np.ndarray:
    """After C six times and D five times, whichever of the two has earned more in total; a tie is D."""
    if seen.resolved < 11:
        return seen.always(seen.resolved < 6)
    earned_cooperating = 3 * seen.rounds_of(True, True)
    earned_defecting = 5 * seen.rounds_of(False, True) + seen.rounds_of(False, False)
    return earned_cooperating > earned_defecting


# ── Probing and signalling ───────────────────────────────────────────────────────────────────────────────────────


@_strategy("Prober")
def prober(seen: History) -> np.ndarray:
    """D, C, C; then D for ever if the opponent let that pass (C in rounds 2 and 3), else tit for tat."""
    if seen.resolved < 3:
        return seen.always(seen.resolved > 0)
    return seen.theirs() & ~(seen.theirs_in(2) & seen.theirs_in(3))


@_strategy("Handshake")
def handshake(seen: History) -> np.ndarray:
    """C, D; then C for ever if the opponent opened C, D too, else D."""
    if seen.resolved < 2:
        return seen.always(seen.opening)
    return seen.theirs_in(1) & ~seen.theirs_in(2)


@_strategy("Tester")
def tester(seen: History) -> np.ndarray:
    """D, C, C, then alternates until the opponent's first defection; one C in reply to it, then tit for tat."""
    if seen.opening:
        return seen.always(False)
    untried = seen.always(True) if seen.resolved in (1, 2) else ~seen.mine()
    defections = seen.defections  # after the first, C either way: as the apology, or since the opponent went back to C
    return ((defections == 0) & untried) | (defections == 1) | ((defections > 0) & seen.theirs())


@_strategy("Appeaser")
def appeaser(seen: History) -> np.ndarray:
    """Keeps its choice while the opponent cooperates and changes it after each defection."""
    return seen.always(True) if seen.opening else seen.mine() == seen.theirs()


@_strategy("GradualKiller")
def gradual_killer(seen: History) -> np.ndarray:
    """D five times, C twice; then D for ever if the opponent defected in rounds 6 and 7, else C."""
    if seen.resolved < 7:
        return seen.always(seen.resolved >= 5)
    return seen.theirs_in(6) | seen.theirs_in(7)


@_strategy("ZDExtort2", stochastic=True)
def zd_extort_2(seen: History) -> np.ndarray:
    """P(C | CC, CD, DC, DD) = 8/9, 1/2, 1/3, 0."""
    if seen.opening:
        return seen.always(True)
    mine, theirs = seen.mine(), seen.theirs()
    return seen.chance(mine * theirs * (8 / 9) + mine * ~theirs * (1 / 2) + ~mine * theirs * (1 / 3))
