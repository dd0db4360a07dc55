"""The `formal` oracle: a document's declared decision rule, applied to the whole pool until it answers for itself.

It reads no prose: a document names one of the rules below in its front matter, and declares whether it is kind.
The rules are those of the paper's Table 1 and section 4; the two consistent answers of mutual conditionality are its
section 4.4 ("well-foundedness"). This goes beyond the paper, which leaves both to a model.

Decisions are Kleene's three truth values: 1 share, 0 take, 1/2 not determined, with `min` for and, `1 - x` for not.
What is still 1/2 when nothing more follows is a cell that an oracle *chooses*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from fishpool.games.dictator import Document, Oracle, Votes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]


class Rule(StrEnum):
    """What a decision turns on."""

    ALWAYS_SHARE = "always_share"
    ALWAYS_TAKE = "always_take"
    INTELLIGENT = "intelligent"  # the recipient's rule is conditional
    KIND = "kind"  # the recipient declares itself kind
    UNIVERSALIZABLE = "universalizable"  # the recipient shares with its copies
    RECIPROCATOR = "reciprocator"  # the recipient shares with me and with no unconditional defector
    MIRROR = "mirror"  # the recipient shares with me
    COALITION = "coalition"  # my sharing is necessary and sufficient for the recipient to share with me
    INNOCENT = "innocent"  # the recipient shares with unconditional cooperators


@dataclass(frozen=True)
class Resolution:
    """The consistent decision profiles of a pool; matrices are (dictators, recipients), 1 share, 0 take.

    `greatest` is the cooperative fixed point, `least` the hostile one; `chosen` marks the cells that no finite regress
    determines, which is where the two can differ.
    """

    strategies: tuple[str, ...]
    greatest: Matrix
    least: Matrix
    chosen: NDArray[np.bool_]


def resolve(documents: Sequence[Document]) -> Resolution:
    """Greatest and least fixed point of the documents' rules.

    First everything that follows from nothing assumed (the least fixed point in the order of information), then the
    undetermined cells all share, or all take, and the rules are applied until nothing changes. Raises ValueError, one
    sentence a line, where a document declares no rule, and where no profile is consistent with that assumption (a pool
    of rules that negate each other can have none).
    """
    import numpy as np

    rules = _rules(documents)
    size = len(documents)
    determined = _iterate(documents, rules, np.full((size, size), 0.5))
    assert determined is not None  # information only grows, so this iteration ends
    chosen = determined == 0.5
    greatest = _iterate(documents, rules, np.where(chosen, 1.0, determined))
    least = _iterate(documents, rules, np.where(chosen, 0.0, determined))
    if greatest is None or least is None:
        which = "greatest" if greatest is None else "least"
        raise ValueError(f"formal: the rules of this pool have no {which} consistent profile; use another oracle")
    return Resolution(tuple(document.name for document in documents), greatest, least, chosen)


def formal(resolution: Resolution, *, least: bool = False) -> Oracle:
    """The oracle that answers by the greatest fixed point, or by the least."""
    profile = resolution.least if least else resolution.greatest
    index = {name: i for i, name in enumerate(resolution.strategies)}

    def oracle(dictator: Document, recipient: Document) -> Votes:
        return Votes(int(profile[index[dictator.name], index[recipient.name]]), 1)

    return oracle


def _rules(documents: Sequence[Document]) -> list[Rule]:
    rules: list[Rule] = []
    faults: list[str] = []
    kinds_needed = any(document.rule == Rule.KIND for document in documents)
    for document in documents:
        if document.rule not in list(Rule):
            found = "no rule" if document.rule is None else f'the rule "{document.rule}"'
            faults.append(f"formal: {document.name} declares {found}; expected one of {', '.join(Rule)}")
        elif kinds_needed and document.kind is None:
            faults.append(f"formal: {document.name} does not say whether it is kind; add kind: true or kind: false")
        else:
            rules.append(Rule(document.rule))
    if faults:
        raise ValueError("\n".join(faults))
    return rules


def _iterate(documents: Sequence[Document], rules: list[Rule], profile: Matrix) -> Matrix | None:
    """Apply all rules at once until nothing changes; None if a state comes back without having settled."""
    seen = set()
    while profile.tobytes() not in seen:
        seen.add(profile.tobytes())
        following = _apply(documents, rules, profile)
        if (following == profile).all():
            return profile
        profile = following
    return None


def _apply(documents: Sequence[Document], rules: list[Rule], profile: Matrix) -> Matrix:
    import numpy as np

    size = len(documents)
    cells = [[_decide(documents, rules, profile, me, you) for you in range(size)] for me in range(size)]
    return np.array(cells)


def _decide(documents: Sequence[Document], rules: list[Rule], profile: Matrix, me: int, you: int) -> float:
    """What rule `me` decides about `you` (indices) if everybody else decides as in `profile`."""
    innocents = [i for i, rule in enumerate(rules) if rule is Rule.ALWAYS_SHARE]
    defectors = [i for i, rule in enumerate(rules) if rule is Rule.ALWAYS_TAKE]
    match rules[me]:
        case Rule.ALWAYS_SHARE:
            return 1.0
        case Rule.ALWAYS_TAKE:
            return 0.0
        case Rule.INTELLIGENT:
            return float(rules[you] not in (Rule.ALWAYS_SHARE, Rule.ALWAYS_TAKE))
        case Rule.KIND:
            return float(bool(documents[you].kind))
        case Rule.UNIVERSALIZABLE:
            return float(profile[you, you])
        case Rule.MIRROR:
            return float(profile[you, me])
        case Rule.RECIPROCATOR:
            return float(min([profile[you, me], *(1 - profile[you, defector] for defector in defectors)]))
        case Rule.INNOCENT:
            return _facing(documents, rules, profile, you, innocents)
        case Rule.COALITION:
            if rules[you] is Rule.COALITION:
                return 1.0  # whoever lives by my rule decides as I do: sharing is necessary and sufficient
            if_i_share, if_i_take = (
                _decide(documents, rules, _replaced(profile, me, you, value), you, me) for value in (1.0, 0.0)
            )
            return min(if_i_share, 1 - if_i_take)


def _facing(documents: Sequence[Document], rules: list[Rule], profile: Matrix, you: int, innocents: list[int]) -> float:
    """How `you` treats the pool's unconditional cooperators; without one in the pool, an imagined one is added."""
    import numpy as np

    if innocents:
        return min(float(profile[you, innocent]) for innocent in innocents)
    size = len(documents)
    wider = np.full((size + 1, size + 1), 0.5)
    wider[:size, :size] = profile
    wider[size, :] = 1.0
    innocent = Document("", "", "", Rule.ALWAYS_SHARE, kind=True)
    return _decide([*documents, innocent], [*rules, Rule.ALWAYS_SHARE], wider, you, size)


def _replaced(profile: Matrix, dictator: int, recipient: int, value: float) -> Matrix:
    changed = profile.copy()
    changed[dictator, recipient] = value
    return changed
