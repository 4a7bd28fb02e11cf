"""The operator itself, wrong on purpose: mutants that know what it computes, for admission to test its check with.

Mutants of an output alone are in ``evaluator_svc.mutants``. These are the mistakes kernels make inside: a constant of
the operator's text or modules that is another or left out, a parameter left out, the tail of an axis not read,
inputs rounded to a lower precision, everything computed in one.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from evaluator_svc.oracle_child.model import Operator, OperatorFault, Sample, run
from evaluator_svc.oracle_child.precisions import LOWER, declared_dtype, inputs_rounded
from shared.dtypes import DType

SMALL = 1e-2
"""Largest constant that counts as an epsilon."""
INPUTS_MAX, AXES_MAX, PARAMETERS_MAX, CONSTANTS_MAX = 3, 3, 8, 4
TAIL = 16
"""The tail of an axis is one in so many of its elements."""
ROUNDINGS = {
    DType.F64: ("float32",),
    DType.F32: ("tf32", "float16", "bfloat16"),
    DType.F16: ("bfloat16", "fp8"),
    DType.BF16: ("fp8",),
}
Outputs = tuple[torch.Tensor, ...]
Mutant = Callable[[Sample, int], Outputs]
"""Of a sample, and the seed that it was drawn under."""


def mutants(operator: Operator, sample: Sample, outputs: Outputs) -> dict[str, Mutant]:
    """By name; ``sample`` and its ``outputs`` say what there is to mutate."""
    found: dict[str, Mutant] = dict(_constants(operator))
    found |= dict(_attributes(sample))
    for name, parameter in list(sample.model.state_dict().items())[:PARAMETERS_MAX]:
        if parameter.is_floating_point():
            found[f"parameter {name} omitted"] = _without_parameter(name)
    for index, argument in enumerate(sample.tensor_arguments()[:INPUTS_MAX]):
        for axis, extent in list(enumerate(argument.shape))[:AXES_MAX]:
            if extent > 1:
                tail = max(1, extent // TAIL)
                found[f"input {index} not read to the end of axis {axis}"] = _truncated(index, axis, tail)
                if tail > 1:
                    found[f"last element of axis {axis} of input {index} not read"] = _truncated(index, axis, 1)
    if any(t.is_floating_point() for t in outputs):
        declared = declared_dtype(outputs)
        for name in ROUNDINGS[declared]:
            found[f"inputs rounded to {name}"] = _inputs_rounded(name)
        for lower in LOWER.get(declared, ()):
            found[f"computed in {lower.value}"] = _computed_in(lower)
    return found


def _constants(operator: Operator) -> Iterator[tuple[str, Mutant]]:
    """Small numbers in the text of classes and functions that make up the operator, its inputs' left alone."""
    for number, node in enumerate(_small_literals(ast.parse(operator.source))[:CONSTANTS_MAX]):
        value = _value(node)
        yield f"constant {value:g} in line {node.lineno} a tenth", _text_changed(operator, number, 0.1)
        yield f"constant {value:g} in line {node.lineno} omitted", _text_changed(operator, number, 0.0)


def _small_literals(tree: ast.Module) -> list[ast.Constant]:
    inputs = {"get_inputs", "get_init_inputs"}
    kept = [node for node in tree.body if not (isinstance(node, ast.FunctionDef) and node.name in inputs)]
    return [
        node
        for part in kept
        for node in ast.walk(part)
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < abs(node.value) <= SMALL
    ]


def _value(node: ast.Constant) -> float:
    return node.value if isinstance(node.value, float) else 0.0


def _text_changed(operator: Operator, number: int, factor: float) -> Mutant:
    def mutate(sample: Sample, seed: int) -> Outputs:
        tree = ast.parse(operator.source)
        node = _small_literals(tree)[number]
        node.value = _value(node) * factor
        registered = sys.modules.get("operator_under_test")
        try:
            changed = Operator(ast.unparse(tree), operator.name, sample.device)
            model = changed.sample(seed).model
        finally:
            if registered is not None:
                sys.modules["operator_under_test"] = registered
        model.load_state_dict(sample.model.state_dict())
        return run(replace(sample, model=model))

    return mutate


def _attributes(sample: Sample) -> Iterator[tuple[str, Mutant]]:
    """Small numbers that modules hold, as ``LayerNorm.eps`` is."""
    found = [
        (path, name, value)
        for path, module in sample.model.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, float) and 0 < abs(value) <= SMALL
    ]
    for path, name, value in found[:CONSTANTS_MAX]:
        where = f"{path}.{name}" if path else name
        yield f"{where} {value:g} a tenth", _attribute_changed(path, name, value * 0.1)
        yield f"{where} {value:g} omitted", _attribute_changed(path, name, 0.0)


def _attribute_changed(path: str, name: str, value: float) -> Mutant:
    def mutate(sample: Sample, _: int) -> Outputs:
        model = copy.deepcopy(sample.model)
        setattr(model.get_submodule(path), name, value)
        return run(replace(sample, model=model))

    return mutate


def _without_parameter(name: str) -> Mutant:
    def mutate(sample: Sample, _: int) -> Outputs:
        named = zip(sample.model.state_dict(), sample.state(), strict=True)
        return run(sample.with_state([torch.zeros_like(p) if own == name else p for own, p in named]))

    return mutate


def _truncated(index: int, axis: int, tail: int) -> Mutant:
    def mutate(sample: Sample, _: int) -> Outputs:
        arguments = sample.tensor_arguments()
        changed = arguments[index].clone()
        part = changed.narrow(axis, changed.shape[axis] - tail, tail)
        part.copy_(torch.zeros_like(part) if part.is_floating_point() else changed.narrow(axis, 0, 1).expand_as(part))
        arguments[index] = changed
        return run(sample.with_arguments(arguments))

    return mutate


def _inputs_rounded(name: str) -> Mutant:
    return lambda sample, _: run(inputs_rounded(sample, name))


def _computed_in(lower: DType) -> Mutant:
    def mutate(sample: Sample, _: int) -> Outputs:
        declared = run(sample)
        return tuple(o.to(d.dtype) for o, d in zip(run(sample, lower), declared, strict=True))

    return mutate


def applied(mutant: Mutant, sample: Sample, seed: int) -> Outputs | None:
    """What ``mutant`` makes of ``sample``; None where it cannot run or changes the shapes."""
    try:
        return mutant(sample, seed)
    except (OperatorFault, RuntimeError):
        return None
