"""People as players: each turn is laid out in the terminal, and what is typed becomes an action or is asked for again.

Nothing is guessed: a line is one of the words or numbers that its question names, or it is no answer. A person sees
what any player's view holds and nothing else; rules and clocks are the game's and the referee's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fishpool import referee, shards
from fishpool.games.commons import MESSAGE_LIMIT, Channel, Phase, Promise, StockKind, parameters_of
from fishpool.games.prisoners_dilemma import PAYOFF, RESIGN, Choice
from fishpool.seats import Seat
from fishpool.shards import Shard, Site
from fishpool.terminal import Console

Answer = TypeVar("Answer")

_WAITING = 1.0  # s without a word, after which a person is told that the others are still at it


class Kind:
    """The people at one terminal: as there is one of it, there is one of them."""

    games_at_once = 1

    def __init__(self, shard: Shard, site: Site, players: Sequence[shards.Player]):
        self._shard, self._players = shard, players
        self._console = Console()

    async def open(self) -> None:
        self._console.open()

    async def close(self) -> None:
        self._console.close()

    def seat(self, player: shards.Player, seat: Seat) -> referee.Player:
        clock = self._shard.turn_timeout if player.settings.get("clock") else None
        return _AT[self._shard.game](self._console, clock, self._shard.parameters)

    def versions(self) -> Mapping[str, Any]:
        return {player.name: {"person": True, **player.settings} for player in self._players}


class InputEnded(Exception):
    """There is nobody left to ask."""


class Person(referee.Player):
    """A person in one run. `clock` is in s for each turn; None: there is none."""

    def __init__(self, console: Console, clock: float | None, parameters: Mapping[str, Any]):
        self.console, self.clock = console, clock
        self._late = False
        self._word: asyncio.TimerHandle | None = None

    @property
    def keeps_time(self) -> bool:
        return self.clock is None

    async def turn(self, view: Mapping[str, Any]) -> dict[str, Any]:
        """The action of a turn; raises InputEnded where the game knows no resignation."""
        raise NotImplementedError

    def explain(self) -> None:
        """What a person is told who types a question mark."""
        raise NotImplementedError

    async def act(self, view: Mapping[str, Any]) -> str:
        self._hush()
        if self._late:
            self.console.forget()
            self.console.say()
            self.console.say("The last turn ended without an answer of yours.", "bold")
            self._late = False
        try:
            action = await self.turn(view)
        except asyncio.CancelledError:
            self._late = True  # whatever is typed from now on was meant for this turn
            raise
        loop = asyncio.get_running_loop()
        self._word = loop.call_later(_WAITING, self.console.say, "Waiting for the others ..", "dim")
        return json.dumps(action)

    async def close(self) -> None:
        self._hush()

    async def ask(self, question: str, read: Callable[[str], Answer]) -> Answer:
        """What `read` makes of the first line that it does not refuse with a ValueError."""
        while True:
            line = await self.console.line(f"{question}: ")
            if line is None:
                raise InputEnded("the input of a person ended")
            if line.strip() == "?":
                self.explain()
                continue
            try:
                return read(line.strip())
            except ValueError as fault:
                self.console.say(f"{fault}; ? explains.")

    def _hush(self) -> None:
        if self._word:
            self._word.cancel()


def _count(number: float, noun: str) -> str:
    return f"{number:.12g} {noun}{'' if number == 1 else 's'}"


def _typed(line: str) -> str:
    """A line as a sentence can show it."""
    if not line:
        return "an empty line"
    return f"'{line}'" if len(line) <= 40 else f"'{line[:38]}..'"


# ── The prisoner's dilemma ───────────────────────────────────────────────────────────────────────────────────────

_CHOICES = {
    "c": Choice.COOPERATE, "coop": Choice.COOPERATE, "cooperate": Choice.COOPERATE,
    "d": Choice.DEFECT, "defect": Choice.DEFECT, RESIGN: RESIGN,
}  # fmt: skip
_DID = {Choice.COOPERATE: "cooperated", Choice.DEFECT: "defected"}


def read_choice(line: str) -> Choice | str:
    """A choice or `RESIGN`, by one of its words in any case; ValueError otherwise."""
    if line.lower() not in _CHOICES:
        raise ValueError(f"{_typed(line)} is no choice: type c or cooperate, d or defect, or resign")
    return _CHOICES[line.lower()]


def show_history(console: Console, names: Sequence[str], choices: Sequence[Sequence[str]]) -> None:
    """A line an agent, C or D a round, in blocks as wide as the terminal; `choices` are by round, then by agent."""
    label = max(map(len, (*names, "rounds")))
    most = max(10, (console.width - label - 2) // 20 * 10)
    for start in range(0, len(choices), most):
        block = choices[start : start + most]
        if len(choices) > most:
            console.show([f"{'rounds':{label}}  {start + 1} to {start + len(block)}"], "dim")
        console.show(
            f"{name:{label}}  {' '.join(past[seat][0].upper() for past in block)}" for seat, name in enumerate(names)
        )


class PrisonersDilemmaPerson(Person):
    """One seat of a match; the end of the input resigns it."""

    _other = ""
    _submitted: Choice | str = ""

    def explain(self) -> None:
        self.console.say("Payoffs, yours first:")
        rows = [
            (f"you {mine}", *(f"{PAYOFF[mine, theirs]}, {PAYOFF[theirs, mine]}" for theirs in Choice))
            for mine in Choice
        ]
        self.console.table([f"and {self._other}", *(f"{choice}s" for choice in Choice)], rows)
        self.console.say("Type c or cooperate, d or defect, or resign.")

    async def turn(self, view: Mapping[str, Any]) -> dict[str, Any]:
        you = view["you"]
        [self._other] = (agent for agent in view["scores"] if agent != you)
        if view["history"]:
            self._tell(view["history"][-1], you)
        else:
            self.console.say(
                f"You are {you} and play {_count(view['totalRounds'], 'round')} against {self._other}. In each round "
                "both choose at once; most points after the last round win. Who resigns loses."
            )
            self.explain()
        clock = "" if self.clock is None else f", {self.clock:g} s for your choice"
        self.console.say()
        self.console.say(
            f"Round {view['round']} of {view['totalRounds']}: you have {_count(view['scores'][you], 'point')}, "
            f"{self._other} has {view['scores'][self._other]}{clock}",
            "bold",
        )
        choices = [(past["choices"][you], past["choices"][self._other]) for past in view["history"]]
        show_history(self.console, ("you", self._other), choices)
        try:
            self._submitted = await self.ask("cooperate or defect", read_choice)
        except InputEnded:
            self.console.say("The input has ended, so you resign.", "bold")
            self._submitted = RESIGN
        return {"type": RESIGN} if self._submitted == RESIGN else {"type": "choose", "choice": self._submitted}

    def _tell(self, past: Mapping[str, Any], you: str) -> None:
        mine, theirs = Choice(past["choices"][you]), Choice(past["choices"][self._other])
        noise = "" if mine == self._submitted else f" (you chose to {self._submitted}; the noise turned it)"
        self.console.say(
            f"You {_DID[mine]}{noise}, {self._other} {_DID[theirs]}: {past['scores'][you]} and "
            f"{past['scores'][self._other]} points."
        )


# ── The fish pool ────────────────────────────────────────────────────────────────────────────────────────────────


def read_tons(line: str, most: int) -> int:
    """A whole number from 0 to `most`; ValueError otherwise."""
    if not (line.isascii() and line.isdigit() and len(line) < 10 and int(line) <= most):
        raise ValueError(f"{_typed(line)} is no whole number of tons from 0 to {most}")
    return int(line)


def read_claim(line: str, most: int) -> int | None:
    """The same, or None for the word none."""
    if line.lower() == "none":
        return None
    try:
        return read_tons(line, most)
    except ValueError as fault:
        raise ValueError(f"{fault}, nor the word none") from None


def read_message(line: str) -> str:
    """A message, which an empty line leaves out; ValueError if it is too long."""
    if len(line) > MESSAGE_LIMIT:
        raise ValueError(f"your message has {len(line)} characters, and at most {MESSAGE_LIMIT} are allowed")
    return line


def read_accused(line: str, others: Sequence[str]) -> list[str]:
    """Names of other agents, apart by spaces or commas; ValueError for anybody else."""
    accused = line.replace(",", " ").split()
    for name in accused:
        if name not in others:
            raise ValueError(f"{_typed(name)} is none of the others, who are {', '.join(others)}")
    return accused


def read_trust(line: str, others: Sequence[str]) -> dict[str, int]:
    """Such as `agent_2=80 agent_3=0`; ValueError for anything else."""
    trust = {}
    for entry in line.replace(",", " ").split():
        name, _, percent = entry.partition("=")
        if not (
            name in others and percent.isascii() and percent.isdigit() and len(percent) < 4 and int(percent) <= 100
        ):
            raise ValueError(f"{_typed(entry)} is no agent with a number from 0 to 100, such as {others[0]}=80")
        if name in trust:
            raise ValueError(f"{name} is there twice")
        trust[name] = int(percent)
    return trust


class FishPoolPerson(Person):
    """One seat of a pool; the end of the input makes the run void, because nobody can leave a pool by its rules."""

    def __init__(self, console: Console, clock: float | None, parameters: Mapping[str, Any]):
        super().__init__(console, clock, parameters)
        condition = parameters_of(parameters)
        self._channels, self._intends = condition.channels, condition.elicit_intention
        self._heard: set[tuple[int, str, str]] = set()  # round, phase and agent of each message that was shown
        self._claims: list[Any] = []  # of this round, as they were shown last
        self._round = 0
        self._view: Mapping[str, Any] = {}

    async def turn(self, view: Mapping[str, Any]) -> dict[str, Any]:
        self._view = view
        if not self._round:
            self.explain()
        if view["round"] != self._round:
            self._round = view["round"]
            self._open_round()
        else:
            self.console.say()
        self._show()
        try:
            return await _PHASES[view["phase"]](self, view["legal"]["max"])
        except InputEnded:
            self.console.say("The input has ended; nobody can leave a pool by its rules, so the run is void.", "bold")
            raise

    # ── What a person sees ───────────────────────────────────────────────────────────────────────────────────────

    def explain(self) -> None:
        view, rules = self._view, self._view["rules"]
        horizon = view["horizon"]
        rounds = "for a number of rounds that you are not told" if horizon is None else _count(horizon, "round")
        told = [
            f"You are {view['agent_id']}. {rules['n']} agents fish one pool, {rounds}. It holds at most "
            f"{rules['capacity']} tons; what is left after a catch grows by the factor {rules['growth']:g}, and below "
            f"{rules['collapse']} tons the pool collapses and the game ends. A ton is worth {rules['price']:g}."
        ]
        if Channel.PROMISE in self._channels:
            exact = rules["promise_semantics"] == Promise.EXACT
            told.append(f"A promise says that you will take {'exactly' if exact else 'at most'} so many tons.")
        if rules["audit_q"]:
            fine = rules["fine"]
            each = "for each ton of difference" if fine["kind"] == "per_ton" else "each time"
            goes = "is shared by the others" if fine["to"] == "redistribute" else "is lost to all"
            told.append(
                f"Each catch is audited with probability {rules['audit_q']:g}; an audit publishes it, and a report "
                f"that is false or missing is fined {fine['amount']:g} {each}, which {goes}."
            )
        told.append(view["permission"])
        for text in filter(None, told):
            self.console.say(text)
        self._show_ledger(view["ledger"])
        self.console.say("The end of the input (Ctrl-D) leaves the game, which is then void.", "dim")

    def _open_round(self) -> None:
        view = self._view
        horizon = "" if view["horizon"] is None else f" of {view['horizon']}"
        clock = "" if self.clock is None else f", {self.clock:g} s for each answer of yours"
        self.console.say()
        self.console.say(f"Round {view['round']}{horizon}{clock}", "bold")
        self._show_ledger(view["ledger"][-1:])
        drop = view["last_round"]["stock_drop"]
        if drop is not None:
            changed = f"fell by {drop}" if drop > 0 else f"rose by {-drop}" if drop else "is what it was"
            self.console.say(f"Since the last round the stock {changed}{' tons' if drop else ''}.")

    def _show_ledger(self, ledger: Sequence[Mapping[str, Any]]) -> None:
        """Past rounds as far as they were said or published."""
        for past in ledger:
            columns = [("promised", past["promises"]), ("reported", past["reports"]), ("audited", past["catches"])]
            self._show_claims(f"round {past['round']}", columns)

    def _show_claims(self, title: str, columns: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """A row an agent; a column where there is anything to be seen. Nothing said is -, nothing known is empty."""
        known = [(name, values) for name, values in columns if values]
        if known:
            rows = [
                (self._called(agent), *(_cell(values, agent) for _, values in known)) for agent in self._view["names"]
            ]
            self.console.table([title, *(name for name, _ in known)], rows)

    def _called(self, agent: str) -> str:
        return f"{agent} (you)" if agent == self._view["agent_id"] else agent

    def _show(self) -> None:
        """Messages since the last look, what was claimed in this round, the pool, and one's own account."""
        view, me = self._view, self._view["me"]
        for message in view["messages"]:
            key = (message["round"], message["phase"], message["agent"])
            if key not in self._heard:
                self._heard.add(key)
                accused = f" [accuses {', '.join(message['accuse'])}]" if message["accuse"] else ""
                self.console.say(f"{self._called(message['agent'])}{accused}: {message['message']}", indent="    ")
        audits = {agent: audit["catch"] for agent, audit in view["audits"].items()}
        fines = {agent: f"{audit['fine']:g}" for agent, audit in view["audits"].items()}
        columns = [("promised", view["promises"]), ("reported", view["reports"]), ("audited", audits), ("fined", fines)]
        if columns != self._claims:
            self._claims = columns
            self._show_claims("this round", columns)
        stock, kind = view["stock"]["value"], view["stock"]["kind"]
        if kind == StockKind.HIDDEN:
            pool = "Nobody sees how much the pool holds"
        elif kind == StockKind.NOISY:
            pool = f"The pool seems to have held {_count(stock, 'ton')} before this round's catch, more or less"
        else:
            pool = f"The pool holds {_count(stock, 'ton')}"
        share = "" if view["fair_share"] is None else f" (fair share {view['fair_share']})"
        fined = f", after fines of {me['fines']:g}" if me["fines"] else ""
        self.console.say(f"{pool}{share}. You have {_count(me['payoff_total'], 'point')}{fined}.")
        if me["catch"] is not None:
            self.console.say(f"You wanted {_count(me['demand'], 'ton')} and caught {me['catch']}.")

    # ── What a person is asked ───────────────────────────────────────────────────────────────────────────────────

    async def _pledge(self, most: int) -> dict[str, Any]:
        intention = await self._tons("what do you intend to take, in private", most) if self._intends else None
        promise = await self._claim("what do you promise to all", most)
        return {"intention": intention, "promise": promise, "message": await self._message()}

    async def _catch(self, most: int) -> dict[str, Any]:
        return {"catch": await self._tons("how many tons do you take", most)}

    async def _report(self, most: int) -> dict[str, Any]:
        return {"report": await self._claim("what do you report as your catch", most), "message": await self._message()}

    async def _discuss(self, most: int) -> dict[str, Any]:
        action: dict[str, Any] = {"message": await self._message()}
        others = [name for name in self._view["names"] if name != self._view["agent_id"]]
        if Channel.DISCUSS in self._channels and others:
            action["accuse"] = await self.ask(
                "whom do you accuse (names, an empty line: nobody)", lambda line: read_accused(line, others)
            )
            action["trust"] = await self.ask(
                f"whom do you trust, in private (such as {others[0]}=80, an empty line: no answer)",
                lambda line: read_trust(line, others),
            )
        return action

    async def _tons(self, question: str, most: int) -> int:
        return await self.ask(f"{question} (0 to {most})", lambda line: read_tons(line, most))

    async def _claim(self, question: str, most: int) -> int | None:
        return await self.ask(f"{question} (0 to {most}, or none)", lambda line: read_claim(line, most))

    async def _message(self) -> str:
        if Channel.CHAT not in self._channels:
            return ""
        return await self.ask("your message to all (an empty line: none)", read_message)


_PHASES = {
    Phase.PLEDGE: FishPoolPerson._pledge,
    Phase.CATCH: FishPoolPerson._catch,
    Phase.REPORT: FishPoolPerson._report,
    Phase.DISCUSS: FishPoolPerson._discuss,
}


def _cell(values: Mapping[str, Any], agent: str) -> str:
    if agent not in values:
        return ""
    return "-" if values[agent] is None else str(values[agent])


_AT: Mapping[str, Callable[[Console, float | None, Mapping[str, Any]], Person]] = {
    "prisoners_dilemma": PrisonersDilemmaPerson,
    "commons": FishPoolPerson,
}
