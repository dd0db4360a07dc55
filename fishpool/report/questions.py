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

from fishpool.report.tables import Tables
from fishpool.report.words import contrast, counted, estimate, interval, listed, number, percent

Row = Mapping[str, Any]
Asked = Mapping[str, Sequence[str]]  # the conditions by study that a question is asked of, in the order of the config


@dataclass(frozen=True)
class Question:
    """`sql` is a query with `{studies}` where the list of studies goes; `findings` makes sentences of the tables."""

    title: str
    game: str
    sql: str
    findings: Callable[[Tables, Asked], Iterator[str]]

    def query(self, asked: Asked) -> str:
        """The query as people may copy it."""
        return self.sql.strip().replace("{studies}", ", ".join(f"'{study}'" for study in asked))


def answers(key: str, tables: Tables, asked: Asked) -> list[str]:
    """What the data say about a question, declared contrasts last."""
    return [*QUESTIONS[key].findings(tables, asked), *(contrast(row) for row in contrasts(key, tables, asked))]


def contrasts(key: str, tables: Tables, asked: Asked) -> list[dict[str, Any]]:
    """The declared contrasts of a question, in the order of the table."""
    if not tables.has("contrasts"):
        return []
    rows = tables.rows("SELECT * FROM contrasts WHERE study IN (SELECT unnest($studies))", studies=list(asked))
    return [row for row in rows if key in str(row["question"]).split(", ")]


# ── The fish pool ────────────────────────────────────────────────────────────────────────────────────────────────


def _estimates(tables: Tables, asked: Asked, metric: str, of_players: bool = False) -> list[dict[str, Any]]:
    """Estimates of one metric with the condition's factors, conditions in the order of the config."""
    rows = tables.rows(
        "SELECT * FROM commons_estimates JOIN commons_conditions USING (study, condition) "
        "WHERE metric = $metric AND study IN (SELECT unnest($studies)) AND (player IS NOT NULL) = $of_players",
        metric=metric,
        studies=list(asked),
        of_players=of_players,
    )
    places = {(study, name): place for study, names in asked.items() for place, name in enumerate(names)}
    studies = list(asked)
    return sorted(rows, key=lambda row: (studies.index(row["study"]), places.get((row["study"], row["condition"]), 0)))


def _said(row: Row, form: Callable[[float | None], str] = number) -> str:
    return estimate(row["estimate"], row["low"], row["high"], form, row["runs"])


def _by(rows: Sequence[Row], *keys: str) -> Iterator[tuple[Any, list[Row]]]:
    for key, some in groupby(rows, key=itemgetter(*keys)):
        yield key, list(some)


