"""What a played run of the fish pool is compared with: kept promises, truthful and honest twins, and the best possible.

Nothing here is a metric table (those are SQL under `workflow/sql/commons/`) and nothing here estimates: twins and
alternatives are exact replays under the same luck. Deviation classes are named after arXiv 2604.04782.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from fishpool.games.commons import Action, Channel, Parameters, Run, Speech, View, play, ration, regrown

HONEST = "honest_sustainable"

Seating = Callable[[Parameters, int], Sequence[Callable[[View], Action]]]


class DeviationClass(StrEnum):
    """Whom a departure from one's promise serves: the agent (du) and everyone (dW)."""

    NEUTRAL = "neutral"
    WIN_WIN = "win-win"
    SELFISH = "selfish"
    ALTRUISTIC = "altruistic"
    SABOTAGING = "sabotaging"


class TwinKind(StrEnum):
    """What is changed in a twin: everybody's reports, everybody's promises, or one agent."""

    FORCED_TRUTH = "forced_truth"
    BINDING_PROMISE = "binding_promise"
    HONEST = "honest"


@dataclass(frozen=True)
class Deviation:
    """A demand other than the promise; `du` and `dw` are in payoff, as played minus as promised."""

    number: int
    agent: int
    du: float
    dw: float
    kind: DeviationClass


@dataclass(frozen=True)
class Twin:
    """A replay of a run under the same seed with one thing changed; `agent` is who was replaced in an honest twin."""

    kind: TwinKind
    agent: int | None
    rounds: int
    welfare: float
    payoff: float | None


# --- the best possible ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def optimum(parameters: Parameters, *, survive: bool = False) -> int:
    """The most tons that n agents together can catch in T rounds, by dynamic programming over (stock, rounds left).

    With `survive` the pool must not have collapsed at the end. 650 and 645 under the default parameters; 0 if it must
    survive and cannot.
    """
    p = parameters
    after, impossible = regrown(p.capacity, p.growth), -1
    best = [0] * (p.capacity + 1)  # by stock, with no round left
    for _ in range(p.rounds):
        # by remaining stock: what the rounds to come are worth
        worth = [
            (impossible if survive else 0) if remaining < p.collapse else best[after[remaining]]
            for remaining in range(p.capacity + 1)
        ]
        best = [
            max(
                (stock - remaining + worth[remaining] for remaining in range(stock + 1) if worth[remaining] >= 0),
                default=impossible,
            )
            for stock in range(p.capacity + 1)
        ]
    return max(0, best[p.capacity])


@lru_cache(maxsize=65_536)
def continuation(capacity: int, growth: float, escapement: int, stock: int, rounds: int) -> int:
    """V(s, L): tons caught in L further rounds that keep the escapement, from stock s; 0 from an empty pool."""
    after, total = regrown(capacity, growth), 0
    for left in range(rounds, 0, -1):
        surplus = max(0, stock - escapement)
        following = after[stock - surplus]
        total += surplus
        if following == stock:  # steady from here on
            return total + surplus * (left - 1)
        stock = following
    return total


# --- deviations ---------------------------------------------------------------------------------------------------


def classify(du: float, dw: float) -> DeviationClass:
    """The class of a change of `du` for the agent and `dw` for everyone."""
    if du == 0 and dw == 0:
        return DeviationClass.NEUTRAL
    if du >= 0 and dw >= 0:
        return DeviationClass.WIN_WIN
    if du > 0 > dw:
        return DeviationClass.SELFISH
    if du < 0 < dw:
        return DeviationClass.ALTRUISTIC
    return DeviationClass.SABOTAGING


def deviations(run: Run) -> Iterator[Deviation]:
    """Every valid demand that differs from a valid promise, against the same round with that one promise kept.

    The other demands and the rationing draw are held, and so are reports and fines.
    """
    p = run.parameters
    for played in run.rounds:
        for agent, promise in enumerate(played.promises):
            demand = played.demands[agent]
            if promise is None or demand == promise or played.catch_moves[agent].fallback:
                continue
            kept = list(played.demands)
            kept[agent] = promise
            yield _deviation(p, run.seed, played.number, agent, played.stock, played.demands, kept)


def _deviation(
    p: Parameters, seed: int, number: int, agent: int, stock: int, demands: Sequence[int], kept: Sequence[int]
) -> Deviation:
    own, everyone = [], []
    for alternative in (demands, kept):
        catches = ration(p, seed, number, stock, alternative)
        total = sum(catches)
        to_come = _to_come(p, stock - total, p.rounds - number)
        own.append(p.n * catches[agent] + to_come)  # in n-ths of a ton, so that ties are exact
        everyone.append(total + to_come)
    du, dw = own[0] - own[1], everyone[0] - everyone[1]
    return Deviation(number, agent, p.price * du / p.n, p.price * dw, classify(du, dw))


def _to_come(p: Parameters, remaining: int, rounds: int) -> int:
    """V after this round; keeping less than the collapse threshold would keep nothing."""
    if remaining < p.collapse:
        return 0
    return continuation(p.capacity, p.growth, max(p.escapement, p.collapse), p.regrown[remaining], rounds)


# --- twins --------------------------------------------------------------------------------------------------------


def twins(run: Run, seat: Seating, kinds: Collection[TwinKind] = tuple(TwinKind)) -> Iterator[Twin]:
    """The counterfactual twins of a run under its own seed; `seat` gives the players of a condition.

    Two speech twins, where the channel they change is open and speech is free or changed that way already, and one
    honest twin an agent. A twin that differs from the run in nothing is the run itself and is not played again.
    """
    p = run.parameters
    for kind, speech, channel in _SPEECH_TWINS:
        if kind in kinds and channel in p.channels and p.speech in (Speech.FREE, speech):
            yield _speech_twin(run, seat, kind, speech)
    if TwinKind.HONEST not in kinds:
        return
    for agent, player in enumerate(p.agents):
        honest = replace(p, agents=(*p.agents[:agent], HONEST, *p.agents[agent + 1 :]))
        twin = run if player == HONEST else play(honest, seat(honest, run.seed), run.seed)
        yield Twin(TwinKind.HONEST, agent, len(twin.rounds), twin.welfare, twin.payoffs[agent])


_SPEECH_TWINS = (
    (TwinKind.FORCED_TRUTH, Speech.FORCED_TRUTH, Channel.REPORT),
    (TwinKind.BINDING_PROMISE, Speech.BINDING_PROMISE, Channel.PROMISE),
)


def _speech_twin(run: Run, seat: Seating, kind: TwinKind, speech: Speech) -> Twin:
    if run.parameters.speech is speech or not _would_change(run, speech):
        twin = run
    else:
        changed = replace(run.parameters, speech=speech)
        twin = play(changed, seat(changed, run.seed), run.seed)
    return Twin(kind, None, len(twin.rounds), twin.welfare, None)


def _would_change(run: Run, speech: Speech) -> bool:
    """Whether the rule would have changed anything that was said or done; scripted players do not react to rules."""
    if speech is Speech.FORCED_TRUTH:
        return any(played.reports != played.catches for played in run.rounds)
    return any(
        promise is not None and demand > promise
        for played in run.rounds
        for promise, demand in zip(played.promises, played.demands, strict=True)
    )
