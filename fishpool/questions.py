"""What a model is asked in a game, and what its answer is taken for: messages, the answer's form, the game's action.

A question shows a view, all of it but its names for the run, and nothing else but the rules of the condition. It sends
nothing, and it judges no move: whether an action is legal is the game's own affair. The words are those of the files
that `fishpool.prompts` reads.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from fishpool.documents import shown
from fishpool.games import commons
from fishpool.games.commons import MESSAGE_LIMIT, Channel, Phase, Reveal
from fishpool.games.dictator import Decision
from fishpool.games.prisoners_dilemma import PAYOFF, RESIGN, Choice
from fishpool.prompts import COMMONS, DICTATOR, PRISONERS_DILEMMA, REPAIR, RULES, Prompts, encode

Message = dict[str, str]
Schema = dict[str, Any]
View = Mapping[str, Any]

REPAIRS: Mapping[str, int] = {PRISONERS_DILEMMA: 1, COMMONS: 1, DICTATOR: 2}
"""How often a reply that cannot be read is asked for again, by game, where a model's settings do not say."""

_REPLY_SHOWN = 2_000  # characters of an unreadable reply that are shown again
_FAULT_SHOWN = 400


class Question(Protocol):
    """What one game asks of a model under one condition."""

    def phase(self, view: View) -> str: ...

    def messages(self, view: View) -> list[Message]:
        """The fixed rules, the same in every turn of the condition, then history, state and question as one message."""

    def schema(self, view: View) -> Schema:
        """The answer's form: the reasons first, if they are asked for, then the decision."""

    def action(self, answer: Any) -> Any:
        """The game's action for a decoded answer, not yet judged; ValueError with the sentence for the model."""


def ask_again(prompts: Prompts, messages: Sequence[Message], reply: str, fault: str) -> list[Message]:
    """The repair request: the same messages, the reply that could not be read, and what was wrong with it.

    Where there was no reply, the request joins the question, since chat formats want the two sides to take turns.
    """
    repair = prompts.fill(REPAIR, {"fault": _one_line(fault)})
    said = reply[:_REPLY_SHOWN].encode("utf-8", "replace").decode()  # half a character is no text
    if said.strip():
        return [*messages, {"role": "assistant", "content": said}, {"role": "user", "content": repair}]
    *before, question = messages
    return [*before, {"role": "user", "content": f"{question['content']}\n\n{repair}"}]


def _one_line(fault: str) -> str:
    text = " ".join(fault[:_FAULT_SHOWN].split()).rstrip(".")
    return "".join(c if c.isprintable() else "?" for c in text)


def _chat(rules: str, question: str) -> list[Message]:
    return [{"role": "system", "content": rules}, {"role": "user", "content": question}]


def _form(reasoning: bool, properties: Mapping[str, Schema]) -> Schema:
    reasons: Schema = {"reasoning": {"type": "string"}} if reasoning else {}
    every = {**reasons, **properties}
    return {"type": "object", "properties": every, "required": list(every), "additionalProperties": False}


def _without_reasons(answer: Any, reasoning: bool) -> Any:
    """The answer without the reasons, which decide nothing; those that were not asked for stay, as an unknown key."""
    if not isinstance(answer, dict):
        raise ValueError(f"expected a JSON object, found {_kind(answer)}")
    if not reasoning:
        return answer
    if not isinstance(answer.get("reasoning", ""), str):
        raise ValueError(f"reasoning: expected text, found {_kind(answer['reasoning'])}")
    return {key: value for key, value in answer.items() if key != "reasoning"}


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


# --- the prisoner's dilemma -----------------------------------------------------------------------------------------


