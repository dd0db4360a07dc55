"""The arena's state machine: who waits, who plays whom, whose turn it is, and when a turn is over.

It knows no network and no clock but the one it is given, and it makes nothing of an action itself: the referee decodes
it, the game's rules read it and settle the round. Whatever changes is in the store before it is true here, so that an
answer never promises what a killed server would forget. One thread only.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from fishpool.arena.store import Store, StoredAgent, StoredMatch
from fishpool.games import prisoners_dilemma as rules
from fishpool.games.prisoners_dilemma import Match
from fishpool.records import Status
from fishpool.referee import Turn, decode
from fishpool.runners.prisoners_dilemma import as_move

LANES = {"fast": 30.0, "standard": 120.0}  # turn timeout, in s
NAME = r"[A-Za-z0-9 _-]{1,64}"
_MATCH_ID = re.compile(r"match-([1-9][0-9]{0,17})")
_AGENT_KEY = re.compile(r"agent-([1-9][0-9]{0,17})\.([A-Za-z0-9_-]{43})")


class Code(StrEnum):
    """The word for a refusal, as it stands under `error` in an answer."""

    INVALID_REQUEST = "invalid_request"
    INVALID_NAME = "invalid_name"
    INVALID_LANE = "invalid_lane"
    INVALID_ACTION = "invalid_action"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    GAME_NOT_FOUND = "game_not_found"
    MATCH_NOT_FOUND = "match_not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    REQUEST_TIMEOUT = "request_timeout"
    NAME_TAKEN = "name_taken"
    STALE_SEQUENCE = "stale_sequence"
    NOT_YOUR_TURN = "not_your_turn"
    BODY_TOO_LARGE = "body_too_large"
    TOO_MANY_REQUESTS = "too_many_requests"
    TOO_MANY_AGENTS = "too_many_agents"
    TOO_MANY_CONNECTIONS = "too_many_connections"
    QUEUE_FULL = "queue_full"
    INTERNAL_ERROR = "internal_error"


class Refused(Exception):
    """A request that changes nothing; of `INVALID_ACTION` alone is it the player's own fault, which ends the match."""

    def __init__(self, code: Code, message: str, retry_after: float | None = None):
        super().__init__(message)
        self.code, self.message, self.retry_after = code, message, retry_after


@dataclass(frozen=True)
class Limits:
    """How much the arena takes on; times in s."""

    agents: int = 10_000
    queue: int = 1_000  # agents that wait in one lane
    matches: int = 1_000  # live ones; with more, agents wait in the queue
    patience: float = 60.0  # an agent that waits and has not been heard from for so long is not matched


@dataclass(frozen=True)
class Game:
    """A match with all that was done in it. Both agents have the same sequence number: that of the round, from 1.

    `turns` are the turns of the rounds that are over, `taken` those of the current one; the opponent sees neither
    before the round is over. A match that is over has a sequence number of its own, one above that of its last round.
    """

    number: int
    lane: str
    match: Match
    turns: tuple[Mapping[str, Turn], ...] = ()
    taken: Mapping[str, Turn] = field(default_factory=dict)
    deadline: float = 0.0  # of the turn on offer, on the arena's clock

    @property
    def id(self) -> str:
        return f"match-{self.number}"

    @property
    def sequence(self) -> int:
        return len(self.turns) + 1

    @property
    def live(self) -> bool:
        return self.match.result is None

    def awaits(self, agent: str) -> bool:
        """Whether the agent has a turn to take."""
        return self.live and agent not in self.taken

    def turn(self, agent: str, sequence: int) -> Turn | None:
        """What the agent did in a turn, if it was its turn and it is over."""
        turns = (*self.turns, self.taken)
        return turns[sequence - 1].get(agent) if 1 <= sequence <= len(turns) else None

    def after(self, taken: Mapping[str, Turn]) -> Game:
        """The match after further turns of the current round, which is settled once both are there."""
        taken = {**self.taken, **taken}
        if len(taken) < 2:
            return replace(self, taken=taken)
        match = rules.settle(self.match, {agent: as_move(taken[agent]) for agent in self.match.agents})
        return replace(self, match=match, turns=(*self.turns, taken), taken={})


