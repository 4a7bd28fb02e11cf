"""What computes in one call of a candidate: kernels of its own, and library operators. Candidate's side.

The report comes out of the candidate's process, so it can convict; that it acquits takes the controller's own
knowledge too, that the text defines a kernel (``kernel_policy``).
"""

from __future__ import annotations

import sys
import sysconfig
from collections import Counter
from collections.abc import Callable
from functools import wraps
from time import perf_counter_ns
from typing import Any, Self

import torch
from torch._library.custom_ops import OPDEFS
from torch.utils._python_dispatch import TorchDispatchMode

from evaluator_svc.hosted.extension_calls import CALLS

SHOWN = 8
"""Names of each kind in a report, the costliest first: it must fit a page."""
NAME_CHARS = 60
LIBRARIES = ("aten", "prims", "prim", "inductor", "profiler", "_", "c10d", "quantized", "mkldnn", "mkl", "onednn",
             "torchvision", "torchao", "xformers", "flash_attn", "triton", "higher_order", "rngprims")  # fmt: skip
"""Namespaces of operators that come with packages. An operator of any other is the candidate's own."""
FREE = frozenset(
    [
        "view",
        "_unsafe_view",
        "reshape",
        "as_strided",
        "expand",
        "permute",
        "transpose",
        "t",
        "slice",
        "select",
        "unsqueeze",
        "squeeze",
        "alias",
        "detach",
        "split",
        "split_with_sizes",
        "unbind",
        "unfold",
        "diagonal",
        "narrow",
        "movedim",
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "set_",
        "lift_fresh",
        "_reshape_alias",
        "view_as_real",
        "view_as_complex",
        "is_same_size",
        "sym_size",
        "sym_stride",
        "sym_numel",
        "_local_scalar_dense",
        "record_stream",
    ]
)
"""Operators that compute nothing: they allocate, or look at what is there in another way."""


class Audit:
    """Counts while it is entered. Entering it costs time: an audited call is never a timed one."""

    def __init__(self) -> None:
        self._own: Counter[str] = Counter()
        self._library: dict[str, list[int]] = {}
        self._compiled = self._replays = 0
        self._mode = _Operators(self._own, self._library)
        self._before: Counter[str] = Counter()
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        self._before = CALLS.copy()
        self._watch_launches()
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exception: object) -> None:
        self._mode.__exit__(*exception)  # type: ignore[no-untyped-call]
        while self._undo:
            self._undo.pop()()
        self._own.update(CALLS - self._before)

    def report(self) -> dict[str, Any]:
        """What was seen, as plain data.

        ``own``: kernel -> runs. ``library``: operator -> calls, elements that it gave, its time in ns. ``compiled``:
        whether kernels ran that torch.compile had written. ``replays``: of graphs, which do not tell what is in them.
        """
        costly = sorted(self._library.items(), key=lambda item: -item[1][2])
        return {
            "own": {_short(name): count for name, count in self._own.most_common(SHOWN)},
            "library": {_short(name): seen for name, seen in costly[:SHOWN]},
            "compiled": self._compiled > 0,
            "replays": self._replays,
        }

    def _watch_launches(self) -> None:
        """Count where every launch passes. A module that nobody has imported launches nothing."""
        for module, name, method, tell in (
            ("triton.runtime.jit", "JITFunction", "run", self._launched),
            ("triton.runtime.interpreter", "InterpretedFunction", "run", self._launched),
            ("triton.compiler.compiler", "CompiledKernel", "__getitem__", self._launched_compiled),
            ("torch.cuda.graphs", "CUDAGraph", "replay", self._replayed),
        ):
            launching = getattr(sys.modules.get(module), name, None)
            if launching is not None:
                self._wrap(launching, method, tell)

    def _wrap(self, launching: Any, method: str, tell: Callable[[Any], None]) -> None:
        original = getattr(launching, method)

        @wraps(original)
        def counted(launched: Any, *args: Any, **named: Any) -> Any:
            if not named.get("warmup"):
                tell(launched)
            return original(launched, *args, **named)

        setattr(launching, method, counted)
        self._undo.append(lambda: setattr(launching, method, original))

    def _replayed(self, graph: Any) -> None:
        del graph
        self._replays += 1

    def _launched_compiled(self, kernel: Any) -> None:
        self._launched(getattr(getattr(kernel, "src", None), "fn", None))

    def _launched(self, kernel: Any) -> None:
        function = getattr(kernel, "fn", None)
        file = getattr(getattr(function, "__code__", None), "co_filename", "")
        if "torchinductor" in file or getattr(function, "__module__", "").startswith("torch._inductor"):
            self._compiled += 1
        elif not file.startswith(_PACKAGES):
            self._own[getattr(function, "__name__", "kernel")] += 1


_PACKAGES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), sysconfig.get_path("stdlib")})
"""Kernels that come with a package are a library's."""


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, own: Counter[str], library: dict[str, list[int]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._own, self._library = own, library

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to skip it, torch would first import its compiler, for seconds and with threads of its own."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        begin = perf_counter_ns()
        result = func(*args, **(kwargs or {}))
        spent = perf_counter_ns() - begin
        namespace, name = func.namespace, func._schema.name.partition("::")[2]  # noqa: SLF001 - it has no public name
        # An operator that is written in Python is what it calls: kernels in it are counted at their launch.
        if not namespace.startswith(LIBRARIES) and f"{namespace}::{name}" not in OPDEFS:
            self._own[f"{namespace}.{name}"] += 1
        elif name not in FREE:
            seen = self._library.setdefault(f"{namespace}.{name}", [0, 0, 0])
            seen[0] += 1
            seen[1] += _elements(result)
            seen[2] += spent
        return result


def _short(name: str) -> str:
    return name[:NAME_CHARS].encode("ascii", "replace").decode()


def _elements(result: Any) -> int:
    if isinstance(result, torch.Tensor):
        return result.numel()
    return sum(map(_elements, result)) if isinstance(result, list | tuple) else 0
