"""Two requests that aiokafka 0.14 does not send as this project needs them; ``install`` teaches it.

- InitProducerId: aiokafka knows version 0 only. Brokers may answer that with an error, and Tansu does; version 3 is
  answered by every Kafka since 2.5.
- Metadata: aiokafka lets the broker create any topic it is asked about, with the broker's number of partitions. Topics
  are created from ``shared.topics`` only.
"""

from __future__ import annotations

import functools
from typing import Any

import aiokafka.admin.client
import aiokafka.client
import aiokafka.producer.sender
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.transaction import InitProducerIdRequest_v0
from aiokafka.protocol.types import CompactString, Int16, Int32, Int64, Schema, TaggedFields

NO_PRODUCER_ID = -1
NO_EPOCH = -1


class InitProducerIdResponse_v3(Response):  # type: ignore[misc]  # noqa: N801 - named as the driver names its own
    API_KEY = 22
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("tags", TaggedFields),
    )


class InitProducerIdRequest_v3(RequestStruct):  # type: ignore[misc]  # noqa: N801
    API_KEY = 22
    API_VERSION = 3
    RESPONSE_TYPE = InitProducerIdResponse_v3
    FLEXIBLE_VERSION = True
    SCHEMA = Schema(
        ("transactional_id", CompactString("utf-8")),
        ("transaction_timeout_ms", Int32),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("tags", TaggedFields),
    )


class InitProducerIdRequest(Request[InitProducerIdRequest_v0 | InitProducerIdRequest_v3]):  # type: ignore[misc]
    """The newer of the two that the broker knows."""

    API_KEY = 22

    def __init__(self, transactional_id: str | None, transaction_timeout_ms: int) -> None:
        self._transactional_id, self._transaction_timeout_ms = transactional_id, transaction_timeout_ms

    def build(self, request_struct_class: type[Any]) -> Any:
        if request_struct_class is InitProducerIdRequest_v3:
            return request_struct_class(
                self._transactional_id, self._transaction_timeout_ms, NO_PRODUCER_ID, NO_EPOCH, {}
            )
        return request_struct_class(self._transactional_id, self._transaction_timeout_ms)


def install() -> None:
    """For the whole process; doing it again changes nothing."""
    metadata = functools.partial(MetadataRequest, allow_auto_topic_creation=False)
    replacements: dict[Any, tuple[str, Any]] = {
        aiokafka.client: ("MetadataRequest", metadata),
        aiokafka.admin.client: ("MetadataRequest", metadata),
        aiokafka.producer.sender: ("InitProducerIdRequest", InitProducerIdRequest),
    }
    for module, (name, replacement) in replacements.items():
        if not hasattr(module, name):
            raise ImportError(f"this aiokafka has no {module.__name__}.{name}")
        setattr(module, name, replacement)
