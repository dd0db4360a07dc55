"""A person at the terminal: whole games through the real command, over pipes and over a terminal of its own."""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishpool import records, stale, study
from fishpool.games import commons
from fishpool.games.prisoners_dilemma import PAYOFF, Choice
from fishpool.players import person
from fishpool.screen import visible
from fishpool.tabulate import tabulate
from fishpool.terminal import Console

ROOT = Path(__file__).resolve().parents[1]
CHAT = "channels=[promise,report,discuss,chat]"


def command(*arguments):
    return [sys.executable, "-m", "fishpool.cli", "play", *map(str, arguments)]


def play(tmp_path, *arguments, typed="", code=0):
    """The lines that a game printed, everything typed being there from the start; None means that no input is there."""
    done = subprocess.run(
        [*command(*arguments), "--results", str(tmp_path)], cwd=ROOT, input=typed, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr if code == 0 else "") == (code, ""), done.stderr
    return (done.stdout if code == 0 else done.stderr).splitlines()


def recorded(tmp_path, game, seed=1):
    """The tables of one game, through the pipeline's own reader."""
    [shard] = (tmp_path / "jsonl" / f"played_{game}").glob(f"*/seeds-{seed}")
    tables = {}
    for table in records.GAME_TABLES[game]:
        tabulate(game, table, [shard], tmp_path / f"{table}.parquet")
        tables[table] = pl.read_parquet(tmp_path / f"{table}.parquet")
    return tables


class Terminal:
    """The command at a terminal of its own."""

    def __init__(self, *arguments, columns=80, **environment):
        plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.chdir(ROOT)
            words = command(*arguments)
            os.execve(words[0], words, plain | {"TERM": "xterm", "COLUMNS": str(columns)} | environment)
        self.text = self.unseen = ""

    def until(self, words, seconds=20):
        """Read until these words come after whatever was awaited before."""
        end = time.monotonic() + seconds
        while words not in self.unseen:
            left = end - time.monotonic()
            ready = left > 0 and select.select([self.fd], [], [], left)[0]
            assert ready, f"{words!r} never came after {self.unseen!r}"
            found = self.read()
            assert found, f"the game ended before {words!r} came: {self.unseen!r}"
            self.unseen += found
        self.unseen = self.unseen.partition(words)[2]

    def read(self):
        try:
            found = os.read(self.fd, 4096).decode("utf-8", "replace")
        except OSError:  # Linux says so where the other side of a terminal is closed
            found = ""
        self.text += found
        return found

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """The exit code, once all has been read."""
        while self.read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


# ── The prisoner's dilemma ───────────────────────────────────────────────────────────────────────────────────────

WORDS = {"c": Choice.COOPERATE, "Coop": Choice.COOPERATE, "COOPERATE": Choice.COOPERATE}
WORDS |= {"d": Choice.DEFECT, " Defect ": Choice.DEFECT}


def test_twenty_rounds_against_tit_for_tat_are_scored_by_the_payoffs(tmp_path):
    typed = [list(WORDS)[i % 7 % 5] for i in range(20)]
    mine = [WORDS[word] for word in typed]
    theirs = [Choice.COOPERATE, *mine[:-1]]
    points = [sum(PAYOFF[pair] for pair in zip(*sides, strict=True)) for sides in ((mine, theirs), (theirs, mine))]
    lines = play(tmp_path, "prisoners_dilemma", "--against", "TitForTat", "--seed", 9, typed="\n".join(typed))
    assert [line.split() for line in lines[-3:-1]] == [
        ["agent_1", "person", str(points[0])],
        ["agent_2", "TitForTat", str(points[1])],
    ]
    letters = ["you      " + " ".join(choice[0].upper() for choice in mine)]
    assert [line for line in lines if line.startswith("you      ")][-1:] == letters
    tables = recorded(tmp_path, "prisoners_dilemma", 9)
    run = tables["runs"].row(0, named=True)
    assert run["run_id"] == "played_prisoners_dilemma:plain:9:person:TitForTat"
    assert (run["study"], run["ending"], run["rounds"], run["seed"]) == ("played_prisoners_dilemma", "completed", 20, 9)
    assert json.loads(run["outsiders"]) == {"person": {"clock": False, "person": True}}
    turns = tables["turns"].filter(pl.col("player") == "person")
    assert turns["choice"].to_list() == mine
    assert turns["status"].unique().to_list() == ["moved"]
    assert tables["turns"].group_by("agent").agg(pl.col("payoff").sum()).sort("agent")["payoff"].to_list() == points


