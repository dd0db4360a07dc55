"""The open-strategy dictator game: strategies are documents that all can read; the dictator shares or takes all.

Nothing here reads a file, asks a model or solves anything: an oracle answers what a document decides, the equilibria
are in `fishpool.analysis`.
The source is M. Glass, "The Open-Strategy Dictator Game" (2026), sections 2 and 3; section and equation numbers are its
own. Axes are named once: a decision matrix D is (dictators, recipients), a payoff matrix A is (strategies, opponents).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isfinite, log1p, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

ENDOWMENT = 60.0

UTILITIES: dict[str, Callable[[float], float]] = {"log": log1p, "square_root": sqrt, "linear": float}


class Decision(StrEnum):
    """What a dictator does with the endowment. There is no third decision: an unread answer is a missing cell."""

    SHARE = "SHARE"
    TAKE = "TAKE"


@dataclass(frozen=True)
class Document:
    """A strategy: its text is all that other players and the oracle see; name and family only label it in tables.

    `rule` and `kind` are what the author declares for the `formal` oracle: the decision rule, and whether the document
    presents itself as cooperative or kind. None means that nothing is declared.
    """

    name: str
    family: str
    text: str
    rule: str | None = None
    kind: bool | None = None


class Votes(NamedTuple):
    """How often an oracle answered SHARE for one ordered pair, among the answers that could be read."""

    share: int
    replicates: int


Oracle = Callable[[Document, Document], Votes]
"""An oracle answers for (dictator, recipient); no readable answer at all is Votes(0, 0)."""


@dataclass(frozen=True)
class Stakes:
    """The three utilities a round can bring: keeping the endowment, half of it, and nothing (section 2.1)."""

    take: float
    share: float
    nothing: float = 0.0

    @property
    def cost(self) -> float:
        """delta of equation 4: what a dictator loses by sharing."""
        return self.take - self.share

    @property
    def gain(self) -> float:
        """g of equation 4: what a recipient gains by being shared with."""
        return self.share - self.nothing

    @property
    def exchange_rate(self) -> float:
        """rho of equation 6: shares given that one share received pays for; infinite where sharing costs nothing."""
        return self.gain / self.cost if self.cost else inf

    @property
    def altruism_threshold(self) -> float:
        """lambda* of equation 14: the weight on welfare above which giving to non-reciprocators pays its author."""
        return self.cost / self.gain if self.gain else inf

    @property
    def first_best(self) -> float:
        """Welfare V of a field in which every round is shared (section 8.5): 2 u(E/2) when u(0) = 0."""
        return 2 * self.share


def stakes(endowment: float = ENDOWMENT, utility: Callable[[float], float] = log1p) -> Stakes:
    """The stakes of a round with this endowment under a concave, increasing utility (equation 1 by default).

    Raises ValueError for an endowment that is not a positive finite number and for a utility that is not increasing or
    breaks midpoint concavity, u(E/2) >= (u(0) + u(E)) / 2: risk seekers are reached with `normalised_stakes`.
    """
    if not (isfinite(endowment) and endowment > 0):
        raise ValueError(f"endowment: found {endowment}, expected a positive number")
    nothing, share, take = utility(0.0), utility(endowment / 2), utility(float(endowment))
    if not nothing < share < take:
        raise ValueError(f"utility: u(0) = {nothing}, u(E/2) = {share}, u(E) = {take} do not increase")
    if share < (nothing + take) / 2 - 1e-12 * abs(take - nothing):
        raise ValueError(f"utility: u(E/2) = {share} is below the mean of u(0) and u(E), so it is not concave")
    return Stakes(take, share, nothing)


def normalised_stakes(share: float) -> Stakes:
    """Stakes with take 1 and nothing 0 (section 10.1): every utility up to scale; below share 0.5 it is not concave."""
    if not 0 < share < 1:
        raise ValueError(f"share payoff: found {share}, expected a number between 0 and 1")
    return Stakes(1.0, share)


def allocation(decision: Decision, endowment: float = ENDOWMENT) -> tuple[float, float]:
    """What dictator and recipient receive in one round, in units of the endowment."""
    if decision is Decision.SHARE:
        return endowment / 2, endowment / 2
    return float(endowment), 0.0


@dataclass(frozen=True)
class Tournament:
    """The decisions of a pool of strategies: every ordered pair is one round (section 3.2).

    `share_votes` and `replicates` are integer matrices (dictators, recipients). The diagonal is a round of its own;
    without self-play it was never played, and has no votes.
    """

    documents: tuple[Document, ...]
    share_votes: NDArray[np.int64] = field(repr=False)
    replicates: NDArray[np.int64] = field(repr=False)
    self_play: bool = True

    @property
    def strategies(self) -> tuple[str, ...]:
        return tuple(document.name for document in self.documents)

    @property
    def played(self) -> NDArray[np.bool_]:
        """Which rounds belong to the tournament; shape (dictators, recipients)."""
        import numpy as np

        size = len(self.documents)
        return np.ones((size, size), bool) if self.self_play else ~np.eye(size, dtype=bool)

    @property
    def decisions(self) -> Matrix:
        """D: 1 share, 0 take, NaN missing; the majority of the votes, and a tied vote is missing, never guessed."""
        import numpy as np

        margin = 2 * self.share_votes - self.replicates
        return np.where(margin > 0, 1.0, np.where(margin < 0, 0.0, np.nan))


def play(documents: Sequence[Document], oracle: Oracle, *, self_play: bool = True) -> Tournament:
    """The tournament over documents: the oracle answers once for every ordered pair, the diagonal only in self-play."""
    import numpy as np

    names = [document.name for document in documents]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"strategy {doubled[0]}: two documents have this name; rename one of them")
    size = len(documents)
    share_votes = np.zeros((size, size), np.int64)
    replicates = np.zeros((size, size), np.int64)
    for i, dictator in enumerate(documents):
        for j, recipient in enumerate(documents):
            if self_play or i != j:
                share_votes[i, j], replicates[i, j] = oracle(dictator, recipient)
    return Tournament(tuple(documents), share_votes, replicates, self_play)


def payoff_matrix(decisions: Any, stakes: Stakes) -> Matrix:
    """A of equation 3: what a strategy earns against an opponent in its two rounds with it, dictator and recipient.

    `decisions` has shape (dictators, recipients) with 1 share, 0 take, NaN missing; a pair with a missing round has no
    payoff (NaN). The result is float64 whatever the numbers are: half an odd endowment is not an integer.
    """
    shared = _decisions(decisions)
    return stakes.take - stakes.cost * shared + stakes.nothing + stakes.gain * shared.T


def welfare_matrix(decisions: Any, stakes: Stakes) -> Matrix:
    """W of equation 12: what both parties together earn in the two rounds between two strategies; symmetric."""
    shared = _decisions(decisions)
    return 2 * (stakes.take + stakes.nothing) + (stakes.gain - stakes.cost) * (shared + shared.T)


def scores(decisions: Any, stakes: Stakes, *, self_play: bool = True) -> Matrix:
    """Tournament score of every strategy, shape (strategies,): the row sums of A over the rounds that were played.

    A strategy with a missing round has no score (NaN); without self-play the diagonal is no round at all.
    """
    import numpy as np

    payoffs = payoff_matrix(decisions, stakes)
    if not self_play:
        np.fill_diagonal(payoffs, 0.0)
    total: Matrix = payoffs.sum(axis=1)
    return total


def _decisions(decisions: Any) -> Matrix:
    import numpy as np

    shared = np.asarray(decisions, np.float64)
    if shared.ndim != 2 or shared.shape[0] != shared.shape[1]:
        raise ValueError(f"decisions: found shape {shared.shape}, expected (dictators, recipients) of equal length")
    if not np.isin(shared[~np.isnan(shared)], (0.0, 1.0)).all():
        raise ValueError("decisions: expected 1 (share), 0 (take) or NaN (missing) in every cell")
    return shared
