"""A question, and what comes of it when its answer is these bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from synthesizer_svc.model import Completion, CompletionRequest, Message, Role
from synthesizer_svc.model.capabilities import Capabilities, Protocol, Reasoning
from synthesizer_svc.model.exchange import Head
from synthesizer_svc.model.faults import Fault
from synthesizer_svc.model.prices import Prices
from synthesizer_svc.model.reading import AnswerReader

SCHEMA = '{"type":"object","properties":{"move":{"enum":["tile","fuse"]}},"required":["move"]}'
QUESTION = CompletionRequest(
    system="You write kernels.",
    messages=(Message(role=Role.USER, text="Write one."),),
    seed=7,
    output_tokens_max=100,
    deadline_s=10.0,
)
REPAIR = (
    Message(role=Role.USER, text="Write one."),
    Message(role=Role.ASSISTANT, text="No."),
    Message(role=Role.USER, text="Do."),
)
PRICES = Prices(input=3_000_000, output=15_000_000, cached=300_000, cache_write=3_750_000)
SHOWN = Capabilities(reasoning=Reasoning.SHOWN)
MESSAGES = Capabilities(protocol=Protocol.ANTHROPIC, reasoning=Reasoning.NONE)


def read(
    *chunks: bytes,
    status: int = 200,
    kind: str = "application/json",
    capabilities: Capabilities = SHOWN,
    question: CompletionRequest = QUESTION,
) -> Completion | Fault:
    """What these bytes amount to."""
    reader = AnswerReader(question, capabilities, PRICES)
    reader.begin(Head(status=status, headers={"content-type": kind}))
    for chunk in chunks:
        if not reader.feed(chunk):
            break
    try:
        return reader.finish(now_s=0.0)
    except Fault as fault:
        return fault


def read_object(told: object, **more) -> Completion | Fault:
    return read(json.dumps(told).encode(), **more)


def stream(events: Sequence[object]) -> bytes:
    """Events as a stream; a pair is a name and its data, a text is data as it is."""
    lines = []
    for told in events:
        name, data = told if isinstance(told, tuple) else ("", told)
        lines.append(
            (f"event: {name}\n" if name else "") + f"data: {data if isinstance(data, str) else json.dumps(data)}"
        )
    return "".join(f"{line}\n\n" for line in lines).encode()


def read_stream(*events: object, **more) -> Completion | Fault:
    return read(stream(events), kind="text/event-stream", **more)
