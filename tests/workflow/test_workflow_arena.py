"""Matches of the arena become tables and figures like any others, also those that are added later, and stay."""

import pytest

from fishpool.arena.matches import Arena
from fishpool.arena.store import Store
from fishpool.games.prisoners_dilemma import Choice
from fishpool.records import Status
from fishpool.referee import Turn

pytestmark = pytest.mark.workflow

CONFIG = "studies:\n  arena: {game: prisoners_dilemma, recorded: true}\n"


def meet(database, matches):
    """Some matches of two rounds between three agents in turn; the first defects, the others cooperate."""
    store = Store(database, rounds=2)
    arena = Arena(store, lambda: 0.0)
    agents = store.agents() or [arena.register(name)[0] for name in ("Ann 1", "Bob", "Eve")]
    for number in range(matches):
        pair = [agents[number % 3], agents[(number + 1) % 3]]
        for agent in pair:
            match = arena.enqueue(agent, "fast").match
        for sequence in (1, 2):
            for agent in pair:
                choice = Choice.DEFECT if agent.name == "Ann 1" else Choice.COOPERATE
                arena.act(agent, match, sequence, Turn(Status.MOVED, choice))
    store.close()


def test_a_recorded_study_is_tabulated_and_grows(fresh):
    database = fresh.root / "arena.sqlite"
    (fresh.root / "arena.yaml").write_text(CONFIG)

    def run():
        assert fresh.fishpool("arena", "export", "--database", "arena.sqlite").code == 0
        outcome = fresh.snakemake("--configfile", "arena.yaml", config=("only=arena",))
        assert outcome.code == 0, outcome.text
        return outcome

    meet(database, 6)
    run()
    scores = dict(fresh.ask("SELECT player, mean_score FROM pd_ranking"))
    assert scores == {"Ann 1": 10.0, "Bob": 3.0, "Eve": 3.0}
    assert run().had_nothing_to_do
    meet(database, 3)
    assert run().jobs
    assert fresh.ask("SELECT count(*), count(DISTINCT seed) FROM runs") == [(9, 9)]
    assert fresh.fishpool("clean", "--stale").code == 0
    assert list(fresh.results.glob("jsonl/arena/fast/seeds-0/runs.jsonl"))
