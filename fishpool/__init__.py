"""fishpool: a declarative laboratory for social dilemmas between language-model agents.

The library knows games, players, records, analysis and figures; it knows nothing of Snakemake, which calls it
through the thin programs in `scripts/`. Heavy libraries are imported where they are used, so that `import fishpool`
stays quick.
"""

__version__ = "0.1.0"