class PrisonersDilemma:
    """The question of a round. A model knows the two choices by the condition's labels alone, in the condition's order.

    `labels` are the words for cooperate and defect; `cooperate_first` is the order in which the rules, the payoffs and
    the answer's form name the two.
    """

    def __init__(self, prompts: Prompts, parameters: Mapping[str, Any], reasoning: bool):
        self._prompts = prompts
        self._noise: float = parameters.get("noise", 0)
        self._reasoning = reasoning
        cooperate, defect = parameters.get("labels", (Choice.COOPERATE.value, Choice.DEFECT.value))
        if len({cooperate, defect, RESIGN}) < 3:
            raise ValueError(f"labels: expected two different words other than {RESIGN}, found {cooperate}, {defect}")
        self._label = {Choice.COOPERATE: cooperate, Choice.DEFECT: defect}
        self._order = [Choice.COOPERATE, Choice.DEFECT]
        if parameters.get("label_order", "cooperate_first") == "defect_first":
            self._order.reverse()
        self._words = {"noise"} if self._noise else set()

    def phase(self, view: View) -> str:
        return "choose"

    def messages(self, view: View) -> list[Message]:
        first, second = self._order
        you = view["you"]
        other = next(agent for agent in view["scores"] if agent != you)
        names = {
            "first": encode(self._label[first]),
            "second": encode(self._label[second]),
            "resign": encode(RESIGN),
            "rounds": view["totalRounds"],
        }
        rules = {
            **names,
            "first_first": PAYOFF[first, first],
            "first_second": PAYOFF[first, second],
            "second_first": PAYOFF[second, first],
            "second_second": PAYOFF[second, second],
            "noise": _number(self._noise),
        }
        turn = {
            **names,
            "history": "\n".join(self._history(view)),
            "played": view["turnNumber"],
            "agent": encode(you),
            "other": encode(other),
            "own_score": view["scores"][you],
            "other_score": view["scores"][other],
            "round": view["round"],
            "remaining": view["roundsRemaining"],
        }
        words = self._words | _words(history=view["history"], reasoning=self._reasoning)
        return _chat(self._prompts.fill(RULES, rules, self._words), self._prompts.fill("choose", turn, words))

    def schema(self, view: View) -> Schema:
        choice = {"type": "string", "enum": [*(self._label[choice] for choice in self._order), RESIGN]}
        return _form(self._reasoning, {"choice": choice})

    def action(self, answer: Any) -> Any:
        """All faults are found here: the game's own sentences would tell what the labels stand for."""
        answer = _without_reasons(answer, self._reasoning)
        for key in answer:
            if key != "choice":
                raise ValueError(f"unknown key {shown(str(key))}")
        said = answer.get("choice")
        if said == RESIGN:
            return {"type": RESIGN}
        for choice in self._order:
            if said == self._label[choice]:
                return {"type": "choose", "choice": choice.value}
        listed = ", ".join(encode(self._label[choice]) for choice in self._order)
        found = "text that is none of them" if isinstance(said, str) else "nothing" if said is None else _kind(said)
        raise ValueError(f"choice: expected {listed} or {encode(RESIGN)}, found {found}")

    def _history(self, view: View) -> Iterator[str]:
        for number, past in enumerate(view["history"], start=1):
            choices = {agent: self._label[Choice(choice)] for agent, choice in past["choices"].items()}
            yield encode({"round": number, "choices": choices, "points": past["scores"]})


# --- the fish pool --------------------------------------------------------------------------------------------------


class Commons:
    """The questions of the four phases. Which rules hold is the condition's; every value comes from the view."""

    def __init__(self, prompts: Prompts, parameters: Mapping[str, Any], reasoning: bool):
        self._prompts = prompts
        self._parameters = commons.parameters_of(parameters)
        self._reasoning = reasoning
        self._words = condition_words(self._parameters)

    def phase(self, view: View) -> str:
        return str(view["phase"])

    def messages(self, view: View) -> list[Message]:
        rules = view["rules"]
        of_the_condition = {
            "n": rules["n"],
            "names": encode(view["names"]),
            "horizon": _number(view["horizon"]),
            "capacity": rules["capacity"],
            "growth": _number(rules["growth"]),
            "collapse": rules["collapse"],
            "price": _number(rules["price"]),
            "audit_q": _number(rules["audit_q"]),
            "fine": _number(rules["fine"]["amount"]),
            "permission": view["permission"],
        }
        me, last = view["me"], view["last_round"]
        history = list(public_history(view))
        fines = {agent: audit["fine"] for agent, audit in view["audits"].items()}
        turn = {
            "history": "\n".join(map(encode, history)),
            "agent": encode(view["agent_id"]),
            "others": encode(_others(view)),
            "round": view["round"],
            "horizon": _number(view["horizon"]),
            "stock": _number(view["stock"]["value"]),
            "fair_share": _number(view["fair_share"]),
            "reports_total": _number(last["reports_total"]),
            "stock_drop": _number(last["stock_drop"]),
            "payoff": _number(me["payoff_total"]),
            "fines": _number(me["fines"]),
            "intention": _number(me["intention"]),
            "demand": _number(me["demand"]),
            "catch": _number(me["catch"]),
            "audit_fines": encode(fines),
            "least": view["legal"]["min"],
            "most": view["legal"]["max"],
            "message_limit": MESSAGE_LIMIT,
        }
        of_the_turn = {
            "reasoning": self._reasoning,
            "history": history,
            "fair share": view["fair_share"] is not None,
            "reports total": last["reports_total"] is not None,
            "stock drop": last["stock_drop"] is not None,
            "own intention": me["intention"] is not None,
            "audit fines": fines and "audit" in self._words,
        }
        return _chat(
            self._prompts.fill(RULES, of_the_condition, self._words),
            self._prompts.fill(self.phase(view), turn, self._words | _words(**of_the_turn)),
        )

    def schema(self, view: View) -> Schema:
        tons = {"type": "integer", "minimum": view["legal"]["min"], "maximum": view["legal"]["max"]}
        tons_or_null = {"anyOf": [tons, {"type": "null"}]}
        message = {"message": {"type": "string", "maxLength": MESSAGE_LIMIT}} if "chat" in self._words else {}
        form: Mapping[Phase, Callable[[], dict[str, Schema]]] = {
            Phase.PLEDGE: lambda: {
                **({"intention": tons} if "intention" in self._words else {}),
                "promise": tons_or_null,
                **message,
            },
            Phase.CATCH: lambda: {"catch": tons},
            Phase.REPORT: lambda: {"report": tons_or_null, **message},
            Phase.DISCUSS: lambda: {**message, **(_judgements(view) if "discuss" in self._words else {})},
        }
        return _form(self._reasoning, form[Phase(view["phase"])]())

    def action(self, answer: Any) -> Any:
        return _without_reasons(answer, self._reasoning)


