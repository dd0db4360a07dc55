"""The journal: what it keeps whatever happens, what it refuses, and its published form."""

from __future__ import annotations

import asyncio
import gzip
import json
import lzma
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_backend import MODEL, Clock, Server, a_reply, question

from fishpool import cli
from fishpool.models import publishing
from fishpool.models.calls import Reply, Request, canonical, key_of
from fishpool.models.client import Client
from fishpool.models.faults import Exhausted, Stop, TransportFault
from fishpool.models.journal import Entry, Journal, Sort

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("ask_many.py")


def a_request(**fields) -> Request:
    model = {"backend": "scripted", "model": "tiny", "digest": "d" * 64, "options": {"seed": 1}, "thinking": None}
    return Request(**(question(messages=({"role": "user", "content": "Well?"},)) | model | fields))


def entry(text="Yes.", sort=Sort.ANSWER, **fields):
    return Entry(sort, a_reply(text, **fields))


FAULT = Entry(Sort.FAULT, fault="503 busy")


def keep(journal, request, kept):
    return journal.keep_all([(request.key, request.to_json(), kept)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.sqlite"


@pytest.fixture
def journal(path):
    with closing(Journal(path)) as opened:
        yield opened


def run(path, calls, number, latency=0.0, *limit):
    """`ask_many.py` in a process of its own."""
    arguments = [path, calls, number, latency, *limit]
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return json.loads(out)


def asked(calls):
    return calls.read_text().split() if calls.exists() else []


# ── What is kept ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_kept_comes_back_as_it_was(journal, path):
    reply = Reply("déjà\0vu 🐟", " \n", "stop", 12, None, 0.1 + 0.2)
    keep(journal, a_request(), Entry(Sort.ANSWER, reply))
    with closing(Journal(path)) as again:
        assert again.look_up(a_request().key) == Entry(Sort.ANSWER, reply)
        assert again.look_up(a_request(replicate=2).key) is None


@pytest.mark.parametrize("first", [entry("", Sort.EMPTY), FAULT])
def test_an_answer_replaces_what_was_none(journal, first):
    keep(journal, a_request(), first)
    keep(journal, a_request(), entry("Yes."))
    assert journal.look_up(a_request().key) == entry("Yes.")


@pytest.mark.parametrize("second", [entry("No."), entry("", Sort.EMPTY), FAULT])
def test_the_first_answer_stays(journal, second):
    assert keep(journal, a_request(), entry("Yes.")) == 1
    assert keep(journal, a_request(), second) == 0
    assert journal.look_up(a_request().key) == entry("Yes.")
    assert asyncio.run(journal.keep(a_request().key, a_request().to_json(), second)) == entry("Yes.")


def test_one_key_kept_twice_at_once_is_one_answer(journal):
    async def go():
        key, text = a_request().key, a_request().to_json()
        return await asyncio.gather(*(journal.keep(key, text, entry(str(number))) for number in range(5)))

    assert asyncio.run(go()) == [entry("0")] * 5


def test_who_no_longer_waits_has_the_reply_kept_all_the_same(journal):
    async def go():
        keeping = asyncio.create_task(journal.keep(a_request().key, a_request().to_json(), entry()))
        await asyncio.sleep(0)
        keeping.cancel()
        await journal.written()

    asyncio.run(go())
    assert journal.look_up(a_request().key) == entry()


def test_replies_that_come_together_share_a_commit(journal, monkeypatch):
    """Or a slow disk would slow down the models: a commit waits for it."""
    commits = []
    store = Journal._store
    monkeypatch.setattr(Journal, "_store", lambda self, some: commits.append(len(some)) or store(self, some))

    async def go():
        requests = [a_request(replicate=number) for number in range(100)]
        await asyncio.gather(*(journal.keep(request.key, request.to_json(), entry()) for request in requests))

    asyncio.run(go())
    assert sum(commits) == 100
    assert len(commits) <= 2


def test_the_disk_is_waited_for(journal):
    assert journal._writing.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert journal._writing.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_latest_digest_is_known(journal):
    for digest in ("a", "b", "a"):
        journal.note_digest("lab", "tiny", digest)
        assert journal.digest("lab", "tiny") == digest
    assert journal.digest("lab", "other") is None


# ── Processes ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_processes_on_one_journal_use_the_same_answers(path, tmp_path):
    calls = [tmp_path / "calls.0", tmp_path / "calls.1"]
    first, second = (result(p) for p in [run(path, c, 60, 0.01) for c in calls])
    assert first["texts"] == second["texts"]
    # Each reply was paid for once, but for those that both were asking at the same moment: at most 4 of each at once.
    for outcome, file in zip((first, second), calls, strict=True):
        assert 60 - len(asked(file)) <= outcome["from_journal"]
    third = tmp_path / "calls.2"
    assert result(run(path, third, 60)) == {"texts": first["texts"], "from_journal": 60}
    assert asked(third) == []


def test_many_processes_may_make_the_journal_at_once(path, tmp_path):
    processes = [run(path, tmp_path / "calls", 3) for _ in range(4)]
    assert len({tuple(result(process)["texts"]) for process in processes}) == 1


def test_a_killed_process_pays_for_no_reply_twice(path, tmp_path):
    calls, left = tmp_path / "calls", tmp_path / "left"
    process = run(path, calls, 200, 0.02)
    while len(asked(calls)) < 40:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with closing(Journal(path)) as journal:
        kept = sum(row.answers for row in journal.counts())
    before = asked(calls)
    assert 0 < kept <= len(before) < 200
    resumed = result(run(path, left, 200))
    assert resumed["from_journal"] == kept
    assert len(asked(left)) == 200 - kept  # not one of those that were kept
    assert len(before) - kept <= 8  # what was under way: 4 being asked, 4 being written


# ── What goes wrong ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_full_disk_stops_with_one_sentence_and_nothing_half(path, tmp_path):
    calls = tmp_path / "calls"
    process = run(path, calls, 500, 0.0, 200_000)  # no file may grow beyond 200 kB
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert err.startswith(f"{path}: the disk ")
    assert "make room and run again" in err
    assert err.count("\n") == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (kept,) = connection.execute("SELECT COUNT(*) FROM replies WHERE text LIKE 'round %'").fetchone()
        assert connection.execute("SELECT COUNT(*) FROM replies").fetchone() == (kept,)
    before = len(asked(calls))
    assert 0 < kept < 500
    resumed = result(run(path, calls, 500))
    assert resumed["from_journal"] == kept
    assert len(asked(calls)) == before + 500 - kept


def test_a_full_database_stops_with_one_sentence(journal, path):
    (pages,) = journal._writing.execute("PRAGMA page_count").fetchone()
    journal._writing.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(Stop, match=rf"^{path}: the disk is full"):
        journal.keep_all(
            (request.key, request.to_json(), entry("x" * 2000))
            for request in (a_request(replicate=number) for number in range(20))
        )
    assert journal.counts() == []


def test_a_file_that_is_no_database_is_named(path):
    path.write_text("replies: none\n" * 100)
    with pytest.raises(Stop, match=rf"^{path}: this is no journal of fishpool \(not an SQLite database\)"):
        Journal(path)
    assert path.read_text().startswith("replies: none")


@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_is_no_journal(tmp_path, read_only):
    with pytest.raises(Stop, match=rf"^{tmp_path}: is a folder; expected the file of a journal"):
        Journal(tmp_path, read_only=read_only)


def test_another_database_is_left_alone(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE fish (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(Stop, match=rf"^{path}: this is an SQLite database but no journal"):
        Journal(path)
    assert path.read_bytes() == before


def test_a_newer_journal_is_refused(journal, path):
    journal.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 3")
    with pytest.raises(Stop, match=r"this journal has format 3 and fishpool \S+ reads up to 2; use the newer"):
        Journal(path)


def test_a_damaged_journal_is_named(path):
    with closing(Journal(path)) as journal:
        for number in range(200):
            keep(journal, a_request(replicate=number), entry("x" * 1000))
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(Stop, match=rf"^{path}: the journal is damaged"), closing(Journal(path)) as journal:
        journal.look_up(a_request().key)


def test_a_journal_in_no_folder_is_named(tmp_path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(Stop, match="the journal cannot be made"):
        Journal(tmp_path / "results" / "journal.sqlite")


def test_a_journal_that_another_keeps_to_itself_is_named(journal, path, monkeypatch):
    monkeypatch.setattr("fishpool.models.journal._PATIENCE", 0.05)
    with closing(Journal(path)) as impatient, closing(sqlite3.connect(path, isolation_level=None)) as greedy:
        greedy.execute("BEGIN IMMEDIATE")
        with pytest.raises(Stop, match="another process kept the journal to itself"):
            keep(impatient, a_request(), entry())


def test_reading_makes_no_file_and_writes_none(path):
    with pytest.raises(Stop, match=rf"^{path}: there is no journal"):
        Journal(path, read_only=True)
    assert not path.exists()


# ── Publishing ───────────────────────────────────────────────────────────────────────────────────────────────────


def filled(path):
    """A journal with two studies, all sorts of entries, and a digest for each of two models."""
    with closing(Journal(path)) as journal:
        for study in ("one", "two"):
            for number in range(10):
                request = a_request(run_id=f"{study}:c:{number}:a-b", model="tiny" if number % 2 else "small")
                kept = FAULT if number == 3 else entry("", Sort.EMPTY) if number == 4 else entry(f"{study} {number}")
                keep(journal, request, kept)
        journal.note_digest("lab", "tiny", "old")
        journal.note_digest("lab", "tiny", "d" * 64)
        journal.note_digest("lab", "small", "d" * 64)
        journal.note_digest("lab", "unused", "u" * 64)
    return path


def fishpool(capsys, *arguments):
    code = cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err.splitlines()


def test_export_import_export_gives_the_same_bytes(path, tmp_path, capsys):
    filled(path)
    first, second, copy = tmp_path / "a.jsonl.xz", tmp_path / "b.jsonl.xz", tmp_path / "copy.sqlite"
    assert fishpool(capsys, "journal", "export", first, "--journal", path) == (0, [f"{first}: 20 replies"], [])
    said = [f"{first}: 20 replies, 20 of them new in {copy}"]
    assert fishpool(capsys, "journal", "import", first, "--journal", copy) == (0, said, [])
    fishpool(capsys, "journal", "export", second, "--journal", copy)
    assert first.read_bytes() == second.read_bytes()
    with lzma.open(first) as packed:
        assert sum(1 for _ in packed) == 1 + 3 + 20
    fishpool(capsys, "journal", "import", first, "--journal", copy)
    fishpool(capsys, "journal", "export", second, "--journal", copy)
    assert first.read_bytes() == second.read_bytes()


words = st.text(st.characters(codec="utf-8"), max_size=20)
counts = st.none() | st.integers(0, 2**63 - 1)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.integers(1, 99),
        st.builds(Reply, words, words, words, counts, counts, st.floats(0, 1e300)),
        max_size=5,
    )
)
def test_whatever_was_replied_survives_publishing(tmp_path_factory, replies):
    folder = tmp_path_factory.mktemp("p")
    requests = {number: a_request(replicate=number) for number in replies}
    with closing(Journal(folder / "a")) as journal:
        for number, reply in replies.items():
            keep(journal, requests[number], Entry(Sort.ANSWER, reply))
        publishing.export(journal, folder / "a.jsonl.xz")
    published = publishing.Published(folder / "a.jsonl.xz", ["tiny"])
    assert {number: published.look_up(request.key).reply for number, request in requests.items()} == replies
    with closing(Journal(folder / "b")) as copy:
        publishing.import_into(copy, folder / "a.jsonl.xz")
        publishing.export(copy, folder / "b.jsonl.xz")
    assert (folder / "a.jsonl.xz").read_bytes() == (folder / "b.jsonl.xz").read_bytes()


def test_the_file_is_in_the_order_of_the_keys_and_holds_no_time(path, tmp_path):
    file = exported(path, tmp_path)
    lines = [json.loads(line) for line in unpacked(file).splitlines()]
    assert lines[0] == {"format": "fishpool journal", "version": 1}
    assert [line["model"] for line in lines[1:4]] == ["small", "tiny", "unused"]
    keys = [line["key"] for line in lines[4:]]
    assert keys == sorted(keys)
    assert not any("written" in line for line in lines)


def test_a_study_is_exported_with_the_digests_that_it_was_played_with(path, tmp_path, capsys):
    filled(path)
    with closing(Journal(path)) as journal:
        keep(journal, a_request(run_id="one_more:c:0:a", digest="x"), entry())
        journal.note_digest("lab", "tiny", "new")  # the weights were changed on the server since
    file = tmp_path / "one.jsonl.xz"
    assert fishpool(capsys, "journal", "export", file, "--study", "one", "--journal", path)[1] == [
        f"{file}: 10 replies"
    ]
    lines = [json.loads(line) for line in unpacked(file).splitlines()][1:]
    assert {line["request"]["run_id"].split(":")[0] for line in lines[2:]} == {"one"}
    assert [(line["model"], line["digest"]) for line in lines[:2]] == [("small", "d" * 64), ("tiny", "d" * 64)]


@pytest.mark.parametrize("study", ["three", "on", "%", "one' OR 1=1 --"])
def test_a_study_without_replies_is_named_and_nothing_written(path, tmp_path, capsys, study):
    file = tmp_path / "none.jsonl.xz"
    code, out, err = fishpool(capsys, "journal", "export", file, "--study", study, "--journal", filled(path))
    assert (code, out) == (2, [])
    assert err == [f'{path}: the journal has no reply of a study "{study}" (fishpool journal lists them)']
    assert list(tmp_path.glob("none*")) == []


def test_the_counts_are_by_study_and_model(path, capsys):
    code, out, err = fishpool(capsys, "journal", "--journal", filled(path))
    assert (code, err) == (0, [])
    assert [line.split() for line in out] == [
        ["study", "model", "digest", "answers", "empty", "faults", "in", "out"],
        ["one", "small", "d" * 12, "4", "1", "0", "50", "25"],
        ["one", "tiny", "d" * 12, "4", "0", "1", "40", "20"],
        ["two", "small", "d" * 12, "4", "1", "0", "50", "25"],
        ["two", "tiny", "d" * 12, "4", "0", "1", "40", "20"],
    ]


def test_no_journal_is_a_fault_and_makes_none(path, capsys):
    code, _, err = fishpool(capsys, "journal", "--journal", path)
    assert code == 2
    assert len(err) == 1
    assert not path.exists()


def exported(path, tmp_path):
    with closing(Journal(filled(path))) as journal:
        publishing.export(journal, tmp_path / "all.jsonl.xz")
    return tmp_path / "all.jsonl.xz"


def unpacked(file):
    return lzma.decompress(file.read_bytes())


def tampered(file, number, change):
    """The published file with one line (counted from 1) changed."""
    lines = unpacked(file).splitlines(keepends=True)
    lines[number - 1] = change(lines[number - 1])
    file.write_bytes(lzma.compress(b"".join(lines)))
    return file


def changed(*path_and_value):
    """A change of one value in a line, at a path of keys."""
    *keys, last, value = path_and_value

    def change(line):
        fields = found = json.loads(line)
        for key in keys:
            found = found[key]
        found[last] = value
        return json.dumps(fields).encode() + b"\n"

    return change


def rekeyed(name, value):
    """A change of one value of the request, with the key that is then right."""

    def change(line):
        fields = json.loads(changed("request", name, value)(line))
        return json.dumps(fields | {"key": key_of(canonical(fields["request"]))}).encode() + b"\n"

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed("request", "messages", 0, "content", "Else?"), "the key is not the SHA-256 of the request"),
        (changed("request", "replicate", 9), "the key is not the SHA-256 of the request"),
        (changed("key", "0" * 64), "the key is not the SHA-256 of the request"),
        (changed("key", 5), "the key is not the SHA-256 of the request"),
        (changed("request", "extra", 1), "the line holds no request as fishpool makes them"),
        (rekeyed("model", ["tiny"]), "the line holds no request as fishpool makes them"),
        (rekeyed("run_id", None), "the line holds no request as fishpool makes them"),
        (rekeyed("digest", {}), "the line holds no request as fishpool makes them"),
        (rekeyed("round", True), "the line holds no request as fishpool makes them"),
        (rekeyed("attempt", 2**63), "the line holds no request as fishpool makes them"),
        (changed("request", "\ud800"), "the line holds half a character"),
        (changed("request", []), "the line holds no request as fishpool makes them"),
        (changed("reply", []), "the line holds no reply as fishpool writes them"),
        (changed("reply", "text"), "the line holds no reply as fishpool writes them"),
        (changed("reply", 5), "the line holds no reply as fishpool writes them"),
        (changed("sort", []), "the line holds no reply as fishpool writes them"),
        (changed("version", "\ud800"), "the line holds half a character"),
        (changed("sort", "guess"), "the line holds no reply as fishpool writes them"),
        (changed("reply", {"text": "only"}), "the line holds no reply as fishpool writes them"),
        (changed("reply", "tokens_in", True), "the line holds no reply as fishpool writes them"),
        (changed("reply", "tokens_in", 2**70), "the line holds no reply as fishpool writes them"),
        (changed("reply", "latency_ms", "1"), "the line holds no reply as fishpool writes them"),
        (changed("reply", "text", "\ud800"), "the line holds half a character (a lone surrogate), which is no text"),
        (lambda line: line.replace(b'"latency_ms":0.3', b'"latency_ms":1e999,"x":0.3'), "the line holds no reply"),
        (lambda line: line.replace(b"0.30000000000000004", b"NaN"), "this is no JSON object"),
        (lambda line: b"[1]\n", "this is no JSON object"),
        (lambda line: b"[" * 100_000 + b"\n", "this is no JSON object"),
        (lambda line: b"\xff\n", "this is no JSON object"),
        (lambda line: b"{}\n", "the line is neither a reply nor a model's digest"),
    ],
)
def test_a_tampered_line_is_named_and_nothing_is_taken(path, tmp_path, capsys, change, said):
    file = exported(path, tmp_path)
    lines = unpacked(file).splitlines()
    number = next(n for n, line in enumerate(lines, 1) if n > 10 and b'"sort":"answer"' in line)
    tampered(file, number, change)
    copy = tmp_path / "copy.sqlite"
    code, out, err = fishpool(capsys, "journal", "import", file, "--journal", copy)
    assert (code, out) == (2, [])
    assert len(err) == 1
    assert err[0].startswith(f"{file} line {number}: {said}")
    with closing(Journal(copy)) as journal:
        assert journal.counts() == []
    with pytest.raises(Stop, match=rf"line {number}: "):
        publishing.Published(file, ["tiny", "small"])


