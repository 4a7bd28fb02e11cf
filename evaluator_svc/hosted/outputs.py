"""What a hosted candidate claims about its results, held against what the operator promises.

| claim | status | why |
|---|---|---|
| no tensor, too few, too many; sparse, nested, on another device | WRONG_SHAPE | not what the operator returns |
| another shape; strides that visit an element twice | WRONG_SHAPE | an expanded value is smaller than it says |
| another or a quantized type | WRONG_DTYPE | |
| a parameter | WRONG_SHAPE | the model's own state is no result |
| any other subclass of Tensor | CHEAT | its value may not exist before somebody looks |
| an input's memory, under whatever address | CHEAT | nothing was computed, or an input was overwritten |
| memory that two outputs share | CHEAT | results are the caller's to change |
| an address where nothing is | CHEAT | a tensor that torch made always has one |

A view with strides of its own (a transposed or sliced result) is fine: it is read element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluator_svc.hosted.strided import Strided, overlap, overlaps_itself
from evaluator_svc.hosted.wire import Claim, Result
from evaluator_svc.layers import Layer
from evaluator_svc.runner.ending import RunFailure, failure
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from shared.events import Status

ADDRESSES = 1 << 47
"""User space of x86-64; no address or span of a candidate's can be larger."""

_REFUSED = {
    Claim.MISSING: (Status.WRONG_SHAPE, "is no tensor, or the number of results is wrong"),
    Claim.SUBCLASS: (Status.CHEAT, "is of a subclass of torch.Tensor, whose value may not exist yet"),
    Claim.PARAMETER: (Status.WRONG_SHAPE, "is a parameter, not a result"),
    Claim.LAYOUT: (Status.WRONG_SHAPE, "is no dense tensor with data of its own"),
    Claim.DEVICE: (Status.WRONG_SHAPE, "is on another device"),
    Claim.DTYPE: (Status.WRONG_DTYPE, "has an element type that no operator has"),
}


def refused(result: Result | None, spec: TensorSpec, output: int, remark: str) -> RunFailure | None:
    """Why the claim alone does not do. ``remark`` is the candidate's side's description of all results."""
    if result is None:
        return contract(Status.CHEAT, output, "was never told of", remark)
    if result.claim != Claim.TENSOR:
        try:
            status, why = _REFUSED[Claim(result.claim)]
        except (ValueError, KeyError):
            status, why = Status.CHEAT, "is described by a number that means nothing"
        return contract(status, output, why, remark)
    if result.dtype != spec.dtype.code:
        said = list(DType)[result.dtype].value if 0 <= result.dtype < len(DType) else "of an unknown type"
        return contract(Status.WRONG_DTYPE, output, f"is {said}, not {spec.dtype.value}", "")
    if result.ndim != len(spec.shape) or result.shape != spec.shape:
        return contract(Status.WRONG_SHAPE, output, f"has shape {list(result.shape)}, not {list(spec.shape)}", "")
    if any(not 0 <= stride < ADDRESSES for stride in result.strides) or not 0 < result.address < ADDRESSES:
        return contract(Status.CHEAT, output, "has an impossible address or stride", "")
    placed = strided(result, spec)
    if placed.address + placed.span > ADDRESSES:
        return contract(Status.CHEAT, output, "reaches past the end of all addresses", "")
    if overlaps_itself(placed):
        return contract(Status.WRONG_SHAPE, output, "has elements that share memory, as an expanded value has", "")
    return None


def shared(placed: Sequence[Strided]) -> RunFailure | None:
    """Two outputs in the same memory."""
    for output, one in enumerate(placed):
        for other in range(output):
            if overlap(placed[other], one):
                return contract(Status.CHEAT, output, f"shares memory with output {other}", "")
    return None


def strided(result: Result, spec: TensorSpec) -> Strided:
    size = spec.dtype.itemsize
    return Strided(result.address, spec.shape, tuple(stride * size for stride in result.strides), size)


def contract(status: Status, output: int, why: str, remark: str) -> RunFailure:
    """The output contract is broken."""
    return failure(status, Layer.CONTRACT, reason=f"output {output} {why}", returned=remark)