def replay(stored: StoredMatch, agents: tuple[str, str], rounds: int) -> Game:
    """A stored match, from its turns; `agents` are what its two agents are to be called."""
    game = Game(stored.number, stored.lane, Match(agents, rounds))
    for seat, turn in stored.turns:
        game = game.after({agents[seat]: turn})
    return game


def read_action(text: str | bytes, key: str) -> tuple[int, Turn]:
    """A message that holds `sequence` and, under `key`, an action: which turn it is for, and what it is there.

    Other keys are ignored, but a `type`, which a message of a WebSocket has, must be action.

    Refused, at no cost, if the sequence number or the action cannot be told: then nobody can say which turn it was
    meant for. Else the action is taken as it is: as an illegal one, if there is anything wrong with the text.
    """
    try:
        message, fault = decode(text), ""
    except ValueError as error:
        message, fault = _pairs(text), str(error)
    sequence = message.get("sequence") if isinstance(message, dict) else None
    other = isinstance(message, dict) and message.get("type", "action") != "action"
    if isinstance(sequence, bool) or not isinstance(sequence, int) or key not in message or other:
        raise Refused(
            Code.INVALID_REQUEST,
            f"expected one JSON object with the keys sequence (a whole number) and {key}"
            + (f"; {fault}" if fault else ""),
        )
    try:
        if fault:
            raise ValueError(fault)
        return sequence, Turn(Status.MOVED, rules.read_action(message[key]))
    except ValueError as error:
        return sequence, Turn(Status.INVALID, fault=str(error))


def _pairs(text: str | bytes) -> Any:
    """A text that the referee does not take, if it is an object of which each key is there once, else None."""
    try:
        pairs = json.loads(text, object_pairs_hook=tuple)
        return dict(pairs) if isinstance(pairs, tuple) and len(dict(pairs)) == len(pairs) else None
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class Standing:
    """Where an agent stands: in a live match, at a place of the queue (from 1), or neither."""

    match: str | None = None
    position: int | None = None


