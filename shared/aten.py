"""An operator by the name of an ATen function and what it is called with: the text of its KernelBench module (pure).

    aten::gelu(f32[2048, 1024], approximate="tanh")
    aten::embedding(f32[32000, 256], i64[4096] < 32000)
    aten::cat([f32[64, 128], f32[64, 256]], 1)

``f32[2048, 1024]`` is a tensor of standard normal values; integers are drawn below the bound that follows them, and are
0 or 1 without one. Everything else is a literal of Python and part of the operator, not an input. What ATen offers is
found out where the operator is admitted, which runs it.
"""

from __future__ import annotations

import ast
import re

from shared.dtypes import DType
from shared.errors import OperatorError

PREFIX = "aten::"
EXAMPLE = "e.g. `aten::softmax(f32[2048, 1024], dim=-1)`"
DIMENSIONS_MAX, ELEMENTS_MAX = 8, 1 << 40
"""Of one tensor: the native ABI's limit, and what no machine holds anyway."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_MODULE = '''"""{call}"""

import torch


class Model(torch.nn.Module):
    def forward(self, {parameters}):
        return torch.ops.aten.{name}({arguments})


def get_inputs():
    return [
{inputs}    ]


def get_init_inputs():
    return []
'''


def module_text(call: str) -> tuple[str, str]:
    """A name for the operator ``call`` and the text of its module; equal calls give equal texts.

    Raises:
        OperatorError: not of the form above; says which part.
    """
    where = call if len(call) <= 80 else f"{call[:77]}..."
    try:
        tree = ast.parse(call.removeprefix(PREFIX).strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise OperatorError("is not a call", where=where, hint=EXAMPLE) from error
    name = ast.unparse(tree.func) if isinstance(tree, ast.Call) else ""
    if not isinstance(tree, ast.Call) or not _NAME.fullmatch(name):
        raise OperatorError("is not a call of an ATen function", where=where, hint=EXAMPLE)
    inputs: list[str] = []
    arguments = [_argument(node, inputs, where) for node in tree.args]
    for keyword in tree.keywords:
        if keyword.arg is None:
            raise OperatorError("`**` stands for no argument", where=where, hint=EXAMPLE)
        arguments.append(f"{keyword.arg}={_argument(keyword.value, inputs, where)}")
    if not inputs:
        raise OperatorError("takes no tensor", where=where, hint=EXAMPLE)
    text = _MODULE.format(
        call=f"{PREFIX}{ast.unparse(tree)}".replace("\\", "\\\\").replace('"""', r"\"\"\""),
        name=name,
        parameters=", ".join(f"x{index}" for index in range(len(inputs))),
        arguments=", ".join(arguments),
        inputs="".join(f"        {made},\n" for made in inputs),
    )
    return f"aten_{name.replace('.', '_')}", text


def _argument(node: ast.expr, inputs: list[str], where: str) -> str:
    """The text of one argument; tensors in it become inputs."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return f"[{', '.join(_argument(each, inputs, where) for each in node.elts)}]"
    bound: ast.expr | None = None
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt):
        bound, node = node.comparators[0], node.left
    if isinstance(node, ast.Subscript):
        inputs.append(_tensor(node, bound, where))
        return f"x{len(inputs) - 1}"
    try:
        value = ast.literal_eval(node) if bound is None else None
    except (ValueError, TypeError, MemoryError, RecursionError):
        value = ...
    if bound is not None or not isinstance(value, (int, float, str, bool, type(None))):
        raise OperatorError(f"`{ast.unparse(node)}` is neither a tensor nor a literal", where=where, hint=EXAMPLE)
    return repr(value) if value == value else 'float("nan")'  # noqa: PLR0124 - NaN has no literal


def _tensor(node: ast.Subscript, bound: ast.expr | None, where: str) -> str:
    """The expression that makes a tensor like ``f32[2, 3]``, or ``i64[7] < 5``."""
    said = ast.unparse(node)
    names = {dtype.name.lower(): dtype for dtype in DType}
    dtype = names.get(node.value.id) if isinstance(node.value, ast.Name) else None
    if dtype is None:
        raise OperatorError(f"`{said}` has no element type of {', '.join(names)}", where=where, hint=EXAMPLE)
    sizes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    shape = [_whole(size, said, where, least=0) for size in sizes]
    count = 1
    for size in shape:
        count *= size
    if len(shape) > DIMENSIONS_MAX or count > ELEMENTS_MAX:
        raise OperatorError(f"`{said}` is larger than any tensor here", where=where)
    if dtype.floating:
        if bound is not None:
            raise OperatorError(f"`{said}` is not of integers: a bound is for those", where=where)
        made = f"torch.randn({shape})"
        return made if dtype is DType.F32 else f"{made}.to(torch.{dtype.value})"
    below = 2 if bound is None else _whole(bound, said, where, least=1)
    return f"torch.randint({below}, {shape}).to(torch.{dtype.value})"


def _whole(node: ast.expr, said: str, where: str, *, least: int) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= least:
        return node.value
    raise OperatorError(f"`{ast.unparse(node)}` in `{said}` is no whole number from {least} on", where=where)
