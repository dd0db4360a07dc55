# JSONL to Parquet, one file a record table and condition, so that only a changed condition is converted again.

RECORD_TABLES = sorted({table for game in GAMES for table in records.GAME_TABLES[game]})


rule tabulate:
    input:
        code("scripts/tabulate.py"),
        lambda wildcards: shard_files(wildcards.study, wildcards.condition, f"{wildcards.table}.jsonl"),
        sums=lambda wildcards: shard_files(wildcards.study, wildcards.condition, "SHA256SUMS"),
        script=source("scripts/tabulate.py"),
    output:
        table_file("{table}", "{study}", "{condition}"),
    log:
        f"{LOGS}/tabulate/{{table}}/{{study}}/{{condition}}.log",
    wildcard_constraints:
        table=one_of(RECORD_TABLES),
        study=one_of(one.name for one in CONFIG.studies if one.game not in CHAINS),
    conda:
        "../envs/fishpool.yaml"
    params:
        game=lambda wildcards: STUDIES[wildcards.study].game,
    message:
        "tabulate {wildcards.table} of {wildcards.study}/{wildcards.condition}"
    shell:
        "python {input.script:q} --game {params.game} --table {wildcards.table} --output {output:q}"
        " {input.sums:q} 2>&1 | tee {log:q}"


# Of every game, also of those whose other records are tabulated in another way.
use rule tabulate as tabulate_replies with:
    wildcard_constraints:
        table=one_of(records.MODEL_TABLES),
        study=one_of(STUDIES),
