"""The arena's state machine on a clock of the test's own: pairing, deadlines, restarts, and what is kept of a key."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fishpool.arena.matches import Arena, Code, Limits, Refused, agent_id, read_action, replay
from fishpool.arena.store import Store, StoreError
from fishpool.games import prisoners_dilemma as rules
from fishpool.games.prisoners_dilemma import Choice, Match
from fishpool.records import Status
from fishpool.referee import Turn
from fishpool.runners.prisoners_dilemma import as_move

ROUNDS = 5


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Hall:
    """An arena that can be restarted: its store is closed without a word and opened again."""

    def __init__(self, folder, **limits):
        self.path, self.limits, self.clock = folder / "arena.sqlite", Limits(**limits), Clock()
        self.told = []
        self.open()

    def open(self):
        self.store = Store(self.path, ROUNDS)
        self.arena = Arena(self.store, self.clock, limits=self.limits, changed=self.told.append)

    def restart(self):
        self.store.close()
        self.open()

    def agents(self, number):
        return [self.arena.register(f"agent {index}")[0] for index in range(number)]

    def match(self, *agents, lane="fast"):
        for agent in agents:
            standing = self.arena.enqueue(agent, lane)
        return standing.match


@pytest.fixture
def hall(tmp_path):
    made = Hall(tmp_path)
    yield made
    made.store.close()


COOPERATE, DEFECT = (Turn(Status.MOVED, choice) for choice in Choice)
RESIGN, WRONG = Turn(Status.MOVED, rules.RESIGN), Turn(Status.INVALID, fault="no")


def refusal(call, *arguments):
    with pytest.raises(Refused) as refused:
        call(*arguments)
    return refused.value.code


# ── Pairing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_agents_are_matched_first_come_first_served_in_each_lane_and_never_with_themselves(hall):
    a, b, c, d, e = hall.agents(5)
    for _ in range(3):
        assert hall.arena.enqueue(a, "fast").position == 1
    assert hall.arena.enqueue(b, "standard").position == 1
    first = hall.arena.enqueue(c, "fast").match
    assert hall.arena.standing(a).match == first
    assert hall.arena.game(a, first).match.agents == (agent_id(a.number), agent_id(c.number))
    second = hall.arena.enqueue(d, "standard").match
    assert hall.arena.game(b, second).match.agents == (agent_id(b.number), agent_id(d.number))
    assert hall.arena.enqueue(a, "fast").match == first  # one live match at a time
    assert hall.arena.standing(e) == type(hall.arena.standing(e))()


def test_who_waits_longest_is_matched_first(tmp_path):
    hall = Hall(tmp_path, matches=1)
    *playing, third, fourth, fifth = hall.agents(5)
    match = hall.match(*playing)
    hall.match(third, fourth, fifth)
    assert hall.arena.standing(fifth).position == 3
    hall.match(*playing)  # who plays does not queue besides
    for agent in playing:
        hall.arena.act(agent, match, 1, RESIGN)
    assert hall.arena.standing(third).match == hall.arena.standing(fourth).match == "match-2"
    assert hall.arena.standing(fifth).position == 1
    assert hall.arena.standing(playing[0]) == type(hall.arena.standing(fifth))()


def test_who_changes_lanes_leaves_the_first_one(hall):
    a, b, c = hall.agents(3)
    hall.arena.enqueue(a, "fast")
    hall.arena.enqueue(a, "standard")
    assert hall.arena.enqueue(b, "fast").position == 1
    assert hall.arena.enqueue(c, "standard").match


def test_who_has_gone_away_is_not_matched_and_who_has_a_socket_is_there(hall):
    gone, there, new, newer = hall.agents(4)
    hall.arena.enqueue(gone, "fast")
    hall.clock.now += 61
    hall.arena.enqueue(there, "fast")
    hall.arena.connect(there)
    assert hall.arena.standing(gone).position is None
    hall.clock.now += 3600
    match = hall.arena.enqueue(new, "fast").match
    assert hall.arena.game(there, match)
    assert hall.arena.standing(newer).match is None


def test_the_queue_survives_a_restart_in_its_order(hall):
    a, b, c = hall.agents(3)
    hall.arena.enqueue(a, "fast")
    hall.restart()
    assert hall.arena.standing(a).position == 1
    assert hall.match(b) == "match-1"
    hall.restart()
    assert (hall.arena.standing(a).match, hall.arena.standing(c).match) == ("match-1", None)


def test_limits_of_agents_queue_and_matches(tmp_path):
    hall = Hall(tmp_path, agents=6, queue=2, matches=1)
    agents = hall.agents(6)
    assert refusal(hall.arena.register, "one more") is Code.TOO_MANY_AGENTS
    match = hall.match(*agents[:2])
    assert hall.match(*agents[2:4]) is None
    assert refusal(hall.arena.enqueue, agents[4], "fast") is Code.QUEUE_FULL
    for agent in agents[:2]:
        hall.arena.act(agent, match, 1, RESIGN)
    assert hall.arena.standing(agents[2]).match == hall.arena.standing(agents[3]).match == "match-2"


@pytest.mark.parametrize(
    "name", ["", "a" * 65, "a:b", "a\x00b", "a\nb", "ä", "../x", "a/b", "<b>", "x\x1b[31m", "a\n", "%s", "１"]
)
def test_names_that_are_none(hall, name):
    assert refusal(hall.arena.register, name) is Code.INVALID_NAME


def test_a_name_is_taken_once_also_after_a_restart(hall):
    hall.arena.register("Tit for Tat_1-x")
    hall.restart()
    assert refusal(hall.arena.register, "Tit for Tat_1-x") is Code.NAME_TAKEN


def test_a_key_opens_after_a_restart_and_is_not_in_the_database(hall):
    _, key = hall.arena.register("a")
    hall.arena.register("b")
    hall.restart()
    assert hall.arena.authenticate(key).name == "a"
    secret = key.partition(".")[2]
    for wrong in ("", secret, key[:-1], key + "A", key.replace("agent-1.", "agent-2."), f"agent-9{key[6:]}", "ä" * 50):
        assert refusal(hall.arena.authenticate, wrong) is Code.UNAUTHORIZED
    hall.store.close()
    for file in hall.path.parent.iterdir():
        assert secret.encode() not in file.read_bytes()
    hall.open()


# ── Turns ────────────────────────────────────────────────────────────────────────────────────────────────────────

DEEDS = {"C": COOPERATE, "D": DEFECT, "R": RESIGN, "W": WRONG, "-": Turn(Status.TIMEOUT)}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("CCCCDDDDRW-"), st.sampled_from("CCCCDDDDRW-")), min_size=ROUNDS, max_size=ROUNDS
    ),
    st.lists(st.integers(0, 2 * ROUNDS), max_size=3),
    st.randoms(use_true_random=False),
)
def test_every_match_ends_as_the_rules_settle_it_whatever_is_repeated_and_whenever_the_server_is_killed(
    tmp_path_factory, plan, kills, luck
):
    """The reference is `settle` alone, round by round; the arena has repeats, wrong sequences and restarts besides."""
    hall = Hall(tmp_path_factory.mktemp("hall"))
    agents = hall.agents(2)
    match = hall.match(*agents)
    ids = tuple(agent_id(agent.number) for agent in agents)
    expected, steps = Match(ids, ROUNDS), 0
    for number, deeds in enumerate(plan, start=1):
        if expected.result:
            break
        expected = rules.settle(expected, {who: as_move(DEEDS[deed]) for who, deed in zip(ids, deeds, strict=True)})
        order = [0, 1] if luck.random() < 0.5 else [1, 0]
        for seat in order:
            if steps in kills:
                hall.clock.now += 29
                hall.restart()  # a turn has its whole time again
            steps += 1
            if deeds[seat] == "-":
                continue
            for _ in range(luck.randint(1, 3)):
                turn = DEEDS[deeds[seat]]
                if deeds[seat] == "W":
                    assert refusal(hall.arena.act, agents[seat], match, number, turn) is Code.INVALID_ACTION
                else:
                    hall.arena.act(agents[seat], match, number, turn)
                other = replace(DEFECT, action=Choice.COOPERATE) if turn == DEFECT else DEFECT
                assert refusal(hall.arena.act, agents[seat], match, number, other) is Code.STALE_SEQUENCE
                assert refusal(hall.arena.act, agents[seat], match, number + 2, turn) is Code.NOT_YOUR_TURN
        if "-" in deeds:
            hall.clock.now += 29.9
            assert hall.arena.game(agents[0], match).live
            hall.clock.now += 0.2
            hall.arena.expire()
    game = hall.arena.game(agents[0], match)
    assert game.match == expected
    assert not game.live
    assert hall.arena.standing(agents[0]).match is None
    hall.restart()
    assert hall.arena.game(agents[1], match).match == expected
    hall.store.close()


def test_a_turn_ends_exactly_when_its_time_is_up_though_the_clock_was_not_watched(hall):
    a, b = hall.agents(2)
    match = hall.match(a, b)
    hall.clock.now += 29.999
    hall.arena.act(a, match, 1, COOPERATE)
    hall.clock.now += 0.001
    assert refusal(hall.arena.act, b, match, 1, COOPERATE) is Code.STALE_SEQUENCE
    assert hall.arena.game(a, match).match.result.ending == "void"


def test_each_round_has_the_whole_time_and_the_lane_says_how_much(hall):
    a, b = hall.agents(2)
    match = hall.match(a, b, lane="standard")
    for number in range(1, ROUNDS + 1):
        hall.clock.now += 119
        hall.arena.act(a, match, number, COOPERATE)
        hall.arena.act(b, match, number, COOPERATE)
    assert hall.arena.game(a, match).match.result.ending == "completed"


def test_an_outage_is_not_held_against_anybody(hall):
    a, b = hall.agents(2)
    match = hall.match(a, b)
    hall.arena.act(a, match, 1, DEFECT)
    hall.clock.now += 29
    hall.store.close()
    hall.clock.now += 86_400
    hall.open()
    hall.clock.now += 29
    assert hall.arena.game(b, match).awaits(agent_id(b.number))
    assert not hall.arena.game(a, match).awaits(agent_id(a.number))  # what was accepted counts
    assert hall.arena.act(b, match, 1, COOPERATE).match.scores == {agent_id(a.number): 5, agent_id(b.number): 0}


def test_a_turn_that_cannot_be_kept_is_not_taken(hall, monkeypatch):
    """As on a full disk: the agent is not told that it was accepted, and can send it again."""
    a, b = hall.agents(2)
    match = hall.match(a, b)

    def full(*arguments):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(hall.store, "add_turns", full)
        with pytest.raises(sqlite3.OperationalError):
            hall.arena.act(a, match, 1, DEFECT)
        hall.clock.now += 31
        with pytest.raises(sqlite3.OperationalError):
            hall.arena.expire()
    hall.clock.now -= 31
    assert hall.arena.game(a, match).awaits(agent_id(a.number))
    hall.arena.act(a, match, 1, DEFECT)
    hall.clock.now += 31
    hall.arena.expire()
    assert not hall.arena.game(a, match).live


def test_those_who_wait_are_told_of_a_new_round_and_of_the_end(hall):
    a, b = hall.agents(2)
    match = hall.match(a, b)
    hall.told.clear()
    hall.arena.act(a, match, 1, COOPERATE)
    assert hall.told == []  # nothing that b could do otherwise
    hall.arena.act(b, match, 1, COOPERATE)
    assert match in hall.told
    hall.told.clear()
    hall.clock.now += 30
    hall.arena.expire()
    assert set(hall.told) == {match, agent_id(a.number), agent_id(b.number)}


@settings(deadline=None)
@given(st.text(max_size=40) | st.binary(max_size=40))
def test_no_message_makes_the_reader_fail(text):
    try:
        sequence, turn = read_action(text, "action")
    except Refused:
        return
    assert isinstance(sequence, int)
    assert turn.status in (Status.MOVED, Status.INVALID)


# ── The store ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_servers_do_not_share_a_database(hall):
    with pytest.raises(StoreError, match="another arena serves this database"):
        Store(hall.path, ROUNDS)
    Store(hall.path).close()  # but it can be read


def test_a_database_has_matches_of_one_length(hall):
    hall.store.close()
    with pytest.raises(StoreError, match="holds matches of 5 rounds, not 7; start with --rounds 5"):
        Store(hall.path, 7)


@pytest.mark.parametrize("rounds", [None, 5])
def test_other_files_are_left_alone(tmp_path, rounds):
    text, other = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_text("no database at all, but longer than the header that SQLite looks for " * 20)
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE diary (day TEXT)")
    for file in (text, other):
        before = file.read_bytes()
        with pytest.raises(StoreError, match=file.name):
            Store(file, rounds)
        assert file.read_bytes() == before


def test_a_stored_match_can_be_told_with_other_names(hall):
    a, b = hall.agents(2)
    match = hall.match(a, b)
    hall.arena.act(a, match, 1, RESIGN)
    hall.arena.act(b, match, 1, COOPERATE)
    stored = hall.store.match(1)
    assert replay(stored, ("x", "y"), ROUNDS).match.result.winner == "y"


def test_a_database_of_the_first_format_is_brought_up_to_date_and_a_changed_row_refused(hall):
    a, b = hall.agents(2)
    match = hall.match(a, b)
    hall.arena.act(a, match, 1, COOPERATE)
    agents, live = hall.store.agents(), hall.store.live()
    hall.store.close()
    with closing(sqlite3.connect(hall.path)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        for table in ("arena", "agents", "queue", "matches", "turns"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        connection.execute("PRAGMA user_version = 1")
    hall.open()
    assert (hall.store.agents(), hall.store.live()) == (agents, live)
    hall.store.close()
    with closing(sqlite3.connect(hall.path)) as connection, connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("UPDATE turns SET action = 'defect'")
    with pytest.raises(StoreError, match=r"is damaged \(1 rows of turns are not what was written\); put back"):
        Store(hall.path)
