"""Builds the vector header into shared libraries and applies its functions to numpy arrays."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from shared import chips
from synthesizer_svc.schedule.emit.cpp.vecmath import header

UNARY = (
    *("exp", "expm1", "exp_nonpositive", "log", "log2", "log1p", "erf", "erfc", "tanh", "sigmoid"),
    *("sin", "cos", "sqrt", "rsqrt", "abs", "floor", "ceil", "round", "trunc", "scan_sum"),
)
BINARY = ("pow", "max", "min", "max_raw", "min_raw")
REDUCTIONS = ("hsum", "hmax", "hmin", "hprod")


def isas() -> list[chips.Isa]:
    """The instruction sets of the x86-64 sheet that this processor has."""
    flags = set(Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split())
    return [isa for isa in chips.load("cpu-x86_64").isas if flags.issuperset(isa.cpu_flags)]


def compile_cpp(text: str, isa: chips.Isa, out: Path, level: str = "-O3") -> ctypes.CDLL:
    """Compiles one translation unit and loads it."""
    source = out.with_suffix(".cpp")
    source.write_text(text)
    command = ["g++", level, "-std=c++17", "-fPIC", "-shared", "-fopenmp", *isa.flags, str(source), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(out))


_EACH = "for (int64_t i = 0; i < n; i += KE_W)"


def _function(name: str, arguments: str, body: str) -> str:
    return f"void t_{name}({arguments}, int64_t n) {{ (void)n; {body} }}"


def _wrappers() -> str:
    one, two = "const float* x, float* y", "const float* x, const float* y, float* z"
    lines = [_function(f, one, f"{_EACH} ke_store(y + i, ke_{f}(ke_load(x + i)));") for f in UNARY]
    lines += [_function(f, two, f"{_EACH} ke_store(z + i, ke_{f}(ke_load(x + i), ke_load(y + i)));") for f in BINARY]
    lines += [_function(f, one, f"y[0] = ke_{f}(ke_load(x));") for f in REDUCTIONS]
    lines.append(_function("part", one, "ke_store_part(y, ke_load_part(x, (int)n), (int)n);"))
    gather = f"{_EACH} ke_store(y + i, ke_gather(t, ke_load(x + i)));"
    lines.append(_function("gather", "const int32_t* x, const float* t, float* y", gather))
    for kind in ("f16", "bf16"):
        lines += _half_wrappers(kind)
    return 'extern "C" {\n' + "\n".join(lines) + "\nint lanes() { return KE_W; }\n}\n"


def _half_wrappers(kind: str) -> list[str]:
    each = "for (int64_t i = 0; i < n; ++i)"
    halves = "const uint16_t* x, uint16_t* y"
    return [
        _function(f"load_{kind}", "const uint16_t* x, float* y", f"{_EACH} ke_store(y + i, ke_load_{kind}(x + i));"),
        _function(f"store_{kind}", "const float* x, uint16_t* y", f"{_EACH} ke_store_{kind}(y + i, ke_load(x + i));"),
        _function(f"part_{kind}", halves, f"ke_store_{kind}_part(y, ke_load_{kind}_part(x, (int)n), (int)n);"),
        _function(f"scalar_{kind}", halves, f"{each} y[i] = ke_f32_to_{kind}(ke_{kind}_to_f32(x[i]));"),
    ]


class VectorLibrary:
    """``header`` compiled for one instruction set; ``library.exp(x)`` applies ``ke_exp`` to a float32 array."""

    def __init__(self, isa: chips.Isa, folder: Path) -> None:
        self.isa = isa
        self._dll = compile_cpp(header(isa.vector_bits) + _wrappers(), isa, folder / f"vecmath_{isa.name}.so")
        self.lanes: int = self._dll.lanes()

    def call(self, name: str, *inputs: np.ndarray, out: np.ndarray, n: int) -> np.ndarray:
        arrays = [*inputs, out]
        getattr(self._dll, f"t_{name}")(*(a.ctypes.data_as(ctypes.c_void_p) for a in arrays), ctypes.c_int64(n))
        return out

    def apply(self, name: str, *inputs: np.ndarray) -> np.ndarray:
        """``inputs`` float32 of one length, padded here to whole vectors."""
        n = len(inputs[0])
        padded = [np.concatenate([np.asarray(x, np.float32), np.ones(-n % self.lanes, np.float32)]) for x in inputs]
        return self.call(name, *padded, out=np.empty_like(padded[0]), n=len(padded[0]))[:n]


def ulp_error(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Error in units of the last place of the float32 nearest to ``exact`` (float64); 0 where both are the same
    infinity or both NaN, infinite where only one is."""
    rounded = exact.astype(np.float32)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    with np.errstate(invalid="ignore", over="ignore"):
        spacing = np.maximum(np.spacing(np.abs(rounded)).astype(np.float64), 2.0**-149)
        error = np.abs(got.astype(np.float64) - exact) / spacing
    return np.where(
        same & ~np.isfinite(rounded), 0.0, np.where(np.isfinite(got) == np.isfinite(rounded), error, np.inf)
    )
