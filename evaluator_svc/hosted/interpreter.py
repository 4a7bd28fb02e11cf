"""Triton without a GPU: its own interpreter, repaired where it is silently wrong, on tensors of the processor.

What it tells is whether a kernel's arithmetic is right. It runs one program after the other, so it shows no race, no
limit of a chip and no time; matrix products of fp32 are not rounded to tf32 as a GPU's are.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

ENVIRONMENT = "TRITON_INTERPRET"


class NotInterpreted(NotImplementedError):
    """The interpreter would give a wrong result, so it gives none."""


def install() -> None:
    """Let every kernel that is defined from here on be interpreted.

    Raises:
        RuntimeError: triton was imported before, to compile.
    """
    os.environ[ENVIRONMENT] = "1"
    import triton.language as tl
    from triton.runtime.jit import JITFunction

    if isinstance(tl.standard.sum, JITFunction):  # the language's own functions were made for a compiler
        raise RuntimeError(  # noqa: TRY004 - the order of imports is wrong, not a type
            f"triton was imported before {ENVIRONMENT} was set"
        )
    from evaluator_svc.hosted import interpreted_floats, interpreted_libdevice

    interpreted_floats.install()
    interpreted_libdevice.install()
    _patch_once()
    tune_nothing()
    _work_in_place()


def _patch_once() -> None:
    """Leave the language patched.

    The interpreter looks through all of it at every launch and at every call of a function of the language, e.g.
    ``tl.sum``, which is half of a kernel's time.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    sees_both = SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    interpreter._patch_lang(sees_both)  # noqa: SLF001
    patched = SimpleNamespace(restore=lambda: None)

    def patch_lang(function: Any) -> Any:
        del function
        return patched

    interpreter._patch_lang = patch_lang  # noqa: SLF001


def tune_nothing() -> None:
    """Take an autotuner's first configuration: there is nothing to time, and no driver to time it by."""
    from triton.runtime.autotuner import Autotuner

    def bench(self: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
        del self, args, config, meta
        return [0.0, 0.0, 0.0]

    Autotuner._bench = bench  # noqa: SLF001


def _work_in_place() -> None:
    """Tensors of the processor are used where they are; copying them onto themselves would write to inputs."""
    from triton.runtime.interpreter import GridExecutor

    def restore(self: Any, args_dev: Any, args_hst: Any, kwargs: Any, kwargs_hst: Any) -> None:
        del self, args_dev, args_hst, kwargs, kwargs_hst

    GridExecutor._restore_args_dev = restore  # noqa: SLF001
