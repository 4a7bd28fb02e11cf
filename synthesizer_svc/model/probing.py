"""Asking an endpoint what it does, instead of believing what is written about it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from shared.cache.memory import MemoryCache, MemoryLeases
from shared.clock import Clock
from shared.events import Usage
from shared.usage import total
from synthesizer_svc.model import Completion, CompletionRequest, ModelError, ModelErrorCode, probes
from synthesizer_svc.model import anthropic as anthropic_protocol
from synthesizer_svc.model.breaker import BreakerSettings
from synthesizer_svc.model.capabilities import Capabilities, Protocol, SchemaOutput, Support
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.endpoint import Endpoint
from synthesizer_svc.model.exchange import Call, Head, Reader, Transport, TransportFault
from synthesizer_svc.model.faults import refused, shortened
from synthesizer_svc.model.paying import Payer
from synthesizer_svc.model.retrying import RetrySettings

RETRY = RetrySettings(attempts_max=probes.ATTEMPTS_MAX, billed_attempts_max=1)
LIST_BYTES = 4 << 20
PATIENT = BreakerSettings(failures_max=1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``claimed`` is the record's, ``found`` what was seen; ``well`` False where something must be done."""

    what: str
    claimed: str = ""
    found: str
    well: bool = True


@dataclass(kw_only=True)
class Report:
    """What was found out, and the settings that follow from it."""

    settings: EndpointSettings
    findings: list[Finding] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    @property
    def well(self) -> bool:
        return all(finding.well for finding in self.findings)

    def note(self, what: str, found: object, claimed: object = "", *, well: bool = True) -> None:
        """``found`` is written without the key, wherever the endpoint may have put that."""
        key = self.settings.key
        shown = key.hide(str(found)) if key else str(found)
        self.findings.append(Finding(what=what, claimed=str(claimed), found=shown, well=well))

    def learn(self, **changes: object) -> None:
        """Change the record of capabilities."""
        capabilities = replace(self.settings.capabilities, **changes)  # type: ignore[arg-type]
        self.settings = replace(self.settings, capabilities=capabilities)


class _Spent(Exception):
    """Who pays does not allow a question."""


async def probe(settings: EndpointSettings, transport: Transport, clock: Clock, payer: Payer | None = None) -> Report:
    """Ask ``settings``' endpoint; a question that fails is a finding. It costs at most ``probes.at_most``.

    ``payer`` allows each question. One that it does not allow is the last, and the report's settings are those that
    were given: half of what was to be found out is no record.
    """
    probing = _Probing(settings, transport, clock, payer)
    await probing.models()
    try:
        if await probing.answer():
            await probing.seed()
            await probing.schema()
            await probing.cache()
    except _Spent:
        probing.report.settings = settings
    return probing.report


