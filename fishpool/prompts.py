"""Prompts: text files, one a game and phase, in which single lines hang on the condition and `$names` stand for values.

Nothing here knows a game's rules or a model; `fishpool.questions` says what is asked, `config/prompts` holds the words.
The placeholders are those of `string.Template`; a line that opens with `[word]` or `[not word]` is there only if the
word holds of the condition (or of the turn), and with several of them only if all hold.

A file is filled in one pass: whatever a value holds is never looked at again. What others wrote or are called reaches
a prompt through `encode` alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any

from fishpool.documents import shown

RULES, REPAIR = "rules", "repair"
PRISONERS_DILEMMA, COMMONS, DICTATOR = "prisoners_dilemma", "commons", "dictator"

# The placeholders of each file, every one of which must be there, so that no edit hides what an agent is to see.
_OF_A_TURN = "agent round horizon stock fair_share reports_total stock_drop payoff fines most history"
PLACEHOLDERS: Mapping[str, Mapping[str, str]] = {
    PRISONERS_DILEMMA: {
        RULES: "rounds first second first_first first_second second_first second_second resign noise",
        "choose": "history played agent other own_score other_score round rounds remaining first second resign",
        REPAIR: "fault",
    },
    COMMONS: {
        RULES: "n names horizon capacity growth collapse price audit_q fine permission",
        "pledge": f"{_OF_A_TURN} least message_limit",
        "catch": f"{_OF_A_TURN} least intention",
        "report": f"{_OF_A_TURN} least intention demand catch message_limit",
        "discuss": f"{_OF_A_TURN} intention demand catch audit_fines others message_limit",
        REPAIR: "fault",
    },
    DICTATOR: {RULES: "", "dictate": "dictator recipient", REPAIR: "fault"},
}
_OPTIONAL = frozenset({"noise", "message_limit"})  # rules that an experimenter may keep to himself, and courtesies

# The words that a line can hang on: in all files those of the condition, in a phase's file those of the turn as well.
CONDITION_WORDS: Mapping[str, str] = {
    PRISONERS_DILEMMA: "noise",
    COMMONS: (
        "promise|report|discuss|chat|intention|audit|reveal|permission"
        "|promise ceiling|promise exact|stock exact|stock noisy|stock hidden|horizon known|horizon unknown"
        "|rationing proportional|rationing lottery|fine fixed|fine per_ton|fine sink|fine redistribute"
        "|memory none|memory public"
    ),
    DICTATOR: "",
}
TURN_WORDS: Mapping[str, str] = {
    PRISONERS_DILEMMA: "reasoning|history",
    COMMONS: "reasoning|history|fair share|reports total|stock drop|own intention|audit fines",
    DICTATOR: "reasoning",
}

_MARKS = re.compile(r"(?:\[[^\]\n]*\] *)+")
_MARK = re.compile(r"\[([^\]]*)\]")


@dataclass(frozen=True)
class Prompts:
    """The files of one game: `texts` by phase (and `rules`, `repair`), `sha256` of their bytes by file name."""

    game: str
    texts: Mapping[str, str] = field(hash=False)
    sha256: Mapping[str, str] = field(hash=False)

    def fill(self, name: str, values: Mapping[str, object], words: Collection[str] = ()) -> str:
        """The text of one file with the lines that `words` leave and the values in place."""
        return _lines_left(self.texts[name], frozenset(words)).substitute(values)


def read_prompts(folder: Path, game: str) -> Prompts:
    """The prompts of a game: the files `folder/game/NAME.txt`.

    Raises ValueError, one sentence on one line, for the first file that is missing, is not UTF-8, has a placeholder or
    a word at the head of a line that nothing stands for, or lacks a placeholder that shows an agent its view.
    """
    texts, digests = {}, {}
    for name, placeholders in PLACEHOLDERS[game].items():
        path = folder / game / f"{name}.txt"
        try:
            content = path.read_bytes()
            texts[name] = content.decode("utf-8").replace("\r\n", "\n").strip("\n")
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}; a prompt folder holds {_files(game)}") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
        digests[path.name] = hashlib.sha256(content).hexdigest()
        words = CONDITION_WORDS[game] + ("" if name == RULES else f"|{TURN_WORDS[game]}")
        _check(path, texts[name], frozenset(placeholders.split()), frozenset(words.split("|")) - {""})
    return Prompts(game, texts, digests)


def encode(value: Any) -> str:
    """A JSON value as text for a prompt, from which `json.loads` gives the value back.

    Inside strings, and so in whatever others wrote, all that does not print (line ends, terminal escapes, marks of
    direction, lone surrogates) and all that a chat format could take for a mark of its own is escaped.
    """
    if isinstance(value, str):
        return _encode_text(value)
    if isinstance(value, dict):
        return "{" + ", ".join([f"{encode(key)}: {encode(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(encode, value)) + "]"
    return str(value) if type(value) is int else _JSON.encode(value)


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_MARKUP = frozenset("<>[]&`")


@lru_cache(maxsize=4096)  # what was said is shown turn after turn
def _encode_text(text: str) -> str:
    return "".join(_escaped(c) if c in _MARKUP or not c.isprintable() else c for c in _JSON.encode(text))


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


@lru_cache(maxsize=256)
def _lines_left(text: str, words: frozenset[str]) -> Template:
    """The lines whose words hold, without their marks; where lines went, no two empty lines follow each other."""
    left = []
    for line in text.split("\n"):
        marks = _MARKS.match(line)
        if marks is None:
            left.append(line)
        elif all(_holds(mark, words) for mark in _MARK.findall(marks.group())):
            left.append(line[marks.end() :])
    return Template(re.sub(r"\n{3,}", "\n\n", "\n".join(left)).strip("\n"))


def _holds(mark: str, words: frozenset[str]) -> bool:
    word = mark.removeprefix("not ")
    return (word in words) is (word == mark)


def _check(path: Path, text: str, placeholders: frozenset[str], words: frozenset[str]) -> None:
    template = Template(text)
    found = template.get_identifiers()
    if not template.is_valid():
        raise ValueError(f"{path}: a $ is followed by no name; write $$ for a dollar sign")
    for name in found:
        if name not in placeholders:
            raise ValueError(f"{path}: ${name} stands for nothing; known are {_listed(placeholders)}")
    for name in sorted(placeholders - _OPTIONAL - set(found)):
        raise ValueError(f"{path}: ${name} is missing; without it an agent would not see all of its view")
    for line in text.split("\n"):
        marks = _MARKS.match(line)
        for mark in _MARK.findall(marks.group()) if marks else ():
            if mark.removeprefix("not ") not in words:
                known = ", ".join(sorted(words))
                raise ValueError(f"{path}: a line hangs on {shown(mark)}, which is not known; known are {known}")


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names))


def _files(game: str) -> str:
    return ", ".join(f"{game}/{name}.txt" for name in PLACEHOLDERS[game])
