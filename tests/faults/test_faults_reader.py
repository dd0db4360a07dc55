"""Broken replies and broken records in great numbers: nothing is read that is not there, and nothing breaks the reader.

What the two readers make of each text is held against the parsers of `strict_json`, which share no code with them. The
texts are those of `fault_mutations`.
"""

import hashlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from effort import EFFORT
from fault_mutations import TOKENS, Held, mutated, seeds
from strict_json import STRICT, in_rust, same, sound, strictly

from fishpool import records
from fishpool.games import commons
from fishpool.games.prisoners_dilemma import read_action
from fishpool.models.calls import Reply
from fishpool.models.reader import read_reply
from fishpool.referee import MAX_REPLY, Verdict, decode
from fishpool.runners.dictator import read_answer
from fishpool.shards import CHECKSUMS, mark_recorded
from fishpool.tabulate import FaultyRecords, find_fault, tabulate

pytestmark = pytest.mark.faults

REPLIES = 20_000 * EFFORT
RECORDS = 20_000 * EFFORT


# ── Replies ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fish(phase: commons.Phase) -> Callable[[Any], Any]:
    parameters = commons.Parameters(agents=("a", "b"), channels=frozenset(commons.Channel))
    view = {"phase": phase, "legal": {"max": 50}, "names": parameters.names, "agent_id": "agent_1"}
    return lambda value: commons.read(parameters, view, value)


LEGAL: dict[str, Callable[[Any], Any]] = {
    "prisoners_dilemma": read_action,
    "dictator": read_answer,
    **{phase.value: fish(phase) for phase in commons.Phase},
}


def any_game(value: Any) -> Any:
    """What the first game makes of a value that knows it as an action."""
    for legal in LEGAL.values():
        try:
            return legal(value)
        except ValueError:
            continue
    raise ValueError("no game knows it")


def actions_in(text: str, legal: Callable[[Any], Any]) -> Iterator[Any]:
    """The legal action of every object that stands anywhere in a text, inside of others too."""
    at = text.find("{")
    while at >= 0:
        try:
            value, _ = STRICT.raw_decode(text, at)
            if sound(value):
                yield legal(value)
        except (ValueError, RecursionError):
            pass
        at = text.find("{", at + 1)


def is_nothing_but(text: str, action: Any, legal: Callable[[Any], Any]) -> bool:
    """Whether a text is objects with this action and blanks, perhaps in one fence."""
    text = text.strip(" \t\r\n\ufeff")
    if text.startswith("```") and text.endswith("```") and len(text) >= 6:
        text = text[3:-3]
        text = text[4:] if text[:4].lower() == "json" else text
    text = text.strip(" \t\r\n\ufeff")
    while text:
        try:
            value, end = STRICT.raw_decode(text)
            if legal(value) != action:
                return False
        except ValueError:
            return False
        text = text[end:].strip(" \t\r\n\ufeff")
    return True


def endings(text: str) -> Iterator[str]:
    """A text, and what stands after each sign that thinking ends."""
    yield text
    folded = text.lower()
    for sign in ("</think>", "</thinking>"):
        at = folded.find(sign)
        while at >= 0:
            yield text[at + len(sign) :]
            at = folded.find(sign, at + 1)


def check_reply(text: str, legal: Callable[[Any], Any]) -> Verdict:
    reading = read_reply(Reply(text, "", "stop", 1, 1, 1.0), legal)
    if reading.readable:
        assert reading.fault == ""
        assert reading.action in actions_in(text, legal), "an action that is not stated"
        if reading.verdict is Verdict.MOVED:
            assert any(is_nothing_but(end, reading.action, legal) for end in endings(text)), "words beside the answer"
    else:
        assert reading.action is None
        assert 0 < len(reading.fault) < 600
        assert reading.fault.isprintable(), "a sentence is one line"
    if len(text) <= MAX_REPLY:
        for value in strictly(text.strip(" \t\r\n\ufeff")):  # the text is JSON as a whole: there is no doubt about it
            try:
                expected = legal(value)
            except ValueError:
                if isinstance(value, dict):
                    assert reading.verdict is Verdict.INVALID
            else:
                assert reading.verdict is Verdict.MOVED
                assert reading.action == expected
    return reading.verdict


