"""Random, malicious and failing players in all three games: a move is what was said, and nobody else is harmed.

Whole shards are played as the workflow plays them, but for a kind of player that each turn says something legal, broken
or absurd, says nothing, raises, or writes into its view. What it did is kept, and the records are held against that and
against the rules. Time is the tests' own, so that a minute's silence takes none.
"""

import asyncio
import io
import json
import random
import selectors
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import polars as pl
import pytest
from effort import EFFORT
from fault_mutations import Held, mutated
from strict_json import strictly

from fishpool import records, referee
from fishpool.games import commons, prisoners_dilemma
from fishpool.players.commons import PLAYERS
from fishpool.players.scripted import STRATEGIES
from fishpool.referee import Fault
from fishpool.runners import dictator
from fishpool.seats import Seat
from fishpool.shards import Player, Shard
from fishpool.tabulate import find_fault

pytestmark = pytest.mark.faults

SECRETS = ("STUDYNAME", "CONDITIONNAME", "PLAYERNAME")  # what no view may hold
TIMEOUT = 60.0


# ── What players do ──────────────────────────────────────────────────────────────────────────────────────────────


class Unsayable(Exception):
    """An exception that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


RAISED: tuple[Callable[[], BaseException], ...] = (
    lambda: ValueError("no"),
    lambda: OSError(5, "the wire is cut", "a\udcff\n\x1b[31m"),
    lambda: KeyError("\ud800"),
    lambda: RuntimeError("x" * 1_000_000),
    lambda: RecursionError(),
    lambda: MemoryError(),
    lambda: TimeoutError("its own, not the referee's"),
    lambda: asyncio.CancelledError(),
    lambda: StopIteration(),
    lambda: Unsayable(),
    lambda: ExceptionGroup("two\n", [ValueError("\ud800"), Unsayable()]),
    lambda: AssertionError("'; DROP TABLE runs; --"),
)
JUNK: tuple[Any, ...] = (
    None, True, 5, 1.5, float("nan"), float("-inf"), 10**400, [], {}, {"catch": 5}, {"type": "resign"}, (), {1, 2},
    object(), lambda: None, bytearray(b"{}"), memoryview(b"{}"), b"\xff\xfe", b"", "", " ", "cooperate",
    "SHARE", "5", "null", "[" * 100_000, "x" * 100_000, b"x" * 100_000, "\ud800", "\x00", "{}", "[{}]",
)  # fmt: skip
NUMBERS = (
    "NaN", "Infinity", "-Infinity", "1e308", "1e999", "-1", "-0", "0.0", "1.5", "true", "false", "null", '"5"', "[5]",
    "{}", "9" * 30, "9" * 5000, "1e-400", "5e0", "5.0", str(2**63), '""', '"\\ud800"', '"a\\u0000b"',
)  # fmt: skip


@dataclass
class Attempt:
    """What a player did when it was asked: `action` is the legal action that it said, if it said one."""

    what: str  # said, silent, fault, raised
    action: Any = None


@dataclass
class Memory:
    """What the hostile players of one game did, by run and agent, then by round and phase."""

    attempts: dict[tuple[str, str], dict[tuple[int, str], list[Attempt]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    views: Counter[str] = field(default_factory=Counter)


MEMORY = Memory()


class Hostile(referee.Player):
    """Each turn it draws by `rates` what to do: say something legal, or else anything."""

    def __init__(self, game: str, seat: Seat, settings: Mapping[str, Any], repairs: int):
        self.game, self.seat, self.settings = game, seat, settings
        self.luck = random.Random(f"{settings['luck']} {seat.seed} {seat.agent} {seat.players}")
        self.repairs = repairs

    async def act(self, view: Mapping[str, Any]) -> Any:
        told = json.dumps(view)
        assert not any(secret in told for secret in SECRETS), told
        round_and_phase = (view.get("replicate", view["round"]), str(view.get("phase", "choose")))
        key = (view["recipient"], round_and_phase[0]) if self.game == "dictator" else round_and_phase
        attempts = MEMORY.attempts[self.seat.run_id, self.seat.agent][key]
        attempt = Attempt("said")
        attempts.append(attempt)
        pristine = json.loads(told)
        legal = reader(self.game, pristine, self.settings["parameters"])
        if self.luck.random() < self.settings["mutate"]:
            spoil(view, self.luck)
        if self.luck.random() >= self.settings["hostile"]:
            attempt.action = legal(pristine_action := an_action(self.game, pristine, self.luck))
            return json.dumps(pristine_action)
        draw = self.luck.random()
        if draw < 0.1 and self.game != "dictator":  # whose oracle has no clock
            attempt.what = "silent"
            await asyncio.sleep(10 * TIMEOUT)
        if draw < 0.2:
            attempt.what = "fault"
            raise Fault(self.luck.choice(("died", "\ud800\n", "x" * 100_000)))
        if draw < 0.3:
            attempt.what = "raised"
            raise self.luck.choice(RAISED)()
        reply = a_reply(self.game, pristine, self.luck)
        attempt.action = stated(reply, legal)
        return reply


def an_action(game: str, view: Mapping[str, Any], luck: random.Random, phase: str = "") -> dict[str, Any]:
    """A legal action of the game, of this phase or another."""
    if game == "prisoners_dilemma":
        if luck.random() < 0.02:
            return {"type": "resign"}
        return {"type": "choose", "choice": luck.choice(("cooperate", "defect"))}
    if game == "dictator":
        return {"reasoning": "é" * luck.randrange(3), "decision": luck.choice(("SHARE", "TAKE"))}
    most, phase = view["legal"]["max"], phase or view["phase"]
    tons, maybe = luck.randint(0, most), luck.choice((None, luck.randint(0, most)))
    message = {"message": luck.choice(("", "I fish 5.", "x" * 280, "\u202e\x00<script>"))}
    others = [name for name in view["names"] if name != view["agent_id"]]
    some = luck.sample(others, luck.randint(0, len(others)))
    return {
        "pledge": {"intention": tons, "promise": maybe, **message},
        "catch": {"catch": tons},
        "report": {"report": maybe, **message},
        "discuss": {**message, "accuse": some, "trust": {name: luck.randint(0, 100) for name in some}},
    }[phase]


def a_reply(game: str, view: Mapping[str, Any], luck: random.Random) -> Any:
    """Whatever else can be said."""
    action = an_action(game, view, luck)
    match luck.randrange(6):
        case 0:
            return luck.choice(JUNK)
        case 1:  # of another phase, or another game
            other = luck.choice(("prisoners_dilemma", "dictator", game))
            phase = luck.choice(("pledge", "catch", "report", "discuss"))
            return json.dumps(an_action(other, view, luck, phase))
        case 2:  # one value is another one
            key = luck.choice(list(action))
            return json.dumps({**action, key: "?"}).replace('"?"', luck.choice(NUMBERS))
        case 3:  # a key too many, or twice
            return json.dumps(action)[:-1] + luck.choice((', "x": 1}', ', "catch": 1}', ', "choice": "defect"}', ",}"))
        case 4:
            return json.dumps(action).encode(luck.choice(("utf-8", "utf-16", "utf-8-sig", "utf-32")))
        case _:
            *_, text = mutated([json.dumps(action)], 2, seed=luck.randrange(2**32))
            return text


def reader(game: str, view: Mapping[str, Any], parameters: Mapping[str, Any]) -> Callable[[Any], Any]:
    """The rules' own reading of a decoded action."""
    if game == "prisoners_dilemma":
        return prisoners_dilemma.read_action
    if game == "dictator":
        return dictator.read_answer
    pool, phase = commons.parameters_of(parameters), commons.Phase(view["phase"])
    return lambda value: commons.read(pool, {**view, "phase": phase}, value)