def talk(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ1: the share of pools that outlive the last round, by condition."""
    for study, conditions in asked.items():
        said = []
        last = 0
        for condition in conditions:
            rows = tables.rows(
                "SELECT round, at_risk, survival, low, high FROM commons_survival "
                "WHERE study = $study AND condition = $condition ORDER BY round",
                study=study,
                condition=condition,
            )
            if rows:
                last = max(last, rows[-1]["round"])
                end = rows[-1]
                runs = rows[0]["at_risk"]
                said.append(f"{condition} {estimate(end['survival'], end['low'], end['high'], percent, runs)}")
        if said:
            yield f"{study}: pools that outlived round {last} (Kaplan–Meier): {'; '.join(said)}."


def unasked(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ2: untrue reports and broken promises where nothing is said about lying."""
    for metric, what in (("misreport_rate", "reports that were untrue"), ("broken_rate", "promises that were broken")):
        rows = [row for row in _estimates(tables, asked, metric, of_players=True) if row["permission"] == "silent"]
        for (study, condition), here in _by(rows, "study", "condition"):
            said = [f"{row['player']} {_said(row, percent)}" for row in here if row["estimate"]]
            never = [row["player"] for row in here if row["estimate"] == 0]
            told = "; ".join(said) or "none of any player"
            honest = f"; none of {listed(never)}" if never and said else ""
            yield f"{study}, {condition}, where the instructions are silent: {what}: {told}{honest}."
    yield "What a scripted player does is its rule; whether an instruction changes it is a finding only of other players."


def audits(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ3: what the liar gained over its honest twin, by expected fine."""
    rows = [row for row in _estimates(tables, asked, "advantage", of_players=True) if row["player"] == row["liar"]]
    for (study, fine), some in _by(sorted(rows, key=itemgetter("study", "fine", "audit_q")), "study", "fine"):
        said = "; ".join(f"q = {row['audit_q']:g}: {_said(row)}" for row in some)
        yield f"{study}, fine {fine:g}: what {some[0]['liar']} earned above its honest twin: {said}."
        pays = [row for row in some if row["estimate"] > 0 and (row["low"] is None or row["low"] > 0)]
        costs = [row for row in some if row["estimate"] < 0 and (row["high"] is None or row["high"] < 0)]
        if pays and costs:
            most, least = max(row["audit_q"] for row in pays), min(row["audit_q"] for row in costs)
            yield f"{study}, fine {fine:g}: lying paid up to q = {most:g} and cost the liar from q = {least:g}."
        elif costs or pays:
            yield f"{study}, fine {fine:g}: lying {'cost the liar' if costs else 'paid'} at every q that decides it."


def deviations(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ4: what kinds of departures from promises there were, by player, over all conditions of a study."""
    for study in asked:
        rows = tables.rows(
            "SELECT player, class, sum(deviations)::BIGINT AS deviations FROM commons_deviation_classes "
            "WHERE study = $study GROUP BY ALL ORDER BY player, deviations DESC, class",
            study=study,
        )
        for player, some in _by(rows, "player"):
            total = sum(row["deviations"] for row in some)
            if total:
                said = listed(f"{percent(row['deviations'] / total)} {row['class']}" for row in some if row["deviations"])
                yield f"{study}: {player} departed from its promise {counted(total, 'time')}: {said}."
    yield (
        "Selfish: better for the agent, worse for all together; win-win: better for both; altruistic: the reverse of "
        "selfish; sabotaging: worse for both."
    )


def costs(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ5: what lying and breaking promises cost everyone, against each run's own twin."""
    for metric, what in (
        ("price_of_lying", "had reports been true by force, welfare would have been higher by"),
        ("price_of_breaking", "had promises been binding, welfare would have been higher by"),
    ):
        for row in _estimates(tables, asked, metric):
            yield f"{row['study']}, {row['condition']}: {what} {_said(row)} in the mean of {counted(row['runs'], 'run')}."


def liars(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ6: pools that never collapsed, by the number of liars among agents of a kind."""
    rows = sorted(_estimates(tables, asked, "survived"), key=lambda row: (row["study"], row["others"] or "", row["liars"]))
    for (study, others), some in _by(rows, "study", "others"):
        among = f"among {others}" if others else "and nobody else"
        said = "; ".join(f"{row['liars']}: {_said(row, percent)}" for row in some)
        yield f"{study}: pools that never collapsed, by the number of liars {among}: {said}."


def information(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ7: efficiency by what agents see of the stock and remember."""
    rows = _estimates(tables, asked, "efficiency")
    for study, some in _by(rows, "study"):
        said = "; ".join(f"stock {row['stock']}, memory {row['memory']}: {_said(row)}" for row in some)
        yield f"{study}: efficiency: {said}."


def endgame(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ8: broken promises and untrue reports in the last round beside the round before it."""
    for study, conditions in asked.items():
        for condition in conditions:
            rows = tables.rows(
                "SELECT * FROM commons_lies_rounds WHERE study = $study AND condition = $condition "
                "ORDER BY round DESC LIMIT 2",
                study=study,
                condition=condition,
            )
            if len(rows) < 2:
                continue
            last, before = rows
            for what, rate, low, high in (
                ("promises broken", "broken_rate", "broken_low", "broken_high"),
                ("reports untrue", "misreport_rate", "misreport_low", "misreport_high"),
            ):
                ends = [estimate(row[rate], row[low], row[high], percent, row["runs"]) for row in (last, before)]
                reading = _apart((last[rate], last[low], last[high]), (before[rate], before[low], before[high]))
                yield (
                    f"{study}, horizon {condition}: {what}: {ends[0]} in round {last['round']}, {ends[1]} in round "
                    f"{before['round']}{reading}."
                )


def _apart(last: tuple[Any, Any, Any], before: tuple[Any, Any, Any]) -> str:
    """Whether two intervals leave each other out; one without an interval is a point."""
    if last[0] is None or before[0] is None:
        return ""
    low, high = (last[0] if last[1] is None else last[1]), (last[0] if last[2] is None else last[2])
    low_before = before[0] if before[1] is None else before[1]
    high_before = before[0] if before[2] is None else before[2]
    if low > high_before:
        return "; the last round has more"
    if high < low_before:
        return "; the last round has fewer"
    return "; the intervals overlap, so no difference is claimed"


# ── The prisoner's dilemma ───────────────────────────────────────────────────────────────────────────────────────


def _places(asked: Asked) -> Iterator[tuple[str, str]]:
    for study, conditions in asked.items():
        for condition in conditions:
            yield study, condition


def matchups(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ9: the head of the ranking, and who cooperated most and least with others."""
    for study, condition in _places(asked):
        here = {"study": study, "condition": condition}
        rows = tables.rows(
            "SELECT * FROM pd_ranking WHERE study = $study AND condition = $condition ORDER BY rank, player", **here
        )
        if not rows:
            continue
        said = "; ".join(
            f"{row['rank']}. {row['player']} {number(row['mean_score'])} points a match "
            f"({interval(row['score_low'], row['score_high'])}; rank {_range(row)})"
            for row in rows[:3]
        )
        yield f"{study}, {condition}: of {counted(len(rows), 'player')}: {said}."
        rivals = [row["player"] for row in rows[1:] if row["rank_low"] is not None and row["rank_low"] <= 1]
        if rows[0]["rank_high"] is not None:
            yield (
                f"{study}, {condition}: the first place is not settled: the interval of the rank allows it also for "
                f"{listed(rivals)}."
                if rivals
                else f"{study}, {condition}: in 95 % of resampled tournaments no other player shares or takes the first "
                f"place of {rows[0]['player']}."
                if rows[0]["rank_high"] == 1
                else f"{study}, {condition}: {rows[0]['player']} leads, but its rank may be as low as {rows[0]['rank_high']}."
            )
        rates = tables.rows(
            "SELECT player, sum(cooperation_rate * matches) / sum(matches) AS rate FROM pd_matchups "
            "WHERE study = $study AND condition = $condition AND player <> opponent GROUP BY player "
            "ORDER BY rate DESC, player",
            **here,
        )
        if len(rates) > 1 and rates[0]["rate"] != rates[-1]["rate"]:
            most, least = rates[0], rates[-1]
            yield (
                f"{study}, {condition}: cooperation with others runs from {percent(most['rate'])} ({most['player']}) "
                f"to {percent(least['rate'])} ({least['player']})."
            )


def _range(row: Row) -> str:
    low, high = row["rank_low"], row["rank_high"]
    if low is None or high is None:
        return "without interval, as nothing varies"
    return f"{low}" if low == high else f"{low} to {high}"


def rounds(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ10: which players' cooperation differs between the first round and the last."""
    for study, condition in _places(asked):
        rows = tables.rows(
            "SELECT player, round, cooperation_rate AS rate, low, high FROM pd_rounds "
            "WHERE study = $study AND condition = $condition ORDER BY player, round",
            study=study,
            condition=condition,
        )
        fallen, risen, same = [], [], []
        for player, some in _by(rows, "player"):
            first, last = some[0], some[-1]
            reading = _apart((last["rate"], last["low"], last["high"]), (first["rate"], first["low"], first["high"]))
            said = f"{player} ({percent(first['rate'])} to {percent(last['rate'])})"
            (fallen if "fewer" in reading else risen if "more" in reading else same).append((player, said))
        if not rows:
            continue
        length = max(row["round"] for row in rows)
        for players, verb in ((fallen, "falls"), (risen, "rises")):
            if players:
                yield (
                    f"{study}, {condition}: cooperation {verb} from round 1 to round {length} beyond both 95 % intervals "
                    f"for {listed(said for _, said in players)}."
                )
        if same:
            names = listed(player for player, _ in same)
            yield f"{study}, {condition}: no such difference can be claimed for {names}."


def strategies(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ11: for how many players one strategy of the set accounts for most of what they did."""
    for study, condition in _places(asked):
        rows = tables.rows(
            "SELECT * FROM pd_strategy_shares WHERE study = $study AND condition = $condition "
            "ORDER BY player, share DESC, strategy",
            study=study,
            condition=condition,
        )
        clear, unclear = [], []
        for player, some in _by(rows, "player"):
            best = some[0]
            sure = best["share"] == 1 and best["low"] is None or (best["low"] or 0) > 0.5
            if best["identifiable"] and best["share"] is not None and sure:
                clear.append(f"{player}: {best['strategy']} {estimate(best['share'], best['low'], best['high'], percent)}")
            else:
                unclear.append(player)
        if clear:
            yield (
                f"{study}, {condition}: one strategy holds more than half with its whole interval for "
                f"{len(clear)} of {counted(len(clear) + len(unclear), 'player')}: {'; '.join(clear)}."
            )
        if unclear:
            yield (
                f"{study}, {condition}: the data do not single out one strategy of the set for {listed(unclear)}; "
                "players that are not in the set are mixtures of those that are."
            )


# ── The dictator game ────────────────────────────────────────────────────────────────────────────────────────────


def winners(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ12: who scores most, and who is undominated, under each oracle."""
    for study, oracle in _places(asked):
        here = {"study": study, "oracle": oracle}
        scores = tables.rows(
            "SELECT * FROM dictator_scores WHERE tournament = $study AND oracle = $oracle ORDER BY rank, strategy", **here
        )
        if not scores:
            continue
        known = [row for row in scores if row["score"] is not None]
        if len(known) < len(scores):
            yield f"{study}, {oracle}: a decision is missing, so that not every strategy has a score."
        if known:
            best = [row["strategy"] for row in known if row["rank"] == known[0]["rank"]]
            said = f"{listed(best)} {'share' if len(best) > 1 else 'has'} the highest score, {number(known[0]['score'])}"
            second = [row for row in known if row["rank"] != known[0]["rank"]][:1]
            behind = f", before {second[0]['strategy']} with {number(second[0]['score'])}" if second else ""
            yield f"{study}, {oracle}: {said}{behind}; the last is {known[-1]['strategy']} with {number(known[-1]['score'])}."
        verdicts = tables.rows(
            "SELECT strategy, kind FROM dictator_dominance WHERE tournament = $study AND oracle = $oracle "
            "ORDER BY strategy",
            **here,
        )
        by_kind = {kind: [row["strategy"] for row in verdicts if row["kind"] == kind] for kind in ("none", "weak", "strict")}
        if verdicts:
            yield (
                f"{study}, {oracle}: undominated: {listed(by_kind['none'])}; weakly dominated: {listed(by_kind['weak'])}; "
                f"strictly dominated: {listed(by_kind['strict'])}."
            )
        unconditional = [row["strategy"] for row in scores if row["unconditional"]]
        dominated = [name for name in unconditional if name in by_kind["weak"] + by_kind["strict"]]
        if unconditional and verdicts:
            yield (
                f"{study}, {oracle}: of {counted(len(unconditional), 'unconditional strategy', 'unconditional strategies')} "
                f"({listed(unconditional)}), {len(dominated)} {'is' if len(dominated) == 1 else 'are'} dominated."
            )
    yield "These are exact consequences of the decisions: there is no sample, and so no interval."


def norms(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ13: the equilibria that starts reach at the largest beta, by oracle and dynamics."""
    for study, oracle in _places(asked):
        rows = tables.rows(
            "SELECT * FROM dictator_equilibria WHERE tournament = $study AND oracle = $oracle AND model = 'own_payoff' "
            "AND equilibrium IS NOT NULL AND beta = (SELECT max(beta) FROM dictator_equilibria WHERE tournament = $study "
            "AND oracle = $oracle AND model = 'own_payoff') ORDER BY dynamics DESC, equilibrium, frequency DESC, strategy",
            study=study,
            oracle=oracle,
        )
        for dynamics, some in _by(rows, "dynamics"):
            said = []
            for _, one in _by(some, "equilibrium"):
                first = one[0]
                who = listed(f"{row['strategy']} {percent(row['frequency'])}" for row in one if row["frequency"] >= 0.05)
                basin = estimate(first["basin_share"], first["basin_low"], first["basin_high"], percent, first["starts"])
                said.append(f"{'' if first['stable'] else 'unstable: '}{who}, reached from {basin} of the starts")
            lost = some[0]["unconverged"]
            left = f"; {percent(lost)} of the starts did not settle" if lost else ""
            yield (
                f"{study}, {oracle}, β = {some[0]['beta']:g}, {dynamics} dynamics, "
                f"{counted(some[0]['starts'], 'start')}: {'; '.join(said)}{left}."
            )


def oracles(tables: Tables, asked: Asked) -> Iterator[str]:
    """RQ14: how far oracles agree, and how many single decisions would change the winner."""
    for study, names in asked.items():
        rows = tables.rows("SELECT * FROM dictator_agreement WHERE tournament = $study", study=study)
        places = list(names)
        rows = [row for row in rows if row["oracle_a"] in places and row["oracle_b"] in places]
        for row in sorted(rows, key=lambda row: (places.index(row["oracle_a"]), places.index(row["oracle_b"]))):
            of = f"{row['agree']} of {row['cells']} pairs"
            if row["oracle_a"] == row["oracle_b"]:
                yield f"{study}: {row['oracle_a']} decides {of} the same way in all its answers (agreement {number(row['rate'], 3)})."
            else:
                yield f"{study}: {row['oracle_a']} and {row['oracle_b']} decide {of} alike ({percent(row['rate'])})."
        for oracle in names:
            (flips,) = tables.rows(
                "SELECT count(*) AS cells, count(*) FILTER (winner_changes) AS changed, any_value(winner) AS winner "
                "FROM dictator_flips WHERE tournament = $study AND oracle = $oracle",
                study=study,
                oracle=oracle,
            )
            if flips["cells"]:
                yield (
                    f"{study}, {oracle}: turning over a single one of {flips['cells']} decisions changes the winner in "
                    f"{counted(flips['changed'], 'case')}."
                )


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
