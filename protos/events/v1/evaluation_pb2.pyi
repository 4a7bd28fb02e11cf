from protos.events.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATUS_UNSPECIFIED: _ClassVar[Status]
    STATUS_PASSED: _ClassVar[Status]
    STATUS_COMPILE_ERROR: _ClassVar[Status]
    STATUS_LAUNCH_FAILED: _ClassVar[Status]
    STATUS_RUNTIME_ERROR: _ClassVar[Status]
    STATUS_TIMEOUT: _ClassVar[Status]
    STATUS_OUT_OF_MEMORY: _ClassVar[Status]
    STATUS_WRONG_RESULT: _ClassVar[Status]
    STATUS_WRONG_SHAPE: _ClassVar[Status]
    STATUS_WRONG_DTYPE: _ClassVar[Status]
    STATUS_NONDETERMINISTIC: _ClassVar[Status]
    STATUS_MUTATED_INPUT: _ClassVar[Status]
    STATUS_PRECISION_DOWNGRADE: _ClassVar[Status]
    STATUS_NO_CUSTOM_KERNEL: _ClassVar[Status]
    STATUS_CHEAT: _ClassVar[Status]
    STATUS_NOISY: _ClassVar[Status]
    STATUS_INFRASTRUCTURE: _ClassVar[Status]
    STATUS_CANCELLED: _ClassVar[Status]

