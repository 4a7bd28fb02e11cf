"""The child that runs a reference once: operator text on stdin, its signature as one JSON line on stdout."""

from __future__ import annotations

import ast
import inspect
import json
import os
import sys
from typing import Any

import torch

from shared.confining import leave_privileges
from shared.text_module import executed

CONTAINERS: dict[str, type] = {"tensor": torch.Tensor, "tuple": tuple, "list": list}


def main() -> None:
    """Describe the operator on stdin; whatever it prints itself goes to stderr."""
    leave_privileges()
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module = executed(sys.stdin.read(), "operator_under_description", "<operator>")
    answer.write(json.dumps(signature(module)) + "\n")
    answer.close()


def signature(module: Any) -> dict[str, Any]:
    """Arguments, state and outputs of the module's ``Model`` as plain values."""
    torch.manual_seed(0)
    args, kwargs = init_arguments(module.get_init_inputs())
    model = module.Model(*args, **kwargs).eval()
    given = list(module.get_inputs())
    names = [p.name for p in inspect.signature(module.Model.forward).parameters.values()][1:]
    with torch.no_grad():
        result = model(*given)
    outputs = [result] if isinstance(result, torch.Tensor) else list(result)
    return {
        "arguments": [_argument(names[i] if i < len(names) else f"x{i}", v) for i, v in enumerate(given)],
        "state": [{"name": name, "tensor": _tensor(value)} for name, value in model.state_dict().items()],
        "outputs": [_tensor(output) for output in outputs],
        "container": next(n for n, t in CONTAINERS.items() if isinstance(result, t)),
    }


def init_arguments(init: Any) -> tuple[list[Any], dict[str, Any]]:
    """Constructor arguments; KernelBench also knows ``[[args], {kwargs}]`` and a dictionary."""
    if isinstance(init, dict):
        return [], init
    if len(init) == 2 and isinstance(init[0], list) and isinstance(init[1], dict):
        return list(init[0]), init[1]
    return list(init), {}


def _argument(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, torch.Tensor):
        return {"name": name, "tensor": _tensor(value)}
    literal = f"float({str(value)!r})" if isinstance(value, float) else repr(value)
    if not isinstance(value, float) and ast.literal_eval(literal) != value:
        raise ValueError(f"argument {name} is a {type(value).__name__}, which cannot be written down")
    return {"name": name, "literal": literal}


def _tensor(value: torch.Tensor) -> dict[str, Any]:
    return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}


if __name__ == "__main__":
    main()
