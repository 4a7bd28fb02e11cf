"""An operator's outputs exactly, as declared, on inputs an ulp away, and in lower precisions."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from evaluator_svc.oracle_child.catalogue import absolute
from evaluator_svc.oracle_child.model import KE_DTYPES, TORCH_DTYPES, OperatorFault, Sample, run
from evaluator_svc.oracle_child.values import nudged
from shared.dtypes import DType

LOWER: dict[DType, tuple[DType, ...]] = {
    DType.F64: (DType.F32,),
    DType.F32: (DType.F16, DType.BF16),
    DType.F16: (DType.BF16,),
}
"""What counts as "the next lower precision" of a declared one, every step in it."""
TF32_DROPPED = 13
"""Bits of float32's mantissa that TensorFloat-32 has not."""
E4M3_MAX = 448.0
Blocks = list[tuple[str, torch.Tensor]]


def precisions(
    sample: Sample, declared: tuple[torch.Tensor, ...], *, lower: str, sums: bool = False, nudge: bool = True
) -> Blocks:
    """Blocks ``exact`` (fp64), ``declared``, ``nudged``, ``low:<name>`` (finite ones as float32; all of them or the
    nearest alone) and, for ``sums`` of products, ``magnitude`` (float32).
    """
    if not any(t.is_floating_point() for t in declared):
        return [("exact", t) for t in declared] + [("declared", t) for t in declared]
    blocks = [("exact", t) for t in _exact(sample, declared)]
    blocks += [("declared", t) for t in declared]
    if nudge:
        blocks += [("nudged", t) for t in run(nudged(sample))]
    for name, outputs in _lower(sample, declared) if lower else ():
        if all(bool(torch.isfinite(t).all()) for t in outputs if t.is_floating_point()):
            blocks += [(f"low:{name}", t.float() if t.is_floating_point() else t) for t in outputs]
            if lower != "all":
                break
    if sums:
        bounds = run(absolute(sample), DType.F64)
        blocks += [("magnitude", t.float() if t.is_floating_point() else t) for t in bounds]
    return blocks


def declared_dtype(outputs: tuple[torch.Tensor, ...]) -> DType:
    """Of the first floating output."""
    return KE_DTYPES[next(t for t in outputs if t.is_floating_point()).dtype]


def inputs_rounded(sample: Sample, name: str) -> Sample:
    """``sample`` with floating inputs and parameters rounded to ``name``, in their own type."""
    return sample.with_arguments([rounded(a, name) for a in sample.tensor_arguments()]).with_state(
        [rounded(p, name) for p in sample.state()]
    )


def rounded(x: torch.Tensor, name: str) -> torch.Tensor:
    """Values of ``x`` in the precision ``name`` (a dtype, ``tf32`` or ``fp8``), in its own type."""
    if not x.is_floating_point():
        return x
    if name == "tf32":
        bits = x.float().contiguous().view(torch.int32)
        half = 1 << (TF32_DROPPED - 1)
        return ((bits + half) & ~((1 << TF32_DROPPED) - 1)).view(torch.float32).to(x.dtype)
    if name == "fp8":
        # Scaled by a power of two so that the largest value is in the range of e4m3, as quantisation does.
        top = x.double().abs().max().item() if x.numel() else 0.0
        scale = 2.0 ** torch.tensor(E4M3_MAX / top).log2().floor().item() if top > 0 else 1.0
        return ((x.double() * scale).to(torch.float8_e4m3fn).double() / scale).to(x.dtype)
    return x.to(TORCH_DTYPES[DType(name)]).to(x.dtype)


def _exact(sample: Sample, declared: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """fp64 outputs; where the operator cannot run in fp64, its declared outputs widened."""
    try:
        outputs = run(sample, DType.F64)
    except OperatorFault:
        outputs = declared
    return tuple(o.double() if d.is_floating_point() else d for o, d in zip(outputs, declared, strict=True))


def _lower(sample: Sample, declared: tuple[torch.Tensor, ...]) -> Iterator[tuple[str, tuple[torch.Tensor, ...]]]:
    """Name and outputs of each lower precision, the nearest first."""
    own = declared_dtype(declared)
    for precision in LOWER.get(own, ()):
        yield precision.value, _whole(sample, precision)
    if own is DType.F32:
        yield "inputs in tf32", run(inputs_rounded(sample, "tf32"))
    if own in (DType.F16, DType.BF16):
        outputs = run(inputs_rounded(sample, "fp8"))
        yield "fp8", tuple(rounded(t, "fp8") for t in outputs)


def _whole(sample: Sample, precision: DType) -> tuple[torch.Tensor, ...]:
    """Outputs computed in ``precision``; where that cannot run, inputs and outputs rounded to it."""
    try:
        return run(sample, precision)
    except OperatorFault:
        dtype = TORCH_DTYPES[precision]
        outputs = run(inputs_rounded(sample, precision.value))
        return tuple(o.to(dtype) if o.is_floating_point() else o for o in outputs)
