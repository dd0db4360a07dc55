# Games are played a shard at a time: one condition and one block of seeds. The shard is the job's one parameter.


# game -> what its play reads of this checkout besides sources
DATA = {"dictator": [source("fishpool/oracles/published.csv")]}

for game in GAMES:

    rule:
        name:
            f"play_{game}"
        input:
            code("scripts/play.py", f"fishpool/runners/{game}.py"),
            DATA.get(game, []),
            lambda wildcards: CONDITIONS[wildcards.study, wildcards.condition].files,
            script=source("scripts/play.py"),
        output:
            [shard_file("{study}", "{condition}", "{shard}", f"{table}.jsonl") for table in records.GAME_TABLES[game]],
            sums=shard_file("{study}", "{condition}", "{shard}", "SHA256SUMS"),
        log:
            f"{LOGS}/play/{{study}}/{{condition}}/{{shard}}.log",
        wildcard_constraints:
            study=one_of(one.name for one in CONFIG.studies if one.game == game),
        conda:
            "../envs/fishpool.yaml"
        params:
            shard=lambda wildcards: SHARDS[wildcards.study, wildcards.condition, wildcards.shard].to_json(),
        message:
            "play {wildcards.study}/{wildcards.condition}/{wildcards.shard}"
        shell:
            'python {input.script:q} --shard {params.shard:q} --directory "$(dirname {output.sums:q})" 2>&1 | tee {log:q}'


# What every number traces back to: targets themselves, so that a deleted file is made again though its tables stand.
RECORDS = [
    shard_file(*key, f"{table}.jsonl") for key, shard in SHARDS.items() for table in records.GAME_TABLES[shard.game]
]
