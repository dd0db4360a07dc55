# Games are played a shard at a time: one condition and one block of seeds. The shard is the job's one parameter.


# game -> what its play reads of this checkout besides sources
DATA = {"dictator": [source("fishpool/oracles/published.csv")]}

# Models and bots are modules of fishpool.players that a runner imports by their kind.
OUTSIDE = {"model", "process", "axelrod"}


def outsiders(key):
    """The sources of a condition's players that are not scripted."""
    return [f"fishpool/players/{kind}.py" for kind in CONDITIONS[key].kinds if kind in OUTSIDE]


def has_model(key):
    return "model" in CONDITIONS[key].kinds


def key_of(place):
    """(study, condition) of STUDY/CONDITION."""
    return tuple(place.split("/"))


def backends(key):
    """The sources of what speaks to the servers of a condition's models."""
    names = {player.settings["server"] for player in CONDITIONS[key].players if player.kind == "model"}
    return [f"fishpool/models/backends/{CONFIG.servers[name]['kind']}.py" for name in sorted(names)]


for game in GAMES:
    for models in (False, True):

        rule:
            name:
                f"play_{game}_with_models" if models else f"play_{game}"
            input:
                DATA.get(game, []),
                lambda wildcards, game=game: code(
                    "scripts/play.py",
                    f"fishpool/runners/{game}.py",
                    *outsiders(key_of(wildcards.place)),
                    *backends(key_of(wildcards.place)),
                ),
                lambda wildcards: CONDITIONS[key_of(wildcards.place)].files,
                script=source("scripts/play.py"),
            output:
                [f"{RESULTS}/jsonl/{{place}}/{{shard}}/{table}.jsonl" for table in records.tables(game, models=models)],
                sums=f"{RESULTS}/jsonl/{{place}}/{{shard}}/SHA256SUMS",
            log:
                f"{LOGS}/play/{{place}}/{{shard}}.log",
            wildcard_constraints:
                place=places(
                    key
                    for key, condition in CONDITIONS.items()
                    if condition.game == game and has_model(key) == models and condition.recorded is None
                ),
            conda:
                "../envs/fishpool.yaml"
            resources:
                model=int(models),
            params:
                shard=lambda wildcards: shard_of(wildcards.place, wildcards.shard).to_json(),
            message:
                "play {wildcards.place}/{wildcards.shard}"
            shell:
                'python {input.script:q} --shard {params.shard:q} --directory "$(dirname {output.sums:q})"'
                " 2>&1 | tee {log:q}"


# What every number traces back to: targets themselves, so that a deleted file is made again though its tables stand.
RECORDS = [
    shard_file(*key, shard, f"{table}.jsonl")
    for key, shards in SHARDS.items()
    for shard in shards
    for table in CONDITIONS[key].tables
]