def test_a_slip_is_asked_again_and_is_never_a_move(tmp_path):
    slips = ["", "x", "co", "yes", "1", "c d", "cooperat", '{"type": "resign"}', "\x1b[31mc", "ç", "d" * 500]
    lines = play(
        tmp_path, "prisoners_dilemma", "--against", "Defector", "--rounds", 2, typed="\n".join(["d", *slips, "?", "d"])
    )
    assert sum("is no choice" in line for line in lines) == len(slips)
    assert not any("\x1b" in line for line in lines)
    turns = recorded(tmp_path, "prisoners_dilemma")["turns"]
    assert turns["choice"].to_list() == ["defect"] * 4
    assert turns["attempts"].to_list() == [1] * 4
    assert (
        sum("you cooperate" in line for line in lines) == 2
    )  # the payoffs at the start, and where they were asked for


@pytest.mark.parametrize(("typed", "rounds"), [("c\nresign\n", 1), ("resign", 0), ("c\n", 1), ("", 0)])
def test_resignation_and_the_end_of_the_input_lose_the_match(tmp_path, typed, rounds):
    lines = play(tmp_path, "prisoners_dilemma", "--against", "Cooperator", typed=typed)
    assert ("The input has ended, so you resign." in lines) is ("resign" not in typed)
    assert "The game is over, you lose: agent_1 resigned." in lines
    run = recorded(tmp_path, "prisoners_dilemma")["runs"].row(0, named=True)
    assert (run["ending"], run["winner"], run["rounds"]) == ("resigned", "agent_2", rounds)


def test_noise_that_turned_a_choice_is_told(tmp_path):
    lines = play(
        tmp_path, "prisoners_dilemma", "--against", "Cooperator", "--noise", 0.5, "--rounds", 12, typed="c\n" * 12
    )
    turns = recorded(tmp_path, "prisoners_dilemma")["turns"].filter(pl.col("player") == "person")
    flipped = turns["flipped"].to_list()[:-1]  # the last round is told by the records alone
    told = [line for line in lines if line.startswith("You defected (you chose to cooperate")]
    assert len(told) == sum(flipped) > 0


def test_each_game_of_a_condition_has_a_seed_of_its_own(tmp_path):
    match = ["prisoners_dilemma", "--against", "Random", "--rounds", 1]
    for _ in range(2):
        play(tmp_path, *match, typed="c")
    runs = pl.concat(recorded(tmp_path, "prisoners_dilemma", seed)["runs"] for seed in (1, 2))
    assert runs["seed"].to_list() == [1, 2]
    assert runs["condition"].to_list() == ["rounds-1"] * 2
    [said] = play(tmp_path, *match, "--seed", 2, code=2)
    assert said.startswith("--seed 2 has been played already (")
    [said] = play(tmp_path, *match, "--noise", 0.1, "--condition", "rounds-1", code=2)
    assert said.endswith("/rounds-1 holds games with other parameters; name another --condition")


@pytest.mark.parametrize(("game", "typed"), [("prisoners_dilemma", "c"), ("commons", "1\n1\n1\n1")])
def test_a_study_of_recorded_games_takes_them_up_and_nothing_calls_them_stale(tmp_path, game, typed):
    opponent = {"prisoners_dilemma": "Random", "commons": "grim"}[game]
    play(tmp_path, game, "--against", opponent, "--rounds", 1, typed=typed)
    taken = {"results": str(tmp_path), "studies": {f"played_{game}": {"game": game, "recorded": True}}}
    config = study.load(taken)
    [condition] = config.studies[0].conditions
    assert [shard.name for shard in config.studies[0].shards(condition)] == ["seeds-1"]
    assert stale.stale_files(tmp_path, study.load_files([])) == []