class _Probing:
    def __init__(self, settings: EndpointSettings, transport: Transport, clock: Clock, payer: Payer | None) -> None:
        self.report = Report(settings=settings)
        self._transport, self._clock, self._payer = _Watched(transport), clock, payer

    @property
    def _can(self) -> Capabilities:
        return self.report.settings.capabilities

    async def models(self) -> None:
        """Whether the model is listed, and its context; a list is not needed to be asked."""
        settings = self.report.settings
        versioned = settings.capabilities.protocol is Protocol.ANTHROPIC
        call = Call(path="/models", headers=(("anthropic-version", anthropic_protocol.VERSION),) if versioned else ())
        reader = _Body()
        try:
            await self._transport.send(call, reader, deadline_s=probes.DEADLINE_S, answer_bytes_max=LIST_BYTES)
        except TransportFault as error:
            self.report.note("models listed", shortened(error.detail), well=False)
            return
        listed = probes.listed(reader.parsed, settings.model)
        if listed is None:
            fault = None if reader.head.status == 200 else refused(reader.head, bytes(reader.body), 0.0)
            self.report.note("models listed", f"{fault.code}: {fault.detail}" if fault else "no")
            return
        known = settings.model in listed.names
        others = "" if known else f", but {shortened(', '.join(listed.names[:5]))}"
        self.report.note("models listed", f"{settings.model}{'' if known else ' is not'}{others}", settings.model)
        if listed.context_tokens:
            self.report.note("context", f"{listed.context_tokens:,}", f"{self._can.context_tokens or 'unknown'}")
            self.report.learn(context_tokens=listed.context_tokens)

    async def answer(self) -> bool:
        """Whether it answers, how, and what it counts."""
        answer = await self._ask("answers", probes.answer_question())
        if answer is None:
            return False
        settings, usage = self.report.settings, answer.usage
        self.report.note("answers", f"in {usage.latency_ns / 1e9:.2f} s, as {answer.model or 'nobody'}", settings.model)
        streamed = self._transport.streamed
        self.report.note("streams", _yes(streamed), _yes(self._can.streaming))
        counted = "estimated here" if usage.estimated else probes.numbers((usage.input_tokens, usage.output_tokens))
        self.report.note("counts tokens (read / written)", counted)
        self.report.learn(streaming=streamed or not self._can.streaming)
        return True

    async def seed(self) -> None:
        """Whether equal seeds give equal answers, and other seeds others."""
        claimed = self._can.seed
        if claimed is Support.NO:
            self.report.note("repeats by seed", "not asked", claimed)
            return
        answers = [await self._ask("repeats by seed", question) for question in probes.seeded_questions()]
        first, again, other = answers
        if first is None or again is None or other is None:
            return
        found = Support.NO if self._can.seed is Support.NO else probes.seed_support(first, again, other)
        self.report.note("repeats by seed", found, claimed)
        # A seed that is accepted and does not repeat still does no harm: only a refusal stops it.
        if found is Support.YES:
            self.report.learn(seed=found)

    async def schema(self) -> None:
        """Whether decoding follows a schema, or yields any object at least."""
        claimed = self._can.schema
        if claimed is SchemaOutput.NONE:
            self.report.note("follows a schema", "not asked", claimed)
            return
        answer = await self._ask("follows a schema", probes.schema_question())
        if answer is None:
            return
        if self._can.schema in (SchemaOutput.SCHEMA, SchemaOutput.UNKNOWN) and probes.follows_schema(answer):
            found = SchemaOutput.SCHEMA
        elif self._can.protocol is Protocol.ANTHROPIC:
            found = SchemaOutput.NONE
        else:
            self.report.learn(schema=SchemaOutput.OBJECT)
            answer = await self._ask("follows a schema", probes.schema_question())
            found = SchemaOutput.OBJECT if answer and probes.is_object(answer) else SchemaOutput.NONE
        self.report.note("follows a schema", found, claimed)
        self.report.learn(schema=found)

    async def cache(self) -> None:
        """Whether the prefix of a question is read from a cache the second time."""
        claimed = self._can.caching
        question = probes.cached_question(self.report.settings, self._can.context_tokens)
        if await self._ask("caches a prefix", question) is None:
            return
        again = await self._ask("caches a prefix", question)
        if again is None:
            return
        words = len(question.system.split())
        if not again.usage.estimated and again.usage.input_tokens < words:
            cut = f"no: of more than {words:,} tokens it read {again.usage.input_tokens:,}; raise the server's context"
            self.report.note("reads whole prompts", cut, well=False)
        found = probes.caching(self._can, again)
        told = f"{found}: {probes.numbers((again.usage.cached_tokens,))} of {again.usage.input_tokens:,} tokens"
        self.report.note("caches a prefix", told, claimed)
        self.report.learn(caching=found)

    async def _ask(self, what: str, question: CompletionRequest) -> Completion | None:
        """An answer, or a finding. Raises ``_Spent`` when nobody pays."""
        async with self._endpoint() as endpoint:
            try:
                answer = await endpoint.complete(question)
            except ModelError as error:
                self.report.usage = total(self.report.usage, error.usage)
                # A question too long for the endpoint is no fault of its.
                self.report.note(what, f"{error.code}: {error.detail}", well=error.code == ModelErrorCode.CONTEXT)
                if error.code == ModelErrorCode.BUDGET:
                    raise _Spent from error
                return None
        self.report.usage = total(self.report.usage, answer.usage)
        if endpoint.capabilities != self._can:
            self._refused_meanwhile(endpoint.capabilities)
        return answer

    @asynccontextmanager
    async def _endpoint(self) -> AsyncIterator[Endpoint]:
        """The product's own, with what was found out so far and nothing remembered of failures."""
        cache, leases = MemoryCache(self._clock), MemoryLeases(self._clock)
        yield Endpoint(
            self.report.settings,
            self._transport,
            cache=cache,
            leases=leases,
            clock=self._clock,
            retry=RETRY,
            breaker=PATIENT,
            payer=self._payer,
        )

    def _refused_meanwhile(self, left: Capabilities) -> None:
        for name in left.__slots__:
            before, after = getattr(self._can, name), getattr(left, name)
            if before != after:
                self.report.note(f"refuses {name}", f"asked with {after or 'none'} from now on", before)
        self.report.settings = replace(self.report.settings, capabilities=left)


class _Watched:
    """A transport that remembers whether the latest answer was a stream."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.streamed = False

    async def send(self, call: Call, reader: Reader, *, deadline_s: float, answer_bytes_max: int) -> None:
        try:
            await self._inner.send(call, reader, deadline_s=deadline_s, answer_bytes_max=answer_bytes_max)
        finally:
            self.streamed = bool(getattr(reader, "streamed", False))

    async def close(self) -> None:
        await self._inner.close()


class _Body:
    """Reads an answer whole."""

    def __init__(self) -> None:
        self.head = Head(status=0, headers={})
        self.body = bytearray()

    def begin(self, head: Head) -> None:
        self.head = head

    def feed(self, chunk: bytes) -> bool:
        self.body += chunk
        return True

    @property
    def parsed(self) -> object:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def _yes(value: bool) -> str:
    return "yes" if value else "no"
