"""Limits of a search hold what other parts need them for."""

from __future__ import annotations

from search_svc.check import MOST
from shared import ids, wire
from shared.bus.kafka_settings import KafkaSettings
from shared.events import ExpansionRequested, Memory
from tests.builders import OPERATOR, enveloped

REST_BYTES = 200_000
"""For parents, siblings, reasons and all that a request has beside the kernels it must not write again."""


def test_a_request_of_the_largest_search_is_one_record():
    request = ExpansionRequested(
        search_id="s",
        expansion_id="e",
        operator=OPERATOR,
        chip="cpu-x86_64",
        languages=("cpp",),
        seed=1,
        count=1,
        memory=Memory.PARENT,
        known_kernel_ids=tuple(ids.derive("kernel", n) for n in range(MOST["evaluations"])),
    )
    record = wire.encode(enveloped(request, cause_id="cause"))
    assert len(record.value) + REST_BYTES < KafkaSettings().record_bytes_max
