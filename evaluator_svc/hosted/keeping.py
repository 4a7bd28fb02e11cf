"""Whether, and by what, the controller itself holds a GPU's arrays; else the candidate's side copies them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evaluator_svc.hosted.cuda_driver import LIBRARY, Driver, DriverError
from evaluator_svc.hosted.device_memory import Arrays, DeviceMemory
from evaluator_svc.tensors import TensorSpec
from shared.errors import Retryable


class Available(Arrays, Protocol):
    """``gpu_arrays``."""

    def available(self) -> str: ...


@dataclass(slots=True)
class Keeping:
    """Of a worker. ``library`` is the driver, ``tensors`` what torch calls its device.

    ``refused`` says why arrays cannot be held here: ``ask`` finds out, blocking; a candidate's box may show it later.
    """

    arrays: Available
    library: str = LIBRARY
    tensors: str = "cuda"
    refused: str = ""
    opened: bool = False
    """A candidate's box has shown that it can be done."""
    _driver: Driver | None = None

    def ask(self) -> str:
        """Start the driver, once, and return ``refused``."""
        if self._driver is None and not self.refused:
            self.refused = self.arrays.available() or self._shares()
        return self.refused

    def memory(self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], sets: int) -> DeviceMemory:
        """Memory for one candidate.

        Raises:
            Retryable: the device has not so much left now.
        """
        assert self._driver is not None, "ask first"
        try:
            return DeviceMemory(self._driver, self.arrays, inputs, outputs, sets)
        except DriverError as error:
            said = f"the GPU has no memory for {sets} sets of buffers (TIMING_GPU_SETS_BYTES_MAX): {error}"
            raise Retryable(said) from error

    def told(self, memory: DeviceMemory) -> dict[str, Any]:
        """What the candidate's side needs to open the inputs."""
        return {
            "handle": memory.handle.hex(),
            "library": self.library,
            "tensors": self.tensors,
            "at": [[column.at, column.stride] for column in memory.inputs.columns],
            "nbytes": memory.inputs.nbytes,
        }

    def _shares(self) -> str:
        try:
            driver = Driver(self.library)
            tried = driver.allocate(1)
            try:
                driver.share(tried)
            finally:
                driver.free(tried)
        except (OSError, DriverError) as error:
            return f"the driver shares no memory between processes: {error}"
        self._driver = driver
        return ""
