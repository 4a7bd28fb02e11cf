"""A hosted candidate on a GPU whose inputs and results the controller itself holds there.

The promises are those of ``HostedRunner``, with arrays of the device in the place of memory views. No code of the
candidate's process is needed to copy, to flush or to tell the time, so none is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import equal, on_device, on_host
from evaluator_svc.hosted.cuda_driver import UNOPENED
from evaluator_svc.hosted.device_memory import DeviceMemory
from evaluator_svc.hosted.device_rest import Rest
from evaluator_svc.hosted.keeping import Keeping
from evaluator_svc.hosted.process import HostedRunner
from evaluator_svc.hosted.session import Session
from evaluator_svc.hosted.zygote import Hosts, Zygote
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.layout import Spacing
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built
from shared.errors import Fatal, Retryable


class KeptRunner(HostedRunner):
    """Made by ``keep``."""

    pipelined = True
    owns_results = True
    poisons = False
    """Whole results are copied over the outputs, so what these held before a call tells nothing. What was not written
    shows by what the candidate's allocator hands out, stained while it is checked, and by values new in every call."""

    _keeping: Keeping
    _inputs: Sequence[TensorSpec]
    _sets: int
    _alone: bool
    _memory: DeviceMemory | None = None
    _rest: Rest | None = None

    @classmethod
    def keep(
        cls,
        keeping: Keeping,
        hosts: Hosts,
        built: Built,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        *,
        sets: int = 1,
        alone: bool = False,
        **options: Any,
    ) -> Self:
        """As ``open``. ``alone``: nobody else uses the device meanwhile, so what it does outside of calls is the
        candidate's.
        """
        runner = cls.open(hosts, built, inputs, outputs, sets=sets, **options)
        runner._keeping, runner._inputs, runner._outputs = keeping, inputs, tuple(outputs)  # noqa: SLF001 - its own
        runner._sets, runner._alone = sets, alone  # noqa: SLF001
        return runner

    @property
    def sets(self) -> int:
        return self._sets

    async def waited_ns(self) -> int:
        """What an operation of ours waits for now, as it does after a candidate's block."""
        rest = self._rest
        return 0 if rest is None else await self._in_thread(lambda: rest.waited().charged)

    def placed(self, data: Any) -> Any:
        """An array on the device, where outputs are compared with it."""
        return data if on_device(data) else self._held.arrays.placed(data)

    def write_input(self, set_: int, index: int, data: Any) -> None:
        self._held.write_sets([set_], index, data)
        self._digests.pop(set_, None)

    def write_sets(self, sets: Sequence[int], index: int, data: NDArray[np.uint8]) -> None:
        here = self._held.here(data)
        if index >= len(self._inputs) - self._persistent:
            sets = [set_ for set_ in sets if not equal(self._held.input(set_, index), here)]
            for set_ in sets:
                self._digests.pop(set_, None)
        self._held.write_sets(sets, index, here)

    def input_bytes(self, set_: int, index: int) -> Any:
        """The input of the next block, as the controller holds it on the device; the candidate cannot write there."""
        return self._held.input(set_, index)

    def output_bytes(self, set_: int, index: int) -> Any:
        return self._held.output(set_, index)

    def output_rows(self, index: int) -> Any:
        return self._held.output_rows(index)

    def cool(self, first_set: int, calls: int) -> None:
        """Nothing: that is done when the inputs are given."""

    def slack_intact(self) -> str | None:
        """Outputs are the controller's own memory."""
        return None

    @classmethod
    def _lent(cls, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], sets: int, spacing: Spacing) -> Buffers:
        """Nothing in the host's memory."""
        del inputs, outputs, sets, spacing
        return Buffers((), (), 1, Spacing.DENSE)

    @property
    def _held(self) -> DeviceMemory:
        assert self._memory is not None, "enter the context first"
        return self._memory

    def _begun(self, zygote: Zygote) -> Session:
        if self._memory is None:
            self._memory = self._keeping.memory(self._inputs, self._outputs, self._sets)
            kept = self._keeping.told(self._memory)
            self._candidate = replace(self._candidate, told={**self._candidate.told, "kept": kept})
        self._memory.forget()
        if self._alone and self._rest is None:
            self._rest = Rest(self._memory.probe_ns)
        try:
            session = Session(
                zygote,
                self._candidate,
                self._buffers,
                self._limits,
                self._copies,
                sets=self._sets,
                outputs=self._outputs,
                mutated=len(self._candidate.told["mutates"]),
                kept=self._memory,
                rest=self._rest,
            )
        except Fatal as error:
            if UNOPENED not in str(error):
                raise
            if self._keeping.opened:  # one box says nothing of others, where others could
                raise Retryable(str(error)) from error
            self._keeping.refused = str(error)
            raise Retryable(f"from now on results are copied by the candidate's side: {error}") from error
        self._keeping.opened = True
        return session

    def _weights_of(self, set_: int, index: int) -> Any:
        return on_host(self.input_bytes(set_, index))

    def _stop(self) -> None:
        super()._stop()
        if self._memory is not None:
            self._memory.close()
