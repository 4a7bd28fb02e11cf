"""A hosted candidate on a GPU whose inputs and results the controller itself holds there.

The promises are those of ``HostedRunner``, with arrays of the device in the place of memory views. No code of the
candidate's process is needed to copy, to flush or to tell the time, so none is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

from evaluator_svc.arrays import equal, on_host
from evaluator_svc.hosted.child import Candidate
from evaluator_svc.hosted.cuda_driver import UNOPENED
from evaluator_svc.hosted.device_memory import DeviceMemory
from evaluator_svc.hosted.device_rest import Rest
from evaluator_svc.hosted.keeping import Keeping
from evaluator_svc.hosted.process import HostedRunner
from evaluator_svc.hosted.session import Session
from evaluator_svc.hosted.zygote import Zygote
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.layout import Spacing
from evaluator_svc.tensors import TensorSpec
from shared.errors import Fatal, Retryable


class KeptRunner(HostedRunner):
    """Made by ``kept``. ``placed`` brings an array to where the outputs are."""

    poisons = False
    """Whole results are copied over the outputs, so whatever these held before tells nothing: results that were not
    written show by what the candidate's allocator hands out (stained while it is checked) and by values that are new in
    every call."""

    _memory: DeviceMemory | None = None
    _keeping: Keeping
    _specs: tuple[Sequence[TensorSpec], Sequence[TensorSpec]]
    _count: int
    _alone: bool
    _rest: Rest | None = None

    @classmethod
    def kept(
        cls,
        keeping: Keeping,
        open_: Callable[..., Any],
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        *,
        sets: int,
        alone: bool,
    ) -> Self:
        raise NotImplementedError
