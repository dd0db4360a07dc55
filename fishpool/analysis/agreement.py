"""How far two oracles agree on the same pool, cell by cell.

It says nothing of who is right. The source is section 5 of the paper named in `fishpool.games.dictator`. Decision
matrices are (dictators, recipients): 1 share, 0 take, NaN missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Agreement:
    """Cells that both oracles decided, and how many of them alike; `rate` is NaN if there are none."""

    cells: int
    agree: int

    @property
    def rate(self) -> float:
        return self.agree / self.cells if self.cells else np.nan


def agreement(first: Any, second: Any) -> Agreement:
    """Compare two oracles on the same pool, cell by cell; a cell that either left undecided does not count."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    both = ~(np.isnan(a) | np.isnan(b))
    return Agreement(int(both.sum()), int((a[both] == b[both]).sum()))
