"""Numbers and tests in words, and nothing that the data do not support.

It knows no table and no question. An estimate has an interval or says why it has none; a difference is claimed only
where its interval leaves out 0 and its p, corrected for all contrasts, is below 0.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

LEVEL = 0.05


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many decimals, a true minus sign and no negative zero; "no value" for None."""
    if value is None:
        return "no value"
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text.replace("-", "−")


def percent(value: float | None, digits: int = 0) -> str:
    """A share as a percentage; a share that is neither 0 nor 1 is never rounded to it."""
    if value is None:
        return "no value"
    digits = next(more for more in range(digits, 16) if more == 15 or not _rounds_to_end(value, more))
    return f"{number(100 * value, digits)} %"


def _rounds_to_end(value: float, digits: int) -> bool:
    return 0 < value < 1 and round(100 * value, digits) in (0, 100)


def counted(count: int, noun: str, plural: str = "") -> str:
    """"1 run", "1,000 runs"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def listed(parts: Iterable[str]) -> str:
    """"a", "a and b", "a, b and c"."""
    *rest, last = list(parts) or ["none"]
    return f"{', '.join(rest)} and {last}" if rest else last


def probability(p: float | None) -> str:
    if p is None:
        return "no p"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def interval(low: float | None, high: float | None, form: Any = number) -> str:
    """The interval in words; where there is none that nothing varied (or that one run shows no variation)."""
    if low is None or high is None:
        return "no interval, as nothing varies"
    return f"95 % interval {form(low)} to {form(high)}"


def estimate(value: float | None, low: float | None, high: float | None, form: Any = number, runs: int = 2) -> str:
    """"0.55 (95 % interval 0.52 to 0.58)", or why there is no interval."""
    if value is None:
        return "no value"
    if runs == 1:
        return f"{form(value)} (a single run, so no interval)"
    return f"{form(value)} ({interval(low, high, form)})"


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
    higher = "higher" if difference > 0 else "lower"
    if low is None:
        size = number(abs(difference), 3)
        tested = f"; Holm-corrected {probability(p)}" if p is not None else "; nothing varies, so there is no test"
        return f"{what}: {means}: {higher} by {size} in every one of {pairs} (no interval{tested})."
    evidence = (
        f"difference {number(difference)}, {interval(low, high)}, {pairs}, Holm-corrected {probability(p)}, "
        f"Cliff’s δ {number(row['effect'])}"
    )
    if (low > 0 or high < 0) and p is not None and p < LEVEL:
        return f"{what}: {higher} under {a} than under {b} ({means}; {evidence})."
    return f"{what}: no difference between {a} and {b} can be claimed ({means}; {evidence})."
