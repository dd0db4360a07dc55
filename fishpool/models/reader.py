"""What a language model's reply says: the one reader of model replies, for every game.

It reads what is stated and guesses nothing: no quotes are mended, and of two different answers neither is picked. What
an action is belongs to the game (`legal`), what an unreadable reply costs to the game's rules, and asking again to
`fishpool.referee`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from fishpool.models.calls import Reply
from fishpool.referee import MAX_REPLY, Reading, Verdict, decode

# The words of OpenAI and Ollama, then of Anthropic, Mistral, llama.cpp and Gemini, as gateways pass them on.
CUT_SHORT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "limit"})
REFUSED = frozenset({"content_filter", "refusal", "safety"})

_BLANK = " \t\r\n\ufeff"  # what may stand around JSON, and a byte order mark
_THINK = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_END_OF_THINKING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_OPENING = re.compile(r"\{(?!\s*\{)")  # of two braces in a row the first opens no JSON object
_BRACE_OR_TEXT = re.compile(r'[{}]|"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# Only the label of a reply without an answer, so it is narrow: "I will not cooperate" is a choice in words.
_REFUSAL = re.compile(
    r"""
    (?: (?:(?:i['’]m|i\ am)\ (?:very\ |so\ )?)?sorry[,.;:]?\ (?:but\ )? | i\ apologi[sz]e[,.;:]?\ (?:but\ )?
      | unfortunately,?\ | as\ an\ ai\b[^.,{]{0,40},\ )*
    i (?:\ can['’]t | \ can\ ?not | \ won['’]t | \ will\ not | (?:['’]m|\ am)\ (?:unable|not\ able)\ to
      | (?:\ must)?(?:\ respectfully)?\ decline\ to )
    \ (?: help | assist | comply | participate | take\ part | engage | fulfil+ | provide | answer | respond | do
      | play )
    (?: (?:\ you)?(?:\ with|\ in|\ to)?\ (?:this|that|your|such)\b | \s*[.!;] | $ )
    """,
    re.IGNORECASE | re.VERBOSE,
)


def read_reply(reply: Reply, legal: Callable[[Any], Any]) -> Reading:
    """The action that a reply states, or why there is none, in a sentence that may be sent back to the model.

    `legal` makes the game's action of a decoded JSON value or raises ValueError; actions that it makes equal are one
    answer. Moved is a reply of nothing but the answer, bare or in one fence, after any thinking, even if the answer is
    repeated. Repaired is one answer among other words. Of nested objects only the outermost can be an answer: a part of
    an object that is not legal itself ({"prediction": {..}, ..}) may be about anything.

    That the server cut the reply short or refused counts before what the text says.
    """
    finish_reason = reply.finish_reason.lower()
    if finish_reason in CUT_SHORT:
        return _unread("the reply was cut off at the limit of tokens; be brief", Verdict.TRUNCATED)
    if finish_reason in REFUSED:
        return _unread("the reply is a refusal", Verdict.REFUSAL)
    if len(reply.text) > MAX_REPLY:
        return _unread(f"the reply is cut off after {MAX_REPLY} characters; be brief", Verdict.TRUNCATED)
    said = _after_thinking(reply.text.strip(_BLANK), thinking_apart=reply.thinking != "")
    if said is None:
        return _unread("the thinking does not end; be brief", Verdict.TRUNCATED)
    if not said:
        return _unread("the reply is empty")
    return _read(_unfenced(said), legal)


def _unread(fault: str, verdict: Verdict = Verdict.INVALID) -> Reading:
    return Reading(verdict, fault=fault)


def _after_thinking(text: str, thinking_apart: bool) -> str | None:
    """The text after its leading think blocks; None if the last of them does not end.

    A first closing tag without an opening one ends a block too, since some chat templates open it in the prompt; not
    so where the server gave the thinking apart, or where the text is JSON and the tag is part of a string.
    The first closing tag counts: should the model have quoted it, more is read and not less.
    """
    if _is_json(_unfenced(text)):
        return text
    start = 0
    while True:
        opened = _THINK.match(text, start)
        if not opened and (start or thinking_apart):
            return text[start:].strip(_BLANK)
        closed = _END_OF_THINKING.search(text, start)
        if not closed:
            return None if opened else text[start:].strip(_BLANK)
        start = closed.end()


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except ValueError:
        return False
    return True


def _unfenced(text: str) -> str:
    """The content of the fence that the whole text is, or the text."""
    if not (len(text) >= 6 and text.startswith("```") and text.endswith("```")):
        return text
    inside = text[3:-3]
    return (inside[4:] if inside[:4].lower() == "json" else inside).strip(_BLANK)


def _read(text: str, legal: Callable[[Any], Any]) -> Reading:
    try:
        return Reading(Verdict.MOVED, legal(decode(text)))
    except ValueError as error:
        fault = str(error) if _is_json(text) else "the reply holds no JSON object; answer with one and nothing else"
    answers: list[Any] = []
    end, alone = 0, True
    for start, stop in _objects(text):
        alone = alone and not text[end:start].strip(_BLANK)
        try:
            answer = legal(decode(text[start:stop]))
        except ValueError as error:
            fault, alone = str(error), False
            if stop is None:  # what it would have said is not known, so neither is whether an answer before it stands
                return _unread(fault)
        else:
            if answer not in answers:
                answers.append(answer)
        end = stop or len(text)
        if len(answers) > 1:
            return _unread("the reply is ambiguous: it holds two different answers where one is asked for")
    if answers:
        alone = alone and not text[end:].strip(_BLANK)
        return Reading(Verdict.MOVED if alone else Verdict.REPAIRED, answers[0])
    if _REFUSAL.match(text):
        return _unread("the reply is a refusal", Verdict.REFUSAL)
    return _unread(fault)


def _objects(text: str) -> Iterator[tuple[int, int | None]]:
    """Start and end of every outermost pair of braces, in one pass; the end is None for a brace that is never closed.

    Braces inside the double-quoted strings of an object do not count; outside of objects a quote means nothing.
    """
    end: int | None = 0
    while end is not None and (opening := _OPENING.search(text, end)):
        depth, end = 0, None
        for token in _BRACE_OR_TEXT.finditer(text, opening.start()):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if depth == 0:
                end = token.end()
                break
        yield opening.start(), end
