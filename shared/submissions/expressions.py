"""Arithmetic on axes, as definitions write it: sizes that follow from others, and constraints among them (pure).

Nothing is executed: the expression's syntax tree is walked, and what is no arithmetic or comparison of axes is refused.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from shared.errors import OperatorError

POWER_MAX = 64
"""Largest exponent: a size has at most 63 bits."""
BITS_MAX = 63

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_,
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


class NotArithmetic(Exception):
    """The expression asks for more than arithmetic on axes, e.g. for a tensor's values."""


def size(text: str, axes: Mapping[str, int], where: str) -> int:
    """What an axis' expression gives.

    Raises:
        OperatorError: no arithmetic on known axes, or no whole number.
    """
    try:
        value = evaluate(text, axes)
    except NotArithmetic as error:
        raise OperatorError(f"cannot work out `{text}`: {error}", where=where) from error
    if isinstance(value, bool) or value != int(value):
        raise OperatorError(f"`{text}` is {value}, not a whole number", where=where)
    return int(value)


def evaluate(text: str, axes: Mapping[str, int]) -> Any:
    """The value of ``text``.

    Raises:
        NotArithmetic: why it has none.
    """
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, axes)
    except SyntaxError as error:
        raise NotArithmetic(f"syntax error: {error.msg}") from error
    except (ArithmeticError, ValueError, TypeError) as error:
        raise NotArithmetic(str(error)) from error
    except (RecursionError, MemoryError) as error:
        raise NotArithmetic("nested too deeply") from error


def names(text: str) -> set[str]:
    """The names in ``text``.

    Raises:
        NotArithmetic: it is no expression.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotArithmetic(str(error)) from error
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def bound(text: str, names: Mapping[str, str]) -> str:
    """``text`` with every axis replaced by the expression that ``names`` has for it.

    Raises:
        KeyError: it uses an axis that has none.
    """

    class Bind(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse(names[node.id], mode="eval").body

    return ast.unparse(Bind().visit(ast.parse(text.strip(), mode="eval")))


def _value(node: ast.expr, axes: Mapping[str, int]) -> Any:
    value: Any
    match node:
        case ast.Constant(value=int() | float() as value):
            pass
        case ast.Name(id=name) if name in axes:
            value = axes[name]
        case ast.Name(id=name):
            raise NotArithmetic(f"`{name}` is no axis")
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            value = _UNARY[type(op)](_value(operand, axes))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            one, other = _value(left, axes), _value(right, axes)
            if isinstance(op, ast.Pow) and not abs(other) <= POWER_MAX:
                raise NotArithmetic(f"exponent {other}")
            value = _BINARY[type(op)](one, other)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARED for op in ops):
            values = [_value(each, axes) for each in (left, *others)]
            value = all(_COMPARED[type(op)](values[i], values[i + 1]) for i, op in enumerate(ops))
        case ast.BoolOp(op=op, values=parts):
            truths = [bool(_value(part, axes)) for part in parts]
            value = all(truths) if isinstance(op, ast.And) else any(truths)
        case _:
            raise NotArithmetic(f"`{ast.unparse(node)}` is more than arithmetic on axes")
    if isinstance(value, complex) or abs(value) >= 1 << BITS_MAX:
        raise NotArithmetic("out of range")
    return value
