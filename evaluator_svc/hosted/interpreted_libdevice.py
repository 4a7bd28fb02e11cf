"""``libdevice`` in Triton's interpreter, where its functions do nothing: the common ones by numpy, the rest refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.extra import cuda, libdevice
from triton.runtime.interpreter import TensorHandle

from evaluator_svc.hosted.interpreter import NotInterpreted

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in (
        "abs", "ceil", "cos", "cosh", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "log", "log10", "log1p", "log2",
        "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "rint", "nextafter", "copysign",
    )},
    **{f"fast_{name}f": getattr(np, name) for name in ("cos", "exp", "log", "log2", "sin", "tan", "tanh")},
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "pow": np.power, "fast_powf": np.power, "fmax": np.fmax, "fmin": np.fmin,
    "rsqrt": lambda x: 1 / np.sqrt(x), "rsqrt_rn": lambda x: 1 / np.sqrt(x), "fma": lambda x, y, z: x * y + z,
    "erf": np.vectorize(math.erf, otypes=[float]), "erfc": np.vectorize(math.erfc, otypes=[float]),
    "isnan": np.isnan, "isinf": np.isinf, "div_rn": np.divide, "fast_dividef": np.divide,
}  # fmt: skip


def install() -> None:
    """Replace the functions of ``triton.language.extra.libdevice`` and of its CUDA variant."""
    for module in (libdevice, cuda.libdevice):
        for name in [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]:
            if getattr(getattr(module, name), "__module__", "").endswith("libdevice"):
                setattr(module, name, _interpreted(module, name))


def _interpreted(module: ModuleType, name: str) -> Callable[..., Any]:
    function = FUNCTIONS.get(name)

    def call(*args: Any, **named: Any) -> Any:
        named.pop("_semantic", None)
        if function is None:
            raise NotInterpreted(f"{module.__name__}.{name} is not interpreted")
        values = [one.handle.data if isinstance(one, tl.tensor) else one for one in (*args, *named.values())]
        first = next(one for one in (*args, *named.values()) if isinstance(one, tl.tensor))
        result = np.asarray(function(*values))
        if result.dtype == bool:  # CUDA's predicates are integers
            return tl.tensor(TensorHandle(result.astype(np.int32), tl.int32), _shaped(first, tl.int32))
        return tl.tensor(TensorHandle(result.astype(first.handle.data.dtype), first.dtype), first.type)

    call.__name__ = name
    return call


def _shaped(like: Any, dtype: Any) -> Any:
    return tl.block_type(dtype, like.shape) if like.type.is_block() else dtype
