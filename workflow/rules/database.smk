# The database that people ask in SQL: every table of every selected study, in one file that can be copied anywhere.

DATABASE = f"{RESULTS}/fishpool.duckdb"
QUERIES = [
    *(sql_file(metric) for metric in TABLES if metric in QUERIED or any(metric in chain for chain in CHAINS.values())),
    *COMPARED_IN_SQL.values(),
]


rule collect:
    input:
        code("scripts/collect.py"),
        table_files(TABLES),
        list(COMPARISONS.values()),
        comments=source("workflow/schemas/tables.yaml"),
        sql=QUERIES,
        script=source("scripts/collect.py"),
    output:
        DATABASE,
    log:
        f"{LOGS}/collect.log",
    conda:
        "../envs/fishpool.yaml"
    threads: 2
    params:
        # sorted, because the order of the config means something to figures only
        tables=sorted([*table_arguments(TABLES), *(f"{table}={file}" for table, file in COMPARISONS.items())]),
        sql=[f"--sql={file}" for file in QUERIES],
    message:
        "collect all tables into {output}"
    shell:
        "python {input.script:q} --output {output:q} --comments {input.comments:q} --threads {threads} {params.sql:q} {params.tables:q}"
        " 2>&1 | tee {log:q}"
