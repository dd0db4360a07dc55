"""What kind of strategy it is, judged by its decisions alone: the properties of sections 4.2 and 4.3.

No document is read here, and legibility and well-foundedness (section 4.4) are not decided by a profile, so they are
not here. The source is Definitions 3 to 10 of the paper named in `fishpool.games.dictator`.

D has shape (dictators, recipients): 1 share, 0 take, NaN missing. A property is Kleene's three-valued truth, an array
of shape (strategies,) with 1 true, 0 false, NaN where the missing cells decide. `self_play=False` says that the
diagonal was never played: then a strategy's copies are no part of the pool that a property speaks of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def unconditional(decisions: Any, *, self_play: bool = True) -> Array:
    """Definition 3: the decision is the same about every recipient."""
    d = _truth(decisions)
    return _missing(_or(_every(d, self_play), _every(1 - d, self_play)))


def unconditional_cooperator(decisions: Any, *, self_play: bool = True) -> Array:
    """Shares with every recipient (Generous)."""
    return _missing(_every(_truth(decisions), self_play))


def unconditional_defector(decisions: Any, *, self_play: bool = True) -> Array:
    """Takes from every recipient (Selfish)."""
    return _missing(_every(1 - _truth(decisions), self_play))


def self_cooperating(decisions: Any) -> Array:
    """Definition 4: shares with its own copy."""
    return _missing(np.diagonal(_truth(decisions)))


def reciprocal(decisions: Any, *, self_play: bool = True) -> Array:
    """Definition 5: treats every opponent as that opponent treats it."""
    d = _truth(decisions)
    return _missing(_every(_equal(d, d.T), self_play))


def exploits(decisions: Any) -> Array:
    """Definition 7, pair by pair: shape (exploiters, exploited), true where the row takes and the column shares."""
    d = _truth(decisions)
    return _missing(_and(1 - d, d.T))


def exploited(decisions: Any, *, self_play: bool = True) -> Array:
    """Definition 7: some opponent takes from it while it shares."""
    return _missing(_some(_truth(exploits(decisions)).T, self_play))


def exploiter(decisions: Any, *, self_play: bool = True) -> Array:
    """Definition 7: takes from some opponent that shares with it."""
    return _missing(_some(_truth(exploits(decisions)), self_play))


def subsidizer(decisions: Any, exploiters: Any = None, *, self_play: bool = True) -> Array:
    """Definition 7: shares with an exploiter. `exploiters` narrows whom that means (default: every exploiter)."""
    d = _truth(decisions)
    return _missing(_some(_and(d, _whom(decisions, exploiters, self_play)), self_play))


def first_order_deterrent(decisions: Any, exploiters: Any = None, *, self_play: bool = True) -> Array:
    """Definition 8: takes from every exploiter; `exploiters` as in `subsidizer`.

    Read literally, a strategy that harvests unconditional cooperators is an exploiter too, and then only defectors
    deter. The paper calls its archetypes deterrents "with respect to the unconditional defector": pass those.
    """
    d = _truth(decisions)
    return _missing(_every(_or(1 - d, 1 - _whom(decisions, exploiters, self_play)), self_play))


def second_order_deterrent(decisions: Any, exploiters: Any = None, *, self_play: bool = True) -> Array:
    """Definition 9: a first-order deterrent that takes from every subsidizer too."""
    d = _truth(decisions)
    first_order = _truth(first_order_deterrent(decisions, exploiters, self_play=self_play))
    subsidizers = _truth(subsidizer(decisions, exploiters, self_play=self_play))
    return _missing(_and(first_order, _every(_or(1 - d, 1 - subsidizers), self_play)))


def protective(decisions: Any, *, self_play: bool = True) -> Array:
    """Definition 10: treats everybody as they would treat an unconditional cooperator; NaN if the pool has none."""
    d = _truth(decisions)
    innocents = np.flatnonzero(unconditional_cooperator(decisions, self_play=self_play) == 1)
    if not len(innocents):
        return np.full(len(d), np.nan)
    return _missing(_every(np.min([_equal(d, d[:, innocent]) for innocent in innocents], axis=0), self_play))


def equivalence_classes(decisions: Any) -> Array:
    """Definition 6: a number for each class of identical rows and columns, by appearance; NaN if a cell is missing.

    r and r' are compared over every x of the pool, themselves included.
    """
    d = np.asarray(decisions, np.float64)
    profile = np.hstack([d, d.T])
    known = ~np.isnan(profile).any(axis=1)
    classes = np.full(len(d), np.nan)
    seen: dict[bytes, int] = {}
    for i in np.flatnonzero(known):
        classes[i] = seen.setdefault(profile[i].tobytes(), len(seen))
    return classes


def extensional(decisions: Any) -> Array:
    """Definition 6: decides the same about behaviourally equivalent strategies; NaN if the pool has a missing cell.

    Within one profile this can only be false of a strategy if equal columns differ in its own row, which equality of
    columns excludes: a profile alone cannot show an intensional strategy, so this is true wherever it is known.
    """
    d = np.asarray(decisions, np.float64)
    classes = equivalence_classes(d)
    if np.isnan(d).any():
        return np.full(len(d), np.nan)
    same = classes[:, None] == classes[None, :]
    return np.array([float((row[:, None] == row[None, :])[same].all()) for row in d])


def _truth(decisions: Any) -> Array:
    """Missing as Kleene's 1/2, so that and, or, not are min, max, 1 - x."""
    values: Array = np.nan_to_num(np.asarray(decisions, np.float64), nan=0.5)
    return values


def _missing(truth: Array) -> Array:
    return np.where(truth == 0.5, np.nan, truth)


def _whom(decisions: Any, exploiters: Any, self_play: bool) -> Array:
    return _truth(exploiter(decisions, self_play=self_play) if exploiters is None else exploiters)


def _equal(a: Array, b: Array) -> Array:
    return _or(_and(a, b), _and(1 - a, 1 - b))


def _and(a: Array, b: Array) -> Array:
    return np.minimum(a, b)


def _or(a: Array, b: Array) -> Array:
    return np.maximum(a, b)


def _every(truth: Array, self_play: bool) -> Array:
    """For all recipients, shape (strategies,); a round that was never played says nothing against it."""
    vacuous = np.zeros(truth.shape, bool) if self_play else np.eye(len(truth), dtype=bool)
    result: Array = np.where(vacuous, 1.0, truth).min(axis=1)
    return result


def _some(truth: Array, self_play: bool) -> Array:
    return 1 - _every(1 - truth, self_play)
