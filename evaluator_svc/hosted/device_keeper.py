"""The keeper's process: trusted, one per runner, alone with the driver. JSON requests on its input, one a line.

Started as ``python -m evaluator_svc.hosted.device_keeper LIBRARY INPUTS BYTES OUTPUTS BYTES``: descriptors of the
runner's two files of buffers, and their sizes. Its first answer holds the handle of the inputs, or why there is none.
"""

from __future__ import annotations

import json
import mmap
import sys
from typing import Any

import numpy as np

from evaluator_svc.hosted.cuda_driver import Driver, DriverError
from evaluator_svc.hosted.device_memory import DeviceMemory, Unreadable
from evaluator_svc.hosted.strided import Strided


class Keeper:
    """Answers requests. ``outputs``: where results are written, mapped."""

    def __init__(self, device: DeviceMemory, outputs: mmap.mmap) -> None:
        self._device, self._outputs = device, outputs

    def done(self, request: dict[str, Any]) -> Any:
        """The answer to one request."""
        match request["do"]:
            case "fill":
                self._device.fill(request["stretches"])
            case "changed":
                return self._device.changed(request["stretches"])
            case "flush":
                self._device.flush()
            case "probe":
                return self._device.probe_ns()
            case "read":
                return self._read(request)
            case "forget":
                self._device.forget()
        return None

    def _read(self, request: dict[str, Any]) -> dict[str, Any]:
        """Copy a result to its place among the outputs; where it lies here, or why it cannot be read."""
        handle = bytes.fromhex(request["handle"])
        if handle == self._device.handle:
            return {"refused": "is the memory of an input"}
        shape, strides, itemsize = tuple(request["shape"]), tuple(request["strides"]), int(request["itemsize"])
        span = Strided(0, shape, strides, itemsize).span
        begin, end = request["at"], request["at"] + request["nbytes"]
        try:
            address = self._device.place(handle, int(request["offset"]), span)
            with memoryview(self._outputs) as whole, whole[begin:end] as target:
                self._device.copy(Strided(address, shape, strides, itemsize), target)
        except Unreadable as why:
            return {"refused": str(why)}
        return {"address": address}


def main(library: str, inputs_fd: int, inputs_bytes: int, outputs_fd: int, outputs_bytes: int) -> None:
    """Answer until the input ends."""
    inputs = mmap.mmap(inputs_fd, inputs_bytes, prot=mmap.PROT_READ)
    outputs = mmap.mmap(outputs_fd, outputs_bytes)
    try:
        device = DeviceMemory(Driver(library), np.frombuffer(inputs, dtype=np.uint8))
    except (OSError, DriverError) as error:
        _say({"refused": str(error)})
        return
    _say({"handle": device.handle.hex()})
    keeper = Keeper(device, outputs)
    for line in sys.stdin:
        _say({"ok": keeper.done(json.loads(line))})


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], *(int(one) for one in sys.argv[2:6]))
