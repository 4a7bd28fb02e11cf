"""Handing tensors to the controller: in a file that it names, or where they lie on a GPU, by handles that it opens.

What lies on a device is held here until the controller has copied it and says so (``release``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evaluator_svc.hosted.cuda_driver import Driver
from evaluator_svc.oracle_child.model import CPU, KE_DTYPES

ALIGNMENT = 64
Blocks = Sequence[tuple[str, torch.Tensor]]


class Handing:
    """Of a child whose tensors are on ``device``, as torch names it. ``shared``: the controller opens handles."""

    def __init__(self, device: str, *, shared: bool) -> None:
        self._device, self._by_handle = device, shared
        self._driver: Driver | None = None
        self._held: dict[str, list[torch.Tensor]] = {}
        """By the path that the controller would have had them written to."""

    def hand(self, path: Path, blocks: Blocks) -> list[dict[str, Any]]:
        """Where the controller finds ``blocks``: role, shape, dtype, and ``offset`` in the file or in the allocation
        behind ``handle``.
        """
        return self._shared(path, blocks) if self._by_handle else _write(path, blocks)

    def release(self, path: str) -> None:
        """The controller has copied what it was handed under ``path``."""
        self._held.pop(path, None)

    def _shared(self, path: Path, blocks: Blocks) -> list[dict[str, Any]]:
        self._driver = self._driver or Driver()
        kept = [(role, tensor.detach().to(self._device).contiguous()) for role, tensor in blocks]
        torch.cuda.synchronize()
        self._held[str(path)] = [tensor for _, tensor in kept]
        layout: list[dict[str, Any]] = []
        for role, tensor in kept:
            place: dict[str, Any] = {"handle": "", "offset": 0}
            if tensor.numel():
                base = self._driver.extent(tensor.data_ptr()).base
                place = {"handle": self._driver.share(base).hex(), "offset": tensor.data_ptr() - base}
            layout.append({"role": role} | place | described(tensor))
        return layout


def described(tensor: torch.Tensor) -> dict[str, Any]:
    """Shape and dtype, as the controller reads them."""
    return {"shape": list(tensor.shape), "dtype": KE_DTYPES[tensor.dtype].value}


def raw(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Bytes of a tensor, on the host."""
    flat = tensor.detach().to(CPU).contiguous().reshape(-1)
    array: np.ndarray[Any, np.dtype[np.uint8]] = flat.view(torch.uint8).numpy()
    return array


def _write(path: Path, blocks: Blocks) -> list[dict[str, Any]]:
    layout, offset = [], 0
    with path.open("wb") as file:
        for role, tensor in blocks:
            data = raw(tensor)
            file.seek(offset)
            file.write(data.tobytes())
            layout.append({"role": role, "offset": offset} | described(tensor))
            offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    return layout
