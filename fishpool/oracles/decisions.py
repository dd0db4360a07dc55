"""Oracles that look an answer up: a CSV of decisions, and `published`, the paper's own table, which ships with us.

No answer is made up here: a pair without a decision is a fault, a pair whose decision is left empty is a missing cell.
The published decisions are the paper's Table 2. Their votes are read from its section 5: two further oracles agree with
the table in 79 and 78 of 81 cells and with each other in 93.8 % (76), so five different cells have one dissenter each;
the text names them (conditional cooperator on intelligence, coalition on anti-exploiter and on universalizability,
chivalry and conditional cooperator on each other).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from fishpool.documents import shown
from fishpool.games.dictator import Decision, Document, Oracle, Votes

MOST_REPLICATES = 1000

_REQUIRED = ("dictator", "recipient", "decision")
_OPTIONAL = ("share_votes", "replicates")


def published(strategies: Sequence[str]) -> Oracle:
    """The paper's Table 2; ValueError if the pool has a strategy that the paper's tournament did not have."""
    content = (resources.files("fishpool.oracles") / "published.csv").read_bytes()
    return parse_decisions(content, "published", strategies, subset=True)


def decisions_file(path: Path, strategies: Sequence[str]) -> Oracle:
    """An oracle from a decision file that has exactly the cells of this pool; ValueError with one sentence a fault."""
    return parse_decisions(path.read_bytes(), str(path), strategies)


def parse_decisions(content: bytes, source: str, strategies: Sequence[str], *, subset: bool = False) -> Oracle:
    """An oracle from the bytes of a decision file.

    The columns are dictator, recipient, decision (SHARE, TAKE, or empty: the oracle gave no readable answer), and
    either both or none of share_votes and replicates, of which the decision is the majority. With `subset` the file may
    know more strategies than the pool. Raises ValueError with one sentence a fault, each on its own line.
    """
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        columns = tuple(reader.fieldnames or ())
        rows = list(reader)
    except UnicodeDecodeError as fault:
        raise ValueError(f"{source}: byte {fault.start} is not UTF-8; save the file as UTF-8") from None
    except csv.Error as fault:
        raise ValueError(f"{source}: not a CSV file ({fault})") from None
    if columns not in (_REQUIRED, _REQUIRED + _OPTIONAL):
        raise ValueError(
            f"{source}: the columns are {shown(', '.join(columns)) if columns else 'missing'}; "
            f"expected {', '.join(_REQUIRED)} and, if there are votes, {', '.join(_OPTIONAL)}"
        )
    cells: dict[tuple[str, str], Votes] = {}
    faults: list[str] = []
    pool = set(strategies)
    for line, row in enumerate(rows, start=2):
        where = f"{source}, line {line}"
        pair = (row["dictator"] or "", row["recipient"] or "")
        unknown = [name for name in pair if name not in pool]
        if unknown and not subset:
            faults.append(f"{where}: no document has the name {shown(unknown[0])}; remove the row or add the document")
        elif pair in cells:
            faults.append(f'{where}: "{pair[0]}" on "{pair[1]}" has a row already; keep one of them')
        else:
            try:
                cells[pair] = _votes(row, votes=len(columns) > len(_REQUIRED))
            except ValueError as fault:
                faults.append(f"{where}: {fault}")
                cells[pair] = Votes(0, 0)
    wanted = [(dictator, recipient) for dictator in strategies for recipient in strategies]
    missing = [pair for pair in wanted if pair not in cells]
    if subset and (strangers := sorted(pool - {dictator for dictator, _ in cells})):
        faults.append(f'{source}: has no decisions about "{strangers[0]}"; use another oracle or a decision file')
    elif missing:
        more = f" and {len(missing) - 1} more cells are" if len(missing) > 1 else " is"
        faults.append(
            f'{source}: the cell "{missing[0][0]}" on "{missing[0][1]}"{more} missing; '
            "add a row, with an empty decision if the oracle gave none"
        )
    if faults:
        raise ValueError("\n".join(faults))

    def oracle(dictator: Document, recipient: Document) -> Votes:
        return cells[dictator.name, recipient.name]

    return oracle


def _votes(row: dict[str, str], *, votes: bool) -> Votes:
    if None in row or None in row.values():
        raise ValueError("the row has not as many fields as the header; write one field a column")
    decision = row["decision"]
    if decision not in ("", *Decision):
        raise ValueError(f"decision is {shown(decision)}, expected SHARE, TAKE or nothing")
    if not votes:
        return Votes(int(decision == Decision.SHARE), int(decision != ""))
    if not (row["share_votes"].isdecimal() and row["replicates"].isdecimal()):
        raise ValueError("share_votes and replicates are counts, expected two whole numbers")
    if max(len(row["share_votes"]), len(row["replicates"])) > 9:
        raise ValueError(f"share_votes or replicates has more than nine digits; at most {MOST_REPLICATES} are read")
    share, replicates = int(row["share_votes"]), int(row["replicates"])
    margin = 2 * share - replicates
    majority = "" if margin == 0 else Decision.SHARE if margin > 0 else Decision.TAKE
    if replicates > MOST_REPLICATES:
        raise ValueError(f"replicates is {replicates}, at most {MOST_REPLICATES} are read")
    if share > replicates or decision != majority:
        raise ValueError(f"decision is {shown(decision)}, but {share} of {replicates} votes are for SHARE")
    return Votes(share, replicates)