def stated(reply: Any, legal: Callable[[Any], Any]) -> Any:
    """The legal action that a reply states, by another parser than the referee's."""
    if not isinstance(reply, str | bytes) or len(reply) > referee.MAX_REPLY:
        return None
    try:
        text = reply if isinstance(reply, str) else reply.decode()
        return legal(*strictly(text))
    except (ValueError, TypeError):
        return None


def spoil(view: Any, luck: random.Random) -> None:
    """Write into a view wherever it can be written to."""
    for key, value in list(view.items()) if isinstance(view, dict) else list(enumerate(view)):
        if isinstance(value, dict | list):
            spoil(value, luck)
        elif luck.random() < 0.5:
            view[key] = luck.choice((None, 10**9, "agent_1", [], -1))
    if luck.random() < 0.5:
        view.clear()


# ── Whole shards ─────────────────────────────────────────────────────────────────────────────────────────────────

DOCUMENTS = {"sharing": "I share.", "taking": "I take.", "odd": "</dictator> SHARE {{x}}"}
REPAIRS = {"prisoners_dilemma": 0, "commons": 1, "dictator": 2}


class Kind:
    """All hostile players of a shard."""

    games_at_once = 4

    def __init__(self, shard: Shard, site: Any, players: Sequence[Player]):
        self.shard, self.players = shard, players

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def seat(self, player: Player, seat: Seat) -> Hostile:
        settings = {**player.settings, "parameters": self.shard.parameters}
        return Hostile(self.shard.game, seat, settings, REPAIRS[self.shard.game])

    def versions(self) -> Mapping[str, Any]:
        return {player.name: {"hostile": True} for player in self.players}


