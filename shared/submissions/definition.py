"""A definition of flashinfer-bench or SOL-ExecBench: an operator's axes, inputs, outputs and reference (pure).

Formats: https://bench.flashinfer.ai/docs/flashinfer-trace/definition and ``docs/definition.md`` of NVIDIA's
SOL-ExecBench, which adds axes that follow from others (``expr``) and inputs that the reference itself draws
(``custom_inputs_entrypoint``).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.dtypes import DType
from shared.errors import OperatorError, UserError
from shared.submissions import fields
from shared.submissions.functions import Signature, assigned, function, signature

RUN = "run"
NOT_SUPPORTED = frozenset({"float8_e4m3fn", "float8_e5m2", "float4_e2m1", "float4_e2m1fn_x2"})
"""Types that the formats have and this evaluator has no arithmetic for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A dimension: of a constant ``value``, of an ``expression`` in other axes, or (neither) given by each workload."""

    name: str
    value: int | None = None
    expression: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """An input or output. ``shape`` names axes (or spells sizes); None is a plain number."""

    name: str
    shape: tuple[str, ...] | None
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """See the module. ``custom_inputs`` names the reference's function that draws its inputs, or is empty."""

    name: str
    op_type: str
    axes: tuple[Axis, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    reference: str
    constraints: tuple[str, ...]
    custom_inputs: str = ""

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.outputs)

    @property
    def changed(self) -> frozenset[str]:
        """Tensors that ``run`` may change in place, going by how it is written; one too many changes no answer."""
        run = function(ast.parse(self.reference), RUN)
        assert run is not None  # checked when the definition was read
        called = dict(zip(signature(run).names, self.input_names, strict=False))
        tensors = {each.name for each in self.inputs if each.shape is not None}
        return frozenset({called[name] for name in assigned(run) if name in called} & tensors)


def parse(data: bytes | str, *, where: str, reference: str | None = None) -> Definition:
    """The definition in ``data``. ``reference``: the text of ``reference.py`` beside it, for one that has none inline.

    Raises:
        UserError: the JSON is malformed, or a field is missing or of the wrong type.
        OperatorError: what it says cannot be an operator here.
    """
    raw = fields.parse(data, where)
    name = fields.need(raw, "name", str, where)
    fields.one_line(name, f"{where}: name")
    axes = tuple(_axis(key, each, f"{where}: axes.{key}") for key, each in _named(raw, "axes", where, empty=True))
    known = {axis.name for axis in axes}
    inputs = tuple(_tensor(key, each, known, f"{where}: inputs.{key}") for key, each in _named(raw, "inputs", where))
    outputs = tuple(_tensor(key, each, known, f"{where}: outputs.{key}") for key, each in _named(raw, "outputs", where))
    both = {each.name for each in inputs} & {each.name for each in outputs}
    if both:
        raise OperatorError(f"`{min(both)}` is both an input and an output", where=where)
    if all(each.shape is None for each in inputs):
        raise OperatorError("no input is a tensor", where=f"{where}: inputs")
    text = fields.maybe(raw, "reference", str, where, "") or reference
    if not text:
        raise UserError("has no `reference`", where=where, hint="inline, or as reference.py in the same directory")
    constraints = fields.maybe(raw, "constraints", list, where, [])
    made = Definition(
        name=name,
        op_type=fields.maybe(raw, "op_type", str, where, ""),
        axes=axes,
        inputs=inputs,
        outputs=outputs,
        reference=text,
        constraints=tuple(fields.an(str, each, f"{where}: constraints") for each in constraints),
        custom_inputs=fields.maybe(raw, "custom_inputs_entrypoint", str, where, ""),
    )
    _check_reference(made, f"{where}: reference")
    return made


def _named(raw: Mapping[str, Any], field: str, where: str, *, empty: bool = False) -> list[tuple[str, dict[str, Any]]]:
    record = fields.need(raw, field, dict, where)
    fields.names(record, f"{where}: {field}")
    if not record and not empty:
        raise OperatorError("is empty", where=f"{where}: {field}")
    return [(name, fields.an(dict, each, f"{where}: {field}.{name}")) for name, each in record.items()]


def _axis(name: str, raw: Mapping[str, Any], where: str) -> Axis:
    match fields.need(raw, "type", str, where):
        case "const":
            value = fields.need(raw, "value", int, where)
            if value < 1:
                raise OperatorError(f"is {value}", where=where, hint="an axis has at least one element")
            return Axis(name=name, value=value)
        case "var":
            return Axis(name=name)
        case "expr":
            return Axis(name=name, expression=fields.need(raw, "expression", str, where))
        case other:
            raise OperatorError(f"has type `{fields.printable(other)}`", where=where, hint="const, var or expr")


def _tensor(name: str, raw: Mapping[str, Any], axes: set[str], where: str) -> Tensor:
    if "shape" not in raw:
        raise UserError("has no `shape`", where=where, hint="null is a plain number")
    shape = raw["shape"]
    if shape is not None:
        shape = tuple(str(axis) if type(axis) is int else axis for axis in fields.an(list, shape, f"{where}: shape"))
        for axis in shape:
            if fields.an(str, axis, f"{where}: shape") not in axes and not axis.isdecimal():
                raise OperatorError(f"`{fields.printable(axis)}` is no axis", where=f"{where}: shape")
    dtype = fields.need(raw, "dtype", str, where)
    if dtype not in list(DType):
        what = "is not supported" if dtype in NOT_SUPPORTED else "is unknown"
        raise OperatorError(f"`{fields.printable(dtype)}` {what}", where=f"{where}: dtype", hint=", ".join(DType))
    return Tensor(name=name, shape=shape, dtype=DType(dtype))


def _check_reference(made: Definition, where: str) -> None:
    """Its ``run`` takes the inputs in their order; positions decide, as in both formats."""
    tree = _tree(made.reference, where)
    run = function(tree, RUN)
    if run is None:
        raise OperatorError(f"has no function `{RUN}`", where=where)
    takes = signature(run)
    if not takes.fits(len(made.inputs)):
        raise OperatorError(
            f"`{RUN}` takes {takes}, the inputs are {Signature.listed(made.input_names)}",
            where=where,
        )
    if made.custom_inputs and function(tree, made.custom_inputs) is None:
        raise OperatorError(f"has no function `{fields.printable(made.custom_inputs)}`", where=where)


def _tree(text: str, where: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise OperatorError(
            f"syntax error: {error.msg}", where=f"{where}:{error.lineno}" if error.lineno else where
        ) from error
    except ValueError as error:
        raise OperatorError(f"is not Python: {error}", where=where) from error
    except (MemoryError, RecursionError) as error:
        raise OperatorError("is nested too deeply", where=where) from error
