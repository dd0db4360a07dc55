"""Bots as real processes: every ending of the rule sheet, and bots that harm nobody, whatever they do."""

import asyncio
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishpool.games.prisoners_dilemma import Parameters
from fishpool.models.faults import Stop
from fishpool.players import process as processes
from fishpool.players.process import Kind, files_of, parse
from fishpool.records import Ending, Status
from fishpool.referee import Player
from fishpool.runners import commons
from fishpool.runners import prisoners_dilemma as runner
from fishpool.runners.prisoners_dilemma import referee_match
from fishpool.seats import Seat
from fishpool.shards import Player as Seated
from fishpool.shards import Shard, Site

REPOSITORY = Path(__file__).parents[2]
PYTHON = REPOSITORY / "examples" / "bots" / "reciprocal.py"
SHELL = REPOSITORY / "examples" / "bots" / "tit_for_tat.sh"
QUICK = f"{shlex.quote(sys.executable)} -I -S"  # a Python that starts quickly
COOPERATE = '{"type": "choose", "choice": "cooperate"}'
RESIGN = '{"type": "resign"}'
PRELUDE = f"""
import os, resource, signal, sys, time
COOPERATE, RESIGN = {COOPERATE!r}, {RESIGN!r}
def say(text):
    os.write(1, (text + chr(10)).encode())
def read():
    return sys.stdin.readline() or sys.exit()
def leave():
    try:
        os.setsid()
    except OSError:
        pass
def cooperate(turns):
    for _ in range(turns):
        read()
        say(COOPERATE)
"""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what a bot leaves behind is found by means of Linux")


class Fair(Player):
    """Tit for tat in this process, which takes its time each turn."""

    def __init__(self):
        self.waited = []

    async def act(self, view):
        self.waited.append(time.monotonic())
        await asyncio.sleep(0.005)
        last = view["history"][-1]["choices"] if view["history"] else {}
        return json.dumps({"type": "choose", "choice": last.get("agent_1", "cooperate")})


@pytest.fixture
def bots(tmp_path):
    """`bots(source, ..)`: the kind `process` with a bot of that Python source, or command, as player `bot`."""

    def made(source="", *, command=None, game="prisoners_dilemma", **settings):
        if command is None:
            file = tmp_path / f"bot-{len(list(tmp_path.glob('bot-*.py')))}.py"
            file.write_text(PRELUDE + textwrap.dedent(source))
            command = f"{QUICK} {shlex.quote(str(file))}"
        player = Seated("bot", "process", {"process": command, **settings})
        shard = Shard("study", "plain", "seeds-0", game, {}, (player,), 5.0, (0,))
        return Table(Kind(shard, Site(logs=str(tmp_path / "logs")), [player]), player)

    return made


class Table:
    def __init__(self, kind, player):
        self.kind, self.player = kind, player

    async def __aenter__(self):
        await self.kind.open()
        return self

    async def __aexit__(self, *error):
        await self.kind.close()

    def seat(self, run="run", agent="agent_1"):
        return self.kind.seat(self.player, Seat(run, 0, agent, int(agent[-1]) - 1, ("bot", "other")))


def played(table, other=None, turn_timeout=5.0, rounds=4):
    """A match of the bot, as agent_1, against a player of this process or another bot."""

    async def play():
        async with table:
            if not isinstance(other, Table):
                players = {"agent_1": table.seat(), "agent_2": other or Fair()}
                return await referee_match(players, Parameters(rounds=rounds), turn_timeout)
            async with other:
                players = {"agent_1": table.seat(), "agent_2": other.seat(agent="agent_2")}
                return await referee_match(players, Parameters(rounds=rounds), turn_timeout)

    return asyncio.run(play())


def ended(match):
    return match.match.result.ending, match.match.result.winner


# ── The rules of the sheet ───────────────────────────────────────────────────────────────────────────────────────

