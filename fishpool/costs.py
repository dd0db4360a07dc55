"""What the models of a study will be asked: calls, tokens in and tokens out, before anything is played.

It asks nobody and knows no price or speed (`fishpool doctor` measures one). Calls are the game's own count; tokens in
are an approximation of our own, and tokens out the most that `max_tokens` allows.

Tokens in, at 3.5 characters a token: the condition's prompts, in every round the history of the rounds before, as long
as the notes below say, and the documents of a tournament. Repairs are not counted, nor is it taken off that the journal
has some replies already or that a game can end early.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from fishpool.documents import locate
from fishpool.models.calls import Model
from fishpool.study import Condition, Config

CHARACTERS_A_TOKEN = 3.5  # English prose has 4 and more, JSON and numbers less; what we measured is in the tests

_PHASES = {
    "promise": "pledge",
    "report": "report",
    "chat": "discuss",
}  # of the fish pool, by the channel that they need
_VALUE = "12345"  # in place of a number or name in a prompt

# Characters that history gets in a round.
_CHOICES = 120  # of the prisoner's dilemma: both choices, both scores
_AMOUNTS, _AMOUNT = 30, 12  # of the fish pool: each public table of amounts, and an agent's place in it
_MESSAGE = 160  # one message with its sender
_DOCUMENT_LINE = 30  # what surrounds a line of the recipient's document


@dataclass(frozen=True)
class Cost:
    """What one model of a study is asked if every run lasts to its end and every reply can be read.

    `tokens_in` is about right, `tokens_out` is at most needed.
    """

    study: str
    server: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int

    @property
    def words(self) -> str:
        return (
            f"{self.study} asks {self.server}/{self.model} up to {self.calls:,} times, repairs aside: "
            f"about {self.tokens_in:,} tokens in, at most {self.tokens_out:,} out"
        )


def estimate(config: Config) -> tuple[Cost, ...]:
    """One entry a selected study and model that will be asked, in the order of the config; a replay asks nobody."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for study in config.studies:
        for condition in study.conditions:
            asked = _calls(condition)
            tokens = _tokens_in(condition) if asked else 0
            for player, calls in asked.items():
                model = player_model(condition, player)
                calls *= len(study.seeds)
                total = found.setdefault((study.name, model.server, model.name), [0, 0, 0])
                for index, more in enumerate((calls, calls * tokens, calls * model.max_tokens)):
                    total[index] += more
    return tuple(Cost(*place, *counts) for place, counts in found.items())


def live_models(condition: Condition) -> tuple[Model, ...]:
    """The models that playing a condition asks; none if it is a replay."""
    return tuple(player_model(condition, player) for player in _calls(condition))


def player_model(condition: Condition, name: str) -> Model:
    settings = next(player.settings for player in condition.players if player.name == name)
    return Model.from_json(settings)


def _calls(condition: Condition) -> dict[str, int]:
    """Calls a seed, by the name of the model player, of a condition that is not a replay."""
    models = [player.name for player in condition.players if player.kind == "model"]
    if condition.replay or not models:
        return {}
    seats = Counter(condition.parameters["agents"] if condition.game == "commons" else models)
    calls = condition.model_calls_per_seed // sum(seats[name] for name in models)
    return {name: calls * seats[name] for name in models}


def _tokens_in(condition: Condition) -> int:
    """Of one call, averaged over the rounds and phases."""
    return round((_question(condition) + _history(condition)) / CHARACTERS_A_TOKEN)


def _question(condition: Condition) -> float:
    """Characters of the rules and, averaged over the phases, of a question without its history."""
    from fishpool.games.commons import parameters_of
    from fishpool.prompts import REPAIR, RULES, read_prompts
    from fishpool.questions import condition_words

    prompts = read_prompts(locate(condition.parameters["prompts"]), condition.game)
    words = {"history", "reasoning"}
    phases = sorted(set(prompts.texts) - {RULES, REPAIR})
    if condition.game == "commons":
        words |= condition_words(parameters_of(condition.parameters))
        phases = [
            "catch",
            *(phase for channel, phase in _PHASES.items() if channel in condition.parameters["channels"]),
        ]
    sizes = {phase: len(prompts.fill(phase, defaultdict(lambda: _VALUE), words)) for phase in (RULES, *phases)}
    return sizes[RULES] + _mean([sizes[phase] for phase in phases])


def _history(condition: Condition) -> float:
    """Characters of what was so far, averaged over the rounds; in a tournament, those of the two documents."""
    if condition.game == "dictator":
        documents = [Path(file).read_text(encoding="utf-8") for file in condition.files if file.endswith(".md")]
        return _mean([2 * len(text) + _DOCUMENT_LINE * len(text.split("\n")) for text in documents])
    before = (int(condition.parameters["rounds"]) - 1) / 2
    if condition.game == "prisoners_dilemma":
        return before * _CHOICES
    agents, channels = len(condition.parameters["agents"]), set(condition.parameters["channels"])
    tables = len(channels & {"promise", "report"})
    messages = 1 + tables if "chat" in channels else 0
    if condition.parameters["memory"] == "none":
        before = min(before, 1)
    return before * (tables * (_AMOUNTS + _AMOUNT * agents) + messages * agents * _MESSAGE)


def _mean(numbers: list[int]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
