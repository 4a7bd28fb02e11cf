from protos.events.v1 import evaluation_pb2 as _evaluation_pb2
from protos.events.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EvaluateRequest(_message.Message):
    __slots__ = ("operator_name", "operator_source", "language", "kernel_source", "flags", "entry", "chip", "threads", "purpose", "definition", "solution", "with_ledger")
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_SOURCE_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    KERNEL_SOURCE_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    SOLUTION_FIELD_NUMBER: _ClassVar[int]
    WITH_LEDGER_FIELD_NUMBER: _ClassVar[int]
    operator_name: str
    operator_source: str
    language: str
    kernel_source: str
    flags: _containers.RepeatedScalarFieldContainer[str]
    entry: str
    chip: str
    threads: int
    purpose: _evaluation_pb2.Purpose
    definition: Definition
    solution: str
    with_ledger: bool
    def __init__(self, operator_name: _Optional[str] = ..., operator_source: _Optional[str] = ..., language: _Optional[str] = ..., kernel_source: _Optional[str] = ..., flags: _Optional[_Iterable[str]] = ..., entry: _Optional[str] = ..., chip: _Optional[str] = ..., threads: _Optional[int] = ..., purpose: _Optional[_Union[_evaluation_pb2.Purpose, str]] = ..., definition: _Optional[_Union[Definition, _Mapping]] = ..., solution: _Optional[str] = ..., with_ledger: bool = ...) -> None: ...

class BuildRequest(_message.Message):
    __slots__ = ("chip", "language", "kernel_source", "flags", "entry")
    CHIP_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    KERNEL_SOURCE_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    chip: str
    language: str
    kernel_source: str
    flags: _containers.RepeatedScalarFieldContainer[str]
    entry: str
    def __init__(self, chip: _Optional[str] = ..., language: _Optional[str] = ..., kernel_source: _Optional[str] = ..., flags: _Optional[_Iterable[str]] = ..., entry: _Optional[str] = ...) -> None: ...

class BuildResponse(_message.Message):
    __slots__ = ("built", "status", "text")
    BUILT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    built: bool
    status: _evaluation_pb2.Status
    text: str
    def __init__(self, built: bool = ..., status: _Optional[_Union[_evaluation_pb2.Status, str]] = ..., text: _Optional[str] = ...) -> None: ...

class Definition(_message.Message):
    __slots__ = ("definition", "workload", "reference")
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    definition: str
    workload: str
    reference: str
    def __init__(self, definition: _Optional[str] = ..., workload: _Optional[str] = ..., reference: _Optional[str] = ...) -> None: ...

class EvaluateResponse(_message.Message):
    __slots__ = ("stage", "evaluation", "understood", "result", "ledger")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    UNDERSTOOD_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    stage: str
    evaluation: _evaluation_pb2.Evaluation
    understood: Understood
    result: StageResult
    ledger: bytes
    def __init__(self, stage: _Optional[str] = ..., evaluation: _Optional[_Union[_evaluation_pb2.Evaluation, _Mapping]] = ..., understood: _Optional[_Union[Understood, _Mapping]] = ..., result: _Optional[_Union[StageResult, _Mapping]] = ..., ledger: _Optional[bytes] = ...) -> None: ...

class Understood(_message.Message):
    __slots__ = ("operator_name", "operator_hash", "kernel_hash", "language", "form")
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_HASH_FIELD_NUMBER: _ClassVar[int]
    KERNEL_HASH_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    operator_name: str
    operator_hash: str
    kernel_hash: str
    language: str
    form: str
    def __init__(self, operator_name: _Optional[str] = ..., operator_hash: _Optional[str] = ..., kernel_hash: _Optional[str] = ..., language: _Optional[str] = ..., form: _Optional[str] = ...) -> None: ...

class StageResult(_message.Message):
    __slots__ = ("stage", "elapsed_ns", "outcome", "facts")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_NS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    stage: str
    elapsed_ns: int
    outcome: str
    facts: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    def __init__(self, stage: _Optional[str] = ..., elapsed_ns: _Optional[int] = ..., outcome: _Optional[str] = ..., facts: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ...) -> None: ...

class GetLedgerRequest(_message.Message):
    __slots__ = ("ledger_hash",)
    LEDGER_HASH_FIELD_NUMBER: _ClassVar[int]
    ledger_hash: str
    def __init__(self, ledger_hash: _Optional[str] = ...) -> None: ...

class GetLedgerResponse(_message.Message):
    __slots__ = ("ledger",)
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ledger: bytes
    def __init__(self, ledger: _Optional[bytes] = ...) -> None: ...

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
