"""Language models as players: a view goes out as a question, the reply comes back whole and is read elsewhere.

It knows no rule of a game (the game's module), no wording (`fishpool.questions`, `config/prompts`) and no server
(`fishpool.models`), and it never makes a move of a reply that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fishpool import referee, shards
from fishpool.documents import locate
from fishpool.models.calls import Answered, Model
from fishpool.models.client import Client
from fishpool.models.reader import read_reply
from fishpool.prompts import PRISONERS_DILEMMA, Prompts, read_prompts
from fishpool.questions import QUESTIONS, REPAIRS, Question, ask_again
from fishpool.referee import Reading
from fishpool.seats import Seat
from fishpool.seeds import draw
from fishpool.shards import Shard, Site

DEFAULT_PROMPTS = "config/prompts"


class Kind:
    """All models of a shard, and the client through which they are reached."""

    def __init__(self, shard: Shard, site: Site, players: Sequence[shards.Player]):
        self._game = shard.game
        self._models = {player.name: Model.from_json(player.settings) for player in players}
        self._prompts = read_prompts(locate(shard.parameters.get("prompts", DEFAULT_PROMPTS)), shard.game)
        self._questions = {
            name: QUESTIONS[shard.game](self._prompts, shard.parameters, model.reasoning)
            for name, model in self._models.items()
        }
        replay = str(locate(shard.replay)) if shard.replay else None
        self._client = Client(site, list(self._models.values()), replay)

    async def open(self) -> None:
        await self._client.open()

    async def close(self) -> None:
        await self._client.close()

    def seat(self, player: shards.Player, seat: Seat) -> ModelPlayer:
        # where players meet in pairs, their names are part of the luck; a pool's players are its condition
        pairing = seat.players if self._game == PRISONERS_DILEMMA else ()
        question, model = self._questions[player.name], self._models[player.name]
        return ModelPlayer(self._client, model, question, self._prompts, seat, REPAIRS[self._game], pairing)

    @property
    def games_at_once(self) -> int:
        """Two a slot, so that a server has the next request while a game makes its own of the last."""
        return 2 * self._client.concurrency

    def versions(self) -> Mapping[str, Any]:
        """By player: the model's settings, with its backend, the digest of its weights and those of the prompts."""
        return {
            name: {
                **asdict(model),
                "backend": self._client.backend(model),
                "digest": self._client.digest(model),
                "prompts": dict(self._prompts.sha256),
            }
            for name, model in self._models.items()
        }


class ModelPlayer(referee.Player):
    """A model in one seat of one run. Its replies are `Answered`; its clock is the server's."""

    def __init__(
        self,
        client: Client,
        model: Model,
        question: Question,
        prompts: Prompts,
        seat: Seat,
        repairs: int,
        pairing: Sequence[str] = (),
    ):
        self._client = client
        self._model = model
        self._question = question
        self._prompts = prompts
        self._seat = seat
        self._pairing = tuple(pairing)
        self._last: Answered | None = None
        self.repairs = repairs if model.repairs is None else model.repairs

    async def act(self, view: Mapping[str, Any]) -> Answered:
        """The model's reply; with a fault under `error` the question is put again beside the reply that had it."""
        messages = self._question.messages(view)
        attempt = 1
        fault = view.get("error")
        if fault is not None and self._last is not None:
            attempt = self._last.request.attempt + 1
            messages = ask_again(self._prompts, messages, self._last.reply.text, fault)
        phase, replicate = self._question.phase(view), view.get("replicate", 1)
        self._last = await self._client.ask(
            self._model,
            messages,
            self._question.schema(view),
            run_id=self._seat.run_id,
            agent=self._seat.agent,
            round=view["round"],
            phase=phase,
            attempt=attempt,
            replicate=replicate,
            seed=self._seed(view["round"], phase, attempt, replicate),
        )
        return self._last

    def read(self, reply: Answered, legal: Callable[[Any], Any]) -> Reading:
        return read_reply(reply.reply, lambda answer: legal(self._question.action(answer)))

    def seconds(self, reply: Answered) -> float:
        return reply.reply.latency_ms / 1000

    @property
    def keeps_time(self) -> bool:
        return True

    def _seed(self, number: int, phase: str, attempt: int, replicate: int) -> int:
        """The sampling seed of one call, 0..2^31-1; the condition is no part of it."""
        turn = (self._seat.number, phase, attempt, replicate)
        return int(draw(self._seat.seed, "model", *self._pairing, *turn, counter=number) * 2**31)
