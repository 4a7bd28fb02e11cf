"""A module of functions without any form, as Triton kernels are usually written: which function is the operator (pure).

It is the one that was named, or the only public one that can be called with as many arguments as the operator has.
"""

from __future__ import annotations

import ast

from shared.errors import UserError
from shared.submissions.fields import printable
from shared.submissions.functions import Signature, decorators, function, signature
from shared.submissions.interface import Interface

CLASS = "ModelNew"
KERNELS = ("triton.jit", "jit", "triton.autotune", "autotune", "triton.heuristics", "heuristics")
"""Decorators of what runs on the device; the host cannot call those as functions."""


def entry(module: ast.Module, interface: Interface, name: str, *, where: str) -> tuple[str, bool]:
    """The function to call, and whether outputs are passed in. ``name`` is empty where none was given.

    Raises:
        UserError: there is none, several could be meant, or the named one takes other arguments.
    """
    counts = _counts(interface)
    if name:
        found = function(module, name)
        if found is None:
            raise UserError(f"has no function `{printable(name)}`", where=where, hint=_have(module))
        takes = signature(found)
        if any(takes.fits(count) for count in counts):
            return name, False
        if any(takes.fits(count + len(interface.outputs)) for count in counts):
            return name, True
        raise UserError(f"`{name}` takes {takes}, expected {_expected(interface)}", where=where)
    callable_ = [node for node in module.body if isinstance(node, ast.FunctionDef) and _public(node)]
    for count in counts:
        fitting = {node.name for node in callable_ if signature(node).fits(count)}
        if len(fitting) == 1:
            return fitting.pop(), False
        if fitting:
            raise UserError(
                f"several functions could be the operator: {', '.join(sorted(fitting))}",
                where=where,
                hint="--entry NAME",
            )
    found_ = ", ".join(f"{node.name}{signature(node)}" for node in callable_)
    what = f"no function takes {_expected(interface)}" if callable_ else "has no public function"
    raise UserError(
        f"defines no class `{CLASS}`, and {what}", where=where, hint=f"it has {found_}; --entry NAME" if found_ else ""
    )


def arguments(module: ast.Module, interface: Interface, name: str, *, passes_outputs: bool) -> tuple[str, ...]:
    """What to call ``name`` with: all arguments of ``forward``, or its tensors alone where it takes only those."""
    found = function(module, name)
    if found is None:
        return interface.arguments
    extra = len(interface.state) + (len(interface.outputs) if passes_outputs else 0)
    whole = signature(found).fits(len(interface.arguments) + extra)
    return interface.arguments if whole else interface.tensors


def _counts(interface: Interface) -> tuple[int, ...]:
    """With every argument of ``forward``, or, as a kernel may have plain numbers built in, with the tensors alone."""
    return len(interface.arguments) + len(interface.state), len(interface.tensors) + len(interface.state)


def _public(node: ast.FunctionDef) -> bool:
    return not node.name.startswith("_") and not any(each in KERNELS for each in decorators(node))


def _expected(interface: Interface) -> str:
    return Signature.listed((*interface.arguments, *(state.name for state in interface.state)))


def _have(module: ast.Module) -> str:
    names = [node.name for node in module.body if isinstance(node, ast.FunctionDef)]
    return f"it has {', '.join(names)}" if names else "it has none"
