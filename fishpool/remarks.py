"""What one should know of a run before its numbers are used: a few sentences for its end, not scrolled past.

It reads the tables that are there and what Snakemake noted of failed jobs; it judges no result and stops nothing. The
metric tables say what void, forfeited, contaminated and validity mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from fishpool.ask import QueryError, comments_of, opened
from fishpool.records import Ending
from fishpool.screen import visible

LOW_VALIDITY = 0.95
FAILURES_SHOWN = 5
_WORDS_SHOWN = 200  # characters of what others wrote

# The games that ended in one way, with the first of them as an example.
_ENDED = """
        SELECT
          count(*) FILTER (ending = '{ending}') AS found,
          count(*) AS games,
          min(run_id) FILTER (ending = '{ending}') AS example,
          min_by(end_reason, run_id) FILTER (ending = '{ending}') AS why
        FROM runs
        """

# (table, query, sentence): one row each; where the first column is 0 there is nothing to say.
_REMARKS = (
    (
        "runs",
        _ENDED.format(ending=Ending.VOID),
        "{found:,} of {games:,} games are void and count in no result, such as {example} ({why})",
    ),
    (
        "runs",
        _ENDED.format(ending=Ending.FORFEITED),
        "{found:,} of {games:,} games ended in a forfeit, such as {example} ({why})",
    ),
    (
        "commons_societal",
        """
        SELECT
          count(*) FILTER (contaminated) AS found,
          count(*) AS games,
          min(run_id) FILTER (contaminated) AS example
        FROM commons_societal
        """,
        "{found:,} of {games:,} fish pools are contaminated (the rules decided more than 5 % of their turns) and stand"
        " outside estimates, curves and contrasts, such as {example}",
    ),
    (
        "validity",
        f"""
        SELECT
          count(*) FILTER (validity_rate < {LOW_VALIDITY}) AS found,
          count(*) AS players,
          min_by(player || ' in ' || study || '/' || condition, validity_rate) AS example,
          100 * min(validity_rate) AS least
        FROM validity
        """,
        "{found:,} of {players:,} players in a condition gave fewer than 95 % valid turns,"
        " least {example} with {least:.1f} %",
    ),
    (
        "replies",
        """
        SELECT
          count(*) FILTER (reading = 'truncated') AS found,
          count(*) AS replies,
          min_by(model, run_id) FILTER (reading = 'truncated') AS example
        FROM replies
        """,
        "{found:,} of {replies:,} replies of models were cut short at max_tokens, such as some of {example}",
    ),
)


def remarks(database: Path) -> list[str]:
    """One sentence for each thing to know; none where there is nothing to say, or no table yet that could say it."""
    try:
        with opened(database) as connection:
            said = []
            for table, query, sentence in _REMARKS:
                if table not in comments_of(connection):
                    continue
                cursor = connection.execute(query)
                names = [column[0] for column in cursor.description or ()]
                row = dict(zip(names, cursor.fetchone() or (), strict=True))
                if row["found"]:
                    said.append(sentence.format(**{name: _shown(value) for name, value in row.items()}))
            return said
    except QueryError:
        return []


def failures(logs: Iterable[Path]) -> list[str]:
    """From Snakemake's log: a sentence for each job that failed, with the last line of its own log."""
    text = "".join(log.read_text(encoding="utf-8", errors="replace") for log in logs)
    failed = dict.fromkeys(_failed_jobs(text))
    shown = list(failed)[:FAILURES_SHOWN]
    more = len(failed) - len(shown)
    return [*shown, *([f"{more} more job{'' if more == 1 else 's'} failed"] if more else [])]


def _failed_jobs(text: str) -> Iterator[str]:
    messages = dict(re.findall(r"^Job (\d+): (.+)$", text, re.MULTILINE))
    for job in re.finditer(r"^Error in rule (?P<rule>\S+):\n(?P<about>(?: {4}.*\n)*)", text, re.MULTILINE):
        number = re.search(r"^ {4}jobid: (\d+)$", job["about"], re.MULTILINE)
        file = re.search(r"^ {4}log: (.+?)(?: \(check log file.*)?$", job["about"], re.MULTILINE)
        what = str(messages.get(number[1], job["rule"])) if number else job["rule"]
        last = str(_shown(last_line(Path(file[1])))) if file else ""
        place = what.partition(" ")[2]
        if place and last.startswith(f"{place}: "):  # how far it was, no reason: somebody ended it
            yield f"{_shown(what)} was ended ({last.removeprefix(f'{place}: ')})"
        else:
            yield f"{_shown(what)} failed" + (f": {last}" if last else "")


def last_line(log: Path) -> str:
    """The last line of a job's log that is not blank; nothing where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 2_000))
            lines = file.read().decode("utf-8", "replace").rstrip().splitlines()
    except OSError:
        return ""
    return visible(lines[-1]) if lines else ""


def _shown(value: object) -> object:
    """Text on one line and not too long; other values as they are."""
    if not isinstance(value, str):
        return value
    text = visible(" ".join(value.split()))
    return text if len(text) <= _WORDS_SHOWN else f"{text[: _WORDS_SHOWN - 3]} .."
