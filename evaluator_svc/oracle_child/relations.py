"""Which relations an operator keeps to (``evaluator_svc.properties``), measured on its reference in fp64."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from evaluator_svc.arrays import Array
from evaluator_svc.cases import Case
from evaluator_svc.oracle_child.model import KE_DTYPES, OperatorFault, Sample, run
from evaluator_svc.properties import ELEMENTS_MAX, HOLDS, Kind, Relation, hypotheses
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType

SECONDS = 10.0
"""For looking: what a slow operator keeps to is not worth more of the time that its cases take."""
FIRST, SECOND = 1, 2
"""Seeds of the related inputs; the draws themselves are secret."""


def measured(draws: Sequence[Sample]) -> list[Relation]:
    """Relations that hold on every one of ``draws`` (two or more); none for operators too large to look."""
    case = _case(draws[0])
    outputs = run(draws[0])
    specs = tuple(_spec(t) for t in outputs)
    if max(spec.numel for spec in (*case.specs, *specs)) > ELEMENTS_MAX:
        return []
    found: list[Relation] = []
    until = time.monotonic() + SECONDS
    for alike in hypotheses(case.specs, specs):
        if time.monotonic() > until:
            break
        kept = _kept(draws[0], case, alike, specs, FIRST)
        for number, draw in enumerate(draws[1:]):
            kept = _kept(draw, _case(draw), kept, specs, SECOND + number) if kept else []
        found += kept
    return found


def _kept(
    sample: Sample, case: Case, alike: Sequence[Relation], specs: Sequence[TensorSpec], seed: int
) -> list[Relation]:
    """Those of ``alike`` (about the same related inputs) that this draw keeps to."""
    if not alike:
        return []
    try:
        runs = [run(_bound(sample, variant, case.specs), DType.F64) for variant in alike[0].variants(case, seed)]
    except OperatorFault:
        return []
    kept = []
    for relation in alike:
        spec = specs[relation.output]
        if any(tuple(one[relation.output].shape) != spec.shape for one in runs):
            continue
        arrays = [one[relation.output].contiguous().numpy() for one in runs]
        wide = TensorSpec(shape=spec.shape, dtype=DType.F64 if spec.dtype.floating else spec.dtype)
        if relation.kind is Kind.ROW_SUM:
            relation = replace(relation, constant=relation.constant or float(arrays[0].sum(axis=-1).mean()))  # noqa: PLW2901
        size = max(float(np.abs(one).max(initial=0.0)) for one in arrays) if spec.dtype.floating else 0.0
        if not np.isfinite(size) or (size == 0.0 and spec.dtype.floating):
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            deviation = relation.deviation([one.reshape(-1) for one in arrays], wide, seed)
        if deviation <= HOLDS * max(size, abs(relation.constant)):
            kept.append(relation)
    return kept


def _case(sample: Sample) -> Case:
    """Its inputs, without answers."""
    specs = tuple(_spec(t) for t in sample.inputs)
    data = tuple(t.detach().contiguous().reshape(-1).view(torch.uint8).numpy() for t in sample.inputs)
    return Case(name="", public=True, specs=specs, inputs=data, references=())


def _bound(sample: Sample, variant: Sequence[Array], specs: Sequence[TensorSpec]) -> Sample:
    tensors = [
        torch.frombuffer(bytearray(np.ascontiguousarray(one).tobytes()), dtype=t.dtype).reshape(spec.shape)
        for one, t, spec in zip(variant, sample.inputs, specs, strict=True)
    ]
    count = len(sample.tensor_arguments())
    return sample.with_arguments(tensors[:count]).with_state(tensors[count:])


def _spec(tensor: torch.Tensor) -> TensorSpec:
    return TensorSpec(shape=tuple(tensor.shape), dtype=KE_DTYPES[tensor.dtype])
