"""Named random streams: every draw is a function of its seed, its stream's name, who draws, and when.

Nothing here is stateful, so the order of calls changes nothing: adding a player, a round or a phase leaves every other
draw as it was. A condition's name or parameters are never part of a key, so that two conditions with the same seed
share their luck and can be compared pair by pair.

The generator is SplitMix64 used as a counter (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
generators", OOPSLA): a draw is the finalised sum of a 64-bit key and a multiple of the golden gamma.
"""

from __future__ import annotations

import hashlib
import math
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
    return draws(streams(seeds, names), counters)


def streams(seeds: Any, names: Any) -> np.ndarray:
    """Many streams at once, for `draws` and `happens`; seeds and keys from `name_key` broadcast against each other."""
    import numpy as np

    with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is meant
        return _mix_all(_mix_all(np.asarray(seeds, np.uint64) + np.uint64(_GAMMA)) ^ np.asarray(names, np.uint64))


def draws(streams: np.ndarray, counters: Any) -> np.ndarray:
    """The draws of streams, float64 in [0, 1); streams and counters broadcast against each other."""
    import numpy as np

    with np.errstate(over="ignore"):
        steps = np.uint64(_GAMMA) * (np.asarray(counters, np.uint64) + np.uint64(1))
        return (_mix_all(streams + steps) >> np.uint64(11)) * 2.0**-53


def happens(streams: np.ndarray, counter: int, probability: float) -> np.ndarray:
    """Whether each stream's draw is below the probability: `draw(.., counter=counter) < probability`, as bool.

    A draw is the upper 53 of 64 bits, so whole numbers are compared and no fraction is made.
    """
    import numpy as np

    bits = _mix_all(streams + np.uint64(_GAMMA * (counter + 1) & _MASK))
    return bits < (math.ceil(probability * 2**53) << 11)


def _stream(seed: int, names: int) -> int:
    return _mix(_mix((seed + _GAMMA) & _MASK) ^ names)


def _mix(value: int) -> int:
    """SplitMix64's finaliser, on an integer below 2**64."""
    value = ((value ^ (value >> 30)) * _MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_2) & _MASK
    return value ^ (value >> 31)


def _mix_all(values: np.ndarray) -> np.ndarray:
    """The same in place, on an array of uint64."""
    import numpy as np

    values ^= values >> np.uint64(30)
    values *= np.uint64(_MIX_1)
    values ^= values >> np.uint64(27)
    values *= np.uint64(_MIX_2)
    values ^= values >> np.uint64(31)
    return values
