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
NS_PER_MS = 1e6


class Baseline:
    """Both baselines of one operator on inputs that live in memory shared with the controller.

    On a GPU they run on copies there, which ``load`` renews.
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

    def attach(self, request: dict[str, Any]) -> dict[str, Any]:
        """Take arguments, parameters and buffers from the shared memory at ``path``: ``draws`` times ``blocks`` (as the
        oracle writes them), ``stride`` bytes apart. Calls are made on ``sets``: these, or copies on the device.
        """
        with open(request["path"], "r+b") as file:  # noqa: PTH123
            self._map = mmap.mmap(file.fileno(), 0)
        sets, draws, stride = int(request["sets"]), int(request["draws"]), int(request["stride"])
        self._shared = [
            [_view(self._map, block, draw * stride) for block in request["blocks"]] for draw in range(draws)
        ]
        self._bound = (
            self._shared
            if self._flush is None
            else [[torch.empty_like(one, device=self._device) for one in self._shared[0]] for _ in range(sets)]
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
        """Have the sets on the device hold the first ``draws`` of what the controller has written, in turn."""
        draws = int(request["draws"])
        for set_, on_device in enumerate(self._bound):
            sources = self._shared[set_] if set_ < draws else self._bound[set_ % draws]
            for target, source in zip(on_device, sources, strict=True):
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
        if self._flush is not None:
            self._flush()
            torch.cuda.synchronize()
            return {}
        assert self._cooler is not None, "attach first"
        for set_ in _turn(request):
            kept = self._kept[set_] if request["outputs"] else ()
            outputs = kept if isinstance(kept, list | tuple) else (kept,)
            for tensor in (*self._bound[set_], *outputs):
                if isinstance(tensor, torch.Tensor):
                    self._cooler.ke_flush(ctypes.c_void_p(tensor.data_ptr()), ctypes.c_int64(tensor.nbytes))
        return {}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one baseline ``calls`` times, each on the next set; answers its own clock, for agreement with the
        controller's, and on a GPU the device's, from before the first call to after the last.
        """
        call, on_device, kept = self._calls[str(request["which"])], self._flush is not None, self._kept
        order = _turn(request)
        count = len(self._sample.tensor_arguments())
        turns = [
            (set_, self._arguments[set_], tuple(zip(self._parameters, self._bound[set_][count:], strict=False)))
            for set_ in order
        ]
        with torch.inference_mode():
            events = [_event(), _event()] if on_device else []
            started = time.perf_counter_ns()
            for event in events[:1]:
                event.record()
            for set_, arguments, parameters in turns:
                for held, tensor in parameters:
                    held.data = tensor
                kept[set_] = call(*arguments)
            for event in events[1:]:
                event.record()
                torch.cuda.synchronize()
            own_ns = time.perf_counter_ns() - started
        device_ns = round(events[0].elapsed_time(events[1]) * NS_PER_MS) if events else None
        return {"own_ns": own_ns, "device_ns": device_ns}

    @property
    def sample(self) -> Sample:
        return self._sample


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


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
