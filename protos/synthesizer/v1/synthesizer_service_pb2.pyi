from protos.events.v1 import candidate_pb2 as _candidate_pb2
from protos.events.v1 import search_pb2 as _search_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GenerateRequest(_message.Message):
    __slots__ = ("expansion", "blobs")
    class BlobsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    EXPANSION_FIELD_NUMBER: _ClassVar[int]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    expansion: _search_pb2.ExpansionRequested
    blobs: _containers.ScalarMap[str, bytes]
    def __init__(self, expansion: _Optional[_Union[_search_pb2.ExpansionRequested, _Mapping]] = ..., blobs: _Optional[_Mapping[str, bytes]] = ...) -> None: ...

class GenerateResponse(_message.Message):
    __slots__ = ("candidates", "rejected", "failed", "blobs")
    class BlobsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedCompositeFieldContainer[_candidate_pb2.CandidateProduced]
    rejected: _containers.RepeatedCompositeFieldContainer[_candidate_pb2.CandidateRejected]
    failed: _candidate_pb2.ExpansionFailed
    blobs: _containers.ScalarMap[str, bytes]
    def __init__(self, candidates: _Optional[_Iterable[_Union[_candidate_pb2.CandidateProduced, _Mapping]]] = ..., rejected: _Optional[_Iterable[_Union[_candidate_pb2.CandidateRejected, _Mapping]]] = ..., failed: _Optional[_Union[_candidate_pb2.ExpansionFailed, _Mapping]] = ..., blobs: _Optional[_Mapping[str, bytes]] = ...) -> None: ...
