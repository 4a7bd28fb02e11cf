from google.protobuf import timestamp_pb2 as _timestamp_pb2
from protos.events.v1 import candidate_pb2 as _candidate_pb2
from protos.events.v1 import envelope_pb2 as _envelope_pb2
from protos.events.v1 import evaluation_pb2 as _evaluation_pb2
from protos.events.v1 import search_pb2 as _search_pb2
from protos.events.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LogSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOG_SOURCE_UNSPECIFIED: _ClassVar[LogSource]
    LOG_SOURCE_JOURNAL: _ClassVar[LogSource]
    LOG_SOURCE_BUS: _ClassVar[LogSource]
LOG_SOURCE_UNSPECIFIED: LogSource
LOG_SOURCE_JOURNAL: LogSource
LOG_SOURCE_BUS: LogSource

class OperatorSource(_message.Message):
    __slots__ = ("name", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    source: str
    def __init__(self, name: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("client_request_id", "operator", "chip", "policy", "policy_parameters", "seed", "budget", "threads", "baseline", "priority", "candidates_per_expansion", "expansions_in_flight")
    CLIENT_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    POLICY_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_PER_EXPANSION_FIELD_NUMBER: _ClassVar[int]
    EXPANSIONS_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    client_request_id: str
    operator: OperatorSource
    chip: str
    policy: str
    policy_parameters: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    seed: int
    budget: _search_pb2.Budget
    threads: int
    baseline: str
    priority: int
    candidates_per_expansion: int
    expansions_in_flight: int
    def __init__(self, client_request_id: _Optional[str] = ..., operator: _Optional[_Union[OperatorSource, _Mapping]] = ..., chip: _Optional[str] = ..., policy: _Optional[str] = ..., policy_parameters: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ..., seed: _Optional[int] = ..., budget: _Optional[_Union[_search_pb2.Budget, _Mapping]] = ..., threads: _Optional[int] = ..., baseline: _Optional[str] = ..., priority: _Optional[int] = ..., candidates_per_expansion: _Optional[int] = ..., expansions_in_flight: _Optional[int] = ...) -> None: ...

class SubmitResponse(_message.Message):
    __slots__ = ("search_id", "created")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    created: bool
    def __init__(self, search_id: _Optional[str] = ..., created: bool = ...) -> None: ...

class Search(_message.Message):
    __slots__ = ("search_id", "operator_name", "chip", "policy", "phase", "outcome", "reason", "detail", "charged", "budget_evaluations", "nodes", "evaluating", "synthesizing", "best_candidate_id", "best_speedup_ppm", "winner_id", "winner_speedup_ppm", "winner_low_ppm", "winner_high_ppm", "elapsed_ns", "eta_ns", "submitted_at", "priority", "journal_length", "spent", "model_budget", "basis", "cost_unit", "reference_cost", "best_cost")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    BUDGET_EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    EVALUATING_FIELD_NUMBER: _ClassVar[int]
    SYNTHESIZING_FIELD_NUMBER: _ClassVar[int]
    BEST_CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    BEST_SPEEDUP_PPM_FIELD_NUMBER: _ClassVar[int]
    WINNER_ID_FIELD_NUMBER: _ClassVar[int]
    WINNER_SPEEDUP_PPM_FIELD_NUMBER: _ClassVar[int]
    WINNER_LOW_PPM_FIELD_NUMBER: _ClassVar[int]
    WINNER_HIGH_PPM_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_NS_FIELD_NUMBER: _ClassVar[int]
    ETA_NS_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    MODEL_BUDGET_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    COST_UNIT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_COST_FIELD_NUMBER: _ClassVar[int]
    BEST_COST_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    operator_name: str
    chip: str
    policy: str
    phase: str
    outcome: str
    reason: str
    detail: str
    charged: int
    budget_evaluations: int
    nodes: int
    evaluating: int
    synthesizing: int
    best_candidate_id: str
    best_speedup_ppm: int
    winner_id: str
    winner_speedup_ppm: int
    winner_low_ppm: int
    winner_high_ppm: int
    elapsed_ns: int
    eta_ns: int
    submitted_at: _timestamp_pb2.Timestamp
    priority: int
    journal_length: int
    spent: _candidate_pb2.Usage
    model_budget: _values_pb2.ModelBudget
    basis: str
    cost_unit: str
    reference_cost: int
    best_cost: int
    def __init__(self, search_id: _Optional[str] = ..., operator_name: _Optional[str] = ..., chip: _Optional[str] = ..., policy: _Optional[str] = ..., phase: _Optional[str] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ..., charged: _Optional[int] = ..., budget_evaluations: _Optional[int] = ..., nodes: _Optional[int] = ..., evaluating: _Optional[int] = ..., synthesizing: _Optional[int] = ..., best_candidate_id: _Optional[str] = ..., best_speedup_ppm: _Optional[int] = ..., winner_id: _Optional[str] = ..., winner_speedup_ppm: _Optional[int] = ..., winner_low_ppm: _Optional[int] = ..., winner_high_ppm: _Optional[int] = ..., elapsed_ns: _Optional[int] = ..., eta_ns: _Optional[int] = ..., submitted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., priority: _Optional[int] = ..., journal_length: _Optional[int] = ..., spent: _Optional[_Union[_candidate_pb2.Usage, _Mapping]] = ..., model_budget: _Optional[_Union[_values_pb2.ModelBudget, _Mapping]] = ..., basis: _Optional[str] = ..., cost_unit: _Optional[str] = ..., reference_cost: _Optional[int] = ..., best_cost: _Optional[int] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("search_id",)
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    def __init__(self, search_id: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("search",)
    SEARCH_FIELD_NUMBER: _ClassVar[int]
    search: Search
    def __init__(self, search: _Optional[_Union[Search, _Mapping]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "phase", "chip")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    phase: str
    chip: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., phase: _Optional[str] = ..., chip: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("searches", "next_page_token")
    SEARCHES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    searches: _containers.RepeatedCompositeFieldContainer[Search]
    next_page_token: str
    def __init__(self, searches: _Optional[_Iterable[_Union[Search, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("search_id", "from_seq")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_SEQ_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    from_seq: int
    def __init__(self, search_id: _Optional[str] = ..., from_seq: _Optional[int] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("seq", "fact", "decisions")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    fact: _envelope_pb2.Envelope
    decisions: _containers.RepeatedCompositeFieldContainer[_envelope_pb2.Envelope]
    def __init__(self, seq: _Optional[int] = ..., fact: _Optional[_Union[_envelope_pb2.Envelope, _Mapping]] = ..., decisions: _Optional[_Iterable[_Union[_envelope_pb2.Envelope, _Mapping]]] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("search_id", "reason")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    reason: str
    def __init__(self, search_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ("search_id", "model_budget")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_BUDGET_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    model_budget: _values_pb2.ModelBudget
    def __init__(self, search_id: _Optional[str] = ..., model_budget: _Optional[_Union[_values_pb2.ModelBudget, _Mapping]] = ...) -> None: ...

class ResumeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetTreeRequest(_message.Message):
    __slots__ = ("search_id", "page_size", "page_token")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    page_size: int
    page_token: str
    def __init__(self, search_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("candidate_id", "parent_ids", "kernel_id", "language", "move", "label", "speedup_ppm", "bound", "source_hash", "pruned", "usage", "endpoint", "model", "asking", "estimate")
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_IDS_FIELD_NUMBER: _ClassVar[int]
    KERNEL_ID_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_PPM_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    SOURCE_HASH_FIELD_NUMBER: _ClassVar[int]
    PRUNED_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ASKING_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    candidate_id: str
    parent_ids: _containers.RepeatedScalarFieldContainer[str]
    kernel_id: str
    language: str
    move: str
    label: str
    speedup_ppm: int
    bound: str
    source_hash: str
    pruned: str
    usage: _candidate_pb2.Usage
    endpoint: str
    model: str
    asking: str
    estimate: _evaluation_pb2.Estimate
    def __init__(self, candidate_id: _Optional[str] = ..., parent_ids: _Optional[_Iterable[str]] = ..., kernel_id: _Optional[str] = ..., language: _Optional[str] = ..., move: _Optional[str] = ..., label: _Optional[str] = ..., speedup_ppm: _Optional[int] = ..., bound: _Optional[str] = ..., source_hash: _Optional[str] = ..., pruned: _Optional[str] = ..., usage: _Optional[_Union[_candidate_pb2.Usage, _Mapping]] = ..., endpoint: _Optional[str] = ..., model: _Optional[str] = ..., asking: _Optional[str] = ..., estimate: _Optional[_Union[_evaluation_pb2.Estimate, _Mapping]] = ...) -> None: ...

class GetTreeResponse(_message.Message):
    __slots__ = ("nodes", "next_page_token")
    NODES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    next_page_token: str
    def __init__(self, nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ExportLogRequest(_message.Message):
    __slots__ = ("search_id", "source")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    source: LogSource
    def __init__(self, search_id: _Optional[str] = ..., source: _Optional[_Union[LogSource, str]] = ...) -> None: ...

class ExportLogResponse(_message.Message):
    __slots__ = ("chunk", "entries", "entries_from_journal")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FROM_JOURNAL_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    entries: int
    entries_from_journal: int
    def __init__(self, chunk: _Optional[bytes] = ..., entries: _Optional[int] = ..., entries_from_journal: _Optional[int] = ...) -> None: ...

class ListPoolsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPoolsResponse(_message.Message):
    __slots__ = ("pools",)
    POOLS_FIELD_NUMBER: _ClassVar[int]
    pools: _containers.RepeatedCompositeFieldContainer[Pool]
    def __init__(self, pools: _Optional[_Iterable[_Union[Pool, _Mapping]]] = ...) -> None: ...

class Pool(_message.Message):
    __slots__ = ("chip", "workers", "slots", "draining")
    CHIP_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    chip: str
    workers: int
    slots: int
    draining: int
    def __init__(self, chip: _Optional[str] = ..., workers: _Optional[int] = ..., slots: _Optional[int] = ..., draining: _Optional[int] = ...) -> None: ...
