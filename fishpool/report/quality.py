"""The data-quality page: what was played, by whom, how much of it could be read, and what had to be left out.

It judges nothing; each table is one query, and its rows are counts over everything in the database.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fishpool.report.tables import Table, Tables, table
from fishpool.report.words import counted, listed, percent

_RUNS = """
SELECT
  study,
  any_value(game) AS game,
  count(DISTINCT condition) AS conditions,
  count(DISTINCT seed) AS seeds,
  count(*) AS runs,
  count(*) FILTER (ending = 'completed') AS completed,
  count(*) FILTER (ending = 'collapsed') AS collapsed,
  count(*) FILTER (ending = 'resigned') AS resigned,
  count(*) FILTER (ending = 'forfeited') AS forfeited,
  count(*) FILTER (ending = 'void') AS void
FROM runs
GROUP BY study
ORDER BY any_value(game), study
"""

_TURNS = """
SELECT
  study,
  sum(turns)::BIGINT AS turns,
  sum(moved)::BIGINT AS moved,
  sum(repaired)::BIGINT AS repaired,
  sum(invalid)::BIGINT AS invalid,
  sum(timeout)::BIGINT AS timeout,
  sum(resigned)::BIGINT AS resigned,
  sum(infrastructure)::BIGINT AS infrastructure,
  (sum(moved) + sum(repaired) + sum(resigned)) / nullif(sum(turns) - sum(infrastructure), 0) AS validity_rate
FROM validity
GROUP BY study
ORDER BY study
"""

_VALIDITY = """
SELECT study, condition, player, turns, moved, repaired, invalid, timeout, resigned, infrastructure, validity_rate
FROM validity
ORDER BY study, condition, player
"""

_CONTAMINATED = """
SELECT study, condition, count(*) AS runs, count(*) FILTER (contaminated) AS contaminated,
  max(fallback_share) AS largest_share_of_fallbacks
FROM commons_societal
GROUP BY study, condition
HAVING count(*) FILTER (contaminated) > 0
ORDER BY study, condition
"""

_SEEDS = """
SELECT study, condition, count(DISTINCT seed) AS seeds, min(seed) AS first, max(seed) AS last, count(*) AS runs
FROM runs
GROUP BY study, condition
ORDER BY study, condition
"""

_VERSIONS = """
SELECT fishpool_version AS fishpool, versions AS python_and_libraries, count(*) AS runs,
  count(DISTINCT study) AS studies
FROM runs
GROUP BY ALL
ORDER BY runs DESC, versions
"""

_UNFINISHED = """
SELECT ending, end_reason AS reason, count(*) AS runs, min(run_id) AS for_example
FROM runs
WHERE ending IN ('void', 'forfeited', 'resigned')
GROUP BY ending, end_reason
ORDER BY runs DESC, ending, end_reason
"""

_REPLIES = """
SELECT player, model, backend, left(model_digest, 12) AS digest, count(*) AS replies,
  count(DISTINCT prompt_sha256) AS different_prompts,
  count(*) FILTER (reading = 'moved') AS read_as_sent,
  count(*) FILTER (reading = 'repaired') AS read_among_words,
  count(*) FILTER (reading = 'invalid') AS invalid,
  count(*) FILTER (reading = 'truncated') AS truncated,
  count(*) FILTER (reading = 'refusal') AS refusals,
  count(*) FILTER (attempt > 1) AS after_a_repair_request,
  sum(tokens_in) AS tokens_in,
  sum(tokens_out) AS tokens_out,
  median(latency_ms) AS median_latency_ms,
  count(*) FILTER (from_journal) AS from_journal
