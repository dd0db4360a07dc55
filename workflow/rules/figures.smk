# One figure a research question, over all selected studies of its game.

# question -> (the tables it shows, the game it belongs to); of the fish pool, only studies that name the question
QUESTIONS = {
    "rq01": (["commons_survival"], "commons"),
    "rq02": (["commons_estimates", "commons_conditions"], "commons"),
    "rq03": (["commons_estimates", "commons_conditions"], "commons"),
    "rq04": (["commons_deviation_points"], "commons"),
    "rq05": (["commons_observations", "commons_estimates", "commons_conditions"], "commons"),
    "rq06": (["commons_estimates", "commons_conditions"], "commons"),
    "rq07": (["commons_estimates", "commons_conditions"], "commons"),
    "rq08": (["commons_lies_rounds", "commons_conditions"], "commons"),
    "rq09": (["pd_matchups", "pd_ranking", "pd_rounds"], "prisoners_dilemma"),
    "rq10": (["pd_rounds", "pd_profiles", "pd_ranking"], "prisoners_dilemma"),
    "rq11": (["pd_strategy_shares", "pd_ranking"], "prisoners_dilemma"),
    "rq12": (
        ["dictator_decisions", "dictator_payoffs", "dictator_scores", "dictator_dominance", "dictator_pool"],
        "dictator",
    ),
    "rq13": (
        [
            "dictator_scores",
            "dictator_pool",
            "dictator_trajectories",
            "dictator_equilibria",
            "dictator_basins",
            "dictator_boundary",
            "dictator_sensitivity",
            "dictator_type_masses",
            "dictator_bloc",
        ],
        "dictator",
    ),
    "rq14": (
        [
            "dictator_scores",
            "dictator_decisions",
            "dictator_agreement",
            "dictator_equilibria",
            "dictator_flips",
            "dictator_robustness",
        ],
        "dictator",
    ),
}


def asks(study, question, game):
    return game != "commons" or question in STUDIES[study].questions


FORMATS = CONFIG.figure_formats
# In the report of `snakemake --report` (a PNG would be there twice): ending -> its label
REPORTED_FORMATS = {"svg": "print (SVG)", "pdf": "print (PDF)", "html": "interactive (HTML)"}
FIGURES = [
    f"{RESULTS}/figures/{question}.{ending}"
    for question, (_, game) in QUESTIONS.items()
    if any(asks(study, question, game) for study, _ in conditions_of(game))
    for ending in FORMATS
]


def shown(tables, question, game):
    """(table, file) of every condition whose study asks the question."""
    return [
        (table, table_file(table, study, condition))
        for table in tables
        for study, condition in conditions_of(game)
        if asks(study, question, game)
    ]


def caption(question):
    """What a figure shows, as its source says; captions of a report know parameters, but expand no wildcards."""
    return ast.get_docstring(ast.parse(Path(source(f"fishpool/figures/{question}.py")).read_text()))


def figure(question, game, ending):
    """The file of a figure, with its place in the report."""
    file = f"{RESULTS}/figures/{question}.{ending}"
    if ending not in REPORTED_FORMATS:
        return file
    asked = caption(question).split('"')[1]
    return report(
        file,
        caption="../report/figure.rst",
        category={"prisoners_dilemma": "Prisoner's dilemma", "commons": "Fish pool", "dictator": "Dictator game"}[game],
        labels={"question": f"{question.upper()}: {asked}", "format": REPORTED_FORMATS[ending]},
    )


for question, (tables, game) in QUESTIONS.items():

    rule:
        name:
            f"draw_{question}"
        input:
            code("scripts/draw.py", f"fishpool/figures/{question}.py"),
            [file for _, file in shown(tables, question, game)],
            script=source("scripts/draw.py"),
        output:
            **{ending: figure(question, game, ending) for ending in FORMATS},
        log:
            f"{LOGS}/draw/{question}.log",
        conda:
            "../envs/fishpool.yaml"
        params:
            question=question,
            caption=caption(question),
            tables=[f"{table}={file}" for table, file in shown(tables, question, game)],
        message:
            f"draw {question}"
        shell:
            "python {input.script:q} --figures {output:q} --question {params.question}"
            " {params.tables:q} 2>&1 | tee {log:q}"
