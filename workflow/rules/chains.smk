# Games whose studies have many small conditions: two jobs a condition, one for its records and one for all its metrics.


for game in CHAINS:

    rule:
        name:
            f"tabulate_{game}"
        input:
            code("scripts/tabulate.py"),
            lambda wildcards, game=game: [
                file
                for table in records.GAME_TABLES[game]
                for file in shard_files(wildcards.study, wildcards.condition, f"{table}.jsonl")
            ],
            sums=lambda wildcards: shard_files(wildcards.study, wildcards.condition, "SHA256SUMS"),
            script=source("scripts/tabulate.py"),
        output:
            [table_file(table, "{study}", "{condition}") for table in records.GAME_TABLES[game]],
        log:
            f"{LOGS}/tabulate/{{study}}/{{condition}}.log",
        wildcard_constraints:
            study=one_of(one.name for one in CONFIG.studies if one.game == game),
        conda:
            "../envs/fishpool.yaml"
        params:
            game=game,
            tables=[f"--table={table}" for table in records.GAME_TABLES[game]],
            outputs=lambda wildcards, output: [f"--output={file}" for file in output],
        message:
            "tabulate {wildcards.study}/{wildcards.condition}"
        shell:
            "python {input.script:q} --game {params.game} {params.tables} {params.outputs:q} {input.sums:q}"
            " 2>&1 | tee {log:q}"

    rule:
        name:
            f"query_{game}"
        input:
            code("scripts/query.py"),
            [table_file(table, "{study}", "{condition}") for table in records.GAME_TABLES[game]],
            sql=[sql_file(metric) for metric in CHAINS[game]],
            script=source("scripts/query.py"),
        output:
            [table_file(metric, "{study}", "{condition}") for metric in CHAINS[game]],
        log:
            f"{LOGS}/query/{{study}}/{{condition}}.log",
        wildcard_constraints:
            study=one_of(one.name for one in CONFIG.studies if one.game == game),
        conda:
            "../envs/fishpool.yaml"
        params:
            tables=condition_arguments(records.GAME_TABLES[game]),
            sql=lambda wildcards, input: [f"--sql={file}" for file in input.sql],
            outputs=lambda wildcards, output: [f"--output={file}" for file in output],
        message:
            "query all metrics of {wildcards.study}/{wildcards.condition}"
        shell:
            "python {input.script:q} {params.sql:q} {params.outputs:q} --threads {threads} {params.tables:q}"
            " 2>&1 | tee {log:q}"
