from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Entry(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class OperatorRef(_message.Message):
    __slots__ = ("name", "source_hash", "kind")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_HASH_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    name: str
    source_hash: str
    kind: str
    def __init__(self, name: _Optional[str] = ..., source_hash: _Optional[str] = ..., kind: _Optional[str] = ...) -> None: ...

class KernelRef(_message.Message):
    __slots__ = ("kernel_id", "language", "source_hash", "flags", "entry", "schedule_hash")
    KERNEL_ID_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_HASH_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_HASH_FIELD_NUMBER: _ClassVar[int]
    kernel_id: str
    language: str
    source_hash: str
    flags: _containers.RepeatedScalarFieldContainer[str]
    entry: str
    schedule_hash: str
    def __init__(self, kernel_id: _Optional[str] = ..., language: _Optional[str] = ..., source_hash: _Optional[str] = ..., flags: _Optional[_Iterable[str]] = ..., entry: _Optional[str] = ..., schedule_hash: _Optional[str] = ...) -> None: ...

class ModelBudget(_message.Message):
    __slots__ = ("tokens", "cost_micro")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_FIELD_NUMBER: _ClassVar[int]
    tokens: int
    cost_micro: int
    def __init__(self, tokens: _Optional[int] = ..., cost_micro: _Optional[int] = ...) -> None: ...
