"""How fast matches are played: our columns, Axelrod-Python 4.13, and a plain Python loop, in turn, in the same run.

The prisoner's dilemma alone: play and final scores, no records and no files. It is no test of what is played, but it
refuses to time three programs that do not play the same game.

    python benchmarks/play.py [passes]
"""

import random
import sys
from itertools import combinations_with_replacement

from measure import compare, in_turn, report  # first, for it says how many threads libraries may use

# isort: split
import axelrod
import numpy as np

from fishpool.games.prisoners_dilemma import PAYOFF, Choice, Parameters, points_in_columns
from fishpool.players.scripted import STRATEGIES
from fishpool.runners.prisoners_dilemma import play_in_columns

PAIRS = list(combinations_with_replacement(STRATEGIES, 2))  # the round robin of a study, self-play included
ROUNDS, NOISE = 20, 0.05  # noise, so that every match must be played: the library keeps deterministic ones
REPETITIONS = {"ours": 2000, "Axelrod, serial": 4, "plain Python loop": 80}  # of all pairs: about half a second a pass
SEEDS_OF_A_SHARD = 50


def main(passes: int) -> None:
    programs = {"ours": in_columns, "Axelrod, serial": by_axelrod, "plain Python loop": in_a_loop}
    ours, *others = (np.array(program(1, 0.0, DETERMINISTIC)) for program in programs.values())
    if not all(np.array_equal(ours, scores) for scores in others):
        sys.exit("benchmarks/play.py: the three programs do not play the same game, so their times say nothing")
    rates = in_turn(
        {
            name: lambda name=name, program=program: len(program(REPETITIONS[name], NOISE, PAIRS))
            for name, program in programs.items()
        },
        passes,
    )
    comparison = compare(rates, "prisoner's dilemma: play and scores", "matches", "Axelrod, serial", 500, 300)
    details = {"pairs": len(PAIRS), "rounds": ROUNDS, "noise": NOISE, "repetitions": REPETITIONS, "rates": rates}
    report("play", [comparison], details, ["axelrod"])


# ── The three programs: final scores of `repetitions` times all pairs ────────────────────────────────────────────


def in_columns(repetitions, noise, pairs):
    """A shard at a time, as a study does it: the order is by seed, then by pair."""
    scores = []
    for first in range(0, repetitions, SEEDS_OF_A_SHARD):
        seeds = range(first, min(first + SEEDS_OF_A_SHARD, repetitions))
        done, _ = play_in_columns(seeds, pairs, STRATEGIES, Parameters(rounds=ROUNDS, noise=noise))
        scores.append(points_in_columns(done, done[..., ::-1]).sum(axis=0).reshape(-1, 2))
    return np.concatenate(scores)


def by_axelrod(repetitions, noise, pairs):
    """As the library's own tournaments do it: one `Match` a pair, played again for each repetition."""
    scores = []
    for seed, pair in enumerate(pairs):
        players = [getattr(axelrod, NAMESAKES.get(name, name))() for name in pair]
        match = axelrod.Match(players, turns=ROUNDS, noise=noise, seed=seed)
        for _ in range(repetitions):
            match.play()
            scores.append(match.final_score())
    return scores


def in_a_loop(repetitions, noise, pairs):
    """The least that plain Python needs: a function a player over two lists of booleans, True is cooperate."""
    flip, scores = random.Random(1).random, []
    for _ in range(repetitions):
        for first, second in pairs:
            choose, answer = LOOP[first], LOOP[second]
            mine, theirs, my_score, their_score = [], [], 0, 0
            for left in range(ROUNDS, 0, -1):
                a = choose(mine, theirs, left) ^ (flip() < noise)
                b = answer(theirs, mine, left) ^ (flip() < noise)
                mine.append(a)
                theirs.append(b)
                my_score += POINTS[a, b]
                their_score += POINTS[b, a]
            scores.append((my_score, their_score))
    return scores


NAMESAKES = {
    "TitForTwoTats": "TitFor2Tats",
    "GenerousTitForTat": "GTFT",
    "SoftMajority": "GoByMajority",
    "HardMajority": "HardGoByMajority",
    "Joss": "FirstByJoss",
    "Tester": "SecondByTester",
}
DETERMINISTIC = [pair for pair in PAIRS if not any(STRATEGIES[name].stochastic for name in pair)]
POINTS = {(a is Choice.COOPERATE, b is Choice.COOPERATE): points for (a, b), points in PAYOFF.items()}


LUCK = random.Random(2).random


def _zd_extort_2(mine, theirs, left):
    if not mine:
        return True
    if mine[-1]:
        return LUCK() < (8 / 9 if theirs[-1] else 1 / 2)
    return theirs[-1] and LUCK() < 1 / 3


def _adaptive(mine, theirs, left):
    if len(mine) < 11:
        return len(mine) < 6
    return sum(POINTS[a, b] if a else -POINTS[a, b] for a, b in zip(mine, theirs, strict=True)) > 0


def _tester(mine, theirs, left):
    if False in theirs:
        return theirs[-1] or theirs.count(False) == 1
    return len(mine) in (1, 2) or (len(mine) > 2 and not mine[-1])


LOOP = {
    "Cooperator": lambda mine, theirs, left: True,
    "Defector": lambda mine, theirs, left: False,
    "Random": lambda mine, theirs, left: LUCK() < 1 / 2,
    "Alternator": lambda mine, theirs, left: not mine or not mine[-1],
    "TitForTat": lambda mine, theirs, left: not theirs or theirs[-1],
    "SuspiciousTitForTat": lambda mine, theirs, left: bool(theirs) and theirs[-1],
    "TitForTwoTats": lambda mine, theirs, left: theirs[-2:] != [False, False],
    "TwoTitsForTat": lambda mine, theirs, left: False not in theirs[-2:],
    "GenerousTitForTat": lambda mine, theirs, left: not theirs or theirs[-1] or LUCK() < 1 / 3,
    "Joss": lambda mine, theirs, left: not theirs or (theirs[-1] and LUCK() < 0.9),
    "Grudger": lambda mine, theirs, left: False not in theirs,
    "WinStayLoseShift": lambda mine, theirs, left: not mine or mine[-1] == theirs[-1],
    "SoftMajority": lambda mine, theirs, left: 2 * theirs.count(False) <= len(theirs),
    "HardMajority": lambda mine, theirs, left: 2 * theirs.count(False) < len(theirs),
    "BackStabber": lambda mine, theirs, left: left > 2 and theirs.count(False) <= 3,
    "Adaptive": _adaptive,
    "Prober": lambda mine, theirs, left: bool(mine) if len(mine) < 3 else theirs[-1] and not (theirs[1] and theirs[2]),
    "Handshake": lambda mine, theirs, left: not mine if len(mine) < 2 else theirs[0] and not theirs[1],
    "Tester": _tester,
    "Appeaser": lambda mine, theirs, left: not mine or mine[-1] == theirs[-1],
    "GradualKiller": lambda mine, theirs, left: len(mine) > 4 if len(mine) < 7 else theirs[5] or theirs[6],
    "ZDExtort2": _zd_extort_2,
}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
