"""A workload: sizes for a definition's axes and where each input comes from (pure).

A line is a workload (SOL-ExecBench), or a trace that holds one (flashinfer-bench). ``tolerance``, which SOL-ExecBench
adds, is kept for the record; this evaluator's judge has rules of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.errors import OperatorError, UserError
from shared.submissions import expressions, fields
from shared.submissions.definition import Definition, Tensor

KINDS = ("random", "scalar", "safetensors", "custom")
LABEL_CHARS_MAX = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where an input comes from: ``kind`` is one of ``KINDS``."""

    kind: str
    value: int | float | bool | None = None
    path: str = ""
    tensor_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """``axes`` has every axis of the definition, worked out; ``raw`` is the workload as it was read."""

    uuid: str
    axes: Mapping[str, int]
    sources: Mapping[str, Source]
    unchecked: tuple[str, ...] = ()
    """Constraints that speak of more than axes: only the reference could check them."""
    tolerance: Mapping[str, Any] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)

    def shape(self, tensor: Tensor) -> tuple[int, ...] | None:
        """Sizes of ``tensor``, None for a plain number."""
        if tensor.shape is None:
            return None
        return tuple(self.axes[axis] if axis in self.axes else int(axis) for axis in tensor.shape)

    @property
    def label(self) -> str:
        """The sizes that a person tells it by."""
        varying = self.raw.get("axes") or self.axes
        text = ", ".join(f"{name}={size}" for name, size in varying.items())
        return text if len(text) <= LABEL_CHARS_MAX else f"{text[:LABEL_CHARS_MAX]}…"


def parse_lines(text: str, definition: Definition, where: str) -> tuple[Workload, ...]:
    """The workloads of a JSONL text; blank lines are passed over.

    Raises:
        UserError: a line is malformed or of another definition, a uuid occurs twice, or there is no line at all.
        OperatorError: see ``parse``.
    """
    made: dict[str, Workload] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        one = parse(line, definition, f"{where}:{number}")
        if one.uuid in made:
            raise UserError(f"uuid `{fields.printable(one.uuid)}` occurs twice", where=f"{where}:{number}")
        made[one.uuid] = one
    if not made:
        raise UserError("has no workload", where=where)
    return tuple(made.values())


def parse(line: bytes | str, definition: Definition, where: str) -> Workload:
    """One workload of ``definition``.

    Raises:
        UserError: malformed.
        OperatorError: sizes are missing, break a constraint or are not whole; an input has no usable source.
    """
    raw = fields.parse(line, where)
    if "workload" in raw:
        named = fields.need(raw, "definition", str, where)
        if named != definition.name:
            raise UserError(f"is of definition `{fields.printable(named)}`, not `{definition.name}`", where=where)
        raw = fields.need(raw, "workload", dict, where)
    uuid = fields.need(raw, "uuid", str, where)
    fields.one_line(uuid, f"{where}: uuid")
    axes = _axes(fields.need(raw, "axes", dict, where), definition, where)
    given = fields.maybe(raw, "inputs", dict, where, {})
    for name in given:
        if name not in definition.input_names:
            raise UserError(f"`{fields.printable(name)}` is no input of `{definition.name}`", where=f"{where}: inputs")
    sources = {
        tensor.name: _source(tensor, given.get(tensor.name, {"type": "random"}), f"{where}: inputs.{tensor.name}")
        for tensor in definition.inputs
    }
    _check_custom(sources, definition, where)
    return Workload(
        uuid=uuid,
        axes=axes,
        sources=sources,
        unchecked=_unmet(definition, axes, where),
        tolerance=fields.maybe(raw, "tolerance", dict, where, {}),
        raw=raw,
    )


def choose(workloads: Sequence[Workload], uuid: str, where: str) -> tuple[Workload, ...]:
    """The workload whose uuid begins with ``uuid``; ``all`` is all of them.

    Raises:
        UserError: none, or several.
    """
    if uuid == "all":
        return tuple(workloads)
    exact = tuple(each for each in workloads if each.uuid == uuid)
    found = exact or tuple(each for each in workloads if each.uuid.startswith(uuid))
    if len(found) != 1:
        what = f"{len(found)} workloads begin with `{uuid}`" if found else f"no workload `{uuid}`"
        raise UserError(what, where=where, hint=f"it has {_few([each.uuid for each in workloads])}")
    return found


