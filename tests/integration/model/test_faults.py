"""Every way an endpoint fails, over real sockets: how the question ends, after how many requests, at what price."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from synthesizer_svc.model import Completion
from synthesizer_svc.model.capabilities import Capabilities
from synthesizer_svc.model.secret import Secret
from tests.aio import on_loop
from tests.fakes import endpoint_answers as endpoint
from tests.fakes.dialects import DIALECTS
from tests.fakes.endpoint_answers import TEXT, answered
from tests.fakes.fault_server import fault_server
from tests.integration.model.asking import QUESTION, ask, endpoint_at, outcome_of, settings_for
from tests.integration.model.fault_table import REDIRECTS, Ends, slow, table

QUICK_S = 2.0
"""Enough for the request to arrive on a machine that is busy."""
QUICK = replace(QUESTION, deadline_s=QUICK_S)
TABLES = {dialect.protocol.value: table(dialect) for dialect in DIALECTS}
KEY = "sk-planted-0123456789"


def check(asked, ends: Ends) -> None:
    code = "answered" if isinstance(asked.outcome, Completion) else asked.code
    assert (code, asked.requests) == (ends.code, ends.requests), asked.outcome
    assert asked.took_s < ends.within_s
    usage = asked.outcome.usage
    assert usage.requests == ends.requests
    assert usage.latency_ns > 0
    assert (usage.input_tokens > 0, usage.cost_micro > 0) == (ends.billed, ends.billed)
    if isinstance(asked.outcome, Completion):
        assert asked.outcome.text == TEXT
        assert (asked.outcome.truncated, asked.outcome.refused) == (False, False)
        assert asked.outcome.endpoint == "e"
    else:
        assert asked.outcome.pauses == ends.pauses


@pytest.mark.parametrize(
    ("protocol", "fault"), [(protocol, fault) for protocol in TABLES for fault in TABLES[protocol]]
)
@on_loop
async def test_a_question_ends_as_the_table_says(protocol, fault):
    scripts, ends = TABLES[protocol][fault]
    check(await ask(*scripts, protocol=protocol), ends)


@pytest.mark.parametrize("dialect", DIALECTS, ids=[dialect.protocol.value for dialect in DIALECTS])
@on_loop
async def test_a_deadline_holds_whatever_the_endpoint_does(dialect):
    """All at once, because each takes all its time."""
    faults = slow(dialect)
    asked = await asyncio.gather(
        *(ask(script, protocol=dialect.protocol, question=QUICK) for script, _ in faults.values())
    )
    for fault, each in zip(faults, asked, strict=True):
        _, ends = faults[fault]
        assert each.took_s > QUICK_S / 2, fault
        try:
            check(each, ends)
        except AssertionError as error:
            raise AssertionError(fault) from error


@pytest.mark.parametrize("dialect", DIALECTS, ids=[dialect.protocol.value for dialect in DIALECTS])
@pytest.mark.parametrize("status", REDIRECTS)
@on_loop
async def test_no_redirect_carries_the_key_or_the_question_anywhere(dialect, status):
    capabilities = Capabilities(protocol=dialect.protocol)
    async with fault_server(answered(200, b"thanks")) as elsewhere:
        for location in (elsewhere.url, "/v1/elsewhere", f"//127.0.0.1:{elsewhere.port}/v1"):
            async with fault_server(answered(status, b"", f"location: {location}")) as server:
                settings = settings_for(server, capabilities=capabilities, key=Secret(KEY))
                async with endpoint_at(settings) as model:
                    outcome = await outcome_of(model)
            assert f"a redirect ({status}), which is not followed" in str(outcome)
            (request,) = server.received
            assert any(KEY in value for value in request.headers.values()), "there was a key to lose"
        assert elsewhere.connections == 0


@pytest.mark.parametrize("deadline_s", [20.0, QUICK_S])
@on_loop
async def test_silence_counts_as_a_whole_answer_that_a_proxy_kept_back_and_a_cut_connection_as_the_prompt(deadline_s):
    question = replace(QUESTION, deadline_s=deadline_s)
    silence = await ask(endpoint.silent, question=question, silence_s=0.2 if deadline_s > QUICK_S else 30.0)
    assert silence.outcome.usage.output_tokens >= QUESTION.output_tokens_max
    assert silence.outcome.usage.estimated
    cut = await ask(endpoint.closed)
    assert cut.outcome.usage.output_tokens == 0
    assert cut.outcome.usage.input_tokens > 0
