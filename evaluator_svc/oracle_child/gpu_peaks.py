"""The calibrator role: what the GPU can do, measured by plain operations of a trusted process.

The copy is the measured ceiling of memory bandwidth (bytes read plus bytes written), on buffers many times the
second-level cache; matrix products give the rate of each dtype. Best of several trials: a disturbed moment must not
lower a speed-of-light floor's divisor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from evaluator_svc.hosted.flush import Flush

COPY_BYTES = 1 << 30
TRIALS, CALLS = 7, 10
MATRIX = 4096
COLD_BYTES = (16 << 20, 64 << 20, 256 << 20)
"""Copies of these sizes after a flush: inside the cache, about as large, and larger (triton #8384, TileGym #118)."""
MS_PER_S = 1e3


class Calibrator:
    """Answers ``measure``."""

    def __init__(self, request: dict[str, Any]) -> None:
        del request
        torch.cuda.init()  # type: ignore[no-untyped-call]

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """Rates in bytes/s and operations/s, the flush and an empty launch in ns.

        ``cold`` has the rate of reading for copies of several sizes, each after a flush: what was written may stay in
        the cache, so only the bytes read count.
        """
        del request
        source = torch.empty(COPY_BYTES, dtype=torch.int8, device="cuda").random_()
        target = torch.empty_like(source)
        copy_s = _best_s(lambda: target.copy_(source))
        inside = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        small, other = source[: inside // 4], target[: inside // 4]
        cached_s = _best_s(lambda: other.copy_(small))
        flush = Flush()
        flush.reset_persisting()
        flush_s = _best_s(flush)
        cold = {str(size): _cold(flush, flush_s, source[:size], target[:size]) for size in COLD_BYTES}
        empty = torch.empty(1, device="cuda")
        return {
            "memory": 2 * COPY_BYTES / copy_s,
            "L2": 2 * small.numel() / cached_s,
            "L2_bytes": inside,
            "flush_ns": flush_s * 1e9,
            "cold": cold,
            "launch_ns": _best_s(empty.zero_) * 1e9,
            "flops": {
                "float16": _matmul(torch.float16),
                "bfloat16": _matmul(torch.bfloat16),
                "float32": _matmul(torch.float32),
            },
            "name": torch.cuda.get_device_name(),
        }


def _cold(flush: Flush, flush_s: float, source: torch.Tensor, target: torch.Tensor) -> float:
    def once() -> None:
        flush()
        target.copy_(source)

    return source.numel() / max(_best_s(once) - flush_s, 1e-9)


def _matmul(dtype: torch.dtype) -> float:
    a, b = (torch.randn(MATRIX, MATRIX, device="cuda", dtype=dtype) for _ in range(2))
    return 2 * MATRIX**3 / _best_s(lambda: a @ b)


def _best_s(call: Callable[[], Any]) -> float:
    """Seconds of one call: the best of ``TRIALS`` batches between two device events."""
    for _ in range(3):
        call()
    best = float("inf")
    for _ in range(TRIALS):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        first.record()
        for _ in range(CALLS):
            call()
        last.record()
        torch.cuda.synchronize()
        best = min(best, first.elapsed_time(last) / CALLS / MS_PER_S)
    return best