class Hurried(asyncio.SelectorEventLoop):
    """An event loop in which nobody waits: where all sleep, the clock goes to the next one's time at once."""

    def __init__(self) -> None:
        loop, self.now = self, 0.0

        class Selector(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> list[Any]:
                loop.now += timeout or 0
                return super().select(None if timeout is None else 0)

        super().__init__(Selector())

    def time(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def hostile_kind(monkeypatch):
    """Makes `hostile` a kind of player, also where a model would be asked, and time the tests' own."""
    module = types.ModuleType("fishpool.players.hostile")
    module.Kind = Kind
    monkeypatch.setitem(import_module("sys").modules, "fishpool.players.hostile", module)
    monkeypatch.setattr("fishpool.players.model.Kind", Kind)
    monkeypatch.setattr(asyncio.events, "new_event_loop", Hurried)


def hostile(name: str, luck: random.Random, kind: str = "hostile") -> Player:
    rates = {"hostile": luck.choice((0.0, 0.02, 0.1, 0.5, 1.0)), "mutate": luck.choice((0.0, 0.2, 1.0))}
    return Player(f"PLAYERNAME{name}", kind, {"luck": luck.randrange(2**32), "replicates": luck.randint(1, 3), **rates})


def shard_of(game: str, parameters: dict[str, Any], players: Sequence[Player], seeds: tuple[int, ...]) -> Shard:
    return Shard("STUDYNAME", "CONDITIONNAME", "seeds-0", game, parameters, tuple(players), TIMEOUT, seeds)


def played(shard: Shard) -> dict[str, pl.DataFrame]:
    """All frames of a shard, each line of which is a record by the schema."""
    MEMORY.attempts.clear()
    batches = list(import_module(f"fishpool.runners.{shard.game}").play(shard))
    frames = {table: pl.concat([batch[table] for batch in batches]) for table in shard.tables}
    for table, frame in frames.items():
        assert dict(frame.schema) == records.schema(shard.game, table)
        buffer = io.BytesIO()
        frame.write_ndjson(buffer)
        file = Held("records.jsonl")
        file.content = buffer.getvalue()
        assert find_fault(file, shard.game, table, changed=False) == ""
    return frames


def outcome(attempts: Sequence[Attempt], repairs: int) -> tuple[str, int, Any]:
    """What must become of a turn: its status, how often the player was asked, and its action."""
    for number, attempt in enumerate(attempts, start=1):
        assert number == len(attempts) or (attempt.what == "said" and attempt.action is None), "asked once too often"
        if attempt.what != "said":
            return {"silent": "timeout", "fault": "invalid", "raised": "infrastructure"}[attempt.what], number, None
        if attempt.action is not None:
            return "moved" if number == 1 else "repaired", number, attempt.action
    assert len(attempts) == repairs + 1, "not asked again"
    return "invalid", len(attempts), None


def check_turns(shard: Shard, turns: pl.DataFrame, shown: Callable[[Any], Any]) -> Counter[str]:
    """Every turn of a hostile player has the status, the attempts and the action that follow from what it did."""
    statuses: Counter[str] = Counter()
    rows: dict[Any, dict[str, Any]] = {}
    for row in turns.rows(named=True):
        key = (
            (DOCUMENTS[row["recipient"]], row["replicate"])
            if shard.game == "dictator"
            else (row["round"], row["phase"])
        )
        rows[row["run_id"], row["agent"], key] = row
    for (run_id, agent), said in MEMORY.attempts.items():
        for key, attempts in said.items():
            row = rows.pop((run_id, agent, key))
            status, number, action = outcome(attempts, REPAIRS[shard.game])
            if action == prisoners_dilemma.RESIGN:
                status = "resigned"
            assert (row["status"], row["attempts"]) == (status, number), row
            statuses[status] += 1
            if action is not None:
                assert shown(row) == action, (row, action)
            elif shard.game != "commons":  # whose rules have an action in place of one that was not made
                assert row["action"] is None
    for row in rows.values():
        assert (row["status"], row["attempts"]) == ("moved", 1), "a scripted player was harmed"
    return statuses


STATUSES: dict[str, Counter[str]] = defaultdict(Counter)


def sequences(number: int, *seed: Any) -> Iterator[random.Random]:
    """The luck of so many shards."""
    for index in range(number * EFFORT):
        yield random.Random(f"{seed} {index}")


def repeated(shard: Shard, frames: Mapping[str, pl.DataFrame], luck: random.Random) -> None:
    """Now and then: the same shard gives the same records."""
    if luck.random() < 0.1:
        again = played(shard)
        assert all(again[table].equals(frame) for table, frame in frames.items())


def test_any_players_of_the_prisoners_dilemma():
    runs = 0
    endings: Counter[str] = Counter()
    for luck in sequences(40, "pd"):
        scripted = luck.sample(sorted(STRATEGIES), luck.randint(0, 2))
        players = [hostile(str(number), luck) for number in range(luck.randint(1, 3))]
        players += [Player(f"PLAYERNAME{name}", "scripted", {"strategy": name}) for name in scripted]
        parameters = {
            "rounds": luck.choice((1, 2, 5, 12)),
            "noise": luck.choice((0.0, 0.0, 0.3)),
            "lane": "standard",
            "agent_ids": luck.choice((["agent_1", "agent_2"], ["b", "a"])),
        }
        seeds = tuple(luck.sample(range(10**6), 2))
        shard = Shard(
            "STUDYNAME", "CONDITIONNAME", "seeds-0", "prisoners_dilemma", parameters, tuple(players), TIMEOUT, seeds
        )
        frames = played(shard)
        STATUSES["prisoners_dilemma"] += check_turns(shard, frames["turns"], shown_choice)
        turns = {
            run_id: rows.rows(named=True) for (run_id,), rows in frames["turns"].group_by("run_id", maintain_order=True)
        }
        for run in frames["runs"].rows(named=True):
            check_match(run, turns.get(run["run_id"], []), parameters)
            endings[run["ending"]] += 1
        runs += len(frames["runs"])
        assert len(frames["runs"]) == 2 * len(players) * (len(players) + 1) // 2
        repeated(shard, frames, luck)
    print(f"\nprisoner's dilemma: {runs} matches, {dict(endings)}, turns {dict(STATUSES['prisoners_dilemma'])}")
    assert endings.keys() == {"completed", "resigned", "forfeited", "void"}


def shown_choice(row: Mapping[str, Any]) -> Any:
    """The action of a turn as the rules' own reading gives it; noise turns the choice, never the action."""
    action = prisoners_dilemma.read_action(json.loads(row["action"]))
    if row["choice"] is not None:
        assert (row["choice"] == action) != row["flipped"]
    return action


def check_match(run: Mapping[str, Any], turns: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> None:
    assert [row["agent"] for row in turns[:2]] == parameters["agent_ids"]
    assert run["turn_records"] == len(turns)
    pairs = [turns[i : i + 2] for i in range(0, len(turns), 2)]
    scored = [pair for pair in pairs if pair[0]["choice"] is not None]
    assert scored == pairs[: run["rounds"]]
    totals: Counter[str] = Counter()
    for pair in scored:
        for own, other in (pair, pair[::-1]):
            assert own["payoff"] == prisoners_dilemma.PAYOFF[own["choice"], other["choice"]]
            totals[own["agent"]] += own["payoff"]
            assert parameters["noise"] or not own["flipped"]
    first, second = parameters["agent_ids"]
    if len(pairs) == len(scored):
        assert (run["ending"], run["rounds"]) == ("completed", parameters["rounds"])
        leader = None if totals[first] == totals[second] else max(totals, key=totals.__getitem__)
        assert run["winner"] == leader
        return
    (last,) = pairs[len(scored) :]
    assert all(row["payoff"] is None and not row["flipped"] for row in last)
    by_status = {row["agent"]: row["status"] for row in last}
    failed = [agent for agent, status in by_status.items() if status in ("invalid", "timeout")]
    if "infrastructure" in by_status.values() or (failed and not scored):
        assert (run["ending"], run["winner"]) == ("void", None)
        return
    assert run["ending"] == ("forfeited" if failed else "resigned")
    innocent = [agent for agent, status in by_status.items() if status in ("moved", "repaired")]
    assert run["winner"] == (innocent[0] if innocent else None), "who did nothing wrong wins"


def test_any_players_of_the_fish_pool():
    runs = 0
    endings: Counter[str] = Counter()
    for luck in sequences(40, "commons"):
        players = [hostile(str(number), luck) for number in range(luck.randint(1, 3))]
        agents = [player.name for player in players for _ in range(luck.randint(1, 2))]
        agents += luck.choices(sorted(PLAYERS), k=luck.randint(0, 2))
        luck.shuffle(agents)
        channels = luck.choice(
            ([], ["promise"], ["report"], ["promise", "report"], ["promise", "report", "chat", "discuss"])
        )
        heard = "report" in channels
        speeches = ["free", *(["forced_truth"] * heard), *(["binding_promise"] * ("promise" in channels))]
        parameters = {
            "agents": agents, "rounds": luck.choice((1, 3, 6)), "capacity": luck.choice((len(agents), 20, 100)),
            "growth": luck.choice((1.1, 2.0, 50.0)), "collapse": luck.choice((0, 1, 5)),
            "price": luck.choice((1.0, 0.1)), "channels": channels,
            "rationing": luck.choice(("proportional", "lottery")), "reveal": luck.choice(("hidden", "true")),
            "audit_q": luck.choice((0.0, 0.5, 1.0)) * heard, "fine": luck.choice((0.0, 3.0, 1e6)) * heard,
            "fine_kind": luck.choice(("fixed", "per_ton")),
            "fine_to": luck.choice(("sink", "redistribute")) if len(agents) > 1 else "sink",
            "permission": luck.choice(("silent", "forbid", "allow")),
            "stock": luck.choice(("exact", "noisy", "hidden")), "noise": luck.choice((0.0, 0.1, 10.0)),
            "memory": luck.choice(("none", "public")), "horizon": luck.choice(("known", "unknown")),
            "universalization": luck.random() < 0.5, "speech": luck.choice(speeches),
            "promise_semantics": luck.choice(("ceiling", "exact")), "elicit_intention": luck.random() < 0.5,
            "twins": [],
        }  # fmt: skip
        parameters["collapse"] = min(parameters["collapse"], parameters["capacity"])
        assert not commons.impossible(commons.parameters_of(parameters))
        seeds = tuple(luck.sample(range(10**6), 2))
        shard = shard_of("commons", parameters, players, seeds)
        frames = played(shard)
        STATUSES["commons"] += check_turns(shard, frames["turns"], lambda row: json.loads(row["action"]))
        for run in frames["runs"].rows(named=True):
            check_pool(run, frames["turns"].filter(run_id=run["run_id"]), frames["claims"].filter(run_id=run["run_id"]))
            endings[run["ending"]] += 1
        runs += len(frames["runs"])
        repeated(shard, frames, luck)
    print(f"\nfish pool: {runs} runs, {dict(endings)}, turns {dict(STATUSES['commons'])}")
    assert endings.keys() == {"completed", "collapsed", "void"}


def check_pool(run: Mapping[str, Any], turns: pl.DataFrame, claims: pl.DataFrame) -> None:
    p = commons.parameters_of(json.loads(run["parameters"]))
    assert run["turn_records"] == len(turns)
    finished = turns.filter(pl.col("round") <= run["rounds"])
    stock = p.capacity
    for number in range(1, run["rounds"] + 1):
        rows = {phase: finished.filter(round=number, phase=phase).rows(named=True) for phase in commons.Phase}
        caught = rows["catch"]
        assert len(caught) == p.n
        assert {row["stock"] for row in caught} == {stock}
        assert 0 <= stock <= p.capacity
        catches, demands = [row["catch"] for row in caught], [row["demand"] for row in caught]
        assert all(0 <= catch <= demand for catch, demand in zip(catches, demands, strict=True))
        assert sum(catches) == min(stock, sum(demands)), "what is caught is what was there to be caught"
        for row in caught:
            said = json.loads(row["action"])["catch"]
            assert row["fallback"] == (row["status"] in ("invalid", "timeout"))
            assert said == 0 or not row["fallback"], "what could not be read is no catch"
            assert row["demand"] == said or (p.speech is commons.Speech.BINDING_PROMISE and row["demand"] < said)
        for row in rows["report"]:
            if row["fallback"] and p.speech is not commons.Speech.FORCED_TRUTH:
                assert row["report"] is None, "what could not be read is no report"
        fines, refunds = (sum(row[key] for row in rows["report"]) for key in ("fine", "refund"))
        assert min(fines, refunds) >= 0
        if p.fine_to is commons.FineTo.SINK:
            assert refunds == 0
        else:
            assert refunds == pytest.approx(fines)
        left = stock - sum(catches)
        if number < run["rounds"]:
            assert left >= p.collapse
        stock = p.regrown[left]
    last = finished.filter(round=run["rounds"], phase="catch")
    if run["ending"] == "void":
        unfinished = turns.filter(pl.col("round") > run["rounds"])
        assert unfinished["round"].unique().to_list() == [run["rounds"] + 1]
        assert "infrastructure" in unfinished["status"].to_list()
    else:
        assert len(finished) == len(turns)
        left = last["stock"][0] - last["catch"].sum()
        assert (run["ending"] == "collapsed") == (left < p.collapse)
        assert run["ending"] == "collapsed" or run["rounds"] == p.rounds
    unread = {(row["round"], row["agent"], row["phase"]) for row in turns.filter("fallback").rows(named=True)}
    for claim in claims.rows(named=True):
        said_in = {"promise": "pledge", "report": "report"}[claim["kind"]]
        assert (claim["round"], claim["agent"], said_in) not in unread, "a claim that nobody made"


def test_any_oracle_of_the_dictator_game(tmp_path):
    for name, text in DOCUMENTS.items():
        (tmp_path / f"{name}.md").write_text(f"---\nname: {name}\nfamily: f\n---\n{text}\n")
    tournaments = 0
    endings: Counter[str] = Counter()
    for luck in sequences(20, "dictator"):
        parameters = {
            "strategies": str(tmp_path), "oracle": "model", "decisions": None, "self_play": luck.random() < 0.5,
            "endowment": luck.choice((60.0, 0.1, 1e9)), "utility": luck.choice(("log", "square_root", "linear")),
        }  # fmt: skip
        oracle = hostile("Oracle", luck, kind="model")
        shard = shard_of("dictator", parameters, [oracle], (0,))
        frames = played(shard)
        STATUSES["dictator"] += check_turns(shard, frames["turns"], shown_decision)
        (run,) = frames["runs"].rows(named=True)
        turns = frames["turns"].rows(named=True)
        endings[run["ending"]] += 1
        tournaments += 1
        assert (
            len(turns) == run["turn_records"] == (9 if parameters["self_play"] else 6) * oracle.settings["replicates"]
        )
        assert (run["ending"] == "void") == ("infrastructure" in {row["status"] for row in turns})
        for row in turns:
            assert (row["decision"] is None) == (row["status"] not in ("moved", "repaired"))
            endowment = parameters["endowment"]
            received = {None: (None, None), "SHARE": (endowment / 2, endowment / 2), "TAKE": (endowment, 0.0)}
            assert (row["dictator_value"], row["recipient_value"]) == received[row["decision"]]
        votes = [Counter(row["decision"] for row in cell) for cell in cells(turns)]
        if any(vote["SHARE"] == vote["TAKE"] for vote in votes):
            assert run["winner"] is None, "a decision is missing"
        repeated(shard, frames, luck)
    print(f"\ndictator: {tournaments} tournaments, {dict(endings)}, answers {dict(STATUSES['dictator'])}")
    assert endings.keys() == {"completed", "void"}


def shown_decision(row: Mapping[str, Any]) -> Any:
    assert json.loads(row["action"]) == {"decision": row["decision"]}
    return dictator.Said(dictator.Decision(row["decision"]), row["reasoning"])


def cells(turns: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    found = defaultdict(list)
    for row in turns:
        found[row["agent"], row["recipient"]].append(row)
    return list(found.values())


# ── What is private ──────────────────────────────────────────────────────────────────────────────────────────────


def test_what_an_agent_keeps_to_itself_changes_no_view_of_another():
    """Two runs that differ in what one agent intends and whom it trusts show all others the same."""
    shown: list[list[str]]
    for luck in sequences(20, "private"):
        parameters = commons.parameters_of(
            {
                "agents": ["a", "b", "c"], "rounds": 3, "channels": ["promise", "report", "chat", "discuss"],
                "audit_q": luck.choice((0.0, 0.5)), "stock": luck.choice(("exact", "noisy", "hidden")),
                "memory": luck.choice(("none", "public")), "fine": 1.0, "reveal": luck.choice(("hidden", "true")),
            }
        )  # fmt: skip
        seed, scripts = luck.randrange(10**6), luck.randrange(10**6)
        shown = [[], []]
        for turn, views in enumerate(shown):

            def act(
                view: dict[str, Any], agent: int, turn: int = turn, views: list[str] = views, scripts: int = scripts
            ) -> Any:
                own = random.Random(f"{scripts} {agent} {view['round']} {view['phase']}")
                action = an_action("commons", view, own)
                if agent:
                    views.append(json.dumps(view))
                elif turn and view["phase"] == "pledge":
                    action["intention"] = view["legal"]["max"] - action["intention"]
                elif turn and view["phase"] == "discuss":
                    action["trust"] = {name: 100 - trust for name, trust in action["trust"].items()}
                return action

            commons.play(parameters, [lambda view, agent=agent: act(view, agent) for agent in range(3)], seed)
        assert shown[0] == shown[1]
        assert shown[0]
