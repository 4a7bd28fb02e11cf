from protos.events.v1 import evaluation_pb2 as _evaluation_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SkillStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SKILL_STATUS_UNSPECIFIED: _ClassVar[SkillStatus]
    SKILL_STATUS_HYPOTHESIS: _ClassVar[SkillStatus]
    SKILL_STATUS_SUPPORTED: _ClassVar[SkillStatus]
    SKILL_STATUS_RETRACTED: _ClassVar[SkillStatus]
SKILL_STATUS_UNSPECIFIED: SkillStatus
SKILL_STATUS_HYPOTHESIS: SkillStatus
SKILL_STATUS_SUPPORTED: SkillStatus
SKILL_STATUS_RETRACTED: SkillStatus

class SkillDistilled(_message.Message):
    __slots__ = ("skill_id", "move", "operator_class", "chip", "language", "bound", "status", "ratio_ppm", "low_ppm", "high_ppm", "evidence_for", "evidence_against", "revision", "statement")
    SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_CLASS_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RATIO_PPM_FIELD_NUMBER: _ClassVar[int]
    LOW_PPM_FIELD_NUMBER: _ClassVar[int]
    HIGH_PPM_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FOR_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_AGAINST_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    skill_id: str
    move: str
    operator_class: str
    chip: str
    language: str
    bound: _evaluation_pb2.Bound
    status: SkillStatus
    ratio_ppm: int
    low_ppm: int
    high_ppm: int
    evidence_for: _containers.RepeatedScalarFieldContainer[str]
    evidence_against: _containers.RepeatedScalarFieldContainer[str]
    revision: int
    statement: str
    def __init__(self, skill_id: _Optional[str] = ..., move: _Optional[str] = ..., operator_class: _Optional[str] = ..., chip: _Optional[str] = ..., language: _Optional[str] = ..., bound: _Optional[_Union[_evaluation_pb2.Bound, str]] = ..., status: _Optional[_Union[SkillStatus, str]] = ..., ratio_ppm: _Optional[int] = ..., low_ppm: _Optional[int] = ..., high_ppm: _Optional[int] = ..., evidence_for: _Optional[_Iterable[str]] = ..., evidence_against: _Optional[_Iterable[str]] = ..., revision: _Optional[int] = ..., statement: _Optional[str] = ...) -> None: ...

class SkillRetired(_message.Message):
    __slots__ = ("skill_id", "reason", "evidence_against", "revision")
    SKILL_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_AGAINST_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    skill_id: str
    reason: str
    evidence_against: _containers.RepeatedScalarFieldContainer[str]
    revision: int
    def __init__(self, skill_id: _Optional[str] = ..., reason: _Optional[str] = ..., evidence_against: _Optional[_Iterable[str]] = ..., revision: _Optional[int] = ...) -> None: ...