# ── The fish pool ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_person_takes_a_seat_at_the_pool_through_all_its_phases(tmp_path):
    typed = [
        "7", "1O", "101", "-1", "10", "I \x1b[2J promise \u202eten",
        "12.5", "12",
        "nothing", "none", "no report",
        "x" * 281, "nobody", "agent_9", "agent_2, agent_3", "agent_2=80 agent_3=101", "agent_2=80",
        "5", "none", "", "5", "3", "", "", "", "",
    ]  # fmt: skip
    lines = play(
        tmp_path, "commons", "--against", "2*salami", "grim", "--rounds", 2, "--set", CHAT, "audit_q=1", "fine=2",
        typed="\n".join(typed) + "\n",
    )  # fmt: skip
    tables = recorded(tmp_path, "commons")
    turns = tables["turns"].filter(pl.col("player") == "person")
    assert turns["phase"].to_list() == ["pledge", "catch", "report", "discuss"] * 2
    assert turns["status"].unique().to_list() == ["moved"]
    assert turns["promise"].drop_nulls().to_list() == [10]
    assert turns["intention"].drop_nulls().to_list() == [7, 5]
    assert turns["demand"].drop_nulls().to_list() == [12, 5]
    assert turns["report"].drop_nulls().to_list() == [3]
    said = [json.loads(action)["message"] for action in turns.filter(pl.col("phase") == "discuss")["action"]]
    assert said == ["nobody", ""]
    trust = json.loads(turns.filter((pl.col("phase") == "discuss") & (pl.col("round") == 1))["trust"][0])
    assert trust == {"agent_2": 80}
    assert json.loads(turns["accuse"].drop_nulls()[0]) == ["agent_2", "agent_3"]
    claims = tables["claims"].filter(pl.col("agent") == "agent_1").select("kind", "claimed", "actual", "broken").rows()
    assert claims == [("promise", 10, 12, True), ("report", 3, 4, True)]  # grim took the rest
    assert json.loads(tables["runs"]["agents"][0]) == {
        "agent_1": "person", "agent_2": "salami", "agent_3": "salami", "agent_4": "grim",
    }  # fmt: skip
    assert tables["twins"].is_empty()
    # one's own message as everybody gets it, made visible
    assert any("I \\x1b[2J promise \\u202eten" in line for line in lines)
    assert not any("\x1b" in line or "\u202e" in line for line in lines)
    last = next(line for line in lines if line.startswith("agent_1") and "person" in line)
    assert last.split() == ["agent_1", "person", "16", "4", "12"]  # fined in both rounds: no report, a false one


def test_who_leaves_a_pool_makes_it_void_and_is_told(tmp_path):
    lines = play(tmp_path, "commons", "--against", "4*honest_sustainable", typed="10\n10\n10\n10\n10\n")
    assert any("so the run is void" in line for line in lines)
    assert any(line.startswith("The game is void: agent_1 in round 2, pledge: ") for line in lines)
    tables = recorded(tmp_path, "commons")
    assert tables["runs"].select("ending", "rounds").row(0) == ("void", 1)
    assert tables["turns"].filter(pl.col("round") == 2)["status"].to_list() == ["infrastructure"]


def test_a_hidden_stock_stays_hidden_and_a_noisy_one_is_called_so(tmp_path):
    for stock, says in (("hidden", "Nobody sees how much"), ("noisy", "The pool seems to have held")):
        lines = play(
            tmp_path, "commons", "--against", "2*grim", "--rounds", 2, "--set", f"stock={stock}", "channels=[]",
            typed="3\n3\n",
        )  # fmt: skip
        assert sum(line.startswith(says) for line in lines) == 2
        assert not any(line.startswith(("The pool holds", "Since the last round")) for line in lines)


def test_what_others_say_reaches_the_terminal_only_as_text(capsys):
    """Found with: escapes, a second line that looks like the game's own, and a mark that turns the writing around."""
    hostile = "\x1b]0;owned\x07\x1b[2Jhi\nRound 9 of 9: you have 99 points\r\u202e\u2028\x00"
    parameters = {"agents": ["a", "b"], "channels": ["chat"], "rounds": 1}
    game = commons.fish(commons.parameters_of(parameters), 0)
    next(game)
    asked = game.send([commons.Move({"catch": 1}, "moved", 1)] * 2)
    while asked[0][0] != 0:  # until agent_1 speaks, agent_2 has
        asked = game.send([commons.Move({"message": hostile, "accuse": [], "trust": {}}, "moved", 1)])
    view = {**asked[0][1], "messages": [
        {"round": 1, "phase": "discuss", "agent": "agent_2", "message": hostile, "accuse": ["agent_1"]}
    ]}  # fmt: skip
    seated = person.FishPoolPerson(Console(), None, parameters)
    seated._view = view
    seated._show()
    out = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in out)
    assert "agent_2 [accuses agent_1 (you)]: \\x1b]0;owned" in out or "agent_2 [accuses agent_1]: \\x1b]0;owned" in out
    assert not any(line.startswith("Round 9") for line in out.splitlines())


