from protos.events.v1 import evaluation_pb2 as _evaluation_pb2
from protos.events.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Memory(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_UNSPECIFIED: _ClassVar[Memory]
    MEMORY_PARENT: _ClassVar[Memory]
    MEMORY_SIBLINGS: _ClassVar[Memory]
    MEMORY_PARENT_AND_SIBLINGS: _ClassVar[Memory]
    MEMORY_CLEAN: _ClassVar[Memory]
MEMORY_UNSPECIFIED: Memory
MEMORY_PARENT: Memory
MEMORY_SIBLINGS: Memory
MEMORY_PARENT_AND_SIBLINGS: Memory
MEMORY_CLEAN: Memory

class Move(_message.Message):
    __slots__ = ("name", "parameters", "rationale")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    RATIONALE_FIELD_NUMBER: _ClassVar[int]
    name: str
    parameters: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    rationale: str
    def __init__(self, name: _Optional[str] = ..., parameters: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ..., rationale: _Optional[str] = ...) -> None: ...

class MoveOutcome(_message.Message):
    __slots__ = ("candidate_id", "parent_ids", "move", "status", "bound", "ratio_ppm", "gain_ppm", "signature", "basis")
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_IDS_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    RATIO_PPM_FIELD_NUMBER: _ClassVar[int]
    GAIN_PPM_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    candidate_id: str
    parent_ids: _containers.RepeatedScalarFieldContainer[str]
    move: Move
    status: _evaluation_pb2.Status
    bound: _evaluation_pb2.Bound
    ratio_ppm: int
    gain_ppm: int
    signature: str
    basis: str
    def __init__(self, candidate_id: _Optional[str] = ..., parent_ids: _Optional[_Iterable[str]] = ..., move: _Optional[_Union[Move, _Mapping]] = ..., status: _Optional[_Union[_evaluation_pb2.Status, str]] = ..., bound: _Optional[_Union[_evaluation_pb2.Bound, str]] = ..., ratio_ppm: _Optional[int] = ..., gain_ppm: _Optional[int] = ..., signature: _Optional[str] = ..., basis: _Optional[str] = ...) -> None: ...

class Context(_message.Message):
    __slots__ = ("memory", "diagnosis", "sibling_ids", "negative_ids", "document_ids", "skill_ids", "prompt_hash", "conversation_hash", "asking", "endpoint", "model")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSIS_FIELD_NUMBER: _ClassVar[int]
    SIBLING_IDS_FIELD_NUMBER: _ClassVar[int]
    NEGATIVE_IDS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_IDS_FIELD_NUMBER: _ClassVar[int]
    SKILL_IDS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_HASH_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_HASH_FIELD_NUMBER: _ClassVar[int]
    ASKING_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    diagnosis: _evaluation_pb2.Bound
    sibling_ids: _containers.RepeatedScalarFieldContainer[str]
    negative_ids: _containers.RepeatedScalarFieldContainer[str]
    document_ids: _containers.RepeatedScalarFieldContainer[str]
    skill_ids: _containers.RepeatedScalarFieldContainer[str]
    prompt_hash: str
    conversation_hash: str
    asking: str
    endpoint: str
    model: str
    def __init__(self, memory: _Optional[_Union[Memory, str]] = ..., diagnosis: _Optional[_Union[_evaluation_pb2.Bound, str]] = ..., sibling_ids: _Optional[_Iterable[str]] = ..., negative_ids: _Optional[_Iterable[str]] = ..., document_ids: _Optional[_Iterable[str]] = ..., skill_ids: _Optional[_Iterable[str]] = ..., prompt_hash: _Optional[str] = ..., conversation_hash: _Optional[str] = ..., asking: _Optional[str] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cached_tokens", "cost_micro", "latency_ns", "reasoning_tokens", "cache_write_tokens", "requests", "estimated", "spends")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_FIELD_NUMBER: _ClassVar[int]
    LATENCY_NS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    SPENDS_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_micro: int
    latency_ns: int
    reasoning_tokens: int
    cache_write_tokens: int
    requests: int
    estimated: bool
    spends: _containers.RepeatedCompositeFieldContainer[Spend]
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., cost_micro: _Optional[int] = ..., latency_ns: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., cache_write_tokens: _Optional[int] = ..., requests: _Optional[int] = ..., estimated: bool = ..., spends: _Optional[_Iterable[_Union[Spend, _Mapping]]] = ...) -> None: ...

class Spend(_message.Message):
    __slots__ = ("endpoint", "tokens", "cost_micro", "requests")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    tokens: int
    cost_micro: int
    requests: int
    def __init__(self, endpoint: _Optional[str] = ..., tokens: _Optional[int] = ..., cost_micro: _Optional[int] = ..., requests: _Optional[int] = ...) -> None: ...

class EndpointRecord(_message.Message):
    __slots__ = ("endpoint", "asked", "gains", "gain_micro", "tokens", "cost_micro")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    GAINS_FIELD_NUMBER: _ClassVar[int]
    GAIN_MICRO_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    asked: int
    gains: int
    gain_micro: int
    tokens: int
    cost_micro: int
    def __init__(self, endpoint: _Optional[str] = ..., asked: _Optional[int] = ..., gains: _Optional[int] = ..., gain_micro: _Optional[int] = ..., tokens: _Optional[int] = ..., cost_micro: _Optional[int] = ...) -> None: ...

class CandidateProduced(_message.Message):
    __slots__ = ("search_id", "expansion_id", "candidate_id", "index", "kernel", "move", "context", "parent_ids", "usage", "at_ns")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    EXPANSION_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PARENT_IDS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    expansion_id: str
    candidate_id: str
    index: int
    kernel: _values_pb2.KernelRef
    move: Move
    context: Context
    parent_ids: _containers.RepeatedScalarFieldContainer[str]
    usage: Usage
    at_ns: int
    def __init__(self, search_id: _Optional[str] = ..., expansion_id: _Optional[str] = ..., candidate_id: _Optional[str] = ..., index: _Optional[int] = ..., kernel: _Optional[_Union[_values_pb2.KernelRef, _Mapping]] = ..., move: _Optional[_Union[Move, _Mapping]] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., parent_ids: _Optional[_Iterable[str]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., at_ns: _Optional[int] = ...) -> None: ...

class CandidateRejected(_message.Message):
    __slots__ = ("search_id", "expansion_id", "candidate_id", "index", "code", "detail", "usage", "at_ns", "context")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    EXPANSION_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    expansion_id: str
    candidate_id: str
    index: int
    code: str
    detail: str
    usage: Usage
    at_ns: int
    context: Context
    def __init__(self, search_id: _Optional[str] = ..., expansion_id: _Optional[str] = ..., candidate_id: _Optional[str] = ..., index: _Optional[int] = ..., code: _Optional[str] = ..., detail: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., at_ns: _Optional[int] = ..., context: _Optional[_Union[Context, _Mapping]] = ...) -> None: ...

class ExpansionFailed(_message.Message):
    __slots__ = ("search_id", "expansion_id", "code", "detail", "at_ns", "pauses", "usage")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    EXPANSION_ID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    PAUSES_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    expansion_id: str
    code: str
    detail: str
    at_ns: int
    pauses: bool
    usage: Usage
    def __init__(self, search_id: _Optional[str] = ..., expansion_id: _Optional[str] = ..., code: _Optional[str] = ..., detail: _Optional[str] = ..., at_ns: _Optional[int] = ..., pauses: bool = ..., usage: _Optional[_Union[Usage, _Mapping]] = ...) -> None: ...
