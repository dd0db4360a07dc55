# The report: one page that can be opened offline, from the database and the figures.

REPORT = f"{RESULTS}/report.html"
# question -> the conditions by study that it is asked of, in the order of the config
ASKED = {
    question: {
        study: [name for one, name in conditions_of(game) if one == study]
        for study, _ in conditions_of(game)
        if asks(study, question, game)
    }
    for question, (_, game) in QUESTIONS.items()
}
ASKED = {question: asked for question, asked in ASKED.items() if asked}
TEMPLATES = sorted(str(path) for path in (ROOT / "fishpool/report/templates").iterdir())
REPORTED = [f"{RESULTS}/figures/{question}.{ending}" for question in ASKED for ending in ("svg", "json")]


rule report:
    input:
        code("scripts/report.py"),
        TEMPLATES,
        REPORTED,
        database=DATABASE,
        script=source("scripts/report.py"),
    output:
        REPORT,
    log:
        f"{LOGS}/report.log",
    conda:
        "../envs/fishpool.yaml"
    params:
        questions=json.dumps(ASKED),
        runs=json.dumps(CONFIG.report_runs),
        notes=json.dumps({one.name: one.note for one in CONFIG.studies if one.note}),
    message:
        "write the report"
    shell:
        'python {input.script:q} --database {input.database:q} --figures "$(dirname {output:q})/figures"'
        " --questions {params.questions:q} --runs {params.runs:q} --notes {params.notes:q} --output {output:q}"
        " 2>&1 | tee {log:q}"
