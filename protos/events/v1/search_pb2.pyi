from protos.events.v1 import candidate_pb2 as _candidate_pb2
from protos.events.v1 import evaluation_pb2 as _evaluation_pb2
from protos.events.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Budget(_message.Message):
    __slots__ = ("evaluations", "wall_ns", "stall", "target_speedup_ppm", "sol_fraction_ppm", "model")
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    WALL_NS_FIELD_NUMBER: _ClassVar[int]
    STALL_FIELD_NUMBER: _ClassVar[int]
    TARGET_SPEEDUP_PPM_FIELD_NUMBER: _ClassVar[int]
    SOL_FRACTION_PPM_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    evaluations: int
    wall_ns: int
    stall: int
    target_speedup_ppm: int
    sol_fraction_ppm: int
    model: _values_pb2.ModelBudget
    def __init__(self, evaluations: _Optional[int] = ..., wall_ns: _Optional[int] = ..., stall: _Optional[int] = ..., target_speedup_ppm: _Optional[int] = ..., sol_fraction_ppm: _Optional[int] = ..., model: _Optional[_Union[_values_pb2.ModelBudget, _Mapping]] = ...) -> None: ...

class Prior(_message.Message):
    __slots__ = ("search_id", "candidate_id", "chip", "language", "kernel_id", "schedule_hash", "found")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    KERNEL_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_HASH_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    candidate_id: str
    chip: str
    language: str
    kernel_id: str
    schedule_hash: str
    found: str
    def __init__(self, search_id: _Optional[str] = ..., candidate_id: _Optional[str] = ..., chip: _Optional[str] = ..., language: _Optional[str] = ..., kernel_id: _Optional[str] = ..., schedule_hash: _Optional[str] = ..., found: _Optional[str] = ...) -> None: ...

class SearchStarted(_message.Message):
    __slots__ = ("search_id", "operator", "chip", "policy", "seed", "budget", "languages", "policy_parameters", "threads", "baseline", "candidates_per_expansion", "expansions_in_flight", "logic_version", "at_ns", "priority", "priors")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    POLICY_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_PER_EXPANSION_FIELD_NUMBER: _ClassVar[int]
    EXPANSIONS_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    LOGIC_VERSION_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PRIORS_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    operator: _values_pb2.OperatorRef
    chip: str
    policy: str
    seed: int
    budget: Budget
    languages: _containers.RepeatedScalarFieldContainer[str]
    policy_parameters: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    threads: int
    baseline: str
    candidates_per_expansion: int
    expansions_in_flight: int
    logic_version: int
    at_ns: int
    priority: int
    priors: _containers.RepeatedCompositeFieldContainer[Prior]
    def __init__(self, search_id: _Optional[str] = ..., operator: _Optional[_Union[_values_pb2.OperatorRef, _Mapping]] = ..., chip: _Optional[str] = ..., policy: _Optional[str] = ..., seed: _Optional[int] = ..., budget: _Optional[_Union[Budget, _Mapping]] = ..., languages: _Optional[_Iterable[str]] = ..., policy_parameters: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ..., threads: _Optional[int] = ..., baseline: _Optional[str] = ..., candidates_per_expansion: _Optional[int] = ..., expansions_in_flight: _Optional[int] = ..., logic_version: _Optional[int] = ..., at_ns: _Optional[int] = ..., priority: _Optional[int] = ..., priors: _Optional[_Iterable[_Union[Prior, _Mapping]]] = ...) -> None: ...

class SearchForked(_message.Message):
    __slots__ = ("search_id", "parent_search_id", "at_seq", "policy", "seed", "policy_parameters", "at_ns")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    AT_SEQ_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    POLICY_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    parent_search_id: str
    at_seq: int
    policy: str
    seed: int
    policy_parameters: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    at_ns: int
    def __init__(self, search_id: _Optional[str] = ..., parent_search_id: _Optional[str] = ..., at_seq: _Optional[int] = ..., policy: _Optional[str] = ..., seed: _Optional[int] = ..., policy_parameters: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ..., at_ns: _Optional[int] = ...) -> None: ...

class SearchPaused(_message.Message):
    __slots__ = ("search_id", "code", "detail", "evaluations")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    code: str
    detail: str
    evaluations: int
    def __init__(self, search_id: _Optional[str] = ..., code: _Optional[str] = ..., detail: _Optional[str] = ..., evaluations: _Optional[int] = ...) -> None: ...

class SearchResumed(_message.Message):
    __slots__ = ("search_id", "at_ns", "model")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    at_ns: int
    model: _values_pb2.ModelBudget
    def __init__(self, search_id: _Optional[str] = ..., at_ns: _Optional[int] = ..., model: _Optional[_Union[_values_pb2.ModelBudget, _Mapping]] = ...) -> None: ...

class WriterRecord(_message.Message):
    __slots__ = ("writer", "attempts_milli", "gains_milli", "gain_micro", "time_ns", "cost_micro")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_MILLI_FIELD_NUMBER: _ClassVar[int]
    GAINS_MILLI_FIELD_NUMBER: _ClassVar[int]
    GAIN_MICRO_FIELD_NUMBER: _ClassVar[int]
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_FIELD_NUMBER: _ClassVar[int]
    writer: str
    attempts_milli: int
    gains_milli: int
    gain_micro: int
    time_ns: int
    cost_micro: int
    def __init__(self, writer: _Optional[str] = ..., attempts_milli: _Optional[int] = ..., gains_milli: _Optional[int] = ..., gain_micro: _Optional[int] = ..., time_ns: _Optional[int] = ..., cost_micro: _Optional[int] = ...) -> None: ...

