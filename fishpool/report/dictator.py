"""The dictator game's matrices as shaded tables, as the paper prints them, beside the figures.

It computes nothing: decisions, payoffs, verdicts and basins are rows of the tables of one tournament and oracle.
Source: M. Glass, "The Open-Strategy Dictator Game" (2026), tables 2 and 3 and section on basins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fishpool.report.questions import Asked
from fishpool.report.tables import NOTHING, Cell, Table, Tables, text
from fishpool.report.words import number, percent

_PROPERTIES = (
    "unconditional", "self_cooperating", "reciprocal", "exploited", "exploiter", "subsidizer", "first_order_deterrent",
    "second_order_deterrent", "deters_defectors", "deters_subsidizers", "protective",
)  # fmt: skip


def matrices(key: str, tables: Tables, asked: Asked) -> Iterator[Table]:
    """The tables that belong to a question, for each tournament and oracle."""
    make = {"rq12": (decisions, payoffs, dominance, properties), "rq13": (basins,), "rq14": (flips,)}.get(key, ())
    for tournament, oracles in asked.items():
        for oracle in oracles:
            here = {"tournament": tournament, "oracle": oracle}
            ranked = tables.rows(
                "SELECT * FROM dictator_scores WHERE tournament = $tournament AND oracle = $oracle "
                "ORDER BY rank NULLS LAST, strategy",
                **here,
            )
            if ranked:
                for one in make:
                    yield one(tables, ranked, here)


def _where(here: dict[str, str]) -> str:
    return f"{here['tournament']}, oracle {here['oracle']}"


def _numbered(ranked: list[dict[str, Any]]) -> tuple[list[str], dict[str, int]]:
    names = [row["strategy"] for row in ranked]
    return names, {name: place for place, name in enumerate(names)}


def _matrix(caption: str, ranked: list[dict[str, Any]], cells: dict[tuple[str, str], Cell], last: str) -> Table:
    names, _ = _numbered(ranked)
    rows = tuple(
        (
            Cell(f"{place + 1}. {row}"),
            *(cells.get((row, column), Cell(NOTHING, True)) for column in names),
            Cell(number(ranked[place]["score"]) if ranked[place]["score"] is not None else NOTHING, True),
        )
        for place, row in enumerate(names)
    )
    numbers = frozenset(range(1, len(names) + 2))
    return Table(
        caption, ("strategy", *(str(place + 1) for place in range(len(names))), last), rows, 1, 0, numbers, square=True
    )


def decisions(tables: Tables, ranked: list[dict[str, Any]], here: dict[str, str]) -> Table:
    """Who shares with whom; a split vote shows its shares."""
    rows = tables.rows("SELECT * FROM dictator_decisions WHERE tournament = $tournament AND oracle = $oracle", **here)
    cells = {}
    for row in rows:
        decision, votes, replicates = row["decision"], row["share_votes"], row["replicates"]
        split = decision is not None and 0 < votes < replicates
        letter = {"SHARE": "S", "TAKE": "T", None: NOTHING}[decision]
        shade = {"SHARE": "share", "TAKE": "take", None: ""}[decision]
        cells[row["dictator"], row["recipient"]] = Cell(
            f"{letter} {votes}/{replicates}" if split else letter, True, shade
        )
    return _matrix(
        f"Decisions ({_where(here)}): the row as dictator about the column as recipient, by rank; S shares, T takes; a "
        "split vote with its votes for S",
        ranked, cells, "score",
    )  # fmt: skip


def payoffs(tables: Tables, ranked: list[dict[str, Any]], here: dict[str, str]) -> Table:
    """What each strategy earns against each other one in both roles."""
    rows = tables.rows("SELECT * FROM dictator_payoffs WHERE tournament = $tournament AND oracle = $oracle", **here)
    there = [row["payoff"] for row in rows if row["payoff"] is not None]
    low, span = min(there, default=0.0), (max(there, default=1.0) - min(there, default=0.0)) or 1.0
    cells = {
        (row["strategy"], row["opponent"]): Cell(number(row["payoff"]), True, strength=(row["payoff"] - low) / span)
        for row in rows
        if row["payoff"] is not None
    }
    return _matrix(
        f"Payoffs ({_where(here)}): the row’s payoff against the column in both roles together, in utilities; darker "
        "is more",
        ranked, cells, "score",
    )  # fmt: skip


def dominance(tables: Tables, ranked: list[dict[str, Any]], here: dict[str, str]) -> Table:
    """Scores, and which strategies dominate which."""
    rows = tables.rows("SELECT * FROM dictator_dominance WHERE tournament = $tournament AND oracle = $oracle", **here)
    verdicts = {row["strategy"]: row for row in rows}
    made = []
    for row in ranked:
        verdict = verdicts.get(row["strategy"], {"kind": None, "dominated_by": [], "mixture": "{}"})
        made.append(
            (
                Cell(row["strategy"]),
                Cell(row["family"]),
                Cell(text(row["rank"]), True),
                Cell(number(row["score"]) if row["score"] is not None else NOTHING, True),
                Cell(text(row["k_give"]), True),
                Cell(text(row["k_recv"]), True),
                Cell({"none": "no", "weak": "weakly", "strict": "strictly", None: NOTHING}[verdict["kind"]]),
                Cell(", ".join(verdict["dominated_by"] or ()) or _mixture(verdict["kind"])),
            )
        )
    return Table(
        f"Scores and dominance ({_where(here)}); k: how many strategies it shares with, and how many share with it",
        ("strategy", "family", "rank", "score", "k given", "k received", "dominated", "by"),
        tuple(made), 1, 0, frozenset({2, 3, 4, 5}),
    )  # fmt: skip


def _mixture(kind: str | None) -> str:
    return NOTHING if kind in (None, "none") else "mixtures only"


def properties(tables: Tables, ranked: list[dict[str, Any]], here: dict[str, str]) -> Table:
    """What kind of strategy each one is, by what it decides."""
    rows = tuple(
        (
            Cell(row["strategy"]),
            *(
                Cell(NOTHING if row[name] is None else "yes" if row[name] else "no", False, "yes" if row[name] else "")
                for name in _PROPERTIES
            ),
        )
        for row in ranked
    )
    columns = ("strategy", *(name.replace("_", " ") for name in _PROPERTIES))
    return Table(f"Properties by decisions ({_where(here)})", columns, rows)


def basins(tables: Tables, ranked: list[dict[str, Any]], here: dict[str, str]) -> Table:
    """Equilibria with the share of starts that reach each, by beta and dynamics, own payoffs."""
    names, _ = _numbered(ranked)
    rows = tables.rows(
        "SELECT * FROM dictator_equilibria WHERE tournament = $tournament AND oracle = $oracle "
        "AND model = 'own_payoff' AND equilibrium IS NOT NULL ORDER BY beta, dynamics DESC, equilibrium",
        **here,
    )
    grouped: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        grouped.setdefault((row["beta"], row["dynamics"], row["equilibrium"]), {"row": row})[row["strategy"]] = row
    made = []
    for (beta, dynamics, equilibrium), one in grouped.items():
        row = one["row"]
        low, high = row["basin_low"], row["basin_high"]
        bounds = NOTHING if low is None or high is None else f"{percent(low)} to {percent(high)}"
        made.append(
            (
                Cell(f"{beta:g}", True),
                Cell(dynamics),
                Cell(str(equilibrium), True),
                Cell(NOTHING if row["stable"] is None else "yes" if row["stable"] else "no"),
                Cell(percent(row["basin_share"]), True),
                Cell(bounds, True),
                Cell(number(row["welfare"]) if row["welfare"] is not None else NOTHING, True),
                *(_frequency(one.get(name)) for name in names),
            )
        )
    return Table(
        f"Logit equilibria and their basins ({_where(here)}): share of the starts that end there, and frequency (%) of "
        "each strategy in it",
        ("β", "dynamics", "equilibrium", "stable", "basin", "95 % interval", "welfare", *names),
        tuple(made), 3, 0, frozenset({0, 2, 4, 5, 6, *range(7, 7 + len(names))}),
    )  # fmt: skip


def _frequency(row: dict[str, Any] | None) -> Cell:
    if row is None or row["frequency"] is None:
        return Cell(NOTHING, True)
    return Cell(f"{100 * row['frequency']:.0f}", True, strength=float(row["frequency"]))


def flips(tables: Tables, ranked: list[dict[str, Any]], here: dict[str, str]) -> Table:
    """Which single decisions, turned over, change the winner."""
    rows = tables.rows("SELECT * FROM dictator_flips WHERE tournament = $tournament AND oracle = $oracle", **here)
    cells = {
        (row["dictator"], row["recipient"]): Cell(
            row["winner"] or "tie" if row["winner_changes"] else "·", not row["winner_changes"],
            "take" if row["winner_changes"] else "",
        )
        for row in rows
    }  # fmt: skip
    _, places = _numbered(ranked)
    numbered = {
        pair: Cell(str(places[cell.text] + 1) if cell.text in places else cell.text, True, cell.shade)
        for pair, cell in cells.items()
    }
    return _matrix(
        f"Winner if this one decision were turned over ({_where(here)}): number of the new winner, a dot where it "
        "stays",
        ranked, numbered, "score",
    )  # fmt: skip
