"""An endpoint over real sockets: what it is sent, how it is left alone, and what it learns from refusals."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest
import trustme

from shared.cache.memory import MemoryCacheBackend
from shared.clock import SECOND_NS, ManualClock, SystemClock
from shared.errors import UserError
from shared.events import Usage
from synthesizer_svc.model import Completion, ModelError
from synthesizer_svc.model.breaker import BreakerSettings
from synthesizer_svc.model.budgeted import Bill
from synthesizer_svc.model.capabilities import Capabilities, Protocol
from synthesizer_svc.model.retrying import RetrySettings
from synthesizer_svc.model.secret import Secret
from tests.aio import on_loop
from tests.fakes import endpoint_answers as endpoint
from tests.fakes.endpoint_answers import TEXT, answered, completion, delta, error
from tests.fakes.fault_server import Wire, fault_server
from tests.integration.model.asking import PATIENT, QUESTION, ask, endpoint_at, outcome_of, settings_for

KEY = Secret("sk-planted-0123456789")
GOOD = endpoint.streamed


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "script", "path", "header", "value"),
    [
        (Protocol.OPENAI, GOOD, "/v1/chat/completions", "authorization", f"Bearer {KEY.reveal()}"),
        (Protocol.ANTHROPIC, endpoint.messages, "/v1/messages", "x-api-key", KEY.reveal()),
    ],
)
@on_loop
async def test_a_question_goes_to_its_path_with_its_key_and_takes_no_compression(protocol, script, path, header, value):
    async with fault_server(script) as server:
        settings = settings_for(server, capabilities=Capabilities(protocol=protocol), key=KEY)
        async with endpoint_at(settings) as model:
            answer = await model.complete(QUESTION)
    (request,) = server.received
    assert (request.method, request.path, request.headers[header]) == ("POST", path, value)
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert (answer.text, answer.model, answer.endpoint) == (TEXT, "m-1", "e")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (20, 7)
    assert not answer.usage.estimated


@pytest.mark.parametrize("protocol", Protocol)
@pytest.mark.parametrize(("streaming", "connections", "told"), [(False, 1, "keep-alive"), (True, 3, "close")])
@on_loop
async def test_a_connection_is_used_again_but_after_a_stream(protocol, streaming, connections, told):
    script = GOOD if protocol is Protocol.OPENAI else endpoint.messages
    capabilities = Capabilities(protocol=protocol, streaming=streaming)
    async with (
        fault_server(script) as server,
        endpoint_at(settings_for(server, capabilities=capabilities)) as model,
    ):
        for _ in range(3):
            await model.complete(QUESTION)
    assert (len(server.received), server.connections) == (3, connections)
    assert {request.headers["connection"] for request in server.received} == {told}


@on_loop
async def test_questions_may_be_asked_at_once():
    async with fault_server(GOOD) as server, endpoint_at(settings_for(server)) as model:
        answers = await asyncio.gather(*(model.complete(QUESTION) for _ in range(20)))
    assert [answer.text for answer in answers] == [TEXT] * 20
    assert len(server.received) == 20


@on_loop
async def test_no_more_questions_are_asked_at_once_than_are_allowed():
    at_once = most = 0

    async def slow(wire: Wire) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.02)
        at_once -= 1
        await GOOD(wire)

    backend = MemoryCacheBackend(SystemClock())
    async with fault_server(slow) as server:
        settings = settings_for(server, concurrency=2)
        async with endpoint_at(settings, backend=backend) as one, endpoint_at(settings, backend=backend) as other:
            await asyncio.gather(*(model.complete(QUESTION) for model in (one, other) for _ in range(4)))
    assert most == 2


@on_loop
async def test_an_answer_longer_than_the_model_writes_is_not_asked_for():
    async with fault_server(GOOD) as server:
        settings = settings_for(server, capabilities=Capabilities(output_tokens=50))
        async with endpoint_at(settings) as model:
            await model.complete(QUESTION)
    assert server.received[0].json["max_tokens"] == 50


@on_loop
async def test_a_cancelled_question_frees_its_slot_and_its_connection():
    one_slot = {"concurrency": 1}
    async with fault_server(endpoint.stalled, GOOD) as server, endpoint_at(settings_for(server, **one_slot)) as model:
        task = asyncio.create_task(model.complete(QUESTION))
        while not server.received:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await model.complete(QUESTION)).text == TEXT


# --- refusals ---------------------------------------------------------------------------------------------------------


class Purse:
    """Pays for everybody but ``poor``, who waits for money; keeps what was paid."""

    def __init__(self, poor: str) -> None:
        self._poor = poor
        self.asked = asyncio.Event()
        self.bills: list[Bill] = []

    @asynccontextmanager
    async def paying(self, request, **_):
        if request.search_id == self._poor:
            self.asked.set()
            await asyncio.Event().wait()
        self.bills.append(Bill())
        yield self.bills[-1]


@pytest.mark.parametrize("breaker", [PATIENT, BreakerSettings(failures_max=1, open_s=5)])
@on_loop
async def test_who_waits_for_money_keeps_nobody_from_a_free_slot_and_from_trying_again(breaker):
    clock, purse = ManualClock(), Purse("poor")
    down = answered(503, error("busy"))
    scripts = (down, GOOD) if breaker is not PATIENT else (GOOD,)
    async with fault_server(*scripts) as server:
        settings = settings_for(server, concurrency=1)
        once = RetrySettings(attempts_max=1)
        async with endpoint_at(settings, clock=clock, retry=once, breaker=breaker, payer=purse) as model:
            if breaker is not PATIENT:
                assert isinstance(await outcome_of(model), ModelError)
                clock.advance(6 * SECOND_NS)
            waiting = asyncio.create_task(model.complete(replace(QUESTION, search_id="poor")))
            await purse.asked.wait()
            assert isinstance(await outcome_of(model), Completion)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting


@on_loop
async def test_who_gives_up_while_waiting_for_a_slot_has_spent_nothing():
    purse = Purse("nobody")
    async with (
        fault_server(endpoint.stalled) as server,
        endpoint_at(settings_for(server, concurrency=1), payer=purse) as model,
    ):
        first = asyncio.create_task(model.complete(QUESTION))
        while not server.received:
            await asyncio.sleep(0.005)
        second = asyncio.create_task(model.complete(QUESTION))
        while len(purse.bills) < 2:
            await asyncio.sleep(0.005)
        for task in (second, first):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    assert [bill.usage for bill in purse.bills] == [None, Usage()], "what was sent may be billed, and only that"


@on_loop
async def test_a_field_that_is_refused_is_left_out_from_then_on():
    async def picky(wire: Wire) -> None:
        for field in ("seed", "stream_options"):
            if field in wire.request.json:
                return await wire.answer(422, {"detail": [{"loc": ["body", field], "msg": "Extra inputs"}]})
        return await GOOD(wire)

    async with fault_server(picky) as server, endpoint_at(settings_for(server)) as model:
        first = await model.complete(QUESTION)
        later = await asyncio.gather(*(model.complete(QUESTION) for _ in range(3)))
    assert first.usage.requests == 3
    assert [answer.usage.requests for answer in later] == [1, 1, 1]


@on_loop
async def test_questions_asked_at_once_find_out_together():
    async def picky(wire: Wire) -> None:
        if "seed" in wire.request.json:
            return await wire.answer(400, error("seed: not supported"))
        return await GOOD(wire)

    async with fault_server(picky) as server, endpoint_at(settings_for(server)) as model:
        answers = await asyncio.gather(*(model.complete(QUESTION) for _ in range(5)))
    assert {answer.usage.requests for answer in answers} == {2}


@on_loop
async def test_an_endpoint_that_refuses_either_name_of_the_limit_has_refused():
    async def never(wire: Wire) -> None:
        await wire.answer(400, error("max_tokens, max_completion_tokens: neither"))

    asked = await ask(never)
    assert (asked.code, asked.requests) == ("rejected", 2)


@on_loop
async def test_a_limit_that_the_endpoint_names_is_kept():
    async def small(wire: Wire) -> None:
        if wire.request.json["max_tokens"] > 4096:
            return await wire.answer(400, error("max_tokens is too large: this model supports at most 4096"))
        return await GOOD(wire)

    asked = await ask(small, question=replace(QUESTION, output_tokens_max=16_000))
    assert (asked.code, asked.requests) == ("answer", 2)


@pytest.mark.parametrize("known", [True, False], ids=["a count", "a bound"])
@on_loop
async def test_an_answer_for_which_the_context_has_no_room_is_asked_for_shorter_and_costs_what_it_did(known):
    """As vLLM does it, which reads no more of a prompt than is too much."""
    context, prompt = 8192, 700

    async def full(wire: Wire) -> None:
        limit = wire.request.json["max_tokens"]
        if prompt + limit > context:
            read = prompt if known else min(prompt, max(1, context - limit + 1))
            says = (
                f"You passed {read} input tokens and requested {limit} output tokens. However, the model's context "
                f"length is only {context} tokens, resulting in a maximum input length of {context - limit} tokens."
            )
            return await wire.answer(400, error(says, 400, "BadRequestError"))
        return await GOOD(wire)

    asked = await ask(full, question=replace(QUESTION, output_tokens_max=7_600))
    assert asked.code == "answer"
    assert asked.requests == asked.outcome.usage.requests == 2
    assert asked.outcome.usage.output_tokens < 100


@on_loop
async def test_a_server_that_cuts_prompts_without_a_word_is_told_of_once(caplog):
    long = replace(QUESTION, system="one two three four five six seven eight nine ten " * 20)
    async with fault_server(GOOD) as server, endpoint_at(settings_for(server)) as model:
        await model.complete(QUESTION)
        assert "cuts prompts" not in caplog.text
        counted = (await model.complete(long)).usage.input_tokens
        await model.complete(replace(long, seed=2))
    assert caplog.text.count("it cuts prompts; raise its context") == 1
    assert f"read {counted} tokens of a prompt of 202 words" in caplog.text


# --- left alone -------------------------------------------------------------------------------------------------------

BREAKER = BreakerSettings(failures_max=3)
FIRST = BreakerSettings(failures_max=1)
"""Opens at the first sign of illness."""
SHORT = replace(QUESTION, deadline_s=0.8)


@on_loop
async def test_an_endpoint_that_keeps_failing_is_left_alone_by_all_replicas_and_tried_later():
    clock = ManualClock()
    backend = MemoryCacheBackend(clock)
    ill = True

    async def recovering(wire: Wire) -> None:
        await (wire.answer(503) if ill else GOOD(wire))

    async with fault_server(recovering) as server:
        settings = settings_for(server)
        async with (
            endpoint_at(settings, backend=backend, breaker=BREAKER) as one,
            endpoint_at(settings, backend=backend, breaker=BREAKER) as other,
        ):
            assert not (await outcome_of(one)).pauses
            refused = await outcome_of(other)
            assert (refused.code, refused.pauses, refused.retry_after_s) == ("endpoint", True, BREAKER.open_s)
            assert "left alone after failures: 503" in refused.detail
            assert refused.usage.requests == 0
            assert len(server.received) == 3
            ill = False
            clock.advance(round(BREAKER.open_s * SECOND_NS))
            assert isinstance(await outcome_of(other), Completion)
            assert isinstance(await outcome_of(one), Completion)


@on_loop
async def test_an_unpaid_bill_stops_every_question_after_the_first():
    script = answered(429, error("spent", "credit_balance_exhausted", "insufficient_quota"))
    async with fault_server(script) as server, endpoint_at(settings_for(server), breaker=BREAKER) as model:
        outcomes = [await outcome_of(model) for _ in range(5)]
    assert [outcome.code for outcome in outcomes] == ["spend_limit"] * 5
    # Who was asked in vain is named, and nobody where nothing was sent.
    assert [outcome.endpoint for outcome in outcomes] == ["e", "", "", "", ""]
    assert len(server.received) == 1


@on_loop
async def test_limits_of_rates_never_open_it():
    async with fault_server(answered(429)) as server, endpoint_at(settings_for(server), breaker=BREAKER) as model:
        outcomes = [await outcome_of(model) for _ in range(3)]
    assert [outcome.pauses for outcome in outcomes] == [False] * 3
    assert len(server.received) == 9


@on_loop
async def test_a_question_too_long_for_its_time_says_nothing_against_the_endpoint():
    async with fault_server(endpoint.stalled) as server, endpoint_at(settings_for(server), breaker=FIRST) as model:
        outcomes = [await outcome_of(model, SHORT) for _ in range(2)]
    assert [(outcome.code, outcome.endpoint) for outcome in outcomes] == [("deadline", "e")] * 2
    assert len(server.received) == 2


# --- what is not there or not trusted ---------------------------------------------------------------------------------


@on_loop
async def test_nobody_listening_is_a_failure_without_a_cost():
    async with fault_server(GOOD) as server:
        settings = settings_for(server)
    async with endpoint_at(settings) as model:
        outcome = await outcome_of(model)
    assert isinstance(outcome, ModelError)
    assert (outcome.code, outcome.usage.requests) == ("endpoint", 3)
    assert (outcome.usage.input_tokens, outcome.usage.cost_micro) == (0, 0)
    assert f"no connection to {settings.url}: " in outcome.detail


@on_loop
async def test_what_is_not_found_says_what_the_url_and_the_model_have_to_be():
    asked = await ask(answered(404, b"404 page not found", kind="text/plain"))
    assert "404 page not found (the URL has to end with the version" in asked.outcome.detail


@on_loop
async def test_a_key_that_is_refused_says_where_keys_are_from():
    asked = await ask(answered(401, {"error": "Unauthorized"}))
    assert "401 Unauthorized (the key is what MODEL_API_KEY holds" in asked.outcome.detail


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def served_with(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context


@on_loop
async def test_a_certificate_of_an_authority_that_is_trusted_is_enough(authority, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = served_with(authority.issue_cert("127.0.0.1"))
    assert (await ask(GOOD, tls=tls, ca=str(tmp_path / "ca.pem"))).code == "answer"


@pytest.mark.parametrize("fault", ["another authority", "another name"])
@on_loop
async def test_a_certificate_that_is_not_trusted_is_sent_nothing(fault, authority, tmp_path):
    trusted = trustme.CA() if fault == "another authority" else authority
    trusted.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = served_with(authority.issue_cert("127.0.0.1" if fault == "another authority" else "kernels.example.org"))
    asked = await ask(GOOD, tls=tls, ca=str(tmp_path / "ca.pem"), key=KEY)
    assert (asked.code, asked.requests, asked.outcome.pauses) == ("endpoint", 0, True)
    assert "certificate is not trusted" in asked.outcome.detail
    assert "MODEL_CA" in asked.outcome.detail
    assert asked.outcome.usage.cost_micro == 0


@on_loop
async def test_plaintext_where_tls_is_expected_is_a_failure():
    async with fault_server(GOOD) as server:
        settings = replace(settings_for(server), url=server.url.replace("http://", "https://"))
        async with endpoint_at(settings) as model:
            outcome = await outcome_of(model)
    assert (outcome.code, server.received) == ("endpoint", [])
    assert "TLS failed" in outcome.detail
    assert "certificate" not in outcome.detail


@on_loop
async def test_a_connection_that_ends_while_tls_begins_is_tried_again():
    opened = 0

    def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        del reader
        opened += 1
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as listening:
        url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
        async with fault_server(GOOD) as server, endpoint_at(replace(settings_for(server), url=url)) as model:
            outcome = await outcome_of(model)
    assert isinstance(outcome, ModelError)
    assert (outcome.code, outcome.pauses, opened) == ("endpoint", False, 3)


@on_loop
async def test_authorities_that_cannot_be_read_are_one_line(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(UserError, match="cannot be read as certificates"):
        await ask(GOOD, ca=str(tmp_path / "ca.pem"))


@on_loop
async def test_an_answer_that_was_whole_counts_though_a_later_one_breaks():
    """The keep-alive race: a server closes an idle connection just as the next question leaves."""

    async def last(wire: Wire) -> None:
        await wire.answer(200, json.dumps(completion()).encode())
        wire.close()

    async with fault_server(last) as server, endpoint_at(settings_for(server)) as model:
        for _ in range(3):
            assert (await model.complete(QUESTION)).text == TEXT


@on_loop
async def test_a_stream_that_only_thinks_is_at_work():
    async def thinking(wire: Wire) -> None:
        await wire.begin_stream()
        choice = {"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}
        await wire.event(delta() | {"choices": [choice]})
        await wire.hang()

    async with fault_server(thinking) as server, endpoint_at(settings_for(server), breaker=FIRST) as model:
        codes = [(await outcome_of(model, SHORT)).code for _ in range(2)]
    assert codes == ["deadline"] * 2
    assert len(server.received) == 2