def test_a_broken_reply_is_read_as_what_it_states_or_not_at_all():
    corpus = [seed.decode("utf-8", "surrogatepass") for seed in seeds("replies")]
    verdicts: Counter[Verdict] = Counter()
    readers = list(LEGAL.values())
    for number, text in enumerate(mutated(corpus, REPLIES)):
        # the seeds go to every game, every other text to whichever knows it, and the rest to one game each
        legal = any_game if number % 2 else readers[number // 2 % len(readers)]
        for reader in [any_game, *readers] if number < len(corpus) else [legal]:
            try:
                verdicts[check_reply(text, reader)] += 1
            except Exception as error:
                raise AssertionError(f"{text!r}: {type(error).__name__}: {error}") from error
    print(f"\nreplies: {sum(verdicts.values())}: {dict(verdicts)}")
    assert min(verdicts[verdict] for verdict in Verdict) > REPLIES // 1000
    assert min(verdicts[Verdict.MOVED], verdicts[Verdict.REPAIRED]) > REPLIES // 50


def test_the_referee_takes_for_json_what_other_parsers_take_for_it():
    corpus = [seed.decode("utf-8", "surrogatepass") for seed in seeds("replies")]
    corpus = [text for text in corpus if text.startswith(("{", "["))]
    found: Counter[str] = Counter()
    for text in mutated(corpus, REPLIES, seed=1):
        if len(text) > MAX_REPLY:
            continue
        read, fault = decoded(text)
        assert fault.isprintable(), text
        assert len(fault) < 400, text
        assert same(read, strictly(text)), text
        found["JSON" if read else "none"] += 1
        if read and text.count("{") + text.count("[") < 100:  # the other one gives up earlier
            assert same(read, in_rust(text)), text
        if not read and (loose := in_rust(text)):
            # what json and this parser let through: a key twice, and a number that is no number
            found["key twice or too large"] += 1
            assert same(loose, [json.loads(text)]), text
            assert "twice" in fault or "too large" in fault, text
    print(f"\njson: {dict(found)}")
    assert min(found.values()) > 0


def decoded(text: str) -> tuple[list[Any], str]:
    """The value that the referee reads, in a list, or none and why."""
    try:
        return [decode(text)], ""
    except ValueError as error:
        return [], str(error)


FLOODS = [
    "{", "[", '"', "\\", "}", '{"a":', '[{"a":[', '\\"', '"\\', "{{", "```json", "<think>", "</think>",
    "<think></think>", "-", "1", "1e", "\ud800", "\x00", " ", "\n", "{'a': ", '{"a": 1} ', "sorry, ",
]  # fmt: skip


@pytest.mark.parametrize("flood", FLOODS)
def test_ten_megabytes_are_read_in_no_time(flood):
    text = flood * (10_000_000 // len(flood))
    started = time.process_time()
    for reply in (text, '{"catch": 5} ' + text, "<think>" + text, text + '{"catch": 5}'):
        assert not read_reply(Reply(reply, "", "stop", 1, 1, 1.0), fish(commons.Phase.CATCH)).readable
    with pytest.raises(ValueError, match="at most"):
        decode(text)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("before", ["", '{"catch": 5} ', '{"catch": ', "<think>"])
def test_the_longest_reply_that_is_read_takes_time_in_proportion(flood, before):
    text = (before + flood * MAX_REPLY)[:MAX_REPLY]
    started = time.process_time()
    reading = read_reply(Reply(text, "", "stop", 1, 1, 1.0), fish(commons.Phase.CATCH))
    assert reading.action in (None, {"catch": 5})
    assert time.process_time() - started < 0.5


# ── Records ──────────────────────────────────────────────────────────────────────────────────────────────────────

TABLES = [(game, table) for game in records.GAME_TABLES for table in records.tables(game, models=True)]
SAMPLES: dict[str, list[Any]] = {
    "string": ["moved", 'a "quoted" \\ text', "é 😀\x00\u2028", "", "1", "true", "null"],
    "integer": [0, 1, -7, 2**63 - 1],
    "number": [0.5, 0.0, -1e-7, 1e300, 12.0],
    "boolean": [True, False],
}
RECORD_TOKENS = (*TOKENS, ': "1"', ": 1", ": 1.7", ": null", ": true", ": [1]", ": {}", ', "x": 1', "\r\n", "\n\n")


LONG_EXPONENT = re.compile(rb"[eE][+-]?[0-9]{5}")


def record(game: str, table: str, number: int) -> str:
    """A line that is a record of a table."""
    values = {}
    for place, column in enumerate(records.columns(game, table)):
        some = SAMPLES[column.type] + ([] if column.required else [None])
        values[column.name] = some[(number + place) % len(some)]
    return json.dumps(values, ensure_ascii=number % 2 == 0, separators=(",", ":")) + "\n"


def meant(line: bytes, game: str, table: str) -> dict[str, Any] | None:
    """The record that a line is, without its end; None if it is none."""
    try:
        found = strictly(line.decode())
    except UnicodeDecodeError:
        return None
    columns = {column.name: column for column in records.columns(game, table)}
    if LONG_EXPONENT.search(re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line)):  # JSON, but no parser of numbers takes it in
        return None
    if not found or not isinstance(found[0], dict) or found[0].keys() != columns.keys():
        return None
    fits = all(
        (value is None and not columns[name].required) or fitting(value, columns[name].type)
        for name, value in found[0].items()
    )
    return found[0] if fits else None


def fitting(value: Any, kind: str) -> bool:
    if kind == "number":
        return type(value) is float or (type(value) is int and abs(value) <= 2**53)
    if kind == "integer":
        return type(value) is int and -(2**63) <= value < 2**63
    return type(value) is {"string": str, "boolean": bool}[kind]


def first_fault(content: bytes, game: str, table: str) -> int:
    """The number of the first line that is no record, 0 if each is one."""
    *lines, rest = content.split(b"\n")
    faulty = [number for number, line in enumerate(lines, start=1) if meant(line, game, table) is None]
    return (faulty + [len(lines) + 1] * bool(rest) + [0])[0]


def broken_records(game: str, table: str, number: int) -> Iterator[bytes]:
    """Files of three records, of which the second is broken in some way (or not)."""
    corpus = [record(game, table, sample) for sample in range(8)]
    luck = random.Random(f"{game} {table}")
    for text in mutated(corpus, number, seed=luck.randrange(2**32), tokens=RECORD_TOKENS):
        line = text.encode("utf-8", "surrogatepass")
        kind = luck.randrange(20)
        if kind == 0 and line:
            at = luck.randrange(len(line))
            line = line[:at] + bytes([luck.randrange(256)]) + line[at + 1 :]
        elif kind == 1:
            line = text.encode(luck.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig")), "surrogatepass")
        yield corpus[0].encode() + line + corpus[1].encode() * luck.randrange(2)


@pytest.mark.parametrize(("game", "table"), TABLES)
def test_a_broken_record_is_refused_with_its_line(game, table):
    file = Held(f"{table}.jsonl")
    found: Counter[str] = Counter()
    for content in broken_records(game, table, RECORDS // len(TABLES)):
        file.content = content
        fault, expected = find_fault(file, game, table, changed=False), first_fault(content, game, table)
        assert fault.isprintable(), content
        assert len(fault) < 1500, content
        if expected:
            assert fault.startswith(f"{file} line {expected}: "), (content, fault)
        else:
            assert fault == "", content
        found["faulty" if expected else "sound"] += 1
    print(f"\n{game} {table}: {dict(found)}")
    assert min(found.values()) > 0


@pytest.mark.parametrize(("game", "table"), TABLES)
def test_a_broken_record_from_elsewhere_is_never_converted_though_its_checksums_are_right(game, table, tmp_path):
    mark_recorded(tmp_path)
    file, output = tmp_path / f"{table}.jsonl", tmp_path / f"{table}.parquet"
    found: Counter[str] = Counter()
    for content in broken_records(game, table, RECORDS // 200 // len(TABLES) + 20):
        file.write_bytes(content)
        (tmp_path / CHECKSUMS).write_text(f"{hashlib.sha256(content).hexdigest()}  {file.name}\n")
        expected = first_fault(content, game, table)
        fault = converted(game, table, tmp_path, output)
        if expected:
            assert fault.startswith(f"{file} line {expected}: "), (content, fault)
            assert not output.exists()
        else:
            assert fault == "", content
            rows = [meant(line, game, table) for line in content.split(b"\n")[:-1]]
            assert pl.read_parquet(output).rows(named=True) == rows, content
            output.unlink()
        found["refused" if expected else "converted"] += 1
    print(f"\n{game} {table}: {dict(found)}")
    assert min(found["refused"], found["converted"]) > 0


def converted(game: str, table: str, shard: Path, output: Path) -> str:
    """Why a shard cannot be converted, "" if it has been."""
    try:
        tabulate(game, table, [shard], output)
    except FaultyRecords as fault:
        return str(fault)
    return ""


@pytest.mark.parametrize("flood", FLOODS)
def test_a_line_of_ten_megabytes_is_refused_in_no_time(flood, tmp_path):
    file = tmp_path / "turns.jsonl"
    start = '{"run_id":'
    file.write_bytes((start + flood * (10_000_000 // len(flood)) + "\n").encode("utf-8", "surrogatepass"))
    started = time.process_time()
    fault = find_fault(file, "prisoners_dilemma", "turns", changed=False)
    assert fault.startswith(f"{file} line 1: ")
    assert len(fault) < 1500
    assert time.process_time() - started < 2
