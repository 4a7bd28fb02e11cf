from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKER_STATE_UNSPECIFIED: _ClassVar[WorkerState]
    WORKER_STATE_READY: _ClassVar[WorkerState]
    WORKER_STATE_DRAINING: _ClassVar[WorkerState]
    WORKER_STATE_GONE: _ClassVar[WorkerState]
    WORKER_STATE_QUARANTINED: _ClassVar[WorkerState]
WORKER_STATE_UNSPECIFIED: WorkerState
WORKER_STATE_READY: WorkerState
WORKER_STATE_DRAINING: WorkerState
WORKER_STATE_GONE: WorkerState
WORKER_STATE_QUARANTINED: WorkerState

class CapacityAnnounced(_message.Message):
    __slots__ = ("worker_id", "chip", "slots", "state", "at_ns", "reason")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    chip: str
    slots: int
    state: WorkerState
    at_ns: int
    reason: str
    def __init__(self, worker_id: _Optional[str] = ..., chip: _Optional[str] = ..., slots: _Optional[int] = ..., state: _Optional[_Union[WorkerState, str]] = ..., at_ns: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...
