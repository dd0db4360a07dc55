# Metric tables: from record tables and other metric tables, in SQL where SQL can say it, in Python where it cannot.
# One file a metric and condition.

# metric in SQL -> (the tables it reads, the game it belongs to; None: every game); its query is sql/[game/]METRIC.sql
QUERIED = {
    "validity": (["turns", "runs"], None),
    "pd_individual": (["turns", "runs"], "prisoners_dilemma"),
    "pd_matchups": (["pd_individual"], "prisoners_dilemma"),
    "pd_ranking": (["pd_individual", "pd_strengths"], "prisoners_dilemma"),
    "pd_rounds": (["turns", "pd_individual"], "prisoners_dilemma"),
    "pd_profiles": (["pd_individual"], "prisoners_dilemma"),
    "dictator_decisions": (["turns", "runs"], "dictator"),
}
# metric in Python -> (module and function of fishpool.analysis, the tables it reads, the game it belongs to)
SOLVED = {
    "pd_strengths": ("ranking.rank_players", ["pd_individual"], "prisoners_dilemma"),
    "pd_strategy_shares": ("strategy_frequencies.shares_of_players", ["turns", "pd_individual"], "prisoners_dilemma"),
}
TABLES = list(
    dict.fromkeys([*RECORD_TABLES, *QUERIED, *SOLVED, *(table for key in CONDITIONS for table in tables_at(key))])
)


for metric, (tables, game) in QUERIED.items():

    rule:
        name:
            f"query_{metric}"
        input:
            code("scripts/query.py"),
            [table_file(table, "{study}", "{condition}") for table in tables],
            sql=sql_file(metric),
            script=source("scripts/query.py"),
        output:
            table_file(metric, "{study}", "{condition}"),
        log:
            f"{LOGS}/query/{metric}/{{study}}/{{condition}}.log",
        wildcard_constraints:
            study=one_of(one.name for one in CONFIG.studies if one.game not in CHAINS),
        conda:
            "../envs/fishpool.yaml"
        params:
            tables=condition_arguments(tables),
        message:
            f"query {metric} of {{wildcards.study}}/{{wildcards.condition}}"
        shell:
            "python {input.script:q} --sql {input.sql:q} --output {output:q} --threads {threads}"
            " {params.tables:q} 2>&1 | tee {log:q}"


for metric, (function, tables, game) in SOLVED.items():

    rule:
        name:
            f"solve_{metric}"
        input:
            code("scripts/solve.py", f"fishpool/analysis/{function.split('.')[0]}.py"),
            [table_file(table, "{study}", "{condition}") for table in tables],
            script=source("scripts/solve.py"),
        output:
            table_file(metric, "{study}", "{condition}"),
        log:
            f"{LOGS}/solve/{metric}/{{study}}/{{condition}}.log",
        conda:
            "../envs/fishpool.yaml"
        params:
            function=function,
            tables=condition_arguments(tables),
            parameters=(
                (lambda wildcards: json.dumps({"strategy_set": STUDIES[wildcards.study].strategy_set}))
                if metric == "pd_strategy_shares"
                else "{}"
            ),
        message:
            f"solve {metric} of {{wildcards.study}}/{{wildcards.condition}}"
        shell:
            "python {input.script:q} --function {params.function} --parameters {params.parameters:q} --output {output:q}"
            " {params.tables:q} 2>&1 | tee {log:q}"
