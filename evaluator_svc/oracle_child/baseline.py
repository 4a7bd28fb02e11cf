"""The baseline role: eager and compiled PyTorch as callables that run N times when told; the controller times them."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable
from typing import Any

import torch

from evaluator_svc.oracle_child.model import Operator, Sample, seed_everything
from shared.dtypes import DType

EAGER, COMPILED = "eager", "compiled"


class Baseline:
    """Both baselines of one operator on inputs that live in memory shared with the controller."""

    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(int(request["threads"]))
        self._operator = Operator(str(request["source"]), str(request["name"]))
        self._sample = self._operator.sample(int(request["seed"]))
        self._calls: dict[str, Callable[..., Any]] = {EAGER: self._sample.model}
        self._map: mmap.mmap | None = None

    def attach(self, request: dict[str, Any]) -> dict[str, Any]:
        """Rebind arguments, parameters and buffers to the shared memory at ``path`` (blocks as the oracle writes)."""
        with open(request["path"], "r+b") as file:  # noqa: PTH123
            self._map = mmap.mmap(file.fileno(), 0)
        tensors = [_view(self._map, block) for block in request["blocks"]]
        count = len(self._sample.tensor_arguments())
        _bind_state(self._sample.model, tensors[count:])
        self._sample = self._sample.with_arguments(tensors[:count])
        return {}

    def compile(self, request: dict[str, Any]) -> dict[str, Any]:
        """Compile and warm up ``torch.compile``; ``{"unavailable": why}`` when it cannot."""
        seed_everything(int(request["seed"]))
        compiled = torch.compile(self._sample.model, dynamic=False)
        try:
            with torch.inference_mode():
                for _ in range(2):
                    compiled(*self._sample.arguments)
        except Exception as error:  # noqa: BLE001 - whatever the compiler raises is the reason reported
            first = str(error).strip().splitlines() or [""]
            return {"unavailable": f"{type(error).__name__}: {first[0]}"}
        self._calls[COMPILED] = compiled
        return {}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one baseline ``calls`` times; answers its own clock, for agreement with the controller's."""
        call, arguments = self._calls[str(request["which"])], self._sample.arguments
        with torch.inference_mode():
            started = time.perf_counter_ns()
            for _ in range(int(request["calls"])):
                call(*arguments)
            return {"own_ns": time.perf_counter_ns() - started}

    @property
    def sample(self) -> Sample:
        return self._sample


def _view(memory: mmap.mmap, block: dict[str, Any]) -> torch.Tensor:
    dtype, shape = getattr(torch, DType(block["dtype"]).value), block["shape"]
    count = 1
    for extent in shape:
        count *= extent
    return torch.frombuffer(memory, dtype=dtype, count=count, offset=int(block["offset"])).reshape(shape)


def _bind_state(model: torch.nn.Module, tensors: list[torch.Tensor]) -> None:
    """Make every parameter and buffer of ``model`` a view of shared memory, so that new values need no copy here."""
    state = model.state_dict(keep_vars=True)
    for held, tensor in zip(state.values(), tensors, strict=True):
        held.data = tensor
