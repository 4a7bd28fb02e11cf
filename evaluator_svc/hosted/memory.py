"""Reading a frozen candidate's results out of its memory, wherever it says they lie."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.hosted.strided import Strided, view

READ_BYTES = 64 << 20
"""At most this much is read at once of a result that is not contiguous."""


class Memory:
    """The memory of process ``pid``. Methods raise ``OSError`` for what is not readable there."""

    def __init__(self, pid: int) -> None:
        self._root = Path(f"/proc/{pid}")
        self._fd = os.open(self._root / "mem", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._fd)

    def read(self, tensor: Strided, target: memoryview) -> None:
        """Fill ``target``, which is as long as the tensor has bytes, with its elements in row-major order."""
        if tensor.contiguous:
            self._fill(tensor.address, target)
            return
        whole: NDArray[np.uint8] = np.frombuffer(target, dtype=np.uint8).reshape(*tensor.shape, tensor.itemsize)
        self._gather(tensor, whole)

    def where(self, tensor: Strided, shared: os.stat_result) -> str | None:
        """What is wrong with the place that ``tensor`` claims; None when it is memory of the candidate's own.

        ``shared`` is the file of the inputs: whatever address it is mapped at, it is nobody's result.
        """
        at, end = tensor.address, tensor.address + tensor.span
        device = f"{os.major(shared.st_dev):02x}:{os.minor(shared.st_dev):02x}"
        for line in self._root.joinpath("maps").read_text().splitlines():
            extent, access, _, dev, inode, *_ = line.split(maxsplit=5)
            low, high = (int(one, 16) for one in extent.split("-"))
            if high <= at:
                continue
            if low > at or "r" not in access:
                break
            if dev == device and int(inode) == shared.st_ino:
                return "the memory of an input"
            at = high
            if at >= end:
                return None
        return f"no memory of its own (address {tensor.address:#x}, {tensor.span} bytes)"

    def _fill(self, address: int, target: memoryview) -> None:
        done = 0
        while done < len(target):
            got = os.preadv(self._fd, [target[done:]], address + done)
            if got <= 0:
                raise OSError(f"nothing to read at {address + done:#x}")
            done += got

    def _gather(self, tensor: Strided, target: NDArray[Any]) -> None:
        if tensor.span <= READ_BYTES or not tensor.shape:
            raw = bytearray(tensor.span)
            self._fill(tensor.address, memoryview(raw))
            target[...] = view(np.frombuffer(raw, dtype=np.uint8), 0, tensor)
            return
        # Longest stride first: its slices are the ones that lie closest together.
        axis = max(range(len(tensor.shape)), key=lambda i: tensor.strides[i] if tensor.shape[i] > 1 else -1)
        rest = tensor.span - (tensor.shape[axis] - 1) * tensor.strides[axis]
        step = max(1, (READ_BYTES - rest) // max(tensor.strides[axis], 1))
        for start in range(0, tensor.shape[axis], step):
            count = min(step, tensor.shape[axis] - start)
            shape = (*tensor.shape[:axis], count, *tensor.shape[axis + 1 :])
            part = Strided(tensor.address + start * tensor.strides[axis], shape, tensor.strides, tensor.itemsize)
            index = (slice(None),) * axis + (slice(start, start + count),)
            self._gather(part, target[index])
