# The analysis of a dictator tournament: one job an oracle, whose tables share their equilibria; then oracles compared.

ANALYSED_ALONE = [table for table in ANALYSED["dictator"] if table != "dictator_agreement"]


rule analyse_dictator:
    input:
        code("scripts/analyse_dictator.py"),
        decisions=table_file("dictator_decisions", "{study}", "{condition}"),
        script=source("scripts/analyse_dictator.py"),
    output:
        **{table: table_file(table, "{study}", "{condition}") for table in ANALYSED_ALONE},
    log:
        f"{LOGS}/analyse/{{study}}/{{condition}}.log",
    conda:
        "../envs/fishpool.yaml"
    params:
        settings=lambda wildcards: json.dumps(STUDIES[wildcards.study].analysis, sort_keys=True),
        tables=condition_arguments(ANALYSED_ALONE),
    message:
        "analyse tournament {wildcards.study} under oracle {wildcards.condition}"
    shell:
        "python {input.script:q} --decisions {input.decisions:q} --settings {params.settings:q} {params.tables:q}"
        " 2>&1 | tee {log:q}"


rule compare_oracles:
    input:
        code("scripts/solve.py", "fishpool/analysis/dictator.py"),
        lambda wildcards: oracles_from(wildcards.study, wildcards.condition),
        script=source("scripts/solve.py"),
    output:
        table_file("dictator_agreement", "{study}", "{condition}"),
    log:
        f"{LOGS}/compare/{{study}}/{{condition}}.log",
    conda:
        "../envs/fishpool.yaml"
    params:
        decisions=lambda wildcards: [
            f"dictator_decisions={file}" for file in oracles_from(wildcards.study, wildcards.condition)
        ],
    message:
        "compare oracle {wildcards.condition} of {wildcards.study} with the oracles after it"
    shell:
        "python {input.script:q} --function dictator.compare_oracles --output {output:q} {params.decisions:q}"
        " 2>&1 | tee {log:q}"
