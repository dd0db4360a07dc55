"""The research questions as the report puts them: the SQL that gives a figure's rows, and what the rows say in words.

One small function a question turns rows of its tables into sentences; none of them computes a statistic, and none
says more than an interval or a corrected p supports (`words`). The figures themselves are `fishpool.figures`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from fishpool.report.tables import NOTHING, Table, Tables, made
from fishpool.report.words import Form, bounds, contrast, counted, estimate, listed, number, percent, side

Row = Mapping[str, Any]
Finding = str | Table
Asked = Mapping[str, Sequence[str]]  # the conditions by study that a question is asked of, in the order of the config


@dataclass(frozen=True)
class Question:
    """`sql` is a query with `{studies}` where the list of studies goes; `findings` makes sentences and small tables."""

    title: str
    game: str
    sql: str
    findings: Callable[[Tables, Asked], Iterator[Finding]]

    def query(self, asked: Asked) -> str:
        """The query as people may copy it."""
        return self.sql.strip().replace("{studies}", ", ".join(f"'{study}'" for study in asked))


def answers(key: str, tables: Tables, asked: Asked) -> list[Finding]:
    """What the data say about a question, declared contrasts last."""
    return [*QUESTIONS[key].findings(tables, asked), *(contrast(row) for row in contrasts(key, tables, asked))]


def contrasts(key: str, tables: Tables, asked: Asked) -> list[dict[str, Any]]:
    """The declared contrasts of a question, in the order of the table."""
    if not tables.has("contrasts"):
        return []
    rows = tables.rows("SELECT * FROM contrasts WHERE study IN (SELECT unnest($studies))", studies=list(asked))
    return [row for row in rows if key in str(row["question"]).split(", ")]


# ── The fish pool ────────────────────────────────────────────────────────────────────────────────────────────────


def talk(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ1: the share of pools that outlive the last round, by condition."""
    rows = []
    for study, condition in _places(asked):
        curve = tables.rows(
            "SELECT round, at_risk, survival, low, high FROM commons_survival "
            "WHERE study = $study AND condition = $condition ORDER BY round",
            study=study,
            condition=condition,
        )
        if curve:
            runs, end = curve[0]["at_risk"], curve[-1]
            survival, ends = percent(end["survival"]), bounds(end["low"], end["high"], percent, runs)
            rows.append((*_named(asked, study), condition, runs, end["round"], survival, ends))
    yield made(
        "Pools that outlived the last round (Kaplan–Meier)",
        (*_naming(asked), "condition", "runs", "last round", "survived", "95 % interval"),
        rows,
        heads=1 + len(_naming(asked)),
    )


