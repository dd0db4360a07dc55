"""Named random streams: every draw is a function of its seed, its stream's name, who draws, and when.

Nothing here is stateful, so the order of calls changes nothing: adding a player, a round or a phase leaves every other
draw as it was. A condition's name or parameters are never part of a key, so that two conditions with the same seed
share their luck and can be compared pair by pair.

The generator is SplitMix64 used as a counter (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
generators", OOPSLA): a draw is the finalised sum of a 64-bit key and a multiple of the golden gamma.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_MASK = 2**64 - 1
_GAMMA = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB


@lru_cache(maxsize=65_536)
def name_key(*names: str | int) -> int:
    """64-bit key of a stream's name and whoever draws from it; ("a", "bc") and ("ab", "c") differ, 1 and "1" do not."""
    text = "".join(f"{len(str(name))}:{name}" for name in names)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def draw(seed: int, *names: str | int, counter: int = 0) -> float:
    """One uniform number in [0, 1): `draw(seed, "audit", agent, counter=round)`."""
    return (_mix((_stream(seed, name_key(*names)) + _GAMMA * (counter + 1)) & _MASK) >> 11) * 2.0**-53


def permutation(seed: int, *names: str | int, counter: int = 0, size: int) -> list[int]:
    """A uniform random order of 0..size-1; the same call gives the same order."""
    return sorted(range(size), key=lambda item: draw(seed, *names, item, counter=counter))


def uniforms(seeds: Any, names: Any, counters: Any) -> np.ndarray:
    """Many draws at once, equal to `draw` one by one; the three arguments broadcast against each other.

    `seeds` and `counters` are integers >= 0, `names` are keys from `name_key`. Returns float64 in [0, 1).
    """
    import numpy as np

    with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is meant
        keys = _mix(_mix(np.asarray(seeds, np.uint64) + np.uint64(_GAMMA)) ^ np.asarray(names, np.uint64))
        steps = np.uint64(_GAMMA) * (np.asarray(counters, np.uint64) + np.uint64(1))
        return (_mix(keys + steps) >> np.uint64(11)) * 2.0**-53


def _stream(seed: int, names: int) -> int:
    return _mix(_mix((seed + _GAMMA) & _MASK) ^ names)


def _mix(value: Any) -> Any:
    """SplitMix64's finaliser, on a Python integer below 2**64 or an array of uint64."""
    if isinstance(value, int):
        value = ((value ^ (value >> 30)) * _MIX_1) & _MASK
        value = ((value ^ (value >> 27)) * _MIX_2) & _MASK
        return value ^ (value >> 31)
    import numpy as np

    value = (value ^ (value >> np.uint64(30))) * np.uint64(_MIX_1)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(_MIX_2)
    return value ^ (value >> np.uint64(31))
