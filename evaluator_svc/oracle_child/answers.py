"""The oracle role: cases as raw bytes in a file that the controller names, maps and unlinks."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from evaluator_svc.oracle_child import fresh
from evaluator_svc.oracle_child.model import CPU, KE_DTYPES, Operator, OperatorFault, Sample, run
from evaluator_svc.oracle_child.signature import signature
from evaluator_svc.oracle_child.values import nudged, perturbed, reshaped, transformed
from shared.dtypes import DType

ALIGNMENT = 64
LOWER: dict[DType, tuple[DType, ...]] = {
    DType.F64: (DType.F32,),
    DType.F32: (DType.F16, DType.BF16),
}
"""What counts as "the next lower precision" of a declared one; 16-bit operators have none on this chip."""


class Oracle:
    """Answers the controller's questions about one operator."""

    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(int(request["threads"]))
        self._operator = Operator(str(request["source"]), str(request["name"]), str(request.get("device", CPU)))

    def describe(self, request: dict[str, Any]) -> dict[str, Any]:
        """Specs of inputs and outputs, floating-point operations of contractions (None: unknown), and signature."""
        sample = self._operator.sample(int(request["seed"]))
        outputs = run(sample)
        return {
            "inputs": [_spec(t) for t in sample.inputs],
            "arguments": len(sample.tensor_arguments()),
            "outputs": [_spec(t) for t in outputs],
            "flops": _flops(sample),
            "signature": signature(sample),
        }

    def case(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write a case to ``path``. A transform outside the operator's domain answers ``{"skipped": why}``."""
        seed, transform = int(request["seed"]), str(request.get("transform", ""))
        sample: Sample | None = self._operator.sample(seed)
        assert sample is not None
        if transform == "shape":
            sample = reshaped(sample)
            if sample is None:
                return {"skipped": "the reference runs on no other leading dimension"}
        elif transform:
            sample = transformed(sample, transform)
        try:
            declared = run(sample)
        except OperatorFault as fault:
            if not transform:
                raise
            return {"skipped": str(fault)}
        finite = all(bool(torch.isfinite(t).all()) for t in declared if t.is_floating_point())
        if transform and not finite:
            return {"skipped": "the reference is not finite there"}
        blocks = [("input", t) for t in sample.inputs] + _precisions(sample, declared, all_lower=not transform)
        return {"blocks": _write(Path(request["path"]), blocks), "finite": finite}

    def perturbed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write only the declared outputs with input ``index`` changed."""
        sample, other = (self._operator.sample(int(request[key])) for key in ("seed", "other_seed"))
        try:
            outputs = run(perturbed(sample, other, int(request["index"])))
        except OperatorFault as fault:
            return {"skipped": str(fault)}
        return {"blocks": _write(Path(request["path"]), [("declared", t) for t in outputs])}

    def fresh(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write fresh values, their declared answer, and for each flip the elements of the answer that it changes."""
        blocks, flips, changes = fresh.answers(fresh.drawn(self._operator, request), request)
        blocks += [(f"flip:{number}", t) for number, tensors in enumerate(changes) for t in tensors]
        return {"blocks": _write(Path(request["path"]), blocks), "flips": flips}

    def settled(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write the whole case of values that ``fresh`` has drawn, for a judge who must be sure."""
        sample = fresh.drawn(self._operator, request)
        blocks = [("input", t) for t in sample.inputs] + _precisions(sample, run(sample), all_lower=True)
        return {"blocks": _write(Path(request["path"]), blocks)}

    def repeat(self, request: dict[str, Any]) -> dict[str, Any]:
        """Whether two runs of fresh copies on equal inputs give equal bytes."""
        sample = self._operator.sample(int(request["seed"]))
        first, second = (run(replace(sample, model=copy.deepcopy(sample.model))) for _ in range(2))
        same = all(_bytes(a).tobytes() == _bytes(b).tobytes() for a, b in zip(first, second, strict=True))
        return {"same": same}


def _precisions(
    sample: Sample, declared: tuple[torch.Tensor, ...], *, all_lower: bool
) -> list[tuple[str, torch.Tensor]]:
    """The outputs exactly (fp64), as declared, on nudged inputs, and in every (or the nearest) finite lower one."""
    if not any(t.is_floating_point() for t in declared):
        return [("exact", t) for t in declared] + [("declared", t) for t in declared]
    blocks = [("exact", t) for t in _exact(sample, declared)]
    blocks += [("declared", t) for t in declared]
    blocks += [("nudged", t) for t in run(nudged(sample))]
    for lower in LOWER.get(KE_DTYPES[next(t for t in declared if t.is_floating_point()).dtype], ()):
        outputs = _lower(sample, lower)
        if all(bool(torch.isfinite(t).all()) for t in outputs if t.is_floating_point()):
            blocks += [(f"low:{lower.value}", t.float() if t.is_floating_point() else t) for t in outputs]
            if not all_lower:
                break
    return blocks


def _exact(sample: Sample, declared: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """fp64 outputs; where the operator cannot run in fp64, its declared outputs widened."""
    try:
        outputs = run(sample, DType.F64)
    except OperatorFault:
        outputs = declared
    return tuple(o.double() if d.is_floating_point() else d for o, d in zip(outputs, declared, strict=True))


def _lower(sample: Sample, precision: DType) -> tuple[torch.Tensor, ...]:
    """Outputs computed in ``precision``; where that cannot run, inputs and outputs rounded to it."""
    try:
        return run(sample, precision)
    except OperatorFault:
        dtype = getattr(torch, precision.value)
        rounded = [a.to(dtype).to(a.dtype) if a.is_floating_point() else a for a in sample.tensor_arguments()]
        return tuple(o.to(dtype) if o.is_floating_point() else o for o in run(sample.with_arguments(rounded)))


def _flops(sample: Sample) -> int | None:
    """Contractions only: what torch's counter knows. Nothing counted means unknown, not zero."""
    with FlopCounterMode(display=False) as counter:
        run(sample)
    total = int(counter.get_total_flops())
    return total or None


def _spec(tensor: torch.Tensor) -> dict[str, Any]:
    return {"shape": list(tensor.shape), "dtype": KE_DTYPES[tensor.dtype].value}


def _bytes(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    flat = tensor.detach().contiguous().reshape(-1)
    array: np.ndarray[Any, np.dtype[np.uint8]] = flat.view(torch.uint8).numpy()
    return array


def _write(path: Path, blocks: list[tuple[str, torch.Tensor]]) -> list[dict[str, Any]]:
    layout, offset = [], 0
    with path.open("wb") as file:
        for role, tensor in blocks:
            data = _bytes(tensor)
            file.seek(offset)
            file.write(data.tobytes())
            layout.append({"role": role, "offset": offset} | _spec(tensor))
            offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    return layout
