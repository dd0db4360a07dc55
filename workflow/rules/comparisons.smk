# Tables over all conditions of a game: contrasts that were declared in the config, and our players beside published ones.

# table -> its file, for the selected games
COMPARISONS = {
    table: f"{RESULTS}/parquet/{table}.parquet" for table in ("contrasts", "commons_govsim") if "commons" in GAMES
}
COMPARED_IN_SQL = {"commons_govsim": source("workflow/sql/commons/commons_govsim.sql")} if COMPARISONS else {}


rule contrast_conditions:
    input:
        code("scripts/solve.py", "fishpool/analysis/contrasts.py"),
        table_files(["commons_observations"], "commons"),
        script=source("scripts/solve.py"),
    output:
        f"{RESULTS}/parquet/contrasts.parquet",
    log:
        f"{LOGS}/solve/contrasts.log",
    conda:
        "../envs/fishpool.yaml"
    params:
        tables=table_arguments(["commons_observations"], "commons"),
        parameters=json.dumps(
            {"declared": [contrast for one in CONFIG.studies for contrast in one.contrasts]}, sort_keys=True
        ),
    message:
        "contrast conditions"
    shell:
        "python {input.script:q} --function contrasts.contrasts --parameters {params.parameters:q} --output {output:q}"
        " {params.tables:q} 2>&1 | tee {log:q}"


rule compare_with_govsim:
    input:
        code("scripts/query.py"),
        table_files(["runs", "commons_societal"], "commons"),
        sql=source("workflow/sql/commons/commons_govsim.sql"),
        script=source("scripts/query.py"),
    output:
        f"{RESULTS}/parquet/commons_govsim.parquet",
    log:
        f"{LOGS}/query/commons_govsim.log",
    conda:
        "../envs/fishpool.yaml"
    params:
        tables=table_arguments(["runs", "commons_societal"], "commons"),
    message:
        "compare with the published GovSim fishery"
    shell:
        "python {input.script:q} --sql {input.sql:q} --output {output:q} --threads {threads} {params.tables:q}"
        " 2>&1 | tee {log:q}"
