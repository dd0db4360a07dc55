# One figure a research question, over all selected studies of its game.

# question -> (the tables it shows, the game it belongs to)
QUESTIONS = {
    "rq09": (["pd_matchups", "pd_ranking", "pd_rounds"], "prisoners_dilemma"),
    "rq10": (["pd_rounds", "pd_profiles", "pd_ranking"], "prisoners_dilemma"),
    # "rq11": (["pd_strategy_shares", "pd_ranking"], "prisoners_dilemma"),
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
FORMATS = ["svg", "png", "html"]
FIGURES = [
    f"{RESULTS}/figures/{question}.{ending}"
    for question, (_, game) in QUESTIONS.items()
    if conditions_of(game)
    for ending in FORMATS
]


for question, (tables, game) in QUESTIONS.items():

    rule:
        name:
            f"draw_{question}"
        input:
            code("scripts/draw.py", f"fishpool/figures/{question}.py"),
            table_files(tables, game),
            script=source("scripts/draw.py"),
        output:
            **{ending: f"{RESULTS}/figures/{question}.{ending}" for ending in FORMATS},
        log:
            f"{LOGS}/draw/{question}.log",
        conda:
            "../envs/fishpool.yaml"
        params:
            question=question,
            tables=table_arguments(tables, game),
        message:
            f"draw {question}"
        shell:
            'python {input.script:q} --question {params.question} --directory "$(dirname {output.svg:q})"'
            " {params.tables:q} 2>&1 | tee {log:q}"
