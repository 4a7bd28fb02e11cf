"""What the reference is constructed and called with, as plain values: see ``evaluator_svc/signature.py``."""

from __future__ import annotations

from typing import Any

import torch

from evaluator_svc.hosted.plain import NotPlain, encode
from evaluator_svc.oracle_child.model import Sample


def signature(sample: Sample) -> dict[str, Any]:
    """Arguments, state names and constructor arguments; ``refused`` where one of them is no plain value."""
    said: dict[str, Any] = {"arguments": [], "state": list(sample.model.state_dict()), "init": [], "init_kwargs": {}}
    args, kwargs = sample.init
    refused = ""
    try:
        said["init"] = [encode(value) for value in args]
        said["init_kwargs"] = {str(name): encode(value) for name, value in kwargs.items()}
    except NotPlain as error:
        refused = f"Model(...) is constructed with {error}"
    try:
        said["arguments"] = [None if isinstance(a, torch.Tensor) else {"plain": encode(a)} for a in sample.arguments]
    except NotPlain as error:
        refused = refused or f"Model.forward is called with {error}"
    return said | {"refused": refused}