def condition_words(parameters: commons.Parameters) -> frozenset[str]:
    """The words on which lines of the fish pool's prompts can hang, as far as the condition decides them."""
    p = parameters
    held = _words(
        **{channel.value: channel in p.channels for channel in Channel},
        intention=p.elicit_intention and Channel.PROMISE in p.channels,
        audit=p.audit_q > 0,
        reveal=p.reveal is Reveal.TRUE,
        permission=p.permission is not commons.Permission.SILENT or p.speech is not commons.Speech.FREE,
    )
    return held | {
        f"promise {p.promise_semantics.value}",
        f"stock {p.stock.value}",
        f"horizon {p.horizon.value}",
        f"rationing {p.rationing.value}",
        f"fine {p.fine_kind.value}",
        f"fine {p.fine_to.value}",
        f"memory {p.memory.value}",
    }


def public_history(view: View) -> Iterator[dict[str, Any]]:
    """What all agents have seen, in the order in which it happened, as far as the condition's memory goes.

    What a view adds to an earlier one comes after all that was there, so that a server need not read the rest again.
    """
    now = {"round": view["round"], "promises": view["promises"], "reports": view["reports"]}
    caught = {agent: audit["catch"] for agent, audit in view["audits"].items()}
    for entry in (*view["ledger"], {**now, "catches": caught}):
        number = entry["round"]
        messages = [message for message in view["messages"] if message["round"] == number]
        for key, phase in (("promises", Phase.PLEDGE), ("reports", Phase.REPORT), ("catches", Phase.DISCUSS)):
            if entry[key]:
                yield {"round": number, "true catches" if key == "catches" else key: entry[key]}
            for message in messages:
                if message["phase"] == phase:
                    accused = {"accuses": message["accuse"]} if message["accuse"] else {}
                    yield {"round": number, "from": message["agent"], "message": message["message"], **accused}


def _judgements(view: View) -> dict[str, Schema]:
    others = _others(view)
    percent = {"type": "integer", "minimum": 0, "maximum": 100}
    return {
        "accuse": {"type": "array", "items": {"type": "string", "enum": others}, "maxItems": len(others)},
        "trust": {
            "type": "object",
            "properties": dict.fromkeys(others, percent),
            "required": others,
            "additionalProperties": False,
        },
    }


def _others(view: View) -> list[str]:
    return [name for name in view["names"] if name != view["agent_id"]]


# --- the dictator game ----------------------------------------------------------------------------------------------


class Dictator:
    """The question to a model that serves as oracle: both documents, and what the dictator's decides.

    A document is hostile data. The dictator's stands as text in its element with <, > and & as entities, the
    recipient's as a JSON array of numbered lines (the paper's section 3.1 and appendix A), so that no document can
    close its own element, stand in for the other or reach the rules. The dictator's comes first, so that a server need
    not read it again for every recipient.
    """

    def __init__(self, prompts: Prompts, parameters: Mapping[str, Any], reasoning: bool):
        self._prompts = prompts
        self._reasoning = reasoning

    def phase(self, view: View) -> str:
        return str(view["phase"])

    def messages(self, view: View) -> list[Message]:
        documents = {
            "dictator": html.escape(view["dictator"], quote=False),
            "recipient": encode_lines(view["recipient"]),
        }
        asked = self._prompts.fill(self.phase(view), documents, _words(reasoning=self._reasoning))
        return _chat(self._prompts.fill(RULES, {}), asked)

    def schema(self, view: View) -> Schema:
        return _form(
            self._reasoning, {"decision": {"type": "string", "enum": [decision.value for decision in Decision]}}
        )

    def action(self, answer: Any) -> Any:
        return answer  # the reasons are kept with the decision


def encode_lines(text: str) -> str:
    """A document as a JSON array, one numbered line of it a line; the texts joined by newlines give it back."""
    rows = (encode({"line": number, "text": line}) for number, line in enumerate(text.split("\n"), start=1))
    return "[\n  " + ",\n  ".join(rows) + "\n]"


def _words(**held: Any) -> frozenset[str]:
    return frozenset(word for word, holds in held.items() if holds)


def _number(value: float | None) -> str:
    """A number as in the rules, 2 and not 2.0; what the condition hides is filled into lines that are left out."""
    return "unknown" if value is None else f"{value:.10g}"


QUESTIONS: Mapping[str, Callable[[Prompts, Mapping[str, Any], bool], Question]] = {
    PRISONERS_DILEMMA: PrisonersDilemma,
    COMMONS: Commons,
    DICTATOR: Dictator,
}
