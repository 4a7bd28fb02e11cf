from protos.events.v1 import evaluation_pb2 as _evaluation_pb2
from protos.events.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EvaluateRequest(_message.Message):
    __slots__ = ("operator_name", "operator_source", "language", "kernel_source", "flags", "entry", "chip", "threads", "purpose")
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_SOURCE_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    KERNEL_SOURCE_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    operator_name: str
    operator_source: str
    language: str
    kernel_source: str
    flags: _containers.RepeatedScalarFieldContainer[str]
    entry: str
    chip: str
    threads: int
    purpose: _evaluation_pb2.Purpose
    def __init__(self, operator_name: _Optional[str] = ..., operator_source: _Optional[str] = ..., language: _Optional[str] = ..., kernel_source: _Optional[str] = ..., flags: _Optional[_Iterable[str]] = ..., entry: _Optional[str] = ..., chip: _Optional[str] = ..., threads: _Optional[int] = ..., purpose: _Optional[_Union[_evaluation_pb2.Purpose, str]] = ...) -> None: ...

class EvaluateResponse(_message.Message):
    __slots__ = ("stage", "evaluation")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    stage: str
    evaluation: _evaluation_pb2.Evaluation
    def __init__(self, stage: _Optional[str] = ..., evaluation: _Optional[_Union[_evaluation_pb2.Evaluation, _Mapping]] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("worker_id", "chip", "languages", "harness_version", "slots", "busy", "draining", "environment")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    HARNESS_VERSION_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    chip: str
    languages: _containers.RepeatedScalarFieldContainer[str]
    harness_version: str
    slots: int
    busy: int
    draining: bool
    environment: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    def __init__(self, worker_id: _Optional[str] = ..., chip: _Optional[str] = ..., languages: _Optional[_Iterable[str]] = ..., harness_version: _Optional[str] = ..., slots: _Optional[int] = ..., busy: _Optional[int] = ..., draining: bool = ..., environment: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ...) -> None: ...