def unasked(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ2: untrue reports and broken promises where nothing is said about lying."""
    silent = {
        (row["study"], row["condition"], row["player"], row["metric"]): row
        for metric in ("broken_rate", "misreport_rate")
        for row in _estimates(tables, asked, metric, of_players=True)
        if row["permission"] == "silent"
    }
    whose = list(dict.fromkeys(key[:3] for key in silent))
    rows, honest = [], []
    for study, condition, player in whose:
        both = [silent.get((study, condition, player, metric)) for metric in ("broken_rate", "misreport_rate")]
        if all(row is None or row["estimate"] == 0 for row in both):
            honest.append((study, condition, player))
            continue
        cells = [cell for row in both for cell in _cells(row, percent)]
        rows.append((*_named(asked, study), condition, player, *cells))
    for (study, condition), some in _by(honest, 0, 1):
        who = listed(row[2] for row in some)
        yield f"{_place(asked, study, condition)}: no broken promise and no untrue report of {who}."
    yield made(
        "Broken promises and untrue reports where the instructions are silent about lying",
        (
            *_naming(asked), "condition", "player",
            "promises broken", "95 % interval", "reports untrue", "95 % interval",
        ),
        rows,
        heads=2 + len(_naming(asked)),
    )  # fmt: skip
    yield "What a scripted player says is its rule: whether an instruction changes it is a question about others."


def audits(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ3: what the liar gained over its honest twin, by fine and probability of an audit."""
    rows = [row for row in _estimates(tables, asked, "advantage", of_players=True) if row["player"] == row["liar"]]
    rows.sort(key=itemgetter("study", "player", "fine", "audit_q"))
    said = []
    for (study, player, fine), some in _by(rows, "study", "player", "fine"):
        sides = [(row, _side(row, 0)) for row in some]
        told = []
        for of, what in ((1, "paid"), (-1, f"cost {player}"), (0, "is not decided")):
            where = listed(f"{row['audit_q']:g}" for row, way in sides if way == of)
            told += [f"{what} at q = {where}"] if where != "none" else []
        yield f"{_place(asked, study)}fine {fine:g}: lying {listed(told)}."
        for row, way in sides:
            verdict = {1: "pays", -1: "costs", 0: "not decided"}[way]
            said.append(
                (
                    *_named(asked, study), f"{fine:g}", f"{row['audit_q']:g}", f"{fine * row['audit_q']:g}", player,
                    row["runs"], *_cells(row), verdict,
                )
            )  # fmt: skip
    yield made(
        "What the liar earned above its honest twin",
        (*_naming(asked), "fine φ", "audited q", "qφ", "player", "runs", "advantage", "95 % interval", "lying"),
        said,
        heads=2 + len(_naming(asked)),
    )


def deviations(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ4: what kinds of departures from promises there were, by player, over all conditions of a study."""
    classes = ("selfish", "win-win", "altruistic", "sabotaging", "neutral")
    rows = []
    for study in asked:
        counts = tables.rows(
            "SELECT player, class, sum(deviations)::BIGINT AS deviations FROM commons_deviation_classes "
            "WHERE study = $study GROUP BY ALL ORDER BY player",
            study=study,
        )
        for player, some in _by(counts, "player"):
            by_class = {row["class"]: row["deviations"] for row in some}
            total = sum(by_class.values())
            if total:
                shares = [percent(by_class.get(name, 0) / total) for name in classes]
                rows.append((*_named(asked, study), player, total, *shares))
    yield (
        "Selfish: better for the agent and worse for all together; win-win: better for both; altruistic: the reverse "
        "of selfish; sabotaging: worse for both."
    )
    yield made(
        "Departures from promises by what they changed, over all conditions",
        (*_naming(asked), "player", "departures", *classes),
        rows,
        heads=1 + len(_naming(asked)),
    )


def costs(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ5: what lying and breaking promises cost everyone, against each run's own twin."""
    for metric, lie, rule in (
        ("price_of_lying", "untrue reports", "reports been true by force"),
        ("price_of_breaking", "broken promises", "promises been binding"),
    ):
        for row in _estimates(tables, asked, metric):
            where = _place(asked, row["study"], row["condition"])
            size = estimate(abs(row["estimate"]), *_mirrored(row), runs=row["runs"])
            way = _side(row, 0)
            if way:
                more, did = ("higher", "lowered") if way > 0 else ("lower", "raised")
                yield f"{where}: had {rule}, welfare would have been {more} by {size}: {lie} {did} it."
            elif row["low"] is None and row["estimate"] == 0 and row["runs"] > 1:
                yield f"{where}: had {rule}, welfare would have been the same in each of {counted(row['runs'], 'run')}."
            else:
                told = estimate(row["estimate"], row["low"], row["high"], number, row["runs"])
                yield f"{where}: whether {lie} cost anything is not decided: {told}."


def _mirrored(row: Row) -> tuple[float | None, float | None]:
    """An estimate's interval, turned with its sign so that it is that of the size."""
    if row["estimate"] >= 0 or row["low"] is None:
        return row["low"], row["high"]
    return -row["high"], -row["low"]


def liars(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ6: efficiency and survival by the number of liars among agents of a kind."""
    efficiency = {(row["study"], row["condition"]): row for row in _estimates(tables, asked, "efficiency")}
    rows = _estimates(tables, asked, "survived")
    rows.sort(key=lambda row: (row["study"], row["others"] is None, row["others"] or "", row["liars"]))
    said = []
    for (study, others), some in _by(rows, "study", "others"):
        if others:
            yield f"{_place(asked, study)}liars among {others}: {'; '.join(_fates(some))}."
        for row in some:
            other = efficiency.get((study, row["condition"]))
            said.append(
                (*_named(asked, study), others or "nobody else", row["liars"], row["runs"], *_cells(row, percent),
                 *_cells(other))
            )  # fmt: skip
    yield made(
        "Pools that never collapsed, and their efficiency",
        (*_naming(asked), "liars among", "liars", "runs", "survived", "95 % interval", "efficiency", "95 % interval"),
        said,
        heads=2 + len(_naming(asked)),
    )


def _fates(rows: Sequence[Row]) -> Iterator[str]:
    """By how many liars most pools survive, and by how many not."""
    for way, what in ((1, "more than half of the pools survive"), (-1, "fewer"), (0, "not decided")):
        liars = listed(str(row["liars"]) for row in rows if _side(row, 0.5) == way)
        if liars != "none":
            yield f"{what} with {liars}"


def information(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ7: efficiency and survival by what agents see of the stock and remember."""
    survived = {(row["study"], row["condition"]): row for row in _estimates(tables, asked, "survived")}
    rows = [
        (
            *_named(asked, row["study"]), row["stock"], row["memory"], row["runs"], *_cells(row),
            *_cells(survived.get((row["study"], row["condition"])), percent),
        )
        for row in _estimates(tables, asked, "efficiency")
    ]  # fmt: skip
    yield made(
        "Efficiency by what agents see and remember",
        (*_naming(asked), "stock", "memory", "runs", "efficiency", "95 % interval", "survived", "95 % interval"),
        rows,
        heads=2 + len(_naming(asked)),
    )


def endgame(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ8: broken promises and untrue reports in the last round beside the round before it."""
    said = []
    for study, condition in _places(asked):
        rows = tables.rows(
            "SELECT * FROM commons_lies_rounds WHERE study = $study AND condition = $condition "
            "ORDER BY round DESC LIMIT 2",
            study=study,
            condition=condition,
        )
        if len(rows) < 2:
            continue
        last, before = rows
        for what, name in (("promises broken", "broken"), ("reports untrue", "misreport")):
            ends = [
                (row[f"{name}_rate"], row[f"{name}_low"], row[f"{name}_high"], row["runs"]) for row in (before, last)
            ]
            verdict = {1: "more in the last", -1: "fewer in the last", 0: "not decided"}[_apart(ends[1], ends[0])]
            cells = [
                cell for value, low, high, runs in ends for cell in (percent(value), bounds(low, high, percent, runs))
            ]
            rounds = f"{before['round']} and {last['round']}"
            said.append((*_named(asked, study), condition, what, last["runs"], rounds, *cells, verdict))
    yield made(
        "The last round beside the one before",
        (
            *_naming(asked), "horizon", "lies", "runs", "rounds", "before", "95 % interval", "last", "95 % interval",
            "reading",
        ),
        said,
        heads=2 + len(_naming(asked)),
    )  # fmt: skip


# ── The prisoner's dilemma ───────────────────────────────────────────────────────────────────────────────────────


def matchups(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ9: who leads the ranking and whether that is settled, and who cooperates most and least with others."""
    for study, condition in _places(asked):
        here = {"study": study, "condition": condition}
        rows = tables.rows(
            "SELECT * FROM pd_ranking WHERE study = $study AND condition = $condition ORDER BY rank, player", **here
        )
        if not rows:
            continue
        where, first = _place(asked, study, condition), rows[0]
        score = estimate(first["mean_score"], first["score_low"], first["score_high"])
        yield (
            f"{where}: {first['player']} leads {counted(len(rows), 'player')} with {score} points a match, "
            f"from {counted(first['matches'], 'match', 'matches')}; {_lead(rows)}."
        )
        rates = tables.rows(
            "SELECT player, sum(cooperation_rate * matches) / sum(matches) AS rate FROM pd_matchups "
            "WHERE study = $study AND condition = $condition AND player <> opponent GROUP BY player "
            "HAVING rate IS NOT NULL ORDER BY rate DESC, player",
            **here,
        )
        if len(rates) > 1 and rates[0]["rate"] != rates[-1]["rate"]:
            most, least = rates[0], rates[-1]
            yield (
                f"{where}: cooperation with others runs from {percent(most['rate'])} ({most['player']}) to "
                f"{percent(least['rate'])} ({least['player']})."
            )


def _lead(rows: Sequence[Row]) -> str:
    """Whether the first place is settled, by the intervals of the ranks."""
    first, *others = rows
    if first["rank_low"] is None:
        return "its rank has no interval, as nothing varies"
    rivals = [row["player"] for row in others if row["rank_low"] is not None and row["rank_low"] <= 1]
    if rivals:
        return (
            f"whether it leads is not decided, as the interval of the rank has the first place for {listed(rivals)} too"
        )
    if first["rank_high"] > 1:
        return f"the interval of its rank is 1 to {first['rank_high']}"
    return "the interval of its rank is the first place alone"


def rounds(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ10: which players' cooperation differs between the first round and the last."""
    said = []
    for study, condition in _places(asked):
        rows = tables.rows(
            "SELECT player, round, matches, cooperation_rate AS rate, low, high FROM pd_rounds "
            "WHERE study = $study AND condition = $condition ORDER BY player, round",
            study=study,
            condition=condition,
        )
        ways = []
        for player, some in _by(rows, "player"):
            ends = [(row["rate"], row["low"], row["high"], row["matches"]) for row in (some[0], some[-1])]
            ways.append(_apart(ends[1], ends[0]))
            cells = [cell for value, low, high, n in ends for cell in (percent(value), bounds(low, high, percent, n))]
            verdict = {1: "rises", -1: "falls", 0: "not decided" if ends[0] != ends[1] else "the same"}[ways[-1]]
            said.append((*_named(asked, study), condition, player, some[-1]["matches"], *cells, verdict))
        if rows:
            yield (
                f"{_place(asked, study, condition)}: from round 1 to round {max(row['round'] for row in rows)} "
                f"cooperation falls beyond both intervals for {ways.count(-1)} of {counted(len(ways), 'player')}, "
                f"rises for {ways.count(1)}, and for {ways.count(0)} no change can be claimed."
            )
    yield made(
        "Cooperation in the first round and in the last",
        (
            *_naming(asked), "condition", "player", "matches", "first round", "95 % interval", "last round",
            "95 % interval", "reading",
        ),
        said,
        heads=2 + len(_naming(asked)),
    )  # fmt: skip


def strategies(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ11: for how many players one strategy of the set accounts for most of what they did."""
    said = []
    for study, condition in _places(asked):
        rows = tables.rows(
            "SELECT * FROM pd_strategy_shares WHERE study = $study AND condition = $condition AND share IS NOT NULL "
            "ORDER BY player, share DESC, strategy",
            study=study,
            condition=condition,
        )
        sure, unsure = 0, []
        for player, some in _by(rows, "player"):
            best = some[0]
            clear = best["identifiable"] and side(best["share"], best["low"], best["high"], 0.5, best["matches"]) > 0
            sure += bool(clear)
            unsure += [] if clear else [player]
            told = "can be told apart" if best["identifiable"] else "cannot be told apart"
            ends = bounds(best["low"], best["high"], percent, best["matches"])
            said.append(
                (*_named(asked, study), condition, player, best["strategy"], percent(best["share"]), ends,
                 best["matches"], told)
            )  # fmt: skip
        if rows:
            left = f"; not for {listed(unsure)}" if unsure else ""
            yield (
                f"{_place(asked, study, condition)}: for {sure} of {counted(sure + len(unsure), 'player')} one "
                f"strategy of the set accounts for more than half of the matches, with its whole interval{left}."
            )
    yield "A player that is not in the set is described by the mixture of those that are, and need not be one of them."
    yield made(
        "The strategy with the largest share",
        (*_naming(asked), "condition", "player", "strategy", "share", "95 % interval", "matches", "from the others it"),
        said,
        heads=2 + len(_naming(asked)),
    )


# ── The dictator game ────────────────────────────────────────────────────────────────────────────────────────────


def winners(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ12: who scores most, and who is undominated, under each oracle."""
    for study, oracle in _places(asked):
        here = {"study": study, "oracle": oracle}
        scores = tables.rows(
            "SELECT * FROM dictator_scores WHERE tournament = $study AND oracle = $oracle ORDER BY rank, strategy",
            **here,
        )
        verdicts = tables.rows(
            "SELECT strategy, kind FROM dictator_dominance WHERE tournament = $study AND oracle = $oracle "
            "ORDER BY strategy",
            **here,
        )
        where = _place(asked, study, oracle)
        known = [row for row in scores if row["score"] is not None and row["rank"] is not None]
        if len(known) < len(scores):
            lacking = listed(row["strategy"] for row in scores if row not in known)
            yield f"{where}: decisions are missing, so that these have no score: {lacking}."
        if known:
            best = [row["strategy"] for row in known if row["rank"] == known[0]["rank"]]
            second = [row for row in known if row["rank"] != known[0]["rank"]][:1]
            behind = f", before {second[0]['strategy']} with {number(second[0]['score'])}" if second else ""
            has = "has the highest score" if len(best) == 1 else "share the highest score"
            yield (
                f"{where}: {listed(best)} {has}, {number(known[0]['score'])}{behind}; {known[-1]['strategy']} has the "
                f"lowest, {number(known[-1]['score'])}."
            )
        kinds = {
            kind: [row["strategy"] for row in verdicts if row["kind"] == kind] for kind in ("none", "weak", "strict")
        }
        if any(kinds.values()):
            dominated = [
                f"{how} dominated are {listed(kinds[kind])}"
                for kind, how in (("weak", "weakly"), ("strict", "strictly"))
                if kinds[kind]
            ]
            yield f"{where}: undominated are {listed(kinds['none'])}; {'; '.join(dominated) or 'none is dominated'}."
    yield "These are exact consequences of the decisions: nothing is sampled, so there is no interval."


def norms(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ13: the equilibria that starts reach at the largest beta, by oracle and dynamics."""
    for study, oracle in _places(asked):
        rows = tables.rows(
            "SELECT * FROM dictator_equilibria WHERE tournament = $study AND oracle = $oracle AND model = 'own_payoff' "
            "AND equilibrium IS NOT NULL "
            "QUALIFY beta = max(beta) OVER () ORDER BY dynamics DESC, equilibrium, frequency DESC, strategy",
            study=study,
            oracle=oracle,
        )
        for dynamics, some in _by(rows, "dynamics"):
            ends = [one for _, one in _by(some, "equilibrium") if one[0]["basin_share"]]
            said = [f"{_basin(one[0])} end with {listed(map(_part, _main(one)))}" for one in ends]
            lost = some[0]["unconverged"]
            said += [f"{percent(lost)} do not settle"] if lost else []
            where = f"{_place(asked, study, oracle)}, β = {some[0]['beta']:g}, {dynamics} dynamics"
            yield f"{where}, {counted(some[0]['starts'], 'start')}: {'; '.join(said) or 'none ends at an equilibrium'}."


def _basin(row: Row) -> str:
    return estimate(row["basin_share"], row["basin_low"], row["basin_high"], percent, row["starts"])


def _part(row: Row) -> str:
    return f"{percent(row['frequency'])} {row['strategy']}"


def _main(rows: Sequence[Row]) -> list[Row]:
    """The strategies that an equilibrium is made of: those with at least one in twenty."""
    return [row for row in rows if row["frequency"] >= 0.05]


def oracles(tables: Tables, asked: Asked) -> Iterator[Finding]:
    """RQ14: how far oracles agree, and how many single decisions would change the winner."""
    for study, names in asked.items():
        rows = tables.rows("SELECT * FROM dictator_agreement WHERE tournament = $study", study=study)
        places = list(names)
        rows = [row for row in rows if row["oracle_a"] in places and row["oracle_b"] in places]
        for row in sorted(rows, key=lambda row: (places.index(row["oracle_a"]), places.index(row["oracle_b"]))):
            pairs = f"{row['agree']} of {row['cells']} pairs"
            if row["oracle_a"] == row["oracle_b"]:
                yield (
                    f"{_place(asked, study)}{row['oracle_a']} gives the same answer every time about {pairs} "
                    f"(agreement between its answers {number(row['rate'], 3)})."
                )
            else:
                rate = percent(row["rate"])
                yield f"{_place(asked, study)}{row['oracle_a']} and {row['oracle_b']} decide {pairs} alike ({rate})."
        for oracle in names:
            (flips,) = tables.rows(
                "SELECT count(*) AS cells, count(*) FILTER (winner_changes) AS changed, any_value(winner) AS winner "
                "FROM dictator_flips WHERE tournament = $study AND oracle = $oracle",
                study=study,
                oracle=oracle,
            )
            if flips["cells"]:
                yield (
                    f"{_place(asked, study, oracle)}: turning over one of its {flips['cells']} decisions changes the "
                    f"winner in {counted(flips['changed'], 'case')}."
                )


# ── What they share ──────────────────────────────────────────────────────────────────────────────────────────────


def _estimates(tables: Tables, asked: Asked, metric: str, of_players: bool = False) -> list[dict[str, Any]]:
    """Estimates of one metric with the condition's factors, conditions in the order of the config."""
    rows = tables.rows(
        "SELECT * FROM commons_estimates JOIN commons_conditions USING (study, condition) "
        "WHERE metric = $metric AND study IN (SELECT unnest($studies)) AND (player IS NOT NULL) = $of_players",
        metric=metric,
        studies=list(asked),
        of_players=of_players,
    )
    places = {place: number for number, place in enumerate(_places(asked))}
    there = [row for row in rows if (row["study"], row["condition"]) in places and row["estimate"] is not None]
    return sorted(there, key=lambda row: (places[row["study"], row["condition"]], row["player"] or ""))


def _side(row: Row, of: float) -> int:
    return side(row["estimate"], row["low"], row["high"], of, row["runs"])


def _cells(row: Row | None, form: Form = number) -> tuple[str, str]:
    """An estimate and its interval, each in a cell."""
    if row is None:
        return NOTHING, NOTHING
    return form(row["estimate"]), bounds(row["low"], row["high"], form, row["runs"])


Ended = tuple[float | None, float | None, float | None, int]  # value, low, high, n


def _apart(one: Ended, other: Ended) -> int:
    """1 if an interval lies above another, -1 if below, 0 if they overlap; one without interval is its value."""
    if one[0] is None or other[0] is None or 1 in (one[3], other[3]):
        return 0
    low, high = (one[0] if one[1] is None else one[1]), (one[0] if one[2] is None else one[2])
    if side(*other[:3], low) < 0:
        return 1
    return -1 if side(*other[:3], high) > 0 else 0


def _places(asked: Asked) -> Iterator[tuple[str, str]]:
    for study, conditions in asked.items():
        for condition in conditions:
            yield study, condition


def _place(asked: Asked, study: str, condition: str | None = None) -> str:
    """How a sentence begins: the study where a question is asked of several, and the condition."""
    if condition is None:
        return f"{study}, " if len(asked) > 1 else ""
    return f"{study}, {condition}" if len(asked) > 1 else condition


def _naming(asked: Asked) -> tuple[str, ...]:
    return ("study",) if len(asked) > 1 else ()


def _named(asked: Asked, study: str) -> tuple[str, ...]:
    return (study,) if len(asked) > 1 else ()


def _by(rows: Sequence[Any], *keys: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Neighbours that have these keys in common."""
    for key, some in groupby(rows, key=itemgetter(*keys)):
        yield key, list(some)


# ── The questions ────────────────────────────────────────────────────────────────────────────────────────────────

_COMMONS_ESTIMATES = """
SELECT study, condition, player, metric, runs, estimate, low, high
FROM commons_estimates
WHERE study IN ({studies})
  AND metric IN (%s)
ORDER BY study, metric, condition, player
"""


def _estimates_of(*metrics: str) -> str:
    return _COMMONS_ESTIMATES % ", ".join(f"'{metric}'" for metric in metrics)


QUESTIONS: dict[str, Question] = {
    "rq01": Question(
        "Does talk sustain the pool?",
        "commons",
        """
SELECT study, condition, round, at_risk, collapsed, survival, low, high
FROM commons_survival
WHERE study IN ({studies})
ORDER BY study, condition, round
""",
        talk,
    ),
    "rq02": Question(
        "Do agents lie unasked?", "commons", _estimates_of("broken_rate", "misreport_rate", "silence"), unasked
    ),
    "rq03": Question(
        "Does auditing deter?", "commons", _estimates_of("payoff", "advantage", "break_even", "misreport_rate"), audits
    ),
    "rq04": Question(
        "Who gains from lies?",
        "commons",
        """
SELECT study, condition, player, class, deviations, promises, share, per_opportunity, mean_du, mean_dw
FROM commons_deviation_classes
WHERE study IN ({studies})
ORDER BY study, condition, player, class
""",
        deviations,
    ),
    "rq05": Question(
        "What does lying cost everyone?",
        "commons",
        _estimates_of("welfare", "survived", "price_of_lying", "price_of_breaking"),
        costs,
    ),
    "rq06": Question("How many liars break a pool?", "commons", _estimates_of("efficiency", "survived"), liars),
    "rq07": Question("Does information protect?", "commons", _estimates_of("efficiency", "survived"), information),
    "rq08": Question(
        "Is there end-game lying?",
        "commons",
        """
SELECT study, condition, round, runs, promises, broken_rate, broken_low, broken_high, reports, misreport_rate,
  misreport_low, misreport_high
FROM commons_lies_rounds
WHERE study IN ({studies})
ORDER BY study, condition, round
""",
        endgame,
    ),
    "rq09": Question(
        "Who cooperates with whom?",
        "prisoners_dilemma",
        """
SELECT study, condition, rank, player, matches, mean_score, score_low, score_high, rank_low, rank_high, strength
FROM pd_ranking
WHERE study IN ({studies})
ORDER BY study, condition, rank
""",
        matchups,
    ),
    "rq10": Question(
        "How does cooperation move over the rounds?",
        "prisoners_dilemma",
        """
SELECT study, condition, player, round, matches, cooperation_rate, low, high
FROM pd_rounds
WHERE study IN ({studies})
ORDER BY study, condition, player, round
""",
        rounds,
    ),
    "rq11": Question(
        "Which strategies are the players really using?",
        "prisoners_dilemma",
        """
SELECT study, condition, player, strategy, share, low, high, identifiable, matches
FROM pd_strategy_shares
WHERE study IN ({studies})
  AND share > 0
ORDER BY study, condition, player, share DESC
""",
        strategies,
    ),
    "rq12": Question(
        "Who wins when strategies are open?",
        "dictator",
        """
SELECT tournament, oracle, rank, strategy, family, score, k_give, k_recv, kind AS dominated, dominated_by
FROM dictator_scores
JOIN dictator_dominance USING (tournament, oracle, strategy)
WHERE tournament IN ({studies})
ORDER BY tournament, oracle, rank, strategy
""",
        winners,
    ),
    "rq13": Question(
        "Which norms survive selection, and from where?",
        "dictator",
        """
SELECT tournament, oracle, model, beta, dynamics, equilibrium, stable, starts, basin_share, basin_low, basin_high,
  welfare, strategy, frequency
FROM dictator_equilibria
WHERE tournament IN ({studies})
  AND frequency >= 0.01
ORDER BY tournament, oracle, model, beta, dynamics, equilibrium, frequency DESC
""",
        norms,
    ),
    "rq14": Question(
        "How much of that hangs on the oracle?",
        "dictator",
        """
SELECT tournament, oracle_a, oracle_b, cells, agree, rate
FROM dictator_agreement
WHERE tournament IN ({studies})
ORDER BY tournament, oracle_a, oracle_b
""",
        oracles,
    ),
}