def _axes(given: Mapping[str, Any], definition: Definition, where: str) -> dict[str, int]:
    """Every axis: constants, then those given, then those that follow, whatever order they are written in."""
    known = {axis.name: axis for axis in definition.axes}
    for name in given:
        if name not in known:
            raise UserError(f"`{fields.printable(name)}` is no axis of `{definition.name}`", where=f"{where}: axes")
    axes = {axis.name: axis.value for axis in definition.axes if axis.value is not None}
    for name, size in given.items():
        fields.an(int, size, f"{where}: axes.{name}")
        if not known[name].expression:
            axes.setdefault(name, size)
    missing = [axis.name for axis in definition.axes if axis.name not in axes and not axis.expression]
    if missing:
        raise OperatorError(f"gives no size for axis `{missing[0]}`", where=where)
    waiting = [axis for axis in definition.axes if axis.name not in axes]
    while waiting:
        ready = [axis for axis in waiting if not _names(axis.expression) & {each.name for each in waiting}]
        if not ready:
            raise OperatorError(f"axis `{waiting[0].name}` follows from itself", where=where)
        for axis in ready:
            axes[axis.name] = expressions.size(axis.expression, axes, f"{where}: axes.{axis.name}")
        waiting = [axis for axis in waiting if axis not in ready]
    for name, size in axes.items():
        if given.get(name, size) != size:
            raise OperatorError(f"is {given[name]}, the definition says {size}", where=f"{where}: axes.{name}")
        if size < 1:
            raise OperatorError(f"is {size}", where=f"{where}: axes.{name}", hint="an axis has at least one element")
    return axes


def _names(expression: str) -> set[str]:
    try:
        return expressions.names(expression)
    except expressions.NotArithmetic:
        return set()  # refused, with its reason, when its value is asked for


def _source(tensor: Tensor, raw: Any, where: str) -> Source:
    kind = fields.need(fields.an(dict, raw, where), "type", str, where)
    if kind not in KINDS:
        raise UserError(f"has type `{fields.printable(kind)}`", where=where, hint=", ".join(KINDS))
    if tensor.shape is None and kind in ("random", "safetensors"):
        raise OperatorError(
            f"a plain number from `{kind}` is not supported",
            where=where,
            hint='give its value: {"type": "scalar", "value": …}, as kernels are built for it',
        )
    if tensor.shape is not None and kind == "scalar":
        raise OperatorError("is one number, the definition says a tensor", where=where)
    if kind == "scalar":
        if "value" not in raw:
            raise UserError("has no `value`", where=where)
        return Source(kind=kind, value=fields.scalar(raw["value"], f"{where}: value"))
    if kind == "safetensors":
        return Source(
            kind=kind,
            path=fields.need(raw, "path", str, where),
            tensor_key=fields.need(raw, "tensor_key", str, where),
        )
    return Source(kind=kind)


def _check_custom(sources: Mapping[str, Source], definition: Definition, where: str) -> None:
    custom = [name for name, source in sources.items() if source.kind == "custom"]
    if custom and not definition.custom_inputs:
        raise OperatorError(
            f"input `{custom[0]}` is custom, and the definition has no `custom_inputs_entrypoint`", where=where
        )
    others = [name for name, source in sources.items() if source.kind in ("random", "safetensors") and custom]
    if others:
        raise OperatorError(f"input `{others[0]}` is not custom while `{custom[0]}` is", where=where)


def _unmet(definition: Definition, axes: Mapping[str, int], where: str) -> tuple[str, ...]:
    """The constraints that cannot be checked here.

    Raises:
        OperatorError: one does not hold.
    """
    unchecked = []
    for constraint in definition.constraints:
        try:
            holds = bool(expressions.evaluate(constraint, axes))
        except expressions.NotArithmetic:
            unchecked.append(constraint)
            continue
        if not holds:
            raise OperatorError(f"breaks the definition's constraint `{fields.printable(constraint)}`", where=where)
    return tuple(unchecked)


def _few(uuids: Sequence[str]) -> str:
    shown = ", ".join(uuids[:4])
    return shown if len(uuids) <= 4 else f"{shown} and {len(uuids) - 4} more"