class ExpansionRequested(_message.Message):
    __slots__ = ("search_id", "expansion_id", "operator", "chip", "languages", "seed", "count", "memory", "parent_ids", "parents", "parent_evaluations", "siblings", "sibling_ids", "negative", "negative_ids", "known_kernel_ids", "threads", "reasons", "writers", "model_budget", "endpoints", "outcomes", "priors")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    EXPANSION_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    PARENT_IDS_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    PARENT_EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    SIBLINGS_FIELD_NUMBER: _ClassVar[int]
    SIBLING_IDS_FIELD_NUMBER: _ClassVar[int]
    NEGATIVE_FIELD_NUMBER: _ClassVar[int]
    NEGATIVE_IDS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_KERNEL_IDS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    MODEL_BUDGET_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    PRIORS_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    expansion_id: str
    operator: _values_pb2.OperatorRef
    chip: str
    languages: _containers.RepeatedScalarFieldContainer[str]
    seed: int
    count: int
    memory: _candidate_pb2.Memory
    parent_ids: _containers.RepeatedScalarFieldContainer[str]
    parents: _containers.RepeatedCompositeFieldContainer[_values_pb2.KernelRef]
    parent_evaluations: _containers.RepeatedCompositeFieldContainer[_evaluation_pb2.Evaluation]
    siblings: _containers.RepeatedCompositeFieldContainer[_values_pb2.KernelRef]
    sibling_ids: _containers.RepeatedScalarFieldContainer[str]
    negative: _containers.RepeatedCompositeFieldContainer[_values_pb2.KernelRef]
    negative_ids: _containers.RepeatedScalarFieldContainer[str]
    known_kernel_ids: _containers.RepeatedScalarFieldContainer[str]
    threads: int
    reasons: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    writers: _containers.RepeatedCompositeFieldContainer[WriterRecord]
    model_budget: _values_pb2.ModelBudget
    endpoints: _containers.RepeatedCompositeFieldContainer[_candidate_pb2.EndpointRecord]
    outcomes: _containers.RepeatedCompositeFieldContainer[_candidate_pb2.MoveOutcome]
    priors: _containers.RepeatedCompositeFieldContainer[Prior]
    def __init__(self, search_id: _Optional[str] = ..., expansion_id: _Optional[str] = ..., operator: _Optional[_Union[_values_pb2.OperatorRef, _Mapping]] = ..., chip: _Optional[str] = ..., languages: _Optional[_Iterable[str]] = ..., seed: _Optional[int] = ..., count: _Optional[int] = ..., memory: _Optional[_Union[_candidate_pb2.Memory, str]] = ..., parent_ids: _Optional[_Iterable[str]] = ..., parents: _Optional[_Iterable[_Union[_values_pb2.KernelRef, _Mapping]]] = ..., parent_evaluations: _Optional[_Iterable[_Union[_evaluation_pb2.Evaluation, _Mapping]]] = ..., siblings: _Optional[_Iterable[_Union[_values_pb2.KernelRef, _Mapping]]] = ..., sibling_ids: _Optional[_Iterable[str]] = ..., negative: _Optional[_Iterable[_Union[_values_pb2.KernelRef, _Mapping]]] = ..., negative_ids: _Optional[_Iterable[str]] = ..., known_kernel_ids: _Optional[_Iterable[str]] = ..., threads: _Optional[int] = ..., reasons: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ..., writers: _Optional[_Iterable[_Union[WriterRecord, _Mapping]]] = ..., model_budget: _Optional[_Union[_values_pb2.ModelBudget, _Mapping]] = ..., endpoints: _Optional[_Iterable[_Union[_candidate_pb2.EndpointRecord, _Mapping]]] = ..., outcomes: _Optional[_Iterable[_Union[_candidate_pb2.MoveOutcome, _Mapping]]] = ..., priors: _Optional[_Iterable[_Union[Prior, _Mapping]]] = ...) -> None: ...

class NodePruned(_message.Message):
    __slots__ = ("search_id", "candidate_id", "rule", "detail")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    candidate_id: str
    rule: str
    detail: str
    def __init__(self, search_id: _Optional[str] = ..., candidate_id: _Optional[str] = ..., rule: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class SearchCancelled(_message.Message):
    __slots__ = ("search_id", "reason", "at_ns")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    reason: str
    at_ns: int
    def __init__(self, search_id: _Optional[str] = ..., reason: _Optional[str] = ..., at_ns: _Optional[int] = ...) -> None: ...

class SearchFinished(_message.Message):
    __slots__ = ("search_id", "outcome", "reason", "evaluations", "best_candidate_id", "final_evaluation_id")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    BEST_CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    FINAL_EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    outcome: str
    reason: str
    evaluations: int
    best_candidate_id: str
    final_evaluation_id: str
    def __init__(self, search_id: _Optional[str] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ..., evaluations: _Optional[int] = ..., best_candidate_id: _Optional[str] = ..., final_evaluation_id: _Optional[str] = ...) -> None: ...
