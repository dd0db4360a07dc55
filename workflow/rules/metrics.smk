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
}
# metric in Python -> (module and function of fishpool.analysis, the tables it reads, the game it belongs to)
SOLVED = {
    "pd_strengths": ("ranking.rank_players", ["pd_individual"], "prisoners_dilemma"),
    #"pd_strategy_shares": ("strategy_frequencies.strategy_shares", ["turns", "runs"], "prisoners_dilemma"),
}
TABLES = [*RECORD_TABLES, *QUERIED, *SOLVED]


def tables_of(game):
    """All tables that a game's studies have."""
    metrics = {**QUERIED, **SOLVED}
    return [*records.GAME_TABLES[game], *(metric for metric, entry in metrics.items() if entry[-1] in (game, None))]


def sql_file(metric):
    game = QUERIED[metric][-1]
    return source(f"workflow/sql/{game}/{metric}.sql" if game else f"workflow/sql/{metric}.sql")


def arguments_of(tables):
    return lambda wildcards: [
        f"{table}={table_file(table, wildcards.study, wildcards.condition)}" for table in tables
    ]


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
        params:
            tables=arguments_of(tables),
        conda:
            "../envs/fishpool.yaml"
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
        params:
            function=function,
            tables=arguments_of(tables),
            parameters=(
                (lambda wildcards: json.dumps({"strategy_set": STUDIES[wildcards.study].strategy_set}))
                if metric == "pd_strategy_shares"
                else "{}"
            ),
        conda:
            "../envs/fishpool.yaml"
        message:
            f"solve {metric} of {{wildcards.study}}/{{wildcards.condition}}"
        shell:
            "python {input.script:q} --function {params.function} --parameters {params.parameters:q} --output {output:q}"
            " {params.tables:q} 2>&1 | tee {log:q}"
