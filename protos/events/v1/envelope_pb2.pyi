from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Envelope(_message.Message):
    __slots__ = ("id", "type", "source", "subject", "partition_key", "causation_id", "correlation_id", "time_ns", "attempt", "lease", "traceparent", "data")
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    CAUSATION_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    id: str
    type: str
    source: str
    subject: str
    partition_key: str
    causation_id: str
    correlation_id: str
    time_ns: int
    attempt: int
    lease: str
    traceparent: str
    data: bytes
    def __init__(self, id: _Optional[str] = ..., type: _Optional[str] = ..., source: _Optional[str] = ..., subject: _Optional[str] = ..., partition_key: _Optional[str] = ..., causation_id: _Optional[str] = ..., correlation_id: _Optional[str] = ..., time_ns: _Optional[int] = ..., attempt: _Optional[int] = ..., lease: _Optional[str] = ..., traceparent: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class JournalCommands(_message.Message):
    __slots__ = ("envelopes",)
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    envelopes: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, envelopes: _Optional[_Iterable[bytes]] = ...) -> None: ...
