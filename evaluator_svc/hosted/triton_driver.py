"""In the fork server: what Triton's driver compiles for itself before its first launch, compiled once for all children.

Every child would else run a C compiler for it, because its cache is its own and empty. Loading the module asks nothing
of the GPU's driver: a driver that runs survives no fork.
"""

from __future__ import annotations

from typing import Any


def warm() -> None:
    """Whoever asks for the module afterwards has it."""
    from triton.backends.nvidia import driver

    driver.CudaUtils()

    def ready(self: Any) -> None:
        """It is a singleton, which its constructor would fill again."""

    driver.CudaUtils.__init__ = ready
