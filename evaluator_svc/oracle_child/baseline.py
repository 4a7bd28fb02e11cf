"""The baseline role: eager and compiled PyTorch as callables that run N times when told; the controller times them."""

from __future__ import annotations

import ctypes
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
        self._shared: list[list[torch.Tensor]] = []
        """What the controller writes, by set,"""
        self._bound: list[list[torch.Tensor]] = []
        """and what calls are made on: the same, or copies on the device."""
        self._arguments: list[tuple[Any, ...]] = []
        self._parameters: list[Any] = []
        """Parameters and buffers of the model that every call is given those of its set."""
        self._kept: list[Any] = []
        """What the last call on each set returned: memory is used again when a candidate's would be."""
        self._cooler: ctypes.CDLL | None = None
        self._flush = Flush() if self._device != CPU else None
        if self._flush is not None:
            self._calls[FLUSH] = lambda *_: None

    def attach(self, request: dict[str, Any]) -> dict[str, Any]:
        """Take arguments, parameters and buffers from the shared memory at ``path``: ``sets`` times ``blocks`` (as the
        oracle writes them), ``stride`` bytes apart.
        """
        with open(request["path"], "r+b") as file:  # noqa: PTH123
            self._map = mmap.mmap(file.fileno(), 0)
        sets, stride = int(request["sets"]), int(request["stride"])
        self._shared = [[_view(self._map, block, set_ * stride) for block in request["blocks"]] for set_ in range(sets)]
        self._bound = (
            self._shared
            if self._flush is None
            else [[tensor.to(self._device) for tensor in tensors] for tensors in self._shared]
        )
        count = len(self._sample.tensor_arguments())
        state = list(self._sample.model.state_dict(keep_vars=True).values())
        for held, tensor in zip(state, self._bound[0][count:], strict=True):
            held.data = tensor
        self._parameters = [] if request["bound_once"] else state
        self._arguments = [self._sample.with_arguments(tensors[:count]).arguments for tensors in self._bound]
        self._sample = self._sample.with_arguments(self._bound[0][:count])
        self._kept = [None] * sets
        self._cooler = ctypes.CDLL(str(request["cooler"])) if self._flush is None else None
        return {}

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Copy what the controller has written to the device."""
        del request
        for on_device, shared in zip(self._bound, self._shared, strict=True):
            for target, source in zip(on_device, shared, strict=True):
                target.copy_(source)
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

    def cool(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have no cache hold inputs, nor outputs where that is asked, of the sets of the next calls."""
        assert self._cooler is not None, "a device has its own flush"
        for set_ in _turn(request):
            kept = self._kept[set_] if request["outputs"] else ()
            outputs = kept if isinstance(kept, list | tuple) else (kept,)
            for tensor in (*self._bound[set_], *outputs):
                if isinstance(tensor, torch.Tensor):
                    self._cooler.ke_flush(ctypes.c_void_p(tensor.data_ptr()), ctypes.c_int64(tensor.nbytes))
        return {}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one baseline ``calls`` times, each on the next set; answers its own clock, for agreement with the
        controller's.
        """
        call, flush, kept = self._calls[str(request["which"])], self._flush, self._kept
        order = _turn(request)
        count = len(self._sample.tensor_arguments())
        turns = [
            (set_, self._arguments[set_], tuple(zip(self._parameters, self._bound[set_][count:], strict=False)))
            for set_ in order
        ]
        with torch.inference_mode():
            started = time.perf_counter_ns()
            for set_, arguments, parameters in turns:
                for held, tensor in parameters:
                    held.data = tensor
                if flush is not None:
                    flush()
                kept[set_] = call(*arguments)
            if flush is not None:
                torch.cuda.synchronize()
            return {"own_ns": time.perf_counter_ns() - started}

    @property
    def sample(self) -> Sample:
        return self._sample


def _turn(request: dict[str, Any]) -> list[int]:
    """The set of each call."""
    first, calls, span = int(request["first"]), int(request["calls"]), int(request["span"])
    return [(first + i) % span for i in range(calls)]


def _view(memory: mmap.mmap, block: dict[str, Any], at: int) -> torch.Tensor:
    dtype, shape = getattr(torch, DType(block["dtype"]).value), block["shape"]
    count = 1
    for extent in shape:
        count *= extent
    return torch.frombuffer(memory, dtype=dtype, count=count, offset=at + int(block["offset"])).reshape(shape)
