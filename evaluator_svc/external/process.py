"""A kernel under a vendor's tools, from the controller's side: the port of ``runner.process.Runner``.

Every call is a process and a box of its own, so nothing is kept from one to the next. The controller writes what every
buffer holds before the call, outputs included, and reads what they hold afterwards; of what the tool says only the
ending is taken, and what it profiled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evaluator_svc.external import contract
from evaluator_svc.external.command import VendorCommand
from evaluator_svc.external.contract import Answer
from evaluator_svc.layers import Layer
from evaluator_svc.runner.ending import RunFailure, failure, timed_out
from evaluator_svc.runner.host_outputs import HostOutputs
from evaluator_svc.runner.process import Ran
from evaluator_svc.tensors import TensorSpec
from shared.chips.external import External
from shared.events import Status

RUN, PROFILE = "run", "profile"
ENDINGS = {
    "crashed": (Status.RUNTIME_ERROR, Layer.CRASH),
    "out_of_memory": (Status.OUT_OF_MEMORY, Layer.LIMITS),
    "not_loaded": (Status.LAUNCH_FAILED, Layer.LAUNCH),
    "forbidden": (Status.CHEAT, Layer.SANDBOX),
}


class ExternalRunner(HostOutputs):
    """Use as an asynchronous context manager. After a failure every further ``run`` returns it."""

    cools_outputs = False

    def __init__(
        self,
        artefact: Path,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        *,
        tools: External,
        chip: str,
        language: str,
        sets: int,
    ) -> None:
        self.sandbox = ""
        self.failure: RunFailure | None = None
        self.profiled: Answer | None = None
        """What the latest ``profile`` told."""
        self._artefact, self._tools, self._chip, self._language = artefact, tools, chip, language
        self._specs = (tuple(inputs), tuple(outputs))
        self._inputs = [[bytearray(spec.nbytes) for spec in inputs] for _ in range(sets)]
        self._outputs = [[bytearray(spec.nbytes) for spec in outputs] for _ in range(sets)]
        self._printed = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Nothing is open between calls."""

    @property
    def sets(self) -> int:
        """Copies of all tensors that there are."""
        return len(self._inputs)

    def write_input(self, set_: int, index: int, data: Any) -> None:
        """Fill an input from anything with the buffer protocol, exactly ``nbytes`` long."""
        _fill(self._inputs[set_][index], memoryview(data).cast("B"))

    def input_bytes(self, set_: int, index: int) -> memoryview:
        """The input as it was handed back after the latest call, where the sheet says that it is; else as written."""
        return memoryview(self._inputs[set_][index])

    def output_bytes(self, set_: int, index: int) -> memoryview:
        """The output, to read or to poison."""
        return memoryview(self._outputs[set_][index])

    def slack_intact(self) -> str | None:
        """What lies around the buffers is the vendor's: nobody looks there."""
        return None

    def printed(self, most: int = 4096) -> str:
        """The beginning of what the latest command printed: for logs only."""
        return self._printed[:most]

    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran | RunFailure:  # noqa: ARG002
        """Call the kernel ``calls`` times, call i on set ``(first_set + i) mod sets``, each in processes of its own.

        The limit of a call is the sheet's: a simulator may take a thousand times as long as a chip.

        Raises:
            ChipError: the adapter broke the contract.
            Fatal: no box could be started.
        """
        begin, code = time.monotonic_ns(), 0
        for call in range(calls):
            answer = await self._call(RUN, (first_set + call) % self.sets)
            if isinstance(answer, RunFailure):
                return answer
            code = answer.code
            if code != 0:
                break
        return Ran(elapsed_ns=time.monotonic_ns() - begin, runner_ns=0, cpu_ns=0, return_code=code)

    async def profile(self, set_: int) -> Answer | RunFailure:
        """One more call on ``set_``, profiled. Raises as ``run``."""
        answer = await self._call(PROFILE, set_)
        self.profiled = answer if isinstance(answer, Answer) else None
        return answer

    async def _call(self, name: str, set_: int) -> Answer | RunFailure:
        if self.failure is not None:
            return self.failure
        command = VendorCommand(self._tools, name, self._chip)
        running = asyncio.ensure_future(asyncio.to_thread(self._did, command, name, set_))
        try:
            answer = await asyncio.shield(running)
        except asyncio.CancelledError:
            command.interrupt()
            await asyncio.wait([running])
            raise
        if isinstance(answer, RunFailure):
            self.failure = answer
        return answer

    def _did(self, command: VendorCommand, name: str, set_: int) -> Answer | RunFailure:
        inputs, outputs = self._specs
        back = self._tools.inputs_back
        request = contract.call_request(
            name, chip=self._chip, language=self._language, inputs=inputs, outputs=outputs, inputs_back=back
        )
        given: dict[str, Any] = {contract.ARTEFACT: self._artefact.read_bytes()}
        given |= {contract.before(i, output=False): data for i, data in enumerate(self._inputs[set_])}
        given |= {contract.before(i, output=True): data for i, data in enumerate(self._outputs[set_])}
        read = contract.read_profile if name == PROFILE else contract.read_run
        answers: list[Answer] = []

        def expected(result: bytes) -> Mapping[str, int | None]:
            answers.append(read(result, outputs))
            if answers[0].ending:
                return {}
            wanted: dict[str, int | None] = {
                contract.after(i, output=True): spec.nbytes for i, spec in enumerate(outputs)
            }
            if back:
                wanted |= {contract.after(i, output=False): spec.nbytes for i, spec in enumerate(inputs)}
            return wanted

        did = command.run(request, given, expected)
        self._printed, self.sandbox = did.log, did.sandbox
        if did.timed_out:
            return timed_out(self._tools.run.time_s if name == RUN else self._tools.profile.time_s)
        if did.excess:
            status = Status.OUT_OF_MEMORY if "memory" in did.excess else Status.RUNTIME_ERROR
            return failure(status, Layer.LIMITS, took=did.excess)
        answer = answers[0]
        if answer.ending:
            status, layer = ENDINGS[answer.ending]
            return failure(status, layer, reason=answer.message.partition("\n")[0][:200])
        for index in range(len(outputs)):
            _fill(self._outputs[set_][index], did.files[contract.after(index, output=True)])
        for index in range(len(inputs) if back else 0):
            _fill(self._inputs[set_][index], did.files[contract.after(index, output=False)])
        return answer


def _fill(buffer: bytearray, data: bytes | memoryview) -> None:
    """In place: views that others hold stay valid.

    Raises:
        ValueError: ``data`` is of another length.
    """
    if len(data) != len(buffer):
        raise ValueError(f"{len(data)} bytes for a buffer of {len(buffer)}")
    memoryview(buffer)[:] = data