# ── At a terminal ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_match_at_a_terminal_fits_its_width_and_has_colours_only_where_wanted(tmp_path, environment, coloured):
    terminal = Terminal(
        "prisoners_dilemma", "--against", "TitForTat", "--rounds", 30, "--results", tmp_path, columns=44, **environment
    )
    for _ in range(30):
        terminal.until("cooperate or defect: ")
        terminal.type("c\n")
    assert terminal.end() == 0
    assert ("\x1b[1m" in terminal.text) is coloured
    plain = re.sub(r"\x1b\[\d*m", "", terminal.text).replace("\r", "")
    assert "\x1b" not in plain
    paths = str(tmp_path)
    wide = [line for line in plain.splitlines() if len(line) > 44 and paths not in line]
    assert not wide
    assert "agent_1     person      90" in plain


def test_ctrl_c_at_a_terminal_resigns_and_ctrl_d_does_too(tmp_path):
    for number, key in ((1, "\x03"), (2, "\x04")):
        terminal = Terminal("prisoners_dilemma", "--against", "Grudger", "--results", tmp_path)
        terminal.until("cooperate or defect: ")
        terminal.type("c\n")
        terminal.until("cooperate or defect: ")
        terminal.type(key)
        terminal.until("so you resign")
        assert terminal.end() == 0
        run = recorded(tmp_path, "prisoners_dilemma", number)["runs"].row(0, named=True)
        assert (run["ending"], run["winner"], run["rounds"]) == ("resigned", "agent_2", 1)


def test_a_terminal_that_goes_away_resigns(tmp_path):
    terminal = Terminal("prisoners_dilemma", "--against", "Grudger", "--results", tmp_path)
    terminal.until("cooperate or defect: ")
    os.kill(terminal.child, signal.SIGINT)
    terminal.until("so you resign")
    assert terminal.end() == 0


def test_a_clock_that_was_asked_for_counts_and_a_late_line_answers_nothing(tmp_path):
    config = tmp_path / "lanes.yaml"
    config.write_text("lanes: {quick: {turn_timeout: 1.5}}\n", encoding="utf-8")
    terminal = Terminal(
        "commons", "--against", "2*grim", "--rounds", 2, "--lane", "quick", "--set", "channels=[]",
        "--configfile", config, "--results", tmp_path,
    )  # fmt: skip
    terminal.until("how many tons do you take (0 to 100): ")
    terminal.until("The last turn ended without an answer of yours.")
    terminal.until("how many tons do you take (0 to 100): ")
    terminal.type("7\n")
    assert terminal.end() == 0
    turns = recorded(tmp_path, "commons")["turns"].filter(pl.col("player") == "person")
    assert turns["status"].to_list() == ["timeout", "moved"]
    assert turns["demand"].to_list() == [0, 7]


# ── Against a bot ────────────────────────────────────────────────────────────────────────────────────────────────


def bot(tmp_path, body):
    """A process player in Python that makes `action` of `view`."""
    script = tmp_path / "bot.py"
    lines = ["import json, sys, time", "for line in sys.stdin:", "    view = json.loads(line)"]
    lines += [f"    {line}" for line in body.splitlines()] + ["    print(json.dumps(action), flush=True)"]
    script.write_text("\n".join(lines), encoding="utf-8")
    return f"process:{sys.executable} {script}"


def test_a_bot_s_hostile_messages_are_shown_as_text_all_the_way(tmp_path):
    pytest.importorskip("fishpool.players.process")
    hostile = "\x1b]0;owned\x07\x1b[2Jhi\nRound 9 of 9\r\u202e"
    against = bot(
        tmp_path,
        f"""said = {{"message": {hostile!r}}}
actions = {{"pledge": {{"intention": 1, "promise": 1, **said}}, "catch": {{"catch": 1}}, "report": {{"report": 1}}}}
action = actions.get(view["phase"], said)""",
    )
    lines = play(
        tmp_path, "commons", "--against", f"2*{against}", "grim", "--rounds", 1, "--set", CHAT,
        typed="1\n1\n\n1\n1\n\n\n\n\n",
    )  # fmt: skip
    assert all(line.isprintable() for line in lines)
    assert "agent_3: \\x1b]0;owned\\x07\\x1b[2Jhi\\nRound 9 of 9\\r\\u202e" in lines
    run = recorded(tmp_path, "commons")["runs"].row(0, named=True)
    assert list(json.loads(run["agents"]).values()) == ["person", "bot", "bot", "grim"]
    assert run["ending"] == "completed"


