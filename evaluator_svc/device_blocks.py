"""Blocks that the oracle's process hands over on a GPU: copied to memory of the controller's own, on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluator_svc import gpu_arrays
from evaluator_svc.arrays import Array
from evaluator_svc.hosted.cuda_driver import Driver
from evaluator_svc.tensors import TensorSpec


def copied(layout: Sequence[Mapping[str, Any]], specs: Sequence[TensorSpec]) -> list[Array]:
    """The bytes of each block of ``layout`` (``handle``, ``offset``), flat uint8, on the device.

    Raises:
        DriverError: a handle cannot be opened: the process that gave it is gone.
    """
    driver, bases = Driver(), dict[str, int]()
    try:
        for handle in dict.fromkeys(str(block["handle"]) for block in layout if block["handle"]):
            bases[handle] = driver.open(bytes.fromhex(handle))
        arrays: list[Array] = []
        for block, spec in zip(layout, specs, strict=True):
            if block["handle"]:
                address = bases[str(block["handle"])] + int(block["offset"])
                arrays.append(gpu_arrays.wrap(address, spec.nbytes, None).copy())
            else:
                arrays.append(gpu_arrays.placed(np.empty(0, dtype=np.uint8)))
        gpu_arrays.synchronise()
        return arrays
    finally:
        for base in bases.values():
            driver.close(base)