COOPERATES = "cooperate(99)"
AFTER_ONE = {
    "resigns": "cooperate(1); read(); say(RESIGN)",
    "hangs": "cooperate(1); read(); time.sleep(99)",
    "babbles": "cooperate(1); read(); say('cooperate')",
    "dies": "cooperate(1); read(); sys.exit(3)",
}
AT_ONCE = {name: source.replace("cooperate(1); ", "") for name, source in AFTER_ONE.items()}
FAULTS = {"hangs": Status.TIMEOUT, "babbles": Status.INVALID, "dies": Status.INVALID}


def test_a_match_between_two_bots_is_played_to_the_end(bots):
    match = played(bots(COOPERATES), bots(COOPERATES), rounds=20)
    assert ended(match) == (Ending.COMPLETED, None)
    assert match.match.scores == {"agent_1": 60, "agent_2": 60}


@pytest.mark.parametrize("sources", [AT_ONCE, AFTER_ONE], ids=["at once", "after one"])
def test_who_resigns_loses(bots, sources):
    assert ended(played(bots(sources["resigns"]), bots(COOPERATES))) == (Ending.RESIGNED, "agent_2")
    assert ended(played(bots(COOPERATES), bots(sources["resigns"]))) == (Ending.RESIGNED, "agent_1")
    assert ended(played(bots(sources["resigns"]), bots(sources["resigns"]))) == (Ending.RESIGNED, None)


@pytest.mark.parametrize("how", FAULTS)
def test_a_fault_before_any_valid_choice_voids_the_match(bots, how):
    match = played(bots(AT_ONCE[how]), bots(COOPERATES), turn_timeout=1.5)
    assert ended(match) == (Ending.VOID, None)
    assert [turn["agent_1"].status for turn in match.turns] == [FAULTS[how]]
    assert match.turns[0]["agent_2"].status is Status.MOVED


@pytest.mark.parametrize("how", FAULTS)
def test_a_fault_after_a_valid_choice_gives_the_match_to_the_other(bots, how):
    match = played(bots(AFTER_ONE[how]), bots(COOPERATES), turn_timeout=1.5)
    assert ended(match) == (Ending.FORFEITED, "agent_2")
    assert len(match.match.history) == 1


@pytest.mark.parametrize("others", [("hangs", "babbles"), ("dies", "dies"), ("resigns", "hangs")])
def test_two_who_fail_at_once_draw_after_a_valid_choice_and_void_the_match_before(bots, others):
    first, second = others
    after = played(bots(AFTER_ONE[first]), bots(AFTER_ONE[second]), turn_timeout=1.5)
    assert ended(after) == (Ending.FORFEITED, None)
    before = played(bots(AT_ONCE[first]), bots(AT_ONCE[second]), turn_timeout=1.5)
    assert ended(before) == (Ending.VOID, None)


# ── Whole matches of the example bots ────────────────────────────────────────────────────────────────────────────


def test_the_example_bots_play_tit_for_tat_as_the_scripted_one_does():
    names = ("TitForTat", "Defector", "Alternator", "Prober")
    scripted = tuple(Seated(name, "scripted", {"strategy": name}) for name in names)
    python = Seated("python", "process", {"process": f"python3 {shlex.quote(str(PYTHON))}"})
    shell = Seated("shell", "process", {"process": f"sh {shlex.quote(str(SHELL))}", "keep_alive": True})
    parameters = {"rounds": 12, "noise": 0.1, "lane": "standard", "agent_ids": ["ann", "bob"]}
    shard = Shard(
        "study", "noisy", "seeds-0", "prisoners_dilemma", parameters, (*scripted, python, shell), 30.0, (5, 6)
    )
    batches = list(runner.play(shard))
    runs, turns = (pl.concat([batch[table] for batch in batches]) for table in ("runs", "turns"))
    assert set(runs["ending"]) == {"completed"}
    for bot in ("python", "shell"):
        of_bot = turns.filter(pl.col("player") == bot)
        assert of_bot.height == 2 * 12 * 7
        assert set(of_bot["status"]) == {"moved"}
    pairs = turns.join(turns, on=["run_id", "round"], suffix="_other").filter(pl.col("agent") != pl.col("agent_other"))
    following = pairs.with_columns(round=pl.col("round") + 1).select(
        "run_id", "round", "agent", expected=pl.col("choice_other")
    )
    choices = pairs.with_columns(submitted=pl.col("action").str.json_path_match("$.choice")).join(
        following, on=["run_id", "round", "agent"], how="left"
    )
    mine = choices.filter(pl.col("player").is_in(["TitForTat", "python", "shell"]))
    assert (mine["submitted"] == mine["expected"].fill_null("cooperate")).all()
    outsiders = json.loads(runs.filter(pl.col("run_id") == "study:noisy:5:python:shell")["outsiders"][0])
    assert outsiders["python"]["files"] == {str(PYTHON): sha256(PYTHON)}
    assert outsiders["shell"]["files"] == {str(SHELL): sha256(SHELL)}