def test_two_replies_under_one_key_are_refused(path, tmp_path, capsys):
    """A replay would have taken the last of them, an import the first."""
    file = exported(path, tmp_path)
    lines = unpacked(file).splitlines()
    first = next(n for n, line in enumerate(lines, 1) if b'"sort":"answer"' in line)
    tampered(file, len(lines), lambda line: line + changed("reply", "text", "DEFECT")(lines[first - 1]))
    said = (
        f"{file} line {len(lines) + 1}: a second reply under the key of line {first}, so nobody can tell which counts"
    )
    assert fishpool(capsys, "journal", "import", file, "--journal", tmp_path / "copy.sqlite") == (2, [], [said])
    with pytest.raises(Stop, match=re.escape(said)):
        publishing.Published(file, ["tiny"])


def test_half_a_character_in_a_digest_is_named(path, tmp_path, capsys):
    file = tampered(exported(path, tmp_path), 2, changed("server", "\udc00"))
    said = f"{file} line 2: the line holds half a character (a lone surrogate), which is no text"
    assert fishpool(capsys, "journal", "import", file, "--journal", tmp_path / "copy.sqlite") == (2, [], [said])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ": the file is empty"),
        (b"\x00\x01\n", " line 1: this is no JSON object"),
        (b'{"a": 1}\n', " line 1: this is no published journal"),
        (b'{"format": "fishpool journal", "version": 2}\n', " line 1: format 2 is not 1"),
        (b'{"format": "fishpool journal", "version": 1}', " line 1: the line has no end"),
        (lzma.compress(b'{"format": "fishpool journal", "version": 1}\n')[:-9], "the file is cut off or damaged"),
        (
            gzip.compress(b'{"format": "fishpool journal", "version": 1}\n', mtime=0)[:-5],
            "the file is cut off or damaged",
        ),
    ],
)
def test_a_file_that_is_no_published_journal_is_named(tmp_path, content, said):
    file = tmp_path / "some.jsonl.xz"
    file.write_bytes(content)
    with pytest.raises(Stop) as stop:
        publishing.Published(file, ["tiny"])
    assert str(stop.value).startswith(str(file))
    assert said in str(stop.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Stop, match=r"none.jsonl.xz: the published journal cannot be read: No such file"):
        publishing.Published(tmp_path / "none.jsonl.xz", ["tiny"])


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_other_packings_are_read_too(path, tmp_path, pack):
    file = exported(path, tmp_path)
    other = tmp_path / "other"
    other.write_bytes(pack(unpacked(file)))
    with closing(Journal(tmp_path / "copy.sqlite")) as copy:
        assert publishing.import_into(copy, other) == (20, 20)


