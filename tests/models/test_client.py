"""The client: whom it asks and when, how often again, and what it makes of a reply that does not come."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_backend import MODEL, Clock, Server, a_reply, question

from fishpool.models.calls import Answered, Model
from fishpool.models.client import Client
from fishpool.models.faults import Exhausted, Stop, TransportFault
from fishpool.models.journal import Journal, Sort

BUSY = TransportFault("503 busy")
REFUSED = TransportFault("connection refused", unreachable=True)


def ask_all(server, questions, models=(MODEL,), replay=None, clock=None, results=False):
    """Ask questions at once through a client of their own; exceptions are given back if `results`."""

    async def go():
        timing = clock or Clock()
        client = Client(server.site, models, replay, sleep=timing.sleep, luck=timing)
        try:
            await client.open()
            return await asyncio.gather(
                *(client.ask(models[0], **fields) for fields in questions), return_exceptions=results
            )
        finally:
            await client.close()

    return asyncio.run(go())


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "results" / "journal.sqlite"


def in_turn(*outcomes):
    """An answer by script: each call the next outcome, the last one for ever."""
    left = list(outcomes)
    return lambda endpoint, request: left.pop(0) if len(left) > 1 else left[0]


# ── What is asked, and once ──────────────────────────────────────────────────────────────────────────────────────


def test_a_request_holds_all_that_the_reply_depends_on(journal):
    server = Server(journal)
    model = Model("lab", "tiny", sampling={"temperature": 0.2}, max_tokens=50, context=600, thinking=False)
    (answered,) = ask_all(server, [question(seed=7, replicate=3)], [model])
    request = answered.request
    assert request.options == {"temperature": 0.2, "seed": 7, "max_tokens": 50, "context": 600}
    assert (request.backend, request.model, request.digest) == ("scripted", "tiny", "d" * 64)
    assert (request.replicate, request.thinking, request.phase) == (3, False, "choose")
    assert not answered.from_journal
    assert server.endpoints[0].warmed == [("tiny", 600)]
    assert server.endpoints[0].closed


def test_thirty_replicates_are_thirty_rows_also_after_a_resume(journal):
    questions = [question(replicate=number) for number in range(1, 31)]
    ask_all(Server(journal), questions[:11])
    server = Server(journal)
    answers = ask_all(server, questions)
    assert len(server.calls) == 19
    assert sum(answered.from_journal for answered in answers) == 11
    assert rows(journal) == 30
    assert ask_all(Server(journal), questions) == [replace(answered, from_journal=True) for answered in answers]
    assert rows(journal) == 30


def test_the_same_request_at_once_is_asked_once(journal):
    server = Server(journal, latency=0.01)
    answers = ask_all(server, [question()] * 5)
    assert len(server.calls) == 1
    assert answers[1:] == answers[:-1]


def test_a_reply_is_in_the_journal_before_it_is_used(journal):
    async def go():
        server = Server(journal)
        client = Client(server.site, [MODEL], None)
        await client.open()
        answered = await client.ask(MODEL, **question())
        other = Journal(journal, read_only=True)  # sees only what is committed
        assert other.look_up(answered.request.key).reply == answered.reply
        other.close()
        await client.close()

    asyncio.run(go())


def test_half_a_surrogate_pair_harms_nobody(journal):
    def answer(endpoint, request):
        return a_reply("cut \ud83d here", thinking="\udc00")

    (answered,) = ask_all(Server(journal, answer), [question(messages=[{"role": "user", "content": "\ud800"}])])
    assert answered.reply.text == "cut \ufffd here"
    assert answered.request.messages[0]["content"] == "\ufffd"
    assert ask_all(Server(journal), [question(messages=[{"role": "user", "content": "\ud800"}])])[0].from_journal


# ── Endpoints ────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=40, deadline=None)
@given(
    luck=st.randoms(use_true_random=True),
    endpoints=st.integers(1, 3),
    concurrency=st.integers(1, 3),
    questions=st.integers(1, 20),
)
def test_endpoints_are_never_overrun_and_always_filled(tmp_path_factory, luck, endpoints, concurrency, questions):
    """Calls end one by one in any order, well or with a fault; whenever one has ended and is kept, no place stays free.

    Only who failed at an endpoint does not go there again at once, if there is another.
    """
    addresses = tuple(f"http://e{number}:1" for number in range(endpoints))
    places = endpoints * concurrency
    open_calls, fails, failed = [], {}, set()

    async def gate(endpoint):
        open_calls.append((endpoint, endpoint.calls[-1].round, asyncio.Event()))
        await open_calls[-1][-1].wait()

    def answer(endpoint, request):
        return BUSY if fails[request.round] else a_reply()

    async def go():
        server = Server(
            tmp_path_factory.mktemp("j") / "j", answer, addresses=addresses, concurrency=concurrency, retries=40
        )
        server.gate = gate
        client = Client(server.site, [MODEL], None, sleep=lambda seconds: asyncio.sleep(0))
        assert client.concurrency == places
        await client.open()
        asking = [asyncio.create_task(client.ask(MODEL, **question(round=n))) for n in range(questions)]
        left = questions
        while left:
            choosy = len(failed) if endpoints > 1 else 0
            # A place becomes free when the journal has the reply, which it writes in a thread of its own.
            async with asyncio.timeout(10):
                while len(open_calls) < max(1, min(left - choosy, places)):
                    await asyncio.sleep(0.001)
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(open_calls) <= min(left, places)
            busy = [sum(of is endpoint for of, _, _ in open_calls) for endpoint in server.endpoints]
            assert max(busy) <= concurrency
            _, round, ended = open_calls.pop(luck.randrange(len(open_calls)))
            fails[round] = luck.random() < 0.2
            if fails[round]:
                failed.add(round)
            else:
                failed.discard(round)
                left -= 1
            ended.set()
        await asyncio.gather(*asking)
        await client.close()

    asyncio.run(go())


def test_the_least_busy_endpoint_is_asked(journal):
    server = Server(journal, addresses=("http://one:1", "http://two:1"), concurrency=4, latency=0.01)
    ask_all(server, [question(round=number) for number in range(4)])
    assert [endpoint.busiest for endpoint in server.endpoints] == [2, 2]


def test_who_came_first_is_served_first(journal):
    server = Server(journal, concurrency=1, latency=0.001)
    ask_all(server, [question(round=number) for number in range(1, 11)])
    assert [call.round for call in server.calls] == list(range(1, 11))


def test_another_endpoint_is_tried_next(journal):
    def answer(endpoint, request):
        return BUSY if "one" in endpoint.address else a_reply()

    server = Server(journal, answer, addresses=("http://one:1", "http://two:1"), retries=1, concurrency=1)
    ask_all(server, [question(round=number) for number in range(8)])  # one retry is enough
    assert len(server.endpoints[1].calls) == 8


def test_a_dead_endpoint_draws_no_traffic(journal):
    def answer(endpoint, request):
        return REFUSED if "one" in endpoint.address else a_reply()

    async def forever(seconds):
        await asyncio.Event().wait()

    clock = Clock()
    clock.sleep = forever
    server = Server(journal, answer, addresses=("http://one:1", "http://two:1"), retries=1, concurrency=2)
    ask_all(server, [question(round=number) for number in range(1, 31)], clock=clock)
    assert len(server.endpoints[0].calls) == 2  # those who came before it was known
    assert len(server.endpoints[1].calls) == 30


def test_an_endpoint_that_is_down_when_the_client_opens_is_left_out(journal):
    def digest(endpoint, model):
        return REFUSED if "one" in endpoint.address else "d" * 64

    server = Server(journal, addresses=("http://one:1", "http://two:1"), digest=digest)
    ask_all(server, [question()])
    assert server.endpoints[1].warmed == [("tiny", 8192)]


def test_a_server_that_is_down_stops(journal):
    server = Server(journal, digest=lambda endpoint, model: REFUSED)
    with pytest.raises(Stop, match=r"^server lab at http://one:1 cannot be reached: connection refused; start it"):
        ask_all(server, [question()])
    assert server.endpoints[0].closed


def test_endpoints_with_different_weights_stop(journal):
    server = Server(
        journal,
        addresses=("http://one:1", "http://two:1"),
        digest=lambda endpoint, model: ("a" if "one" in endpoint.address else "b") * 64,
    )
    with pytest.raises(Stop, match=r'model "tiny" has digest a+ at http://one:1 but b+ at http://two:1'):
        ask_all(server, [question()])


def test_a_model_that_is_not_on_the_server_stops(journal):
    missing = Stop('model "tiny" is not on the server; ollama pull tiny')
    with pytest.raises(Stop, match="ollama pull tiny"):
        ask_all(Server(journal, digest=lambda endpoint, model: missing), [question()])


@pytest.mark.parametrize("pinned", ["d" * 64, "sha256:" + "d" * 64, "d" * 12])
def test_a_pinned_digest_is_what_a_request_holds(journal, pinned):
    (answered,) = ask_all(Server(journal), [question()], [replace(MODEL, digest=pinned)])
    assert answered.request.digest == pinned


def test_other_weights_than_the_pinned_ones_stop(journal):
    with pytest.raises(Stop, match=r"has digest d+, but the config pins eee"):
        ask_all(Server(journal), [question()], [replace(MODEL, digest="eee")])


def test_a_server_without_digests_is_taken_at_the_configs_word(journal):
    server = Server(journal, digest=lambda endpoint, model: "listed:" + "d" * 64)
    (answered,) = ask_all(server, [question()], [replace(MODEL, digest="eee")])
    assert answered.request.digest == "eee"


def test_an_unknown_server_is_named(journal):
    with pytest.raises(Stop, match='a model is on server "elsewhere", but servers in the config has only lab'):
        ask_all(Server(journal), [], [replace(MODEL, server="elsewhere")])


# ── Trying again ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_faults_are_tried_again_with_growing_waits(journal):
    clock = Clock()
    server = Server(journal, in_turn(BUSY, BUSY, BUSY, a_reply("at last")))
    (answered,) = ask_all(server, [question()], clock=clock)
    assert answered.reply.text == "at last"
    assert clock.slept == [0.5, 1.0, 2.0]


def test_waits_are_jittered_in_full(journal):
    clock = Clock()
    luck = random.Random(1)
    clock.uniform = luck.uniform
    with pytest.raises(Exhausted):
        ask_all(Server(journal, in_turn(BUSY), retries=40), [question()], clock=clock)
    assert len(clock.slept) == 40
    assert all(0 <= wait <= 30 for wait in clock.slept)
    assert len(set(clock.slept)) == 40
    assert min(clock.slept[10:]) < 5 < 25 < max(clock.slept)


@pytest.mark.parametrize(("asked", "waited"), [(0, 0.5), (7.5, 8.0), (86400, 300.5)])
def test_retry_after_is_honoured_within_reason(journal, asked, waited):
    clock = Clock()
    server = Server(journal, in_turn(TransportFault("429", retry_after=asked), a_reply()))
    ask_all(server, [question()], clock=clock)
    assert clock.slept == [waited]


def test_nobody_is_sent_to_a_server_that_asked_for_time(journal):
    """Regression for the black hole: what fails at once always looks least busy."""
    first = in_turn(TransportFault("429", retry_after=5), a_reply())

    async def go():
        waited = asyncio.Event()

        async def sleep(seconds):
            assert seconds >= 5
            await waited.wait()

        server = Server(journal, first, concurrency=1)
        client = Client(server.site, [MODEL], None, sleep=sleep)
        await client.open()
        asking = [asyncio.create_task(client.ask(MODEL, **question(round=number))) for number in (1, 2, 3)]
        await asyncio.sleep(0.05)
        assert len(server.calls) == 1
        waited.set()
        await asyncio.gather(*asking)
        assert len(server.calls) == 4
        await client.close()

    asyncio.run(go())


def test_a_server_that_keeps_failing_exhausts(journal):
    server = Server(journal, in_turn(BUSY), retries=2)
    with pytest.raises(Exhausted, match=r'^model "tiny": server lab at http://one:1 gave no reply in 3 tries; .* 503'):
        ask_all(server, [question()])
    assert len(server.calls) == 3


def test_a_server_that_is_gone_stops(journal):
    """It was there (reset in the middle of a body) and then was not: an outage leaves no void runs."""
    server = Server(journal, in_turn(TransportFault("connection reset"), REFUSED), retries=2)
    with pytest.raises(Stop, match="cannot be reached"):
        ask_all(server, [question()])
    assert rows(journal) == 0


def test_a_server_of_which_a_part_is_gone_exhausts(journal):
    def answer(endpoint, request):
        return REFUSED if "one" in endpoint.address else BUSY

    server = Server(journal, answer, addresses=("http://one:1", "http://two:1"), retries=5)
    with pytest.raises(Exhausted, match="in 6 tries"):
        ask_all(server, [question()])


def test_a_server_that_says_nothing_times_out(journal):
    server = Server(journal, latency=5, request_timeout=0.02, retries=1)
    with pytest.raises(Exhausted, match=r"in 2 tries; the last: no answer within 0.02 s"):
        ask_all(server, [question()])
    assert server.endpoints[0].busy == 0


def test_a_stop_of_the_server_is_not_tried_again(journal):
    server = Server(journal, in_turn(Stop("400: no such option")))
    with pytest.raises(Stop, match="no such option"):
        ask_all(server, [question()])
    assert len(server.calls) == 1
    assert rows(journal) == 0


@pytest.mark.parametrize(
    "reply",
    [
        a_reply(tokens_in=8192),
        a_reply(tokens_in=9000),
        a_reply(tokens_in=8100, tokens_out=92, finish_reason="length"),
    ],
)
def test_a_prompt_that_does_not_fit_stops(journal, reply):
    with pytest.raises(Stop, match=r'"study:plain:0:a-b", agent a, round 1 has \d+ tokens, .* a context of 8192'):
        ask_all(Server(journal, in_turn(reply)), [question()])
    assert rows(journal) == 0


@pytest.mark.parametrize(
    "reply",
    [
        a_reply(tokens_in=8191, tokens_out=1),
        a_reply(tokens_in=7168, tokens_out=1024, finish_reason="length"),  # its own limit cut it, not the context
        a_reply(tokens_in=None, tokens_out=None, finish_reason="length"),
    ],
)
def test_a_prompt_that_fits_does_not_stop(journal, reply):
    (answered,) = ask_all(Server(journal, in_turn(reply)), [question()])
    assert answered.reply == reply


# ── What the journal keeps, live and offline ─────────────────────────────────────────────────────────────────────

EMPTY = a_reply("", tokens_out=0)


@pytest.mark.parametrize("reply", [EMPTY, a_reply(" \n")])
def test_an_empty_reply_is_no_answer(journal, reply):
    (first,) = ask_all(Server(journal, in_turn(reply)), [question()])
    assert first.reply == reply
    assert sort_of(journal, first) is Sort.EMPTY
    offline = Server(journal, offline=True)
    assert ask_all(offline, [question()]) == [replace(first, from_journal=True)]
    server = Server(journal, in_turn(a_reply("now")))  # live it is asked again, and the answer stays
    (second,) = ask_all(server, [question()])
    assert (second.reply.text, second.from_journal) == ("now", False)
    assert ask_all(offline, [question()])[0].reply.text == "now"


@pytest.mark.parametrize("reply", [a_reply("", thinking="hm"), a_reply("", finish_reason="length"), a_reply("No.")])
def test_what_was_thought_or_cut_or_refused_is_an_answer(journal, reply):
    (answered,) = ask_all(Server(journal, in_turn(reply)), [question()])
    assert sort_of(journal, answered) is Sort.ANSWER


def test_a_fault_is_served_offline_and_asked_again_live(journal):
    with pytest.raises(Exhausted) as live:
        ask_all(Server(journal, in_turn(BUSY)), [question()])
    with pytest.raises(Exhausted) as offline:
        ask_all(Server(journal, offline=True), [question()])
    assert str(offline.value) == str(live.value)
    assert ask_all(Server(journal), [question()])[0].reply == a_reply()


def test_offline_nobody_is_called_and_a_miss_is_named(journal):
    (recorded,) = ask_all(Server(journal), [question()])
    server = Server(journal, offline=True)
    assert ask_all(server, [question()]) == [replace(recorded, from_journal=True)]
    with pytest.raises(Stop) as miss:
        ask_all(server, [question(round=2, agent="b", phase="report")])
    sentence = str(miss.value)
    for named in (str(journal), '"study:plain:0:a-b"', "agent b", "round 2", "phase report", "offline: false"):
        assert named in sentence
    assert "\n" not in sentence
    assert server.endpoints == []  # not even made


def test_offline_with_a_changed_prompt_is_a_miss(journal):
    ask_all(Server(journal), [question()])
    with pytest.raises(Stop, match="prompt, model or options have changed"):
        ask_all(Server(journal, offline=True), [question(messages=[{"role": "user", "content": "Well?"}])])


def test_offline_without_a_journal_stops(journal):
    with pytest.raises(Stop, match="there is no journal"):
        ask_all(Server(journal, offline=True), [question()])


def test_offline_with_a_model_that_never_answered_stops(journal):
    ask_all(Server(journal), [question()])
    with pytest.raises(Stop, match='no reply of model "other"'):
        ask_all(Server(journal, offline=True), [], [replace(MODEL, name="other")])


def test_a_client_without_a_journal_stops():
    with pytest.raises(Stop, match="set journal: FILE"):
        ask_all(Server(None), [question()])


# ── Being cancelled ──────────────────────────────────────────────────────────────────────────────────────────────


def test_who_is_cancelled_takes_nobody_along_and_leaves_no_place_taken(journal):
    async def go():
        server = Server(journal, concurrency=1, latency=0.01)
        client = Client(server.site, [MODEL], None)
        await client.open()
        asking = [asyncio.create_task(client.ask(MODEL, **question(round=n // 2))) for n in range(2, 14)]
        await asyncio.sleep(0.005)
        for task in asking[::2]:  # one of each two who ask the same
            task.cancel()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        assert all(isinstance(answered, Answered) for answered in answers[1::2])
        assert all(isinstance(answered, asyncio.CancelledError) for answered in answers[::2])
        await client.close()
        assert server.endpoints[0].busiest == 1
        assert len(server.calls) == 6

    asyncio.run(go())


def test_closing_gives_up_what_is_asked_and_keeps_what_was_answered(journal):
    async def go():
        server = Server(journal, concurrency=2, latency=0.01)
        client = Client(server.site, [MODEL], None)
        await client.open()
        asking = [asyncio.create_task(client.ask(MODEL, **question(round=n))) for n in range(1, 50)]
        await asking[3]
        await client.close()
        await asyncio.gather(*asking, return_exceptions=True)
        return [task.result() for task in asking if not task.cancelled()]

    answers = asyncio.run(go())
    assert 4 <= len(answers) < 49
    assert len(answers) <= rows(journal) < 49
    assert ask_all(Server(journal, offline=True), [question(round=1)])[0].from_journal


def test_a_stop_of_the_journal_reaches_everybody_who_waits(journal, monkeypatch):
    def full(self, entries):
        raise Stop("the disk is full")

    monkeypatch.setattr(Journal, "_store", full)
    outcomes = ask_all(Server(journal), [question(round=n) for n in range(5)], results=True)
    assert [str(outcome) for outcome in outcomes] == ["the disk is full"] * 5


# ── Looking in from outside ──────────────────────────────────────────────────────────────────────────────────────


def rows(path):
    import sqlite3

    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT COUNT(*) FROM replies").fetchone()[0]


def sort_of(path, answered):
    journal = Journal(path, read_only=True)
    try:
        return journal.look_up(answered.request.key).sort
    finally:
        journal.close()


def test_the_stored_request_is_the_request(journal):
    import sqlite3

    (answered,) = ask_all(Server(journal), [question()])
    with sqlite3.connect(journal) as connection:
        ((key, text),) = connection.execute("SELECT key, request FROM replies").fetchall()
    assert (key, text) == (answered.request.key, answered.request.to_json())
    assert json.loads(text)["run_id"] == "study:plain:0:a-b"
