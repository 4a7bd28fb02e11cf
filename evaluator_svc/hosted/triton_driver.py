"""In the fork server: what Triton does before its first launch whatever the kernel is, done once for all children.

A child would else run a C compiler for Triton's driver module, because its cache is its own and empty, and read all of
Triton's files for the key of that cache: together 1.3 s on a machine with an H200. Loading the module asks nothing of
the GPU's driver: a driver that runs survives no fork.
"""

from __future__ import annotations

import contextlib
import importlib
import traceback
from typing import Any

LAZY = ("triton.tools.tensor_descriptor", "triton.experimental.gluon.nvidia.hopper")
"""What the first launch imports; not every version has them."""


def warm() -> None:
    """Whoever asks for these things afterwards has them. Where the module cannot be built, that is printed: a kernel of
    Triton's fails by it in its own process, and those that need none are none the worse.
    """
    try:
        from triton.backends.nvidia import driver

        driver.CudaUtils()
    except Exception:  # noqa: BLE001 - no compiler, no header, no driver: each raises its own
        traceback.print_exc()
        return
    with contextlib.suppress(ImportError):  # it was elsewhere in other versions: then children do it
        from triton.runtime.cache import triton_key

        triton_key()
    for module in LAZY:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)

    def ready(self: Any) -> None:
        """It is a singleton, which its constructor would fill again."""

    driver.CudaUtils.__init__ = ready
