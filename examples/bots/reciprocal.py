"""A bot for both games: tit for tat in the prisoner's dilemma, an honest fisher with a fair share in the fish pool.

It needs nothing but Python 3: `{process: "python3 examples/bots/reciprocal.py"}`. It keeps nothing in mind between two
views, because a view holds all that may be known.
"""

import json
import math
import sys
from fractions import Fraction


def main():
    for line in sys.stdin:
        view = json.loads(line)
        action = choose(view) if "gameId" in view else fish(view)
        print(json.dumps(action), flush=True)


def choose(view):
    """Cooperates first, then does what the other one did."""
    choice = "cooperate"
    if view["history"]:
        choices = view["history"][-1]["choices"]
        choice = next(choices[agent] for agent in choices if agent != view["you"])
    return {"type": "choose", "choice": choice}


def fish(view):
    """Promises its fair share, catches it, reports what it caught, and trusts everybody."""
    phase = view["phase"]
    if phase == "pledge":
        return {"intention": fair_share(view), "promise": fair_share(view), "message": ""}
    if phase == "catch":
        return {"catch": fair_share(view)}
    if phase == "report":
        return {"report": view["me"]["catch"], "message": ""}
    return {"message": "", "accuse": [], "trust": {name: 100 for name in view["names"] if name != view["agent_id"]}}


def fair_share(view):
    """An equal share of the tons that regrow: remain must the least stock that grows back to what is there now."""
    rules, stock = view["rules"], view["stock"]["value"]
    if stock is None:  # the condition hides it
        stock = rules["capacity"]
    needed = math.ceil(Fraction(stock) / Fraction(str(rules["growth"])))
    return max(0, stock - needed) // rules["n"]


if __name__ == "__main__":
    main()
