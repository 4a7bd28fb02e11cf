"""What a call of interpreted kernels moves and computes: counted where Triton's interpreter does it. Candidate's side.

Counts are kept by kernel. The memory of a GPU is read and written in sectors, so traffic is counted in those: what a
block of addresses touches at once is asked of the caches, what a launch touches at all has to come from memory. Of what
is asked again it is told how much was asked since: whether a cache can still hold it. It is counted in the candidate's
process, in one audited call: advice, which ranks kernels and proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Self

import numpy as np
import numpy.typing as npt

KERNELS_MAX = 8
"""Different ones that are told of; their report has to fit a page with that of the audit."""
NAME_CHARS = 48
SECTOR_BITS = 5
"""32 bytes: what memory is read and written in (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory")."""
PAGE_BITS = 15
"""Sectors of a page of the map of what was touched: 1 MiB."""
CLOCK_MAX = (1 << 32) - 1
"""128 GiB asked by a launch; all that comes later counts as asked at once."""
SPECIAL = ("create_exp", "create_exp2", "create_log", "create_log2", "create_sin", "create_cos", "create_sqrt",
           "create_precise_sqrt", "create_rsqrt", "create_erf")  # fmt: skip
"""Operations of the special-function units, of which a multiprocessor has few."""
PLAIN = ("binary_op", "ternary_op", "create_fma", "create_fabs", "cast_impl", "create_fp_to_fp")

Array = npt.NDArray[Any]


class Kernel:
    """Counts of one kernel, over all its launches. ``touched`` and ``clock`` are of the launch under way."""

    def __init__(self) -> None:
        self.launches = self.programs = self.asked = self.memory = self.accesses = self.operations = self.special = 0
        self.products: dict[str, int] = {}
        """Multiply-adds of matrix products by the type of their operands."""
        self.again: dict[int, int] = {}
        """Bytes asked again when less than ``2**key`` sectors were asked since, and at least half as many."""
        self._touched: dict[int, npt.NDArray[np.uint32]] = {}
        """By page, when each sector was asked last; 0: never."""
        self._clock = 1
        """Sectors asked, in the order of the programs."""

    def touch(self, addresses: Array, mask: Array) -> None:
        """One block of addresses, of which those under ``mask`` are read or written."""
        chosen = np.asarray(addresses)[np.broadcast_to(np.asarray(mask), np.shape(addresses)).astype(bool)]
        if chosen.size == 0:
            return
        sectors = np.unique(chosen.astype(np.uint64) >> np.uint64(SECTOR_BITS))
        self.asked += sectors.size << SECTOR_BITS
        self.accesses += 1
        pages = sectors >> np.uint64(PAGE_BITS)
        places = (sectors & np.uint64((1 << PAGE_BITS) - 1)).astype(np.int64)
        for page in np.unique(pages):
            last = self._touched.setdefault(int(page), np.zeros(1 << PAGE_BITS, dtype=np.uint32))
            here = places[pages == page]
            before = last[here]
            self._ask_again(self._clock - before[before > 0].astype(np.int64))
            last[here] = self._clock
        self._clock = min(self._clock + sectors.size, CLOCK_MAX)

    def _ask_again(self, since: npt.NDArray[np.int64]) -> None:
        """``since``: of each sector, how many were asked since it was."""
        for key, count in enumerate(np.bincount(np.frexp(since)[1]).tolist() if since.size else ()):
            if count:
                self.again[key] = self.again.get(key, 0) + (count << SECTOR_BITS)

    def settle(self, programs: int) -> None:
        """A launch has ended: what it touched came from memory once."""
        self.launches, self.programs = self.launches + 1, self.programs + programs
        self.memory += sum(int(np.count_nonzero(last)) for last in self._touched.values()) << SECTOR_BITS
        self._touched.clear()
        self._clock = 1

    def report(self) -> dict[str, Any]:
        return {
            "launches": self.launches,
            "programs": self.programs,
            "asked": self.asked,
            "memory": self.memory,
            "again": {str(key): size for key, size in sorted(self.again.items())},
            "accesses": self.accesses,
            "operations": self.operations,
            "special": self.special,
            "products": self.products,
        }


class Traffic:
    """Counts while it is entered; nothing where no kernel is interpreted. Counting takes time: nothing timed does."""

    def __init__(self) -> None:
        self.kernels: dict[str, Kernel] = {}
        """By name, those first that ran first."""
        self._current: Kernel | None = None
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        from triton.runtime.interpreter import GridExecutor, InterpreterBuilder

        self._wrap(GridExecutor, "__call__", self._launch)
        for name in ("create_masked_load", "create_masked_store", "create_atomic_rmw"):
            self._wrap(InterpreterBuilder, name, self._access)
        for name in SPECIAL:
            self._wrap(InterpreterBuilder, name, self._special)
        for name in PLAIN:
            self._wrap(InterpreterBuilder, name, self._operation)
        self._wrap(InterpreterBuilder, "create_dot", self._product)
        return self

    def __exit__(self, *exception: object) -> None:
        while self._undo:
            self._undo.pop()()

    def _wrap(self, owner: Any, name: str, counted: Callable[..., Any]) -> None:
        original = getattr(owner, name)

        @wraps(original)
        def wrapper(*args: Any, **named: Any) -> Any:
            return counted(original, *args, **named)

        setattr(owner, name, wrapper)
        self._undo.append(lambda: setattr(owner, name, original))

    def _launch(self, original: Any, executor: Any, *args: Any, **named: Any) -> Any:
        from triton.runtime.interpreter import interpreter_builder

        before = self._current
        name = executor.fn.__name__[:NAME_CHARS]
        if name not in self.kernels and len(self.kernels) == KERNELS_MAX:
            return original(executor, *args, **named)
        self._current = self.kernels.setdefault(name, Kernel())
        try:
            result = original(executor, *args, **named)
            self._current.settle(int(np.prod(interpreter_builder.grid_dim)))
        finally:
            self._current = before
        return result

    def _access(self, original: Any, builder: Any, *args: Any, **named: Any) -> Any:
        if self._current is not None:
            self._current.touch(*_addressed(original.__name__, args, named))
        return original(builder, *args, **named)

    def _special(self, original: Any, builder: Any, arg: Any, *rest: Any) -> Any:
        if self._current is not None:
            self._current.special += int(np.size(arg.data))
        return original(builder, arg, *rest)

    def _operation(self, original: Any, builder: Any, *args: Any, **named: Any) -> Any:
        result = original(builder, *args, **named)
        if self._current is not None:
            self._current.operations += int(np.size(result.data))
        return result

    def _product(self, original: Any, builder: Any, a: Any, b: Any, *rest: Any, **named: Any) -> Any:
        kernel = self._current
        if kernel is not None:
            kind = str(a.dtype.scalar.name)
            kernel.products[kind] = kernel.products.get(kind, 0) + int(np.size(a.data)) * int(np.shape(b.data)[-1])
        return original(builder, a, b, *rest, **named)


def told(audit: Mapping[str, Any], kernels: Mapping[str, Kernel], most: int) -> str:
    """The audit's report with the counts of ``kernels``, or without where both do not fit ``most`` bytes: what convicts
    has to arrive.
    """
    counts = {name: kernel.report() for name, kernel in kernels.items()}
    text = json.dumps({**audit, "traffic": counts}, separators=(",", ":"))
    return text if len(text.encode()) <= most else json.dumps(audit, separators=(",", ":"))


def _addressed(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Array, Array]:
    """Addresses and mask of an access: their places differ by its kind."""
    if name == "create_atomic_rmw":
        return args[1].data, args[3].data
    mask = named["mask"] if "mask" in named else args[1 if name == "create_masked_load" else 2]
    return args[0].data, mask.data
