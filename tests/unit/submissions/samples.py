"""Definitions, workloads and solutions as other systems write them."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

from shared.submissions import definition, workload
from shared.submissions.definition import Definition
from shared.submissions.workload import Workload

REFERENCE = """\
import torch


@torch.no_grad()
def run(x, weight, eps):
    wide = x.to(torch.float32)
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (wide * scale * weight).to(x.dtype)
"""
RIGHT = """\
import torch


def run(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
"""
DEFINITION: dict[str, Any] = {
    "name": "rmsnorm_h64",
    "op_type": "rmsnorm",
    "tags": ["model:toy"],
    "axes": {"batch": {"type": "var"}, "hidden": {"type": "const", "value": 64}},
    "inputs": {
        "x": {"shape": ["batch", "hidden"], "dtype": "float32"},
        "weight": {"shape": ["hidden"], "dtype": "float32"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["batch", "hidden"], "dtype": "float32"}},
    "constraints": ["hidden % 2 == 0"],
    "reference": REFERENCE,
}
WORKLOAD: dict[str, Any] = {
    "uuid": "first",
    "axes": {"batch": 32},
    "inputs": {"x": {"type": "random"}, "weight": {"type": "random"}, "eps": {"type": "scalar", "value": 1e-6}},
}
SOLUTION: dict[str, Any] = {
    "name": "plain",
    "definition": "rmsnorm_h64",
    "author": "nobody",
    "spec": {
        "language": "python",
        "target_hardware": ["cpu"],
        "entry_point": "main.py::run",
        "destination_passing_style": False,
    },
    "sources": [{"path": "main.py", "content": RIGHT}],
}


def made(**changes: Any) -> Definition:
    return definition.parse(json.dumps(DEFINITION | changes), where="definition.json")


def loaded(made_: Definition | None = None, **changes: Any) -> Workload:
    return workload.parse(json.dumps(WORKLOAD | changes), made_ or made(), "workload.jsonl:1")


def solved(files: dict[str, str] | None = None, *, spec: dict[str, Any] | None = None, **changes: Any) -> str:
    sources = [{"path": path, "content": content} for path, content in (files or {"main.py": RIGHT}).items()]
    return json.dumps(SOLUTION | {"spec": SOLUTION["spec"] | (spec or {}), "sources": sources} | changes)


def run(text: str, name: str = "submitted") -> Any:
    """The module of ``text``, run as a candidate's process would."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module