def sha256(file):
    return subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True).stdout.split()[0]


def test_the_python_bot_fishes_as_the_honest_scripted_player_does(playing):
    channels = ["promise", "report", "discuss", "chat"]
    base = {"n": 3, "rounds": 4, "channels": channels, "agents": ["honest_sustainable", "salami", "honest_sustainable"]}
    honest = playing.play({"plain": base})
    bot = Seated("bot", "process", {"process": f"{QUICK} {shlex.quote(str(PYTHON))}"})
    parameters = {**json.loads(honest["runs"]["parameters"][0]), "agents": ["bot", "salami", "bot"], "twins": []}
    shard = Shard("study", "plain", "seeds-0", "commons", parameters, (bot,), 30.0, (0,))
    [frames] = commons.play(shard)
    same = ("round", "phase", "agent", "action", "status", "catch", "report", "stock")
    assert frames["turns"].select(same).equals(honest["turns"].select(same))


# ── What a bot is told ───────────────────────────────────────────────────────────────────────────────────────────


def test_views_tell_matches_apart_and_neither_study_nor_condition(bots, tmp_path):
    heard = tmp_path / "heard"
    table = bots(f"while True: open({str(heard)!r}, 'a').write(read()); say(COOPERATE)", keep_alive=True)

    async def play():
        async with table:
            for run in ("study:plain:0:bot:other", "study:plain:1:bot:other"):
                players = {"agent_1": table.seat(run), "agent_2": Fair()}
                await referee_match(players, Parameters(rounds=3), 5.0)

    asyncio.run(play())
    views = [json.loads(line) for line in heard.read_text().splitlines()]
    matches = [view["matchId"] for view in views]
    assert len(views) == 6
    assert matches[0] == matches[1] == matches[2] != matches[3] == matches[4] == matches[5]
    assert "plain" not in heard.read_text()
    assert "study" not in heard.read_text()
    assert {key for view in views for key in view} - {"matchId"} == {
        "gameId", "you", "turnNumber", "round", "totalRounds", "roundsRemaining", "scores", "history", "isYourTurn",
    }  # fmt: skip


