"""Our scripted players against their namesakes in Axelrod-Python 4.13, move for move, every ordered pair.

The draws are the same on both sides, so that stochastic players are compared as exactly as the others: once with our
draws given to the library's players, once with the library's own draws given to ours. Half the choices flipped by
noise (0.5) is no study's condition; it is there because it drives both through histories that no pair would reach.
"""

from itertools import product

import numpy as np
import pytest

from fishpool.games.prisoners_dilemma import Parameters, points_in_columns
from fishpool.players.scripted import STRATEGIES, History
from fishpool.runners.prisoners_dilemma import Pairing, play_in_columns
from fishpool.seeds import draw

pytestmark = pytest.mark.reference

NAMESAKES = {name: name for name in STRATEGIES} | {
    "TitForTwoTats": "TitFor2Tats",
    "GenerousTitForTat": "GTFT",
    "SoftMajority": "GoByMajority",
    "HardMajority": "HardGoByMajority",
    "Joss": "FirstByJoss",
    "Tester": "SecondByTester",
}
ORDERED_PAIRS = list(product(STRATEGIES, repeat=2))
ROUNDS = [7, 20]

# When the library draws for a player: no draw where the probability is 0 or 1. By own and the opponent's last choice.
DRAWS = {
    "Random": lambda opening, mine, theirs: True,
    "GenerousTitForTat": lambda opening, mine, theirs: not opening and not theirs,
    "Joss": lambda opening, mine, theirs: not opening and theirs,
    "ZDExtort2": lambda opening, mine, theirs: not opening and (mine or theirs),
}


@pytest.fixture(scope="module")
def axelrod():
    return pytest.importorskip("axelrod")  # here and not above: the import takes some 15 s, also where nothing is run


class OurDraws:
    """Stands in for the random generator of one of the library's players and gives it our draw of the current round."""

    def __init__(self, axelrod, pairing, seat):
        self.axelrod, self.pairing, self.seat, self.resolved = axelrod, pairing, seat, 0

    def random_choice(self, probability=0.5):
        luck = draw(self.pairing.seed, "policy", *self.pairing.players, self.seat, counter=self.resolved)
        return self.axelrod.Action.C if luck < probability else self.axelrod.Action.D


def played_by_axelrod(axelrod, pairing, rounds, noise):
    """(done, submitted): what the library's players do with our draws and our noise, (rounds, seats), True is C."""
    players = [getattr(axelrod, NAMESAKES[name])() for name in pairing.players]
    randoms = [OurDraws(axelrod, pairing, seat) for seat in (0, 1)]
    for player, random in zip(players, randoms, strict=True):
        player.set_match_attributes(length=rounds, noise=noise)
        player._random = random
    first, second = players
    done, submitted = [], []
    for resolved in range(rounds):
        for random in randoms:
            random.resolved = resolved
        chosen = [first.strategy(second), second.strategy(first)]
        flips = [draw(pairing.seed, "noise", *pairing.players, seat, counter=resolved) < noise for seat in (0, 1)]
        carried_out = [action.flip() if flip else action for action, flip in zip(chosen, flips, strict=True)]
        first.update_history(*carried_out)
        second.update_history(*reversed(carried_out))
        submitted.append(chosen)
        done.append(carried_out)
    return tuple(np.array([[a == axelrod.Action.C for a in row] for row in rows]) for rows in (done, submitted))


def assert_same_moves(ours, theirs, pairings):
    """Both of shape (rounds, matches, seats); names the first differences."""
    different = np.argwhere((ours != theirs).transpose(1, 0, 2))
    said = [
        f"seed {pairings[match].seed}: {' against '.join(pairings[match].players)}, round {resolved + 1}, "
        f"{pairings[match].players[seat]} plays {'DC'[int(ours[resolved, match, seat])]}, the library's does not"
        for match, resolved, seat in different[:10]
    ]
    assert not said, "\n".join([f"{len(different)} moves differ", *said])


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("noise", [0, 0.05, 0.5])
def test_every_ordered_pair_plays_the_library_s_moves_on_our_draws(axelrod, rounds, noise):
    seeds = range(6 if noise else 3)
    pairings = [Pairing(seed, pair) for seed in seeds for pair in ORDERED_PAIRS]
    ours = play_in_columns(seeds, ORDERED_PAIRS, STRATEGIES, Parameters(rounds=rounds, noise=noise))
    played = [played_by_axelrod(axelrod, pairing, rounds, noise) for pairing in pairings]
    for mine, theirs in zip(ours, zip(*played, strict=True), strict=True):
        assert_same_moves(mine.reshape(rounds, -1, 2), np.stack(theirs, axis=1), pairings)


def played_on_axelrods_draws(pairing, rounds, noise):
    """What our players do, shape (rounds, seats), with the draws of the library's `Match` of this seed.

    The match has a generator, from which each stochastic player in order is given the seed of its own, and from which
    comes the noise of each round, first player first. Where the library would not draw, ours gets no number.
    """
    match_random = np.random.RandomState(pairing.seed)
    strategies = [STRATEGIES[name] for name in pairing.players]
    randoms = [
        np.random.RandomState(match_random.randint(0, 2**32 - 1, dtype="uint64")) if strategy.stochastic else None
        for strategy in strategies
    ]
    done = np.empty((rounds, 2), bool)

    def luck(seat):
        def of_round(resolved):
            last = (False, False) if resolved == 0 else done[resolved - 1][[seat, 1 - seat]]
            drawn = DRAWS[strategies[seat].name](resolved == 0, *last)
            return np.array([randoms[seat].rand() if drawn else np.nan])

        return of_round

    columns = done[:, :1], done[:, 1:]  # views: they see what is written into `done`
    sides = [History(columns[seat], columns[1 - seat], rounds, luck(seat)) for seat in (0, 1)]
    for resolved in range(rounds):
        chosen = []
        for strategy, side in zip(strategies, sides, strict=True):
            side.resolved = resolved
            chosen.append(bool(strategy.choose(side)[0]))
        flips = [match_random.rand() < noise for _ in chosen] if noise else [False, False]
        done[resolved] = np.not_equal(chosen, flips)
    return done


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("noise", [0, 0.05])
def test_every_ordered_pair_plays_and_scores_as_the_library_s_match_does_on_its_own_draws(axelrod, rounds, noise):
    pairings = [Pairing(3 * i + again, pair) for again in range(3) for i, pair in enumerate(ORDERED_PAIRS)]
    theirs, scores = [], []
    for pairing in pairings:
        players = [getattr(axelrod, NAMESAKES[name])() for name in pairing.players]
        match = axelrod.Match(players, turns=rounds, noise=noise, seed=pairing.seed)
        theirs.append([[action == axelrod.Action.C for action in actions] for actions in match.play()])
        scores.append(match.final_score())
    ours = np.stack([played_on_axelrods_draws(pairing, rounds, noise) for pairing in pairings], axis=1)
    assert_same_moves(ours, np.array(theirs).transpose(1, 0, 2), pairings)
    assert (points_in_columns(ours, ours[:, :, ::-1]).sum(axis=0) == scores).all()


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_library_calls_the_same_players_stochastic(axelrod, name):
    namesake = getattr(axelrod, NAMESAKES[name])()
    assert axelrod.Classifiers["stochastic"](namesake) == STRATEGIES[name].stochastic