# ── Replay ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_replay_is_what_was_recorded_and_needs_no_server(path, tmp_path):
    def outcomes(server, replay=None):
        async def go():
            clock = Clock()
            client = Client(server.site, [MODEL], replay, sleep=clock.sleep, luck=clock)
            await client.open()
            found = await asyncio.gather(
                *(client.ask(MODEL, **question(round=number)) for number in range(1, 6)), return_exceptions=True
            )
            await client.close()
            return [str(o) if isinstance(o, Exhausted) else (o.request, o.reply) for o in found]

        return asyncio.run(go())

    def answer(endpoint, request):
        return {2: a_reply(""), 3: TransportFault("503 busy")}.get(request.round, a_reply(f"round {request.round}"))

    recorded = outcomes(Server(path, answer))
    with closing(Journal(path)) as journal:
        publishing.export(journal, tmp_path / "study.jsonl.xz")
    path.unlink()
    for journal in (path, None):
        server = Server(journal)
        assert outcomes(server, str(tmp_path / "study.jsonl.xz")) == recorded
        assert server.endpoints == []
    assert not path.exists()


def test_a_miss_in_a_replay_says_what_to_do(path, tmp_path):
    file = exported(path, tmp_path)

    async def go():
        client = Client(Server(None).site, [MODEL], str(file))
        await client.open()
        await client.ask(MODEL, **question(round=9))

    with pytest.raises(Stop, match=rf"^{file}: no reply is recorded for run .* round 9, .*or drop replay from"):
        asyncio.run(go())