class Arena:
    """All that goes on. `changed` is called with the id of a match or an agent after something happened to it."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        lanes: Mapping[str, float] = LANES,
        limits: Limits = Limits(),
        changed: Callable[[str], None] = lambda topic: None,
    ):
        self.lanes, self.limits = dict(lanes), limits
        self._store, self._clock, self._changed = store, clock, changed
        self._agents = {agent.number: agent for agent in store.agents()}
        self._queues: dict[str, dict[int, None]] = {lane: {} for lane in lanes}
        self._games: dict[str, Game] = {}
        self._playing: dict[str, str] = {}  # agent id -> id of its live match
        self._deadlines: list[tuple[float, str, int]] = []  # a heap of (deadline, match id, sequence)
        self._seen: dict[int, float] = {}
        self._connected: Counter[int] = Counter()
        for number, lane in store.queue():
            self._queues[lane][number] = None
            self._seen[number] = clock()
        for stored in store.live():
            # The server was away, not the agents: whoever has a turn to take has the lane's whole time again.
            self._offer(replay(stored, self._ids(stored.agents), store.rounds))
        self._pair()

    @property
    def rounds(self) -> int:
        return self._store.rounds

    # ── Agents ───────────────────────────────────────────────────────────────────────────────────────────────────

    def register(self, name: str, model: str | None = None) -> tuple[StoredAgent, str]:
        """A new agent, and its key, which is told this once: only a hash of it is kept."""
        if not re.fullmatch(NAME, name):
            raise Refused(
                Code.INVALID_NAME, "a name has 1 to 64 characters: letters a to z, digits, hyphens, spaces, underscores"
            )
        if len(self._agents) >= self.limits.agents:
            raise Refused(
                Code.TOO_MANY_AGENTS,
                f"there are {self.limits.agents} agents, and no more are taken; use a key that you have",
                60.0,
            )
        secret = secrets.token_urlsafe(32)
        try:
            agent = self._store.add_agent(name, model, _hash(secret))
        except ValueError:
            raise Refused(Code.NAME_TAKEN, "an agent of this name is here already; choose another name") from None
        self._agents[agent.number] = agent
        return agent, f"{agent_id(agent.number)}.{secret}"

    def authenticate(self, key: str) -> StoredAgent:
        """The agent with this key, compared in constant time."""
        match = _AGENT_KEY.fullmatch(key)
        agent = self._agents.get(int(match[1])) if match else None
        if not secrets.compare_digest(_hash(match[2] if match else ""), agent.key_sha256 if agent else bytes(32)):
            agent = None
        if agent is None:
            raise Refused(Code.UNAUTHORIZED, "expected the header Authorization: Bearer KEY, with an agent's apiKey")
        self._seen[agent.number] = self._clock()
        return agent

    def connect(self, agent: StoredAgent) -> None:
        """The agent has a WebSocket open, until `disconnect`: so long is it there, though it asks nothing."""
        self._connected[agent.number] += 1

    def disconnect(self, agent: StoredAgent) -> None:
        self._connected[agent.number] -= 1
        self._seen[agent.number] = self._clock()

    def connections(self, agent: StoredAgent) -> int:
        return self._connected[agent.number]

    # ── The queue ────────────────────────────────────────────────────────────────────────────────────────────────

    def enqueue(self, agent: StoredAgent, lane: str) -> Standing:
        """Queue for a match, unless the agent is in one; who queues twice keeps its place, in another lane gets one."""
        if lane not in self.lanes:
            raise Refused(Code.INVALID_LANE, f"the lanes are {' and '.join(self.lanes)}")
        self.expire()
        self._seen[agent.number] = self._clock()
        if agent_id(agent.number) in self._playing:
            return self.standing(agent)
        if agent.number not in self._queues[lane]:
            if len(self._queues[lane]) >= self.limits.queue:
                raise Refused(Code.QUEUE_FULL, f"{self.limits.queue} agents wait already; try again later", 1.0)
            self._leave_queue(agent.number)
            self._store.enqueue(agent.number, lane)
            self._queues[lane][agent.number] = None
            self._pair()
        return self.standing(agent)

    def standing(self, agent: StoredAgent) -> Standing:
        self.expire()
        self._pair()
        match = self._playing.get(agent_id(agent.number))
        if match:
            return Standing(match=match)
        for queue in self._queues.values():
            if agent.number in queue:
                return Standing(position=list(queue).index(agent.number) + 1)
        return Standing()

    def _pair(self) -> None:
        """Make matches of those who wait, first come first served in each lane; who has gone away leaves the queue."""
        for lane, queue in self._queues.items():
            while len(queue) >= 2 and len(self._games) < self.limits.matches:
                gone = [number for number in list(queue)[:2] if not self._is_there(number)]
                for number in gone:
                    self._leave_queue(number)
                if not gone:
                    first, second = list(queue)[:2]
                    number = self._store.add_match(lane, first, second)
                    del queue[first], queue[second]
                    self._offer(Game(number, lane, Match(self._ids((first, second)), self._store.rounds)))

    def _is_there(self, number: int) -> bool:
        return self._connected[number] > 0 or self._clock() - self._seen[number] <= self.limits.patience

    def _leave_queue(self, number: int) -> None:
        for queue in self._queues.values():
            if number in queue:
                self._store.dequeue(number)
                del queue[number]

    # ── Matches ──────────────────────────────────────────────────────────────────────────────────────────────────

    def game(self, agent: StoredAgent, match: str) -> Game:
        """A match of the agent's, live or over; refused as unknown if it is somebody else's."""
        self.expire()
        game = self._games.get(match) or self._finished(match)
        if game is None or agent_id(agent.number) not in game.match.agents:
            raise Refused(Code.MATCH_NOT_FOUND, "there is no such match, or it is not yours")
        return game

    def _finished(self, match: str) -> Game | None:
        number = _MATCH_ID.fullmatch(match)
        stored = self._store.match(int(number[1])) if number else None
        return replay(stored, self._ids(stored.agents), self._store.rounds) if stored else None

    def seconds_left(self, game: Game) -> float:
        return max(0.0, game.deadline - self._clock())

    def act(self, agent: StoredAgent, match: str, sequence: int, turn: Turn) -> Game:
        """Take a turn, as `read_action` gives it; the match after it. The same again changes nothing.

        Raises Refused: `INVALID_ACTION` if the action is illegal, which is the agent's turn all the same;
        `STALE_SEQUENCE` if this turn is over; `NOT_YOUR_TURN` if there is no such turn (yet).
        """
        game, player = self.game(agent, match), agent_id(agent.number)
        before = game.turn(player, sequence)
        if before is None:
            if sequence != game.sequence or not game.live:
                raise Refused(Code.NOT_YOUR_TURN, f"there is no turn of yours with this sequence number {_now(game)}")
            game = self._take(game, {player: turn})
        elif turn.status is not before.status or turn.action != before.action:
            raise Refused(Code.STALE_SEQUENCE, f"the turn with this sequence number is over {_now(game)}")
        if turn.status is Status.INVALID:
            raise Refused(Code.INVALID_ACTION, f"the action is rejected, which ends the match: {turn.fault}")
        return game

    def expire(self) -> None:
        """End all turns whose time is up."""
        while self._deadlines and self._deadlines[0][0] <= self._clock():
            _, match, sequence = self._deadlines[0]
            game = self._games.get(match)
            if game and game.sequence == sequence:
                late = [agent for agent in game.match.agents if game.awaits(agent)]
                self._take(game, {agent: Turn(Status.TIMEOUT, fault="no action in time") for agent in late})
            heapq.heappop(self._deadlines)

    def next_deadline(self) -> float | None:
        """When `expire` will next have something to do; turns that are offered later are over later."""
        return self._deadlines[0][0] if self._deadlines else None

    def _take(self, game: Game, turns: Mapping[str, Turn]) -> Game:
        after = game.after(turns)
        seats = {game.match.agents.index(agent): turn for agent, turn in turns.items()}
        result = after.match.result
        self._store.add_turns(game.number, game.sequence, seats, result.ending if result else None)
        if after.live and after.sequence == game.sequence:
            self._games[game.id] = after
        elif after.live:
            after = self._offer(after)
        else:
            del self._games[game.id]
            for agent in game.match.agents:
                del self._playing[agent]
            self._tell(after)
            self._pair()
        return after

    def _offer(self, game: Game) -> Game:
        """Begin a round: its turns are on offer, and their time runs, from now on."""
        game = replace(game, deadline=self._clock() + self.lanes[game.lane])
        heapq.heappush(self._deadlines, (game.deadline, game.id, game.sequence))
        self._games[game.id] = game
        for agent in game.match.agents:
            self._playing[agent] = game.id
        self._tell(game)
        return game

    def _tell(self, game: Game) -> None:
        for topic in (game.id, *game.match.agents):
            self._changed(topic)

    def _ids(self, agents: Iterable[int]) -> tuple[str, str]:
        first, second = map(agent_id, agents)
        return first, second


def agent_id(number: int) -> str:
    return f"agent-{number}"


def _now(game: Game) -> str:
    return f"(the current one is {game.sequence})" if game.live else "(the match is over)"


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()  # no slow hash is needed for 256 random bits
