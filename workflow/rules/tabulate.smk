# JSONL to Parquet, one file a record table and condition, so that only a changed condition is converted again.

RECORD_TABLES = sorted({table for game in GAMES for table in records.GAME_TABLES[game]})


def shards_of(study, condition):
    return [shard for one, other, shard in SHARDS if (one, other) == (study, condition)]


rule tabulate:
    input:
        code("scripts/tabulate.py"),
        lambda wildcards: [
            shard_file(wildcards.study, wildcards.condition, shard, f"{wildcards.table}.jsonl")
            for shard in shards_of(wildcards.study, wildcards.condition)
        ],
        sums=lambda wildcards: [
            shard_file(wildcards.study, wildcards.condition, shard, "SHA256SUMS")
            for shard in shards_of(wildcards.study, wildcards.condition)
        ],
        script=source("scripts/tabulate.py"),
    output:
        table_file("{table}", "{study}", "{condition}"),
    log:
        f"{LOGS}/tabulate/{{table}}/{{study}}/{{condition}}.log",
    params:
        game=lambda wildcards: STUDIES[wildcards.study].game,
    wildcard_constraints:
        table=one_of(RECORD_TABLES),
    conda:
        "../envs/fishpool.yaml"
    message:
        "tabulate {wildcards.table} of {wildcards.study}/{wildcards.condition}"
    shell:
        "python {input.script:q} --game {params.game} --table {wildcards.table} --output {output:q}"
        " {input.sums:q} 2>&1 | tee {log:q}"
