"""Which runs the page replays: the first of each condition and a few that stand out, always the same ones.

It looks at records alone and judges nothing; each run comes with the reason why it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fishpool.replay import unknown
from fishpool.report.tables import Tables

MOST = 2_000  # runs in one page: beyond that no browser opens it

# The first run of each condition: the first seed, and of several games under it the first by name, those before others
# in which somebody is not scripted.
_FIRST = """
SELECT run_id, study, condition, 'first of its condition' AS reason
FROM runs
QUALIFY row_number() OVER (PARTITION BY study, condition ORDER BY seed, outsiders IS NULL, run_id) = 1
ORDER BY game, study, condition
"""

# Two of each way of ending early in a study: first seeds first.
_ENDINGS = """
SELECT run_id, study, condition, ending AS reason
FROM runs
WHERE ending IN ('resigned', 'forfeited', 'void')
QUALIFY row_number() OVER (PARTITION BY study, ending ORDER BY seed, run_id) <= 2
ORDER BY study, ending, run_id
"""

# The earliest collapse of each study.
_COLLAPSES = """
SELECT run_id, study, condition, 'the earliest collapse of its study' AS reason
FROM runs
WHERE ending = 'collapsed'
QUALIFY row_number() OVER (PARTITION BY study ORDER BY rounds, condition, seed) = 1
ORDER BY study
"""

# The most lies in a run of each study.
_LIES = """
WITH lies AS (
  SELECT run_id, count(*) AS lies
  FROM claims
  WHERE broken
  GROUP BY run_id
)
SELECT run_id, study, condition, 'the most lies of its study (' || lies || ')' AS reason
FROM lies
JOIN runs USING (run_id)
QUALIFY row_number() OVER (PARTITION BY study ORDER BY lies DESC, condition, seed) = 1
ORDER BY study
"""

# The greatest difference in points, and the longest time that both cooperated without either doing so throughout.
_MATCHES = """
SELECT run_id, study, condition, 'the most unequal match of its condition' AS reason
FROM pd_individual
QUALIFY row_number() OVER (PARTITION BY study, condition ORDER BY score - opponent_score DESC, seed, run_id) = 1
ORDER BY study, condition
"""

# The most turns in a run that were repaired, and the most that could not be read.
_FAULTS = """
WITH faults AS (
  SELECT run_id, count(*) FILTER (status = 'repaired') AS repaired,
    count(*) FILTER (status IN ('invalid', 'timeout')) AS unread
  FROM turns
  WHERE status IN ('repaired', 'invalid', 'timeout')
  GROUP BY run_id
)
SELECT run_id, study, condition, 'the most repaired turns of its study (' || repaired || ')' AS reason
FROM faults
JOIN runs USING (run_id)
WHERE repaired > 0
QUALIFY row_number() OVER (PARTITION BY study ORDER BY repaired DESC, condition, seed, run_id) = 1
UNION ALL
SELECT run_id, study, condition, 'the most unreadable turns of its study (' || unread || ')' AS reason
FROM faults
JOIN runs USING (run_id)
WHERE unread > 0
QUALIFY row_number() OVER (PARTITION BY study ORDER BY unread DESC, condition, seed, run_id) = 1
ORDER BY reason, run_id
"""

_CHOSEN = "SELECT run_id, study, condition, 'asked for' AS reason FROM runs WHERE run_id IN (SELECT unnest($runs))"
_ALL = "SELECT run_id, study, condition, '' AS reason FROM runs ORDER BY game, study, condition, seed, run_id"


@dataclass(frozen=True)
class Sampled:
    run_id: str
    study: str
    condition: str
    reasons: tuple[str, ...]


class FaultyChoice(ValueError):
    """One sentence: which runs were asked for that no page can show."""


def choose(tables: Tables, runs: str | Sequence[str] = "sample") -> list[Sampled]:
    """The runs of the page: "sample", "all", or a sample and the runs named besides; each once.

    Raises FaultyChoice for more than MOST of them, and for a run that was not played.
    """
    queries = [("runs", _FIRST), ("runs", _ENDINGS), ("runs", _COLLAPSES), ("claims", _LIES)]
    queries += [("pd_individual", _MATCHES), ("turns", _FAULTS)]
    rows = [row for table, query in queries if tables.has(table) for row in tables.rows(query)]
    if runs == "all":
        (count,) = tables.rows("SELECT count(*) AS runs FROM runs")
        if count["runs"] > MOST:
            raise FaultyChoice(
                f"report_runs is all, which is {count['runs']:,} runs; a page holds at most {MOST:,}, so name runs, "
                "or restrict the run to fewer studies with only"
            )
        rows += tables.rows(_ALL)
    elif runs != "sample":
        asked = tables.rows(_CHOSEN, runs=list(runs))
        lacking = sorted(set(runs) - {row["run_id"] for row in asked})
        if lacking:
            raise FaultyChoice(f"report_runs: {unknown(tables.connection, lacking[0])}")
        rows += asked
    chosen: dict[str, Sampled] = {}
    for row in rows:
        before = chosen.get(row["run_id"])
        reasons = (*(before.reasons if before else ()), *([row["reason"]] if row["reason"] else []))
        chosen[row["run_id"]] = Sampled(row["run_id"], row["study"], row["condition"], reasons)
    return sorted(chosen.values(), key=lambda one: (one.study, one.condition))