def test_a_bot_gets_no_keys_and_runs_where_the_workflow_runs(bots, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    told = tmp_path / "told"
    source = f"""
    open({str(told)!r}, "w").write(repr(dict(os.environ)) + os.getcwd())
    {COOPERATES}
    """
    assert ended(played(bots(source)))[0] is Ending.COMPLETED
    assert "secret" not in told.read_text()
    assert "Asia/Tokyo" in told.read_text()
    assert str(Path.cwd()) in told.read_text()


@LINUX
def test_a_bot_cannot_read_the_keys_of_the_process_that_asks_it(bots, tmp_path, contained):
    seen = tmp_path / "seen"
    source = f"""
    try:
        text = open("/proc/{os.getpid()}/environ").read()
    except OSError as error:
        text = type(error).__name__
    open({str(seen)!r}, "w").write(text)
    {COOPERATES}
    """
    assert ended(played(bots(source)))[0] is Ending.COMPLETED
    assert seen.read_text() == "PermissionError"


@pytest.fixture
def contained():
    """Skips where the system gives no namespaces to a user."""
    code = "import warden, sys; sys.exit(not warden._contain())"
    folder = str(Path(processes.__file__).parent)
    if subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": folder}, check=False).returncode:
        pytest.skip("no namespaces to be had here")


def test_in_the_fish_pool_a_rejected_action_is_asked_for_once_more_and_in_the_dilemma_it_is_not(bots):
    assert bots(COOPERATES).seat().repairs == 0
    assert bots(COOPERATES, game="commons").seat().repairs == 1


# ── Where one process serves match after match ───────────────────────────────────────────────────────────────────


def play_some(table, matches, rest=0.0):
    """Matches one after the other, `rest` s apart, all of which are played to the end."""

    async def play():
        async with table:
            for number in range(matches):
                players = {"agent_1": table.seat(f"run{number}"), "agent_2": Fair()}
                match = await referee_match(players, Parameters(rounds=2), 5.0)
                assert ended(match)[0] is Ending.COMPLETED
                await asyncio.sleep(rest)

    asyncio.run(play())


@pytest.mark.parametrize(("keep_alive", "processes_used"), [(False, 3), (True, 1)])
def test_a_match_has_a_process_of_its_own_unless_it_is_kept_alive(bots, tmp_path, keep_alive, processes_used):
    starts = tmp_path / "starts"
    play_some(bots(f"open({str(starts)!r}, 'a').write('x'); cooperate(99)", keep_alive=keep_alive), 3)
    assert starts.read_text() == "x" * processes_used


def test_a_bot_that_is_kept_alive_can_play_itself(bots):
    table = bots("cooperate(99)", keep_alive=True)

    async def play():
        async with table:
            players = {"agent_1": table.seat(agent="agent_1"), "agent_2": table.seat(agent="agent_2")}
            return await referee_match(players, Parameters(rounds=3), 5.0)

    assert ended(asyncio.run(play())) == (Ending.COMPLETED, None)


def test_a_late_answer_never_becomes_the_next_turns_action(bots):
    late = """
    read(); time.sleep(0.6); say('{"type": "choose", "choice": "defect"}')
    cooperate(99)
    """
    table = bots(late, keep_alive=True)

    async def play():
        async with table:
            player = table.seat()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await player.act({})
            await asyncio.sleep(0.5)
            return await player.act({})  # a new process, which answers this view and not the last one

    started = time.monotonic()
    assert json.loads(asyncio.run(play()))["choice"] == "defect"
    assert time.monotonic() - started > 1.3


def test_a_kept_bot_that_ends_between_two_matches_is_started_anew(bots):
    play_some(bots("cooperate(2)", keep_alive=True), 3, rest=0.5)


# ── Hostile bots ─────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = {
    "dies": ("read(); sys.exit(3)", "ended with exit code 3"),
    "ends well": ("read()", "ended with exit code 0"),
    "is killed": ("read(); os.kill(os.getpid(), 15)", "ended by signal 15"),
    "half a line": ("read(); os.write(1, COOPERATE[:9].encode()); sys.exit()", "code 0 in the middle of a line"),
    "a gigabyte line": ("read()\nwhile True: os.write(1, b'x' * 2**20)", "a line of more than 65536 bytes"),
    "NUL bytes": ("read(); say(COOPERATE + chr(0))", "not JSON"),
    "only NUL": ("read()\nwhile True: os.write(1, bytes(2**20))", "a line of more than 65536 bytes"),
    "deep JSON": ("read(); say('[' * 60000)", "nested too deeply"),
    "not UTF-8": ("read(); os.write(1, b'\\xff\\xfe\\n')", "not UTF-8"),
    "an empty line": ("read(); say('')", "not JSON"),
    "closes its output": ("os.close(1); time.sleep(99)", "closed its standard output"),
    "closes its input": ("os.close(0); time.sleep(99)", ""),
    "closes all pipes": ("os.closerange(0, 9); time.sleep(99)", ""),
    "answers twice": ("read(); say(COOPERATE + chr(10) + COOPERATE); time.sleep(99)", "more than one line"),
    "answers first": ("say(COOPERATE); time.sleep(99)", "before it had read the view"),
    "reads nothing": ("time.sleep(99)", "no action within"),
    "one byte a second": ("read()\nfor c in COOPERATE: os.write(1, c.encode()); time.sleep(1)", "no action within"),
    "ignores SIGTERM": ("signal.signal(15, signal.SIG_IGN); read(); time.sleep(99)", "no action within"),
    "spins": ("read()\nwhile True: pass", "no action within"),
    "errors without end": ("read()\nwhile True: os.write(2, b'e' * 2**20)", "16 MiB to its standard error"),
    "too much memory": ("read(); x = bytearray(2**28); time.sleep(99)", "exit code 1"),
    "memory by parts": (
        "read()\nfor _ in range(4): os.fork()\nx = bytearray(b'x') * (20 << 20); time.sleep(99)",
        "more than 128 MiB of memory",
    ),
    "too much time": (
        "resource.setrlimit(resource.RLIMIT_CPU, (1, 2)); read()\nwhile True: pass",
        "s of processor time",
    ),
    "leaves a child": ("read(); os.fork() or time.sleep(99); sys.exit(4)", "ended with exit code 4"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_bot_harms_nobody(bots, name, tmp_path):
    source, fault = HOSTILE[name]
    other = Fair()
    began = time.monotonic()
    match = played(bots(source, memory=128), other, turn_timeout=4.0 if name == "too much time" else 1.5)
    assert time.monotonic() - began < 8
    assert ended(match) == (Ending.VOID, None)
    [turn] = match.turns
    assert turn["agent_1"].status is (Status.TIMEOUT if "within" in turn["agent_1"].fault else Status.INVALID)
    assert fault in turn["agent_1"].fault
    assert "\n" not in turn["agent_1"].fault
    assert len(turn["agent_1"].fault) < 300
    assert turn["agent_2"].status is Status.MOVED  # the other player is not charged
    assert not left(tmp_path)


def left(folder):
    """Processes whose command names a file of the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder).encode() in entry.read_bytes():
                found.append(entry.parent.name)
    return found


def test_a_bot_that_speaks_between_two_turns_answers_no_question(bots):
    table = bots("cooperate(1); time.sleep(0.1); say(COOPERATE); time.sleep(99)")

    class Slow(Fair):
        async def act(self, view):
            await asyncio.sleep(0.5)
            return await super().act(view)

    match = played(table, Slow())
    assert ended(match) == (Ending.FORFEITED, "agent_2")
    assert "before it was asked" in match.turns[-1]["agent_1"].fault


@LINUX
@pytest.mark.parametrize("namespaces", [True, False])
def test_nothing_that_a_bot_started_outlives_its_match(bots, tmp_path, namespaces, monkeypatch, request):
    if namespaces:
        request.getfixturevalue("contained")
    else:
        without_namespaces(monkeypatch, tmp_path)
    source = """
    for leaves in (0, 1):
        if not os.fork():
            if leaves:
                leave()
            if os.fork():
                os._exit(0)
            signal.signal(15, signal.SIG_IGN)
            time.sleep(99)
    time.sleep(0.1)
    cooperate(99)
    """
    assert ended(played(bots(source))) == (Ending.COMPLETED, None)
    assert not left(tmp_path)


def without_namespaces(monkeypatch, tmp_path):
    """Wardens that are refused namespaces, as on many a system."""
    wrapper = tmp_path / "refused.py"
    folder = str(Path(processes.__file__).parent)
    wrapper.write_text(
        f"import os, sys; sys.path.append({folder!r})\nimport warden\n"
        "warden._contain = lambda: False\nwarden.main(sys.argv[1:])\nos._exit(0)\n"
    )
    monkeypatch.setattr(processes, "_WARDEN", wrapper)


# Bounded by itself, so that a test that fails harms no machine: 2^9 processes at most, each gone within five seconds.
FORKS = """
read()
signal.alarm(5)
for _ in range(9):
    os.fork() or leave()
    signal.alarm(5)
time.sleep(4)
"""


@LINUX
@pytest.mark.parametrize("namespaces", [True, False])
def test_a_bot_that_starts_processes_without_end_is_ended(bots, tmp_path, namespaces, monkeypatch, request):
    if namespaces:
        request.getfixturevalue("contained")
    else:
        without_namespaces(monkeypatch, tmp_path)
    match = played(bots(FORKS, memory=4096), turn_timeout=3.0)
    assert ended(match) == (Ending.VOID, None)
    fault = match.turns[0]["agent_1"].fault
    assert "more than 256 processes" in fault or "exit code 1" in fault  # a user's limit, which root does not have
    assert match.turns[0]["agent_2"].status is Status.MOVED
    assert not left(tmp_path)


@LINUX
@pytest.mark.parametrize("namespaces", [True, False])
def test_bots_end_when_the_workflow_is_killed(tmp_path, namespaces, request):
    if namespaces:
        request.getfixturevalue("contained")
    bot = tmp_path / "bot.py"
    bot.write_text(PRELUDE + "os.fork() or leave()\nos.fork()\ntime.sleep(99)\n")
    program = f"""
import asyncio, sys
from pathlib import Path
import pytest
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_process_players as tests
from fishpool.players.process import Bot, ProcessPlayer
from fishpool.seats import Seat
if not {namespaces}:
    tests.without_namespaces(pytest.MonkeyPatch(), Path({str(tmp_path)!r}))
player = ProcessPlayer(Bot({f"{QUICK} {bot}"!r}), Seat("run", 0, "agent_1", 0, ()), 0)
asyncio.run(player.act({{}}))
"""
    workflow = subprocess.Popen([sys.executable, "-c", program], cwd=REPOSITORY)
    until(lambda: len(left(bot)) >= 6)  # the warden, the keeper, and the four that the bot is by now
    workflow.kill()
    workflow.wait()
    until(lambda: not left(bot))


def until(true):
    for _ in range(100):
        if true():
            return
        time.sleep(0.05)
    pytest.fail("in vain")


def test_after_many_matches_nothing_is_left(bots, tmp_path):
    table = bots(command="sh -c 'while read -r view; do echo \"$1\"; done' sh " + shlex.quote(COOPERATE))

    async def play():
        async with table:
            for match in range(100):
                players = {"agent_1": table.seat(f"run{match}"), "agent_2": Fair()}
                await referee_match(players, Parameters(rounds=1), 5.0)
                if match == 1:
                    counts.append(open_files())
            counts.append(open_files())

    counts = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    asyncio.run(play())
    assert counts[0] == counts[1]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024
    with pytest.raises(ChildProcessError):  # no child, so no zombie
        os.waitpid(-1, os.WNOHANG)


def open_files():
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


def test_the_clock_of_the_other_runs_only_for_itself(bots):
    """The turn of a player beside a hostile one takes what it takes beside a quiet one."""

    class Timed(Fair):
        async def act(self, view):
            began = time.monotonic()
            reply = await super().act(view)
            self.waited.append(time.monotonic() - began)
            return reply

    for name in ("a gigabyte line", "errors without end", "memory by parts"):
        other = Timed()
        played(bots(HOSTILE[name][0], memory=128), other, turn_timeout=1.5)
        assert other.waited[-1] < 0.5


def test_a_bot_that_breaks_never_stops_the_run(bots, tmp_path):
    """In the records of a shard: its matches are forfeited or void, all others are played."""
    file = tmp_path / "breaks.py"
    file.write_text(PRELUDE + "cooperate(2)\nread(); print('my last words', file=sys.stderr, flush=True); 1 / 0\n")
    players = (
        Seated("TitForTat", "scripted", {"strategy": "TitForTat"}),
        Seated("breaks", "process", {"process": f"{QUICK} {shlex.quote(str(file))}"}),
        Seated("good", "process", {"process": f"{QUICK} {shlex.quote(str(PYTHON))}", "keep_alive": True}),
    )
    parameters = {"rounds": 4, "noise": 0.0, "lane": "standard", "agent_ids": ["ann", "bob"]}
    shard = Shard("study", "plain", "seeds-0", "prisoners_dilemma", parameters, players, 30.0, (0,))
    [frames] = runner.play(shard, Site(logs=str(tmp_path / "logs")))
    endings = dict(frames["runs"].select("run_id", "ending").rows())
    assert {run.removeprefix("study:plain:0:"): ending for run, ending in endings.items()} == {
        "TitForTat:TitForTat": "completed",
        "TitForTat:breaks": "forfeited",
        "TitForTat:good": "completed",
        "breaks:breaks": "forfeited",
        "breaks:good": "forfeited",
        "good:good": "completed",
    }
    reason = frames["runs"].filter(pl.col("run_id").str.ends_with("breaks:good"))["end_reason"][0]
    assert "ended with exit code 1" in reason
    log = tmp_path / "logs" / re.search(r"see the log (\S+?)\)", reason)[1]
    assert log.read_text().splitlines().count("my last words") == 4
    assert log.read_text().count("--- study:plain:0:breaks:breaks ") == 2
    assert "ZeroDivisionError" in log.read_text()


def test_in_the_fish_pool_the_next_turn_has_a_new_process(bots):
    table = bots("cooperate(1); read(); sys.exit(1)", game="commons")

    async def play():
        async with table:
            player = table.seat()
            said = [await player.act({})]
            with pytest.raises(processes.Fault):
                await player.act({})
            said.append(await player.act({}))
            await player.close()
            return said

    assert asyncio.run(play()) == [COOPERATE.encode()] * 2


def test_a_log_holds_nothing_that_steers_a_terminal_and_has_an_end(bots, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_LOGGED", 1000)
    table = bots("os.write(2, b'\\x1b[2J\\xff' + b'e' * 400); cooperate(99)")
    play_some(table, 4)
    log = (tmp_path / "logs/study/plain/seeds-0/bot.log").read_text()
    assert r"\x1b[2J\xff" in log
    assert "\x1b" not in log
    assert len(log) < 1100
    assert log.endswith("--- the rest is left out: this log holds at most 1000 bytes\n")


# ── Commands ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_shell_reads_a_command(bots, tmp_path):
    spoilt = tmp_path / "spoilt"
    command = f"{QUICK} -c 'import sys; sys.exit(len(sys.argv))' ; touch {spoilt} $(touch {spoilt}) > {spoilt}"
    match = played(bots(command=command))
    assert "exit code 8" in match.turns[0]["agent_1"].fault
    assert not spoilt.exists()


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
def test_a_command_is_its_words(words):
    if words[0]:
        assert parse(shlex.join(words)) == tuple(words)


@pytest.mark.parametrize("command", ["", "  ", "''", "bot 'x", "bot\\", "bot \0"])
def test_what_is_no_command(command):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        parse(command)


def test_the_files_of_a_command_are_those_that_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("bot.py", "table.csv", "python3"):
        Path(name).write_text("")
    assert files_of("python3 bot.py --table table.csv bot.py missing.csv") == [Path("bot.py"), Path("table.csv")]
    assert files_of("./bot.py") == [Path("bot.py")]
    assert files_of("python3 " + "x" * 10_000) == []


def test_a_program_that_is_not_there_stops_the_job(bots):
    with pytest.raises(Stop, match="player bot: found no program 'no-such-bot'"):
        played(bots(command="no-such-bot"))


def test_a_file_of_a_bot_that_cannot_be_read_is_named(bots):
    with pytest.raises(Stop, match=r"^/proc/self/mem: a bot's `process` names this file, which cannot be read"):
        played(bots(command="cat /proc/self/mem"))


def test_a_program_that_cannot_be_started_is_a_fault_of_the_bot(bots, tmp_path):
    file = tmp_path / "bot"
    file.write_text("#!/no/such/interpreter\n")
    file.chmod(0o755)
    match = played(bots(command=str(file)))
    assert "could not be started: No such file" in match.turns[0]["agent_1"].fault
