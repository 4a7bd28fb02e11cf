"""What an operator declares about itself beyond KernelBench's form (pure): ``CONTRACT = {...}`` in its module.

=====================  ======================================================================================
``persistent_weights``  parameters and buffers keep their values for a process' life: packing them once is fair
``mutates``             positions of inputs that the operator changes in place, and whose new values are outputs
``nondeterministic``    results need not repeat bit for bit (atomics); the spread stays within the judge's limits
``bitwise``             results equal the reference's bytes
``special_values``      NaN and infinities in inputs show in results exactly where the reference shows them
``exempt_mutants``      ``{mutant: reason}``: wrong answers its check need not tell from right ones, and why not
=====================  ======================================================================================

It is a literal, read without running the operator's text. A name that is not listed here is an error: a misspelt
promise must not pass for none.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from shared.errors import OperatorError

NAME = "CONTRACT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """See the module. The default is what KernelBench's form promises: nothing but the results."""

    persistent_weights: bool = False
    mutates: tuple[int, ...] = ()
    nondeterministic: bool = False
    bitwise: bool = False
    special_values: bool = False
    exempt_mutants: Mapping[str, str] = field(default_factory=dict)


def of(source: str, *, where: str) -> Contract:
    """The contract that an operator's text declares; the default when it declares none.

    Raises:
        OperatorError: not a literal dictionary, an unknown name, or a value of the wrong kind.
    """
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == NAME for t in node.targets):
            try:
                value = ast.literal_eval(node.value)
            except ValueError as error:
                raise OperatorError(f"{NAME} is not a literal", where=f"{where}:{node.lineno}") from error
            return _checked(value, f"{where}:{node.lineno}")
    return Contract()


def _checked(value: Any, where: str) -> Contract:
    known = [one.name for one in fields(Contract)]
    if not isinstance(value, dict):
        raise OperatorError(f"{NAME} is no dictionary", where=where, hint=f"it may name {', '.join(known)}")
    for name, given in value.items():
        if name not in known:
            raise OperatorError(f"{NAME} names {name!r}", where=where, hint=f"it may name {', '.join(known)}")
        if name == "mutates":
            good = isinstance(given, list | tuple) and all(type(one) is int and one >= 0 for one in given)
        elif name == "exempt_mutants":
            good = isinstance(given, dict) and all(
                isinstance(k, str) and isinstance(v, str) and v.strip() for k, v in given.items()
            )
        else:
            good = isinstance(given, bool)
        if not good:
            raise OperatorError(f"{NAME}[{name!r}] is {given!r}", where=where, hint=_HINTS.get(name, "True or False"))
    return Contract(**{**value, "mutates": tuple(value.get("mutates", ()))})


_HINTS = {
    "mutates": "a list of input positions, counted from 0",
    "exempt_mutants": "a dictionary from a mutant's name to the reason why it is exempt",
}
