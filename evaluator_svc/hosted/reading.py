"""Results of a hosted candidate: read where they lie, by the controller, while no instruction of the candidate runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.hosted import outputs as contract
from evaluator_svc.hosted import wire
from evaluator_svc.hosted.child import Child
from evaluator_svc.hosted.device_memory import DeviceMemory, Unreadable
from evaluator_svc.hosted.strided import Strided
from evaluator_svc.layers import Layer
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure, failure
from evaluator_svc.tensors import TensorSpec
from shared.events import Status


class Reading:
    """The results of one process in ``sets`` sets of ``outputs``, of which the last ``mutated`` are new values of
    inputs. ``copies`` keeps what was read of outputs that the candidate can write to: by output, sets x bytes.
    ``kept``: what this process holds on a GPU for it, in the place of ``buffers``.
    """

    def __init__(
        self,
        child: Child,
        buffers: Buffers,
        copies: list[NDArray[np.uint8]],
        *,
        sets: int,
        outputs: Sequence[TensorSpec],
        mutated: int,
        kept: DeviceMemory | None,
    ) -> None:
        self._child, self._buffers, self._kept = child, buffers, kept
        self._sets, self._outputs, self._returned = sets, tuple(outputs), len(outputs) - mutated
        self._inputs = os.fstat(buffers.inputs_fd)
        self._base = child.report().base
        self._copies = copies
        if child.exporting and not copies:  # what the candidate can write to is read once, and then judged
            copies += [np.zeros((buffers.sets, spec.nbytes), dtype=np.uint8) for spec in buffers.outputs]

    def output(self, set_: int, index: int) -> memoryview:
        """What was read last."""
        if self._copies:
            return memoryview(self._copies[index][set_])
        return self._buffers.view(set_, index, output=True)

    def rows(self, index: int) -> NDArray[np.uint8]:
        """The same of all sets."""
        return self._copies[index] if self._copies else self._buffers.rows(index, output=True)

    def read(self, page: bytes, sets: Sequence[int]) -> RunFailure | None:
        """Fill the outputs of ``sets``; or why that cannot be."""
        failed = self._each(page, sets, self._fetch if self._kept is None else self._kept_read)
        if self._kept is not None:
            self._kept.arrays.synchronise()  # the candidate runs on after this: what it holds is copied by then
        return failed

    def _each(
        self, page: bytes, sets: Sequence[int], fetch: Callable[[bytes, int, int, Strided], Strided | RunFailure]
    ) -> RunFailure | None:
        """Have every result of ``sets`` fetched, which gives where it lies; or why not."""
        remark = wire.read_text(page)
        for set_ in sets:
            placed: list[Strided] = []
            for output, spec in enumerate(self._outputs):
                result = wire.unpack(page, set_ * len(self._outputs) + output)
                failed = contract.refused(result, spec, output, remark)
                if failed is not None:
                    return failed
                assert result is not None
                found = fetch(page, set_, output, contract.strided(result, spec))
                if isinstance(found, RunFailure):
                    return found
                placed.append(found)
            # An operator that changes an input in place may return that input, too.
            failed = contract.shared(placed[: self._returned])
            if failed is not None:
                return failed
        return None

    def _kept_place(self, page: bytes, set_: int, output: int, placed: Strided) -> Strided | RunFailure:
        """A result among this process' addresses, where its allocation is mapped."""
        assert self._kept is not None
        told = wire.shared(page, self._sets * len(self._outputs), set_ * len(self._outputs) + output)
        if told is None:
            return contract.contract(Status.CHEAT, output, "lies in memory that cannot be shared", "")
        try:
            return replace(placed, address=self._kept.place(*told, placed.span))
        except Unreadable as why:
            return contract.contract(Status.CHEAT, output, str(why), "")

    def _kept_read(self, page: bytes, set_: int, output: int, placed: Strided) -> Strided | RunFailure:
        assert self._kept is not None
        found = self._kept_place(page, set_, output, placed)
        if isinstance(found, Strided):
            self._kept.read(set_, output, found)
        return found

    def _kept_same(self, page: bytes, set_: int, output: int, placed: Strided) -> Strided | RunFailure:
        assert self._kept is not None
        found = self._kept_place(page, set_, output, placed)
        if isinstance(found, Strided) and not self._kept.same(set_, output, found):
            return _late(output)
        return found

    def _fetch(self, page: bytes, set_: int, output: int, placed: Strided) -> Strided | RunFailure:
        del page
        if self._base <= placed.address < self._base + self._buffers.layout.span:
            return contract.contract(Status.CHEAT, output, "is the memory of an input", "")
        if self._child.exporting:
            self.output(set_, output)[:] = self._buffers.view(set_, output, output=True)
            return placed
        wrong = self._child.memory.where(placed, self._inputs)
        if wrong is not None:
            return contract.contract(Status.CHEAT, output, f"is {wrong}", "")
        try:
            self._child.memory.read(placed, self.output(set_, output))
        except OSError:
            if not self._child.observed.alive:
                raise
            return contract.contract(Status.CHEAT, output, "lies where nobody can read it", "")
        return placed

    def changed(self, page: bytes, sets: Sequence[int]) -> RunFailure | None:
        """Outputs that were written to after they had been returned: read them once more, and compare."""
        if self._kept is not None:
            return self._each(page, sets, self._kept_same)
        first = {(set_, i): bytes(self.output(set_, i)) for set_ in sets for i in range(len(self._outputs))}
        failed = self.read(page, sets)
        for (set_, index), data in first.items():
            if failed is None and self.output(set_, index) != data:
                return _late(index)
        return failed


def _late(output: int) -> RunFailure:
    return failure(Status.CHEAT, Layer.LATE, reason=f"output {output} changed after the call had returned")