def test_only_the_replies_of_the_models_are_loaded(path, tmp_path):
    published = publishing.Published(exported(path, tmp_path), ["tiny"])
    assert len(published._entries) == 10
    assert published.digest("lab", "small") == "d" * 64


def test_a_journal_of_the_first_format_is_brought_up_to_date(path):
    """Also by whoever only reads it; its replies are those that it had."""
    with closing(Journal(filled(path))) as journal:
        replies, digests = list(journal.entries()), journal.digests()
    with closing(sqlite3.connect(path)) as connection:
        for table in ("replies", "digests"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        connection.execute("PRAGMA user_version = 1")
    with closing(Journal(path, read_only=True)) as journal:
        assert (list(journal.entries()), journal.digests()) == (replies, digests)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


@pytest.mark.parametrize(("column", "value"), [("text", "Never."), ("sort", "empty"), ("tokens_in", 11)])
def test_a_reply_that_is_not_what_was_written_is_not_taken(journal, path, column, value):
    request = a_request()
    keep(journal, request, entry())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE replies SET {column} = ?", (value,))
    with pytest.raises(Stop, match=rf"^{path}: the reply in row 1 is not what was written; .* rowid = 1"):
        journal.look_up(request.key)
    with pytest.raises(Stop, match="is not what was written"):
        list(journal.entries())
