"""What a kernel of an operator is called with and must give, whichever format the operator came in (pure)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from shared.dtypes import DType
from shared.submissions import expressions
from shared.submissions.definition import Definition, Tensor
from shared.submissions.functions import signature
from shared.submissions.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """``sizes`` are Python expressions in the arguments: an output follows its inputs' shapes."""

    name: str
    sizes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A parameter or buffer by its state-dict name."""

    name: str
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """``arguments`` are those of ``forward``, ``tensors`` those of them that are tensors, ``state`` comes after them.

    ``copied`` are tensors that the reference itself changes in place: a kernel may, too, so it gets copies of them.
    ``container`` is what the results come in: ``tensor`` (the one itself), ``tuple`` or ``list``; empty: not known.
    """

    arguments: tuple[str, ...]
    tensors: tuple[str, ...]
    outputs: tuple[Output, ...]
    state: tuple[State, ...] = ()
    copied: frozenset[str] = frozenset()
    container: str = "tensor"


def of_definition(definition: Definition, workload: Workload) -> Interface:
    """``workload`` gives the sizes that no input's shape tells."""
    return Interface(
        arguments=definition.input_names,
        tensors=tuple(each.name for each in definition.inputs if each.shape is not None),
        outputs=tuple(
            Output(name=each.name, sizes=_sizes(each, definition, workload), dtype=each.dtype)
            for each in definition.outputs
        ),
        copied=definition.changed,
        container="tensor" if len(definition.outputs) == 1 else "tuple",
    )


def _sizes(tensor: Tensor, definition: Definition, workload: Workload) -> tuple[str, ...]:
    known = _bindings(definition)
    expressions_of = {axis.name: axis.expression for axis in definition.axes if axis.expression}
    sizes = []
    for axis in tensor.shape or ():
        if axis in known:
            sizes.append(known[axis])
        elif axis in expressions_of:
            try:
                bound = expressions.bound(expressions_of[axis], known)
            except KeyError:  # of an axis that itself follows, or that no input has
                bound = str(workload.axes[axis])
            sizes.append(bound if bound.isdecimal() else f"int({bound})")
        else:
            sizes.append(str(workload.axes.get(axis, axis)))
    return tuple(sizes)


def _bindings(definition: Definition) -> Mapping[str, str]:
    """Expressions for axes: a constant, or where an input's shape has it."""
    known = {axis.name: str(axis.value) for axis in definition.axes if axis.value is not None}
    for tensor in definition.inputs:
        for position, axis in enumerate(tensor.shape or ()):
            if not axis.isdecimal():
                known.setdefault(axis, f"{tensor.name}.shape[{position}]")
    return known


def of_module(source: str) -> Interface | None:
    """The interface of a KernelBench module as far as its text tells it, or None where it does not.

    It does when ``Model`` has no constructor, or one that only calls its parent's, and so no parameters. What results
    come in is then not known: they are handed on as the kernel gives them.
    """
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    methods = {node.name: node for node in classes[-1].body if isinstance(node, ast.FunctionDef)}
    bases = [ast.unparse(base) for base in classes[-1].bases]
    trivial = "__init__" not in methods or _trivial(methods["__init__"])
    if not trivial or "forward" not in methods or bases not in (["torch.nn.Module"], ["nn.Module"]):
        return None
    takes = signature(methods["forward"])
    if takes.any_number or takes.required != len(takes.names):
        return None
    names = takes.names[1:]
    return Interface(arguments=names, tensors=names, outputs=(), container="")


def _trivial(constructor: ast.FunctionDef) -> bool:
    """Whether it takes nothing and does nothing but call the parent's."""
    statements = [ast.unparse(node) for node in constructor.body if not _is_text(node)]
    calls = {f"super({arguments}).__init__()" for arguments in ("", "Model, self")}
    return signature(constructor).names == ("self",) and set(statements) <= calls | {"pass"}


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
