"""One endpoint as a ``Model``: asked in its protocol, again where that can help, left alone while it is down."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import replace

from shared.cache import Cache, Leases
from shared.clock import SECOND_NS, Clock
from shared.events import Usage
from shared.usage import taken_by, total
from synthesizer_svc.model import Completion, CompletionRequest, ModelError, ModelErrorCode
from synthesizer_svc.model.adapting import adapted, shorter
from synthesizer_svc.model.breaker import Breaker, BreakerSettings
from synthesizer_svc.model.capabilities import Capabilities
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.estimate import words
from synthesizer_svc.model.exchange import Call, Transport, TransportFault, Trouble
from synthesizer_svc.model.faults import Fault, broken
from synthesizer_svc.model.paying import Nobody, Payer
from synthesizer_svc.model.reading import PROTOCOLS, AnswerReader, answer_bytes_max
from synthesizer_svc.model.retrying import Retrying, RetrySettings, Sleep
from synthesizer_svc.model.slots import Slots

KEPT_BACK = 0.02
"""Of a deadline, for what follows an attempt: callers who cut the call themselves would lose what it cost."""

log = logging.getLogger(__name__)


class Endpoint:
    """See ``model.Model``. Whoever opens it closes it."""

    def __init__(
        self,
        settings: EndpointSettings,
        transport: Transport,
        *,
        cache: Cache,
        leases: Leases,
        clock: Clock,
        retry: RetrySettings | None = None,
        breaker: BreakerSettings | None = None,
        payer: Payer | None = None,
        sleep: Sleep = asyncio.sleep,
        chance: random.Random | None = None,
    ) -> None:
        """``cache`` and ``leases`` are shared by replicas; ``payer`` allows each attempt; ``sleep`` and ``chance`` make
        and draw pauses.
        """
        self.settings = settings
        self._capabilities = settings.capabilities
        self._tried = {settings.capabilities}
        """What was asked of it before a refusal: not gone back to."""
        self._cuts = False
        """Whether it was seen to cut a prompt."""
        self._transport, self._clock, self._payer = transport, clock, payer or Nobody()
        self._retrying = Retrying(retry or RetrySettings(), sleep=sleep, chance=chance)
        self._slots = Slots(f"model.slot.{settings.name}", settings.concurrency, leases)
        self._breaker = Breaker(
            settings.name, cache=cache, leases=leases, clock=clock, settings=breaker or BreakerSettings()
        )

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def capabilities(self) -> Capabilities:
        """As configured, without what the endpoint has refused meanwhile."""
        return self._capabilities

    async def complete(self, request: CompletionRequest) -> Completion:
        began_ns = self._clock.monotonic_ns()
        spent: list[Usage] = []

        def remaining_s() -> float:
            return request.deadline_s * (1 - KEPT_BACK) - (self._clock.monotonic_ns() - began_ns) / SECOND_NS

        async def attempt() -> Completion:
            try:
                completion = await self._adapting(request, remaining_s, spent)
            except Fault as fault:
                spent.append(fault.usage)
                raise
            spent.append(completion.usage)
            return completion

        try:
            completion = await self._retrying.call(attempt, remaining_s, f"model endpoint {self.name}")
        except Fault as fault:
            raise self._failed(fault, self._sum(spent, began_ns), remaining_s()) from None
        except ModelError as error:  # of who pays
            error.usage = self._sum(spent, began_ns)
            error.endpoint = self._asked(error.usage)
            raise
        return replace(completion, usage=self._sum(spent, began_ns))

    async def close(self) -> None:
        """Close its connections."""
        await self._transport.close()

    async def _adapting(
        self, request: CompletionRequest, remaining_s: Callable[[], float], spent: list[Usage]
    ) -> Completion:
        """An answer; a field that the endpoint refuses and that can be left out is left out from then on. One for which
        the context has no room beside this prompt is asked for again, shorter.
        """
        while True:
            capabilities, limited = self._capabilities, self._limited(request)
            protocol = PROTOCOLS[capabilities.protocol]
            call = protocol.call(limited, self.settings.model, capabilities, self.settings.sampling)
            try:
                return await self._ask(limited, call, remaining_s)
            except Fault as fault:
                if fault.code is ModelErrorCode.CONTEXT and (left := shorter(fault.detail, limited.output_tokens_max)):
                    log.warning("model endpoint %s: an answer of at most %d tokens: %s", self.name, left, fault.detail)
                    request = replace(request, output_tokens_max=left)
                    spent.append(fault.usage)
                    continue
                if fault.code is not ModelErrorCode.REJECTED or fault.hopeless:
                    raise
                if capabilities == self._capabilities:  # otherwise another question has found out meanwhile
                    less = adapted(capabilities, f"{fault.parameter}: {fault.detail}", call.body)
                    if less is None or less in self._tried:
                        raise
                    log.warning("model endpoint %s refuses a field and is asked without: %s", self.name, fault.detail)
                    self._capabilities = less
                    self._tried.add(less)
                spent.append(fault.usage)

    async def _ask(self, request: CompletionRequest, call: Call, remaining_s: Callable[[], float]) -> Completion:
        """One request, paid for before anything else: who waits for money keeps nobody from a free slot, and is not
        the one question that tries an endpoint again.

        Raises:
            Fault: no answer.
            ModelError: who pays does not allow it.
        """
        await self._breaker.look()
        async with self._payer.paying(
            request, prices=self.settings.prices, endpoint=self.name, deadline_s=remaining_s()
        ) as bill:
            try:
                async with self._slots.held(remaining_s()), self._breaker.admitted(remaining_s()):
                    bill.sent()
                    completion = await self._answer(request, call, remaining_s())
            except Fault as fault:
                bill.paid(fault.usage)
                raise
            bill.paid(completion.usage)
        return completion

    async def _answer(self, request: CompletionRequest, call: Call, deadline_s: float) -> Completion:
        """What comes back.

        Raises:
            Fault: no answer; its detail holds no key, though the endpoint may have echoed it.
        """
        reader = AnswerReader(request, self._capabilities, self.settings.prices)
        try:
            await self._send(call, reader, deadline_s, answer_bytes_max(request))
            completion = reader.finish(self._clock.now_ns() / SECOND_NS)
        except Fault as fault:
            fault.detail, fault.parameter = self._hidden(fault.detail), self._hidden(fault.parameter)
            raise
        self._compare(completion.usage, words(request))
        return replace(
            completion, text=self._hidden(completion.text), model=self._hidden(completion.model), endpoint=self.name
        )

    def _compare(self, usage: Usage, read_at_least: int) -> None:
        """Say once where a server has cut a prompt to its context without a word, as Ollama does."""
        if usage.estimated or self._cuts or usage.input_tokens + usage.cached_tokens >= read_at_least:
            return
        self._cuts = True
        log.warning(
            "model endpoint %s read %d tokens of a prompt of %d words: it cuts prompts; raise its context, or tell it "
            "(context_tokens)",
            self.name, usage.input_tokens, read_at_least,
        )  # fmt: skip

    async def _send(self, call: Call, reader: AnswerReader, deadline_s: float, bytes_max: int) -> None:
        try:
            await self._transport.send(call, reader, deadline_s=deadline_s, answer_bytes_max=bytes_max)
        except TransportFault as error:
            if reader.ended:
                return  # its connection ended badly, and it does not matter
            fault = broken(error)
            sent = error.trouble not in (Trouble.UNREACHABLE, Trouble.UNTRUSTED)
            fault.usage = reader.spent(sent=sent, waited=error.trouble in (Trouble.SILENT, Trouble.LATE))
            if error.trouble is Trouble.LATE and reader.telling:
                fault.ailing = False  # it was at work: the question was too long for its time
            raise fault from None

    def _limited(self, request: CompletionRequest) -> CompletionRequest:
        longest = self._capabilities.output_tokens or request.output_tokens_max
        return replace(request, output_tokens_max=min(longest, request.output_tokens_max))

    def _failed(self, fault: Fault, usage: Usage, remaining_s: float) -> ModelError:
        waits = fault.again and fault.retry_after_s > max(0.0, remaining_s)
        attempts = f" ({usage.requests} requests)" if usage.requests > 1 else ""
        return ModelError(
            fault.code,
            f"{self.name}: {fault.told}{attempts}",
            usage=usage,
            pauses=fault.hopeless or waits,
            retry_after_s=fault.retry_after_s,
            endpoint=self._asked(usage),
        )

    def _asked(self, usage: Usage) -> str:
        return self.name if usage.requests else ""

    def _sum(self, spent: list[Usage], began_ns: int) -> Usage:
        usage = replace(total(*spent), latency_ns=self._clock.monotonic_ns() - began_ns)
        return taken_by(usage, self.name)

    def _hidden(self, text: str) -> str:
        return self.settings.key.hide(text) if self.settings.key else text
