"""The referee: what it reads as an action, what it never reads as one, and the lane's clock."""

import asyncio
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishpool.games.prisoners_dilemma import Choice, Parameters, read_action
from fishpool.records import Ending, Status
from fishpool.referee import MAX_REPLY, Fault, Player, ask, decode
from fishpool.runners.prisoners_dilemma import referee_match

COOPERATE = '{"type": "choose", "choice": "cooperate"}'
RESIGN = '{"type": "resign"}'


class Says(Player):
    """A player that answers each turn with the next of its replies; a callable is called, an exception raised."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.views = []

    async def act(self, view):
        self.views.append(view)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, float):
            await asyncio.sleep(reply)
            return COOPERATE
        if isinstance(reply, Exception):
            raise reply
        return reply


def asked(reply, turn_timeout=5.0):
    return asyncio.run(ask(Says(reply), {}, read_action, turn_timeout))


def played(first, second, rounds=20, turn_timeout=0.05, **options):
    players = {"agent_1": Says(*first), "agent_2": Says(*second)}
    return asyncio.run(referee_match(players, Parameters(rounds=rounds), turn_timeout, **options))


@pytest.mark.parametrize("reply", [COOPERATE, COOPERATE.encode(), f"  {COOPERATE}\n"])
def test_a_valid_action_moves(reply):
    turn = asked(reply)
    assert (turn.status, turn.action) == (Status.MOVED, Choice.COOPERATE)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "cooperate",
        "Cooperate.",
        f"I choose {COOPERATE}",
        f"{COOPERATE}{COOPERATE}",
        f"```json\n{COOPERATE}\n```",
        '{"type": "choose", "choice": "defect", "choice": "cooperate"}',
        '{"type": "choose", "type": "choose", "choice": "cooperate"}',
        '{"type": "choose", "choice": NaN}',
        "{'type': 'choose', 'choice': 'cooperate'}",
        '{"type": "choose", "choice": "cooperate",}',
        COOPERATE[:-1],
        b"\xff\xfe",
        "[" * 100_000,
        COOPERATE + " " * MAX_REPLY,
        None,
        {"type": "choose", "choice": "cooperate"},
    ],
)
def test_a_reply_that_cannot_be_read_is_never_a_move(reply):
    turn = asked(reply)
    assert turn.status is Status.INVALID
    assert turn.action is None
    assert turn.fault
    assert len(turn.fault) < 300
    assert "\n" not in turn.fault


@given(st.one_of(st.text(), st.binary()))
def test_decode_reads_json_or_says_why_not(reply):
    try:
        value = decode(reply)
    except ValueError:
        return
    assert value == json.loads(reply)


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ('{"a": NaN}', "a: "),
        ('{"a": {"b": [1, [1e999]]}}', "b: "),
        ('{"a": 1%s}' % ("0" * 5000), "a: "),
        ('{"a": 1, "a": 1}', "a: "),
        (r'{"a": "\ud800"}', "a: "),  # polars and UTF-8 files hold no such text
        (r'{"\ud800": 1}', r"\ud800: "),
        (r'["\udfff"]', "the reply: "),
        ("-Infinity", "the reply: "),
    ],
)
def test_decode_names_the_key_of_what_no_file_can_hold(reply, names):
    with pytest.raises(ValueError, match="^" + re.escape(names)):
        decode(reply)


@pytest.mark.parametrize("reply", ['{"a": 1,}', '{"a": [1, ]}', '{"a": 1, \n}'])
def test_a_trailing_comma_is_called_one_by_every_python(reply):
    with pytest.raises(ValueError, match="comma stands before"):
        decode(reply)


def test_the_clock_is_the_lanes():
    assert asked(0.2, turn_timeout=0.02).status is Status.TIMEOUT
    assert asked(0.02, turn_timeout=5).status is Status.MOVED


def test_a_player_that_raises_is_nobodys_move():
    turn = asked(RuntimeError("no more memory"))
    assert (turn.status, turn.fault) == (Status.INFRASTRUCTURE, "raised RuntimeError: no more memory")
    # A time-out that the player's own code raises is not the lane's clock.
    assert asked(TimeoutError("socket")).status is Status.INFRASTRUCTURE


class Wordless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (OSError("a\udcff\nb\x1b[2J"), Status.INFRASTRUCTURE, r"raised OSError: a\udcff\nb\x1b[2J"),
        (RuntimeError("x" * 10**6), Status.INFRASTRUCTURE, f"raised RuntimeError: {'x' * 1000}"),
        (Wordless(), Status.INFRASTRUCTURE, "raised Wordless: it does not say what"),
        (asyncio.CancelledError("of its own"), Status.INFRASTRUCTURE, "raised CancelledError: of its own"),
        (Fault("\ud800\n"), Status.INVALID, r"\ud800\n"),
    ],
)
def test_what_a_player_raises_is_one_line_that_a_record_can_hold(error, status, said):
    class Raises(Player):
        async def act(self, view):
            raise error

    turn = asyncio.run(ask(Raises(), {}, read_action, 5.0))
    assert (turn.status, turn.fault) == (status, said)


def test_a_run_that_is_called_off_is_no_fault_of_a_player():
    async def called_off():
        turn = asyncio.create_task(ask(Says(3600.0), {}, read_action, math.inf))
        await asyncio.sleep(0)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    asyncio.run(called_off())


def test_what_a_player_writes_into_its_view_is_seen_by_nobody():
    class Spoils(Player):
        repairs = 1

        async def act(self, view):
            views.append(json.loads(json.dumps(view)))
            view["shared"]["list"].append("spoilt")
            del view["round"]
            return "nonsense"

    view, views = {"round": 1, "shared": {"list": []}}, []
    turn = asyncio.run(ask(Spoils(), view, read_action, 5.0))
    assert view == {"round": 1, "shared": {"list": []}}
    assert views == [view, {**view, "error": turn.fault}]


def test_both_are_asked_at_once_and_neither_sees_the_others_choice():
    first, second = Says(COOPERATE), Says(COOPERATE)
    asyncio.run(referee_match({"agent_1": first, "agent_2": second}, Parameters(rounds=3), 1.0))
    for mine, theirs in zip(first.views, second.views, strict=True):
        assert mine["turnNumber"] == theirs["turnNumber"] == len(mine["history"])
        assert mine["history"] == theirs["history"]


@pytest.mark.parametrize(
    ("first", "second", "ending", "winner", "rounds"),
    [
        ([COOPERATE], [COOPERATE], Ending.COMPLETED, None, 20),
        ([COOPERATE, RESIGN], [COOPERATE], Ending.RESIGNED, "agent_2", 1),
        ([RESIGN], [RESIGN], Ending.RESIGNED, None, 0),
        ([0.5], [COOPERATE], Ending.VOID, None, 0),
        ([COOPERATE, 0.5], [COOPERATE], Ending.FORFEITED, "agent_2", 1),
        ([COOPERATE], [COOPERATE, COOPERATE, "?"], Ending.FORFEITED, "agent_1", 2),
        ([COOPERATE, "?"], [COOPERATE, 0.5], Ending.FORFEITED, None, 1),
        ([RESIGN], [0.5], Ending.VOID, None, 0),
        ([COOPERATE, RESIGN], [COOPERATE, 0.5], Ending.FORFEITED, None, 1),
        ([COOPERATE, OSError("gone")], [COOPERATE], Ending.VOID, None, 1),
    ],
)
def test_matches_end_by_the_rules(first, second, ending, winner, rounds):
    game = played(first, second)
    assert (game.match.result.ending, game.match.result.winner) == (ending, winner)
    assert len(game.match.history) == rounds
    assert len(game.turns) == rounds + (ending is not Ending.COMPLETED)


def test_a_choice_beside_a_fault_is_kept_as_submitted():
    game = played(["?"], [COOPERATE])
    assert game.turns[0]["agent_2"].action is Choice.COOPERATE
    assert game.match.scores == {"agent_1": 0, "agent_2": 0}