class Trust(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRUST_UNSPECIFIED: _ClassVar[Trust]
    TRUST_NONE: _ClassVar[Trust]
    TRUST_L0: _ClassVar[Trust]
    TRUST_L1: _ClassVar[Trust]
    TRUST_L2: _ClassVar[Trust]
    TRUST_L3: _ClassVar[Trust]
    TRUST_L4: _ClassVar[Trust]

class Bound(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BOUND_UNSPECIFIED: _ClassVar[Bound]
    BOUND_UNKNOWN: _ClassVar[Bound]
    BOUND_MEMORY: _ClassVar[Bound]
    BOUND_COMPUTE: _ClassVar[Bound]
    BOUND_LATENCY: _ClassVar[Bound]
    BOUND_OCCUPANCY: _ClassVar[Bound]
    BOUND_LAUNCH: _ClassVar[Bound]

class Purpose(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PURPOSE_UNSPECIFIED: _ClassVar[Purpose]
    PURPOSE_SEARCH: _ClassVar[Purpose]
    PURPOSE_FINAL: _ClassVar[Purpose]

class Basis(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BASIS_UNSPECIFIED: _ClassVar[Basis]
    BASIS_MEASURED: _ClassVar[Basis]
    BASIS_COUNTED: _ClassVar[Basis]
    BASIS_MODELLED: _ClassVar[Basis]
STATUS_UNSPECIFIED: Status
STATUS_PASSED: Status
STATUS_COMPILE_ERROR: Status
STATUS_LAUNCH_FAILED: Status
STATUS_RUNTIME_ERROR: Status
STATUS_TIMEOUT: Status
STATUS_OUT_OF_MEMORY: Status
STATUS_WRONG_RESULT: Status
STATUS_WRONG_SHAPE: Status
STATUS_WRONG_DTYPE: Status
STATUS_NONDETERMINISTIC: Status
STATUS_MUTATED_INPUT: Status
STATUS_PRECISION_DOWNGRADE: Status
STATUS_NO_CUSTOM_KERNEL: Status
STATUS_CHEAT: Status
STATUS_NOISY: Status
STATUS_INFRASTRUCTURE: Status
STATUS_CANCELLED: Status
TRUST_UNSPECIFIED: Trust
TRUST_NONE: Trust
TRUST_L0: Trust
TRUST_L1: Trust
TRUST_L2: Trust
TRUST_L3: Trust
TRUST_L4: Trust
BOUND_UNSPECIFIED: Bound
BOUND_UNKNOWN: Bound
BOUND_MEMORY: Bound
BOUND_COMPUTE: Bound
BOUND_LATENCY: Bound
BOUND_OCCUPANCY: Bound
BOUND_LAUNCH: Bound
PURPOSE_UNSPECIFIED: Purpose
PURPOSE_SEARCH: Purpose
PURPOSE_FINAL: Purpose
BASIS_UNSPECIFIED: Basis
BASIS_MEASURED: Basis
BASIS_COUNTED: Basis
BASIS_MODELLED: Basis

class Timing(_message.Message):
    __slots__ = ("name", "median_ns", "block_ns", "calls_per_block", "cold_ns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_NS_FIELD_NUMBER: _ClassVar[int]
    BLOCK_NS_FIELD_NUMBER: _ClassVar[int]
    CALLS_PER_BLOCK_FIELD_NUMBER: _ClassVar[int]
    COLD_NS_FIELD_NUMBER: _ClassVar[int]
    name: str
    median_ns: int
    block_ns: _containers.RepeatedScalarFieldContainer[int]
    calls_per_block: int
    cold_ns: int
    def __init__(self, name: _Optional[str] = ..., median_ns: _Optional[int] = ..., block_ns: _Optional[_Iterable[int]] = ..., calls_per_block: _Optional[int] = ..., cold_ns: _Optional[int] = ...) -> None: ...

class Speedup(_message.Message):
    __slots__ = ("baseline", "ratio_ppm", "low_ppm", "high_ppm", "delta_ppm")
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    RATIO_PPM_FIELD_NUMBER: _ClassVar[int]
    LOW_PPM_FIELD_NUMBER: _ClassVar[int]
    HIGH_PPM_FIELD_NUMBER: _ClassVar[int]
    DELTA_PPM_FIELD_NUMBER: _ClassVar[int]
    baseline: str
    ratio_ppm: int
    low_ppm: int
    high_ppm: int
    delta_ppm: int
    def __init__(self, baseline: _Optional[str] = ..., ratio_ppm: _Optional[int] = ..., low_ppm: _Optional[int] = ..., high_ppm: _Optional[int] = ..., delta_ppm: _Optional[int] = ...) -> None: ...

class Count(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: int
    def __init__(self, name: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...

class Estimate(_message.Message):
    __slots__ = ("basis", "cost", "unit", "counts")
    BASIS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    basis: Basis
    cost: int
    unit: str
    counts: _containers.RepeatedCompositeFieldContainer[Count]
    def __init__(self, basis: _Optional[_Union[Basis, str]] = ..., cost: _Optional[int] = ..., unit: _Optional[str] = ..., counts: _Optional[_Iterable[_Union[Count, _Mapping]]] = ...) -> None: ...

class Roofline(_message.Message):
    __slots__ = ("bytes_min", "flops_min", "floor_ns", "fraction_ppm")
    BYTES_MIN_FIELD_NUMBER: _ClassVar[int]
    FLOPS_MIN_FIELD_NUMBER: _ClassVar[int]
    FLOOR_NS_FIELD_NUMBER: _ClassVar[int]
    FRACTION_PPM_FIELD_NUMBER: _ClassVar[int]
    bytes_min: int
    flops_min: int
    floor_ns: int
    fraction_ppm: int
    def __init__(self, bytes_min: _Optional[int] = ..., flops_min: _Optional[int] = ..., floor_ns: _Optional[int] = ..., fraction_ppm: _Optional[int] = ...) -> None: ...

class Diagnosis(_message.Message):
    __slots__ = ("bound", "evidence", "summary")
    BOUND_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    bound: Bound
    evidence: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    summary: str
    def __init__(self, bound: _Optional[_Union[Bound, str]] = ..., evidence: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ..., summary: _Optional[str] = ...) -> None: ...

class StageTimes(_message.Message):
    __slots__ = ("build_ns", "correctness_ns", "timing_ns", "profile_ns", "wait_ns", "framework_ns")
    BUILD_NS_FIELD_NUMBER: _ClassVar[int]
    CORRECTNESS_NS_FIELD_NUMBER: _ClassVar[int]
    TIMING_NS_FIELD_NUMBER: _ClassVar[int]
    PROFILE_NS_FIELD_NUMBER: _ClassVar[int]
    WAIT_NS_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_NS_FIELD_NUMBER: _ClassVar[int]
    build_ns: int
    correctness_ns: int
    timing_ns: int
    profile_ns: int
    wait_ns: int
    framework_ns: int
    def __init__(self, build_ns: _Optional[int] = ..., correctness_ns: _Optional[int] = ..., timing_ns: _Optional[int] = ..., profile_ns: _Optional[int] = ..., wait_ns: _Optional[int] = ..., framework_ns: _Optional[int] = ...) -> None: ...

class Evaluation(_message.Message):
    __slots__ = ("status", "trust", "evidence", "timings", "speedups", "roofline", "diagnosis", "stages", "sandbox", "environment", "log_hash", "memoised", "ledger_hash", "estimate")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUPS_FIELD_NUMBER: _ClassVar[int]
    ROOFLINE_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSIS_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    LOG_HASH_FIELD_NUMBER: _ClassVar[int]
    MEMOISED_FIELD_NUMBER: _ClassVar[int]
    LEDGER_HASH_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    status: Status
    trust: Trust
    evidence: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    timings: _containers.RepeatedCompositeFieldContainer[Timing]
    speedups: _containers.RepeatedCompositeFieldContainer[Speedup]
    roofline: Roofline
    diagnosis: Diagnosis
    stages: StageTimes
    sandbox: str
    environment: _containers.RepeatedCompositeFieldContainer[_values_pb2.Entry]
    log_hash: str
    memoised: bool
    ledger_hash: str
    estimate: Estimate
    def __init__(self, status: _Optional[_Union[Status, str]] = ..., trust: _Optional[_Union[Trust, str]] = ..., evidence: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ..., timings: _Optional[_Iterable[_Union[Timing, _Mapping]]] = ..., speedups: _Optional[_Iterable[_Union[Speedup, _Mapping]]] = ..., roofline: _Optional[_Union[Roofline, _Mapping]] = ..., diagnosis: _Optional[_Union[Diagnosis, _Mapping]] = ..., stages: _Optional[_Union[StageTimes, _Mapping]] = ..., sandbox: _Optional[str] = ..., environment: _Optional[_Iterable[_Union[_values_pb2.Entry, _Mapping]]] = ..., log_hash: _Optional[str] = ..., memoised: bool = ..., ledger_hash: _Optional[str] = ..., estimate: _Optional[_Union[Estimate, _Mapping]] = ...) -> None: ...

class EvaluationRequested(_message.Message):
    __slots__ = ("search_id", "evaluation_id", "candidate_id", "kernel", "operator", "chip", "purpose", "threads", "attempt", "priority")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    evaluation_id: str
    candidate_id: str
    kernel: _values_pb2.KernelRef
    operator: _values_pb2.OperatorRef
    chip: str
    purpose: Purpose
    threads: int
    attempt: int
    priority: int
    def __init__(self, search_id: _Optional[str] = ..., evaluation_id: _Optional[str] = ..., candidate_id: _Optional[str] = ..., kernel: _Optional[_Union[_values_pb2.KernelRef, _Mapping]] = ..., operator: _Optional[_Union[_values_pb2.OperatorRef, _Mapping]] = ..., chip: _Optional[str] = ..., purpose: _Optional[_Union[Purpose, str]] = ..., threads: _Optional[int] = ..., attempt: _Optional[int] = ..., priority: _Optional[int] = ...) -> None: ...

class EvaluationCompleted(_message.Message):
    __slots__ = ("search_id", "evaluation_id", "candidate_id", "kernel_id", "chip", "purpose", "evaluation", "attempt", "at_ns")
    SEARCH_ID_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    KERNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    search_id: str
    evaluation_id: str
    candidate_id: str
    kernel_id: str
    chip: str
    purpose: Purpose
    evaluation: Evaluation
    attempt: int
    at_ns: int
    def __init__(self, search_id: _Optional[str] = ..., evaluation_id: _Optional[str] = ..., candidate_id: _Optional[str] = ..., kernel_id: _Optional[str] = ..., chip: _Optional[str] = ..., purpose: _Optional[_Union[Purpose, str]] = ..., evaluation: _Optional[_Union[Evaluation, _Mapping]] = ..., attempt: _Optional[int] = ..., at_ns: _Optional[int] = ...) -> None: ...