FROM replies
GROUP BY ALL
ORDER BY ALL
"""

_OUTSIDERS = "SELECT DISTINCT study, outsiders FROM runs WHERE outsiders IS NOT NULL ORDER BY study, outsiders"

_NAMES = {
    "moved": "read as sent",
    "infrastructure": "server’s fault",
    "validity_rate": "valid share",
    "python_and_libraries": "Python and libraries",
    "median_latency_ms": "median latency (ms)",
}


def summary(tables: Tables) -> list[str]:
    """What there is, in sentences."""
    (runs,) = tables.rows("SELECT count(*) AS runs, count(DISTINCT study) AS studies FROM runs")
    (turns,) = tables.rows(
        "SELECT sum(turns) AS turns, sum(moved) AS moved, sum(repaired) AS repaired, sum(invalid) AS invalid, "
        "sum(timeout) AS timeout, sum(infrastructure) AS infrastructure FROM validity"
    )
    endings = tables.rows("SELECT ending, count(*) AS runs FROM runs GROUP BY ending ORDER BY runs DESC, ending")
    ended = listed(f"{row['ending']}: {row['runs']:,}" for row in endings)
    said = [
        f"{counted(runs['runs'], 'run')} of {counted(runs['studies'], 'study', 'studies')}, "
        f"{counted(int(turns['turns'] or 0), 'turn')}. "
        f"How the runs ended: {ended}."
    ]
    if turns["turns"]:
        faults = {
            word: int(turns[word]) for word in ("repaired", "invalid", "timeout", "infrastructure") if turns[word]
        }
        if faults:
            others = listed(f"{count:,} {word}" for word, count in faults.items())
            said.append(
                f"{percent(turns['moved'] / turns['turns'], 1)} of all turns were read as they were sent; "
                f"the others: {others}. "
                "A reply that could not be read was never counted as a move."
            )
        else:
            said.append("Every turn was read as it was sent: there was no repair, invalid reply, timeout or lost call.")
    if tables.has("commons_societal"):
        (pools,) = tables.rows(
            "SELECT count(*) AS runs, count(*) FILTER (contaminated) AS contaminated FROM commons_societal"
        )
        said.append(
            f"{counted(pools['contaminated'], 'fish pool')} of {pools['runs']:,} "
            f"{'is' if pools['contaminated'] == 1 else 'are'} contaminated (more than 5 % of its turns were the rules’ "
            "fallback), and outside every estimate, curve and contrast."
        )
    return said


def sections(tables: Tables) -> Iterator[tuple[str, str, list[Table]]]:
    """(heading, what it says, tables) of the page's parts, in order."""
    rows = tables.rows(_VALIDITY)
    flawed = [row for row in rows if row["moved"] != row["turns"]]
    yield (
        "Studies",
        "A turn is one agent in one phase of one round.",
        [
            table("Runs by how they ended", tables.rows(_RUNS), _NAMES),
            table("Turns by what the referee made of them", tables.rows(_TURNS), _NAMES),
        ],
    )
    said = (
        f"In {len(flawed):,} of {counted(len(rows), 'combination')} of study, condition and player some turn was not "
        "read as it was sent."
        if flawed
        else f"All {counted(len(rows), 'combination')} of study, condition and player: every turn read as it was sent."
    )
    yield "Validity by study, condition and player", said, [table("Validity", rows, _NAMES, heads=3)]
    unfinished = tables.rows(_UNFINISHED)
    yield (
        "Forfeits, resignations and void runs",
        "" if unfinished else "There is none.",
        [table("Why runs ended early", unfinished, heads=2, most=200)] if unfinished else [],
    )
    if tables.has("commons_societal"):
        contaminated = tables.rows(_CONTAMINATED)
        yield (
            "Contaminated runs",
            "" if contaminated else "There is none.",
            [table("Contaminated runs of the fish pool", contaminated, heads=2)] if contaminated else [],
        )
    yield from _outsiders(tables)
    yield (
        "Seeds",
        "Conditions of a study share their seeds.",
        [table("Seeds by study and condition", tables.rows(_SEEDS), heads=2)],
    )
    yield "Versions", "What played the runs, as each run recorded it.", [table("Versions", _versions(tables), _NAMES)]


def _versions(tables: Tables) -> list[dict[str, Any]]:
    rows = tables.rows(_VERSIONS)
    return [
        {
            **row,
            "python_and_libraries": ", ".join(f"{k} {v}" for k, v in json.loads(row["python_and_libraries"]).items()),
        }
        for row in rows
    ]


def _outsiders(tables: Tables) -> Iterator[tuple[str, str, list[Table]]]:
    """Models, bots and other players that are not scripted."""
    known = tables.rows(_OUTSIDERS) if "outsiders" in tables.columns("runs") else []
    rows: dict[str, dict[str, Any]] = {}
    for row in known:
        for player, said in sorted(json.loads(row["outsiders"]).items()):
            plain = {key: value for key, value in said.items() if value not in (None, {}, [])}
            prompts = plain.pop("prompts", {})
            one = {
                "study": row["study"],
                "player": player,
                "digest": str(plain.pop("digest", "") or "–"),
                "prompts": ", ".join(f"{name} {sha}" for name, sha in prompts.items()) if prompts else "–",
                "settings": ", ".join(
                    f"{key} {json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value}"
                    for key, value in plain.items()
                ),
            }
            rows[json.dumps(one)] = one
    made = []
    if rows:
        names = {"digest": "digest of weights or program", "prompts": "prompts (SHA-256)"}
        made.append(table("Players that are not scripted", list(rows.values()), names, heads=2))
    if tables.has("replies") and (replies := tables.rows(_REPLIES)):
        made.append(table("Replies of models", replies, _NAMES))
    yield "Models and other players from outside", "" if made else "There is none: every player is scripted.", made