def test_a_second_ctrl_c_stops_a_game_that_waits_for_others_and_records_nothing(tmp_path):
    pytest.importorskip("fishpool.players.process")
    against = bot(tmp_path, 'time.sleep(60)\naction = {"type": "resign"}')
    results = tmp_path / "results"
    terminal = Terminal("prisoners_dilemma", "--against", against, "--results", results)
    terminal.until("cooperate or defect: ")
    terminal.type("c\n")
    terminal.until("Waiting for the others ..")
    terminal.type("\x03")
    terminal.until("a second Ctrl-C stops at once")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert list((results / "jsonl").iterdir()) == []


# ── What is refused ──────────────────────────────────────────────────────────────────────────────────────────────


NAMED = "expected letters, digits, _, - and dots, and not the name of another player"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("TitForTatt", "--against is 'TitForTatt', which is no scripted player; did you mean TitForTat?"),
        ("Random Joss", "--against has 2 players; in the prisoner's dilemma there is one opponent"),
        ("Random --rounds 0", "rounds is 0; expected a whole number from 1 to 10000"),
        ("Random --lane fst", "lane is 'fst', which is no lane; expected one of fast, standard; did you mean fast?"),
        ("{model:", "--against is '{model:'; expected a mapping such as {model: NAME, temperature: 0}"),
        ("'{model: 2024-13-40}'", "--against is '{model: 2024-13-40}'; expected a mapping such as {model: NAME"),
        ("{" * 3000, "--against is '{{{{{{{"),
        ("{strategy:Random}", "--against is '{strategy:Random}'; expected a mapping such as {model: NAME"),
        ("'{model: x, temperature: hot}'", "--against.temperature is the text 'hot'; expected a number"),
        ("Random --condition a/b", "--condition is 'a/b'; expected at most 64 letters, digits, _ and -"),
        ("Random --name a:b", f"--name is 'a:b'; {NAMED}"),
        ("Random --name Random", f"--name is 'Random'; {NAMED}"),
        ("Random --set rounds", "--set: found 'rounds'; expected KEY=VALUE, such as rounds=5"),
        ("axelrod:Darwin", "--against is 'axelrod:Darwin', which "),
    ],
)
def test_a_match_that_cannot_be_is_refused_in_a_sentence_and_leaves_nothing(tmp_path, arguments, sentence):
    [said] = play(tmp_path, "prisoners_dilemma", "--against", *shlex.split(arguments), code=2)
    assert said.startswith(sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("3*salamy", "--against is '3*salamy', which is no scripted player; expected one of honest_sustainable, "),
        ("grim --set capcity=5", "capcity is an unknown key"),
        (
            "4*grim --set capacity=4 collapse=1",
            "agents has 5 players for 4 tons; there cannot be more agents than fish",
        ),
        ("grim --set agents=[a", "--set has agents; expected who fishes with you after --against"),
        ("grim --name grim", f"--name is 'grim'; {NAMED}"),
    ],
)
def test_a_pool_that_cannot_be_is_refused_in_a_sentence_and_leaves_nothing(tmp_path, arguments, sentence):
    [said] = play(tmp_path, "commons", "--against", *arguments.split(), code=2)
    assert said.startswith(sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", ["-1", 2**63, "1" * 400, "1.0", "²"])
def test_a_seed_that_no_record_can_hold_is_refused_before_the_first_turn(tmp_path, seed):
    *_, said = play(tmp_path, "prisoners_dilemma", "--against", "Random", "--seed", seed, code=2)
    assert said.startswith(
        "fishpool play: error: argument --seed: expected a whole number from 0 to 9223372036854775807"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_bot_without_a_command_is_refused_before_it_is_named(tmp_path):
    assert play(tmp_path, "commons", "--against", "process:", "salami", code=2)[0].startswith("--against.process is ''")


# ── Reading lines ────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.text(max_size=12) | st.sampled_from(["c", "D", "resign", "coop"]))
def test_a_line_is_a_choice_only_by_its_words(line):
    legal = {"c", "coop", "cooperate", "d", "defect", "resign"}
    if line.lower() in legal:
        assert str(person.read_choice(line))[0] == line.lower()[0]
    else:
        with pytest.raises(ValueError, match="is no choice"):
            person.read_choice(line)


@given(st.integers(-5, 300).map(str) | st.text(max_size=8), st.integers(0, 100))
def test_a_line_is_a_number_of_tons_only_as_digits_in_range(line, most):
    legal = re.fullmatch("[0-9]{1,9}", line) and int(line) <= most
    if legal:
        assert person.read_tons(line, most) == int(line)
    else:
        with pytest.raises(ValueError, match="no whole number of tons"):
            person.read_tons(line, most)


@given(st.text())
def test_whatever_is_shown_is_printable_and_tells_apart_what_is_hidden(text):
    shown = visible(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()
