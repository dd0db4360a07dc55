"""Numbers and tests in words, and nothing that the data do not support.

It knows no table and no question. An estimate has an interval or says why it has none; a difference is claimed only
where its interval leaves out 0 and its p, corrected for all contrasts, is below 0.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Form = Callable[[float | None], str]

LEVEL = 0.05


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many decimals, a true minus sign and no negative zero; "no value" for None."""
    if value is None:
        return "no value"
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text.replace("-", "−")


def percent(value: float | None, digits: int = 0) -> str:
    """A share as a percentage; one that is neither 0 nor 1 is never rounded to it."""
    if value is None:
        return "no value"
    if 0 < value < 0.001:
        return "under 0.1 %"
    if 0.999 < value < 1:
        return "over 99.9 %"
    ends = 0 < value < 1 and round(100 * value, digits) in (0, 100)
    return f"{number(100 * value, 1 if ends else digits)} %"


def counted(count: int, noun: str, plural: str = "") -> str:
    """ "1 run", "1,000 runs"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def listed(parts: Iterable[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    *rest, last = list(parts) or ["none"]
    return f"{', '.join(rest)} and {last}" if rest else last


def probability(p: float | None) -> str:
    if p is None:
        return "no p"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def bounds(low: float | None, high: float | None, form: Form = number, runs: int = 2) -> str:
    """The ends of an interval; where there is none that nothing varies, or that one run cannot vary."""
    if runs == 1:
        return "none: a single run"
    if low is None or high is None:
        return "none: nothing varies"
    return f"{form(low)} to {form(high)}"


def interval(low: float | None, high: float | None, form: Form = number) -> str:
    """The same inside a sentence."""
    if low is None or high is None:
        return "no interval, as nothing varies"
    return f"95 % interval {bounds(low, high, form)}"


def estimate(value: float | None, low: float | None, high: float | None, form: Form = number, runs: int = 2) -> str:
    """ "0.55 (95 % interval 0.52 to 0.58)", or why there is no interval."""
    if value is None:
        return "no value"
    if runs == 1:
        return f"{form(value)} (a single run, so no interval)"
    return f"{form(value)} ({interval(low, high, form)})"


def side(value: float | None, low: float | None, high: float | None, of: float, runs: int = 2) -> int:
    """1 if the whole interval is above a number, -1 if it is below, 0 if the data do not decide.

    Where nothing varies over several runs the value itself is all there is; a single run decides nothing.
    """
    if value is None or runs == 1:
        return 0
    least, most = (value if low is None else low), (value if high is None else high)
    return 1 if least > of else -1 if most < of else 0


def contrast(row: Mapping[str, Any]) -> str:
    """One row of `contrasts` as a sentence: what was compared, what came out, and whether that is a difference."""
    whose = f" of {row['player']}" if row["player"] else ""
    what = f"{str(row['metric']).replace('_', ' ')}{whose}"
    a, b, difference, low, high, p = (
        row[key] for key in ("condition_a", "condition_b", "mean_difference", "low", "high", "p_holm")
    )
    pairs = counted(row["pairs"], "pair")
    if difference is None:
        return f"{what}, {a} against {b}: nothing can be said, as {row['note'] or 'there is no pair of runs'}."
    means = f"{number(row['mean_a'])} under {a}, {number(row['mean_b'])} under {b}"
    if row["pairs"] == 1:
        return f"{what}: {means} in the only pair, which shows no variation, so nothing is claimed."
    if low is None and difference == 0:
        return f"{what}: {means}, the same in each of {pairs}."
    if low is None:
        by = "higher" if difference > 0 else "lower"
        tested = f"; Holm-corrected {probability(p)}" if p is not None else "; nothing varies, so there is no test"
        return f"{what}: {by} by {number(abs(difference), 3)} in each of {pairs} ({means}; no interval{tested})."
    evidence = (
        f"{means}; difference {number(difference)}, {interval(low, high)}, {pairs}, Holm-corrected {probability(p)}, "
        f"Cliff’s δ {number(row['effect'])}"
    )
    way = side(difference, low, high, 0, row["pairs"])
    if way and p is not None and p < LEVEL:
        return f"{what}: {'higher' if way > 0 else 'lower'} under {a} than under {b} ({evidence})."
    return f"{what}: no difference between {a} and {b} can be claimed ({evidence})."
