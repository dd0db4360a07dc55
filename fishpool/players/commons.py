"""The scripted players of the fish pool, each one rule of its sheet's table.

A player is a pure function of its view (and, for `random`, of its own stream of luck): it holds no state, so what it
remembers is what the condition's memory shows it. Unless a rule says otherwise a player promises its fair share,
reports its catch, trusts everybody and accuses nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol, TypeAlias

from fishpool.games.commons import Action, Parameters, Phase, StockKind, View, fair_shares
from fishpool.seeds import draw

Luck: TypeAlias = Callable[..., float]  # a uniform number in [0, 1) by name and counter, as `seeds.draw`


class Player(Protocol):
    def __call__(self, view: View, luck: Luck) -> Action: ...


Amount: TypeAlias = Callable[[View], int]  # tons


def seat(parameters: Parameters, seed: int) -> list[Callable[[View], Action]]:
    """The players of a condition, one an agent, each with a stream of luck of its own; KeyError for an unknown name."""
    return [seat_one(seed, agent, name) for agent, name in enumerate(parameters.agents)]


def seat_one(seed: int, agent: int, name: str) -> Callable[[View], Action]:
    return partial(PLAYERS[name], luck=partial(draw, seed, "policy", agent))


# --- what a player makes of its view ---------------------------------------------------------------------------------


def stock_seen(view: View) -> int:
    """The round's stock as far as the player can tell: exact, noisy, or the capacity if the stock is hidden.

    An exact stock is the legal maximum in every phase, whereas `stock` shows what is left once it has been fished.
    """
    stock = view["stock"]
    seen: int = stock["value"] if stock["kind"] == _NOISY else view["legal"]["max"]
    return seen


_NOISY = StockKind.NOISY.value


def fair(view: View) -> int:
    """floor(F(s) / n) of the stock seen."""
    return _fair(view, stock_seen(view))


def _fair(view: View, stock: int) -> int:
    rules = view["rules"]
    return fair_shares(rules["n"], rules["capacity"], rules["growth"])[stock]


def _catch(view: View) -> int:
    return int(view["me"]["catch"])


def _understated(view: View) -> int:
    return min(_catch(view), fair(view))


def _salami(view: View) -> int:
    return min(fair(view) + 1, stock_seen(view))


def _white_lie(view: View) -> int:
    return max(0, fair(view) - 2)


def _conditional(view: View) -> int:
    """Fair while the others' last reports are fair on average, else their average, rounded up.

    Without an exact stock last round's fair share is unknown and today's stands in for it.
    """
    share = fair(view)
    if not view["ledger"]:
        return share
    others = [
        report for name, report in view["ledger"][-1]["reports"].items()
        if name != view["agent_id"] and report is not None
    ]  # fmt: skip
    if not others:
        return share
    drop = view["last_round"]["stock_drop"]
    last_share = share if drop is None else _fair(view, stock_seen(view) + drop)
    if sum(others) <= last_share * len(others):
        return share
    return min(stock_seen(view), -(-sum(others) // len(others)))


def _grim(view: View) -> int:
    """Fair until a published catch belies a report, then everything."""
    for past in view["ledger"]:
        reports = past["reports"]
        for name, catch in past["catches"].items():
            if reports.get(name, catch) not in (catch, None):
                return stock_seen(view)
    return fair(view)


def _opportunist(view: View) -> int:
    return stock_seen(view) if view["round"] == view["horizon"] else fair(view)


# --- the players --------------------------------------------------------------------------------------------------


def _player(catch: Amount, promise: Amount = fair, report: Amount = _catch) -> Player:
    """A player who intends to catch what it will catch, whatever it promises and reports."""

    def act(view: View, luck: Luck) -> Action:
        phase = view["phase"]
        if phase is Phase.CATCH:
            return {"catch": catch(view)}
        if phase is Phase.REPORT:
            return {"report": report(view), "message": ""}
        if phase is Phase.PLEDGE:
            return {"intention": catch(view), "promise": promise(view), "message": ""}
        return _trusting(view)

    return act


def _trusting(view: View) -> Action:
    return {"message": "", "accuse": [], "trust": {name: 100 for name in view["names"] if name != view["agent_id"]}}


def _random(view: View, luck: Luck) -> Action:
    """Promise, demand and report each uniform on 0..2 fair; the intention is the demand to come."""
    phase, number = view["phase"], view["round"]
    sides = min(2 * fair(view), view["legal"]["max"]) + 1

    def amount(what: str) -> int:
        return int(luck(what, counter=number) * sides)

    if phase is Phase.CATCH:
        return {"catch": amount("demand")}
    if phase is Phase.REPORT:
        return {"report": amount("report"), "message": ""}
    if phase is Phase.PLEDGE:
        return {"intention": amount("demand"), "promise": amount("promise"), "message": ""}
    return _trusting(view)


PLAYERS: Mapping[str, Player] = {
    "honest_sustainable": _player(fair),
    "greedy_liar": _player(stock_seen, report=_understated),
    "honest_greedy": _player(stock_seen, promise=stock_seen),
    "salami": _player(_salami, report=_understated),
    "white_liar": _player(_white_lie, report=fair),
    "conditional": _player(_conditional, promise=_conditional),
    "grim": _player(_grim, promise=_grim),
    "opportunist": _player(_opportunist, report=_understated),
    "random": _random,
}

LIARS = frozenset({"greedy_liar", "salami", "white_liar", "opportunist"})  # who lies by rule; `random` does by chance
