"""The iterated prisoner's dilemma: two agents, a known number of rounds, both choose at once, most points win.

These are the rules alone: what an agent sees (`view`), what it may do (`read_action`), and what a round's two moves
make of a match, with every way in which it can end (`settle`). Clocks and the reading of replies belong to
`fishpool.referee`, pairing and records to `fishpool.runners.prisoners_dilemma`. Payoffs: T = 5, R = 3, P = 1, S = 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from fishpool.records import Ending, Status

if TYPE_CHECKING:
    import numpy as np

GAME_ID = "prisoners-dilemma"
PERSPECTIVE_WORDS = frozenset({"you", "me", "i", "self", "opponent", "other", "they", "them", "us", "we"})


class Choice(StrEnum):
    COOPERATE = "cooperate"
    DEFECT = "defect"

    @property
    def flipped(self) -> Choice:
        return Choice.DEFECT if self is Choice.COOPERATE else Choice.COOPERATE


RESIGN = "resign"
PAYOFF = {  # (own choice, the other's choice) -> own points
    (Choice.COOPERATE, Choice.COOPERATE): 3,
    (Choice.COOPERATE, Choice.DEFECT): 0,
    (Choice.DEFECT, Choice.COOPERATE): 5,
    (Choice.DEFECT, Choice.DEFECT): 1,
}


@dataclass(frozen=True)
class Parameters:
    """What a condition can set: `noise` is the probability that a submitted choice is carried out as its opposite."""

    rounds: int = 20
    noise: float = 0.0
    lane: str = "standard"
    agent_ids: tuple[str, str] = ("agent_1", "agent_2")


# ── One match, with every way in which it can end ────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Round:
    """A resolved round: what was carried out (after noise) and that round's points, by agent id."""

    choices: Mapping[str, Choice]
    points: Mapping[str, int]


@dataclass(frozen=True)
class Result:
    ending: Ending
    winner: str | None  # None: a draw, or void
    reason: str


@dataclass(frozen=True)
class Match:
    """A match after its resolved rounds; `result` is None while it is live."""

    agents: tuple[str, str]
    total_rounds: int
    history: tuple[Round, ...] = ()
    result: Result | None = None

    @property
    def scores(self) -> dict[str, int]:
        return {agent: sum(past.points[agent] for past in self.history) for agent in self.agents}

    def other(self, agent: str) -> str:
        first, second = self.agents
        return second if agent == first else first


@dataclass(frozen=True)
class Move:
    """What the referee made of one agent's turn: a choice when `status` is moved or repaired, else none."""

    status: Status
    choice: Choice | None = None
    fault: str = ""


def read_action(action: Any) -> Choice | str:
    """A decoded JSON value as a choice or `RESIGN`; ValueError says what is wrong, and nothing is guessed."""
    if not isinstance(action, dict):
        raise ValueError(f"an action is a JSON object, not {type(action).__name__}")
    kind = action.get("type")
    if kind == RESIGN and action.keys() == {"type"}:
        return RESIGN
    if kind == "choose" and action.keys() == {"type", "choice"} and action["choice"] in ("cooperate", "defect"):
        return Choice(action["choice"])
    raise ValueError(
        'an action is {"type": "choose", "choice": "cooperate"}, {"type": "choose", "choice": "defect"} or '
        '{"type": "resign"}, with no other key or spelling'
    )


def view(match: Match, agent: str) -> dict[str, Any]:
    """What an agent sees before it chooses; both maps of a round are keyed by agent id, never by perspective."""
    resolved = len(match.history)
    return {
        "gameId": GAME_ID,
        "you": agent,
        "turnNumber": resolved,
        "round": resolved + 1,
        "totalRounds": match.total_rounds,
        "roundsRemaining": match.total_rounds - resolved,
        "scores": match.scores,
        "history": [
            {"choices": {who: str(choice) for who, choice in past.choices.items()}, "scores": dict(past.points)}
            for past in match.history
        ],
        "isYourTurn": match.result is None,
    }


def settle(match: Match, moves: Mapping[str, Move], flips: Mapping[str, bool] | None = None) -> Match:
    """One round: both moves in, the match after it out. `flips` says whose choice the noise turns into its opposite."""
    choices = {agent: move.choice for agent, move in moves.items()}
    first, second = match.agents
    if choices[first] is None or choices[second] is None:
        return replace(match, result=_broken_off(match, moves))
    done = {agent: choice.flipped if flips and flips[agent] else choice for agent, choice in choices.items() if choice}
    points = {agent: PAYOFF[done[agent], done[match.other(agent)]] for agent in match.agents}
    match = replace(match, history=(*match.history, Round(done, points)))
    if len(match.history) < match.total_rounds:
        return match
    scores = match.scores
    leader = None if scores[first] == scores[second] else max(match.agents, key=scores.__getitem__)
    return replace(match, result=Result(Ending.COMPLETED, leader, f"all {match.total_rounds} rounds played"))


def _broken_off(match: Match, moves: Mapping[str, Move]) -> Result:
    """The table of endings before the last round. A resolved round means that both had submitted a valid choice."""
    agents = match.agents
    broken = [agent for agent in agents if moves[agent].status is Status.INFRASTRUCTURE]
    faulted = [agent for agent in agents if moves[agent].status.faulted]
    resigned = [agent for agent in agents if moves[agent].status is Status.RESIGNED]
    said = "; ".join(f"{agent} {_said(moves[agent])}" for agent in (*broken, *faulted, *resigned))
    if broken:
        return Result(Ending.VOID, None, said)
    if faulted and not match.history:
        return Result(Ending.VOID, None, f"{said}; no valid choice before")
    if len(faulted) + len(resigned) == 2:
        return Result(Ending.FORFEITED if faulted else Ending.RESIGNED, None, f"{said}: a draw")
    if faulted:
        return Result(Ending.FORFEITED, match.other(faulted[0]), said)
    return Result(Ending.RESIGNED, match.other(resigned[0]), said)


def _said(move: Move) -> str:
    if move.status is Status.RESIGNED:
        return "resigned"
    if move.status is Status.TIMEOUT:
        return "missed the deadline"
    if move.status is Status.INVALID:
        return f"sent an action that was rejected ({move.fault})"
    return move.fault


# ── Many matches at once ─────────────────────────────────────────────────────────────────────────────────────────


def points_in_columns(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Each side's points a round for choices carried out, True is cooperate; int8 of the arguments' shape."""
    import numpy as np

    R, S, T, P = (np.int8(PAYOFF[mine, theirs]) for mine in Choice for theirs in Choice)
    mine, theirs = own.view(np.int8), other.view(np.int8)  # 0 or 1: the four payoffs are a polynomial in them
    return P + (S - P) * mine + (T - P) * theirs + (R - S - T + P) * (mine & theirs)
