"""The baseline role: eager and compiled PyTorch as callables that run N times when told; the controller times them."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable
from typing import Any

import torch

from evaluator_svc.hosted.flush import Flush
from evaluator_svc.oracle_child.model import CPU, Operator, Sample, seed_everything
from shared.dtypes import DType

EAGER, COMPILED = "eager", "compiled"
FLUSH = "flush"
"""On a GPU: the flush before each call, alone."""


class Baseline:
    """Both baselines of one operator on inputs that live in memory shared with the controller.

    On a GPU they run on copies there, which ``load`` renews, and every call has a flushed cache before it.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(int(request["threads"]))
        self._device = str(request.get("device", CPU))
        self._operator = Operator(str(request["source"]), str(request["name"]), self._device)
        self._sample = self._operator.sample(int(request["seed"]))
        self._calls: dict[str, Callable[..., Any]] = {EAGER: self._sample.model}
        self._map: mmap.mmap | None = None
        self._shared: list[torch.Tensor] = []
        self._flush = Flush() if self._device != CPU else None
        if self._flush is not None:
            self._calls[FLUSH] = lambda *_: None

    def attach(self, request: dict[str, Any]) -> dict[str, Any]:
        """Rebind arguments, parameters and buffers to the shared memory at ``path`` (blocks as the oracle writes)."""
        with open(request["path"], "r+b") as file:  # noqa: PTH123
            self._map = mmap.mmap(file.fileno(), 0)
        self._shared = [_view(self._map, block) for block in request["blocks"]]
        bound = self._shared if self._flush is None else [tensor.to(self._device) for tensor in self._shared]
        count = len(self._sample.tensor_arguments())
        _bind_state(self._sample.model, bound[count:])
        self._sample = self._sample.with_arguments(bound[:count])
        return {}

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Copy what the controller has written to the device."""
        del request
        for on_device, shared in zip(self._sample.inputs, self._shared, strict=True):
            on_device.copy_(shared)
        torch.cuda.synchronize()
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
        flush, calls = self._flush, int(request["calls"])
        with torch.inference_mode():
            started = time.perf_counter_ns()
            if flush is None:
                for _ in range(calls):
                    call(*arguments)
            else:
                for _ in range(calls):
                    flush()
                    call(*arguments)
                torch.cuda.synchronize()
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
    """Make every parameter and buffer of ``model`` one of ``tensors``, so that new values arrive under its address."""
    state = model.state_dict(keep_vars=True)
    for held, tensor in zip(state.values(), tensors, strict=True):
        held.data = tensor
