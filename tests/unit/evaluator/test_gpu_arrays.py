"""Whether there are arrays on a GPU: asked before anything is evaluated, on a double of CuPy that lacks a part."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from evaluator_svc import arrays, gpu_arrays, nearness
from evaluator_svc.gpu_kernels import SOURCE, Comparisons


class Array:
    """Flat bytes on the device."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.size, self.data = self._values.size, SimpleNamespace(ptr=1 << 40)

    def sum(self):
        return self

    def get(self):
        return self._values

    def __getitem__(self, key):
        return self._values[key]


class Cupy:
    """``RawModule`` is ``compiler``."""

    ndarray, uint8 = Array, np.uint8

    def __init__(self, compiler):
        self.RawModule = compiler

    def arange(self, count, dtype):
        return Array(np.arange(count, dtype=dtype))

    def zeros(self, count, dtype):
        return Array(np.zeros(count, dtype))


def test_a_compiler_that_cannot_make_our_comparisons_is_told_of_before_an_evaluation_needs_them(monkeypatch):
    def fails(code, options):
        raise RuntimeError("nvrtc: error: invalid value for --gpu-architecture\nmore")

    monkeypatch.setitem(sys.modules, "cupy", Cupy(fails))
    assert gpu_arrays.available() == (
        "CuPy does not work here: RuntimeError: nvrtc: error: invalid value for --gpu-architecture"
    )
    assert Array not in arrays.same_bytes.registry
    assert Array not in nearness.rows_near.registry


@pytest.mark.parametrize(("size", "blocks"), [(1, 1), (16 * 256, 1), (16 * 256 + 16, 2), (1 << 33, 1 << 11)])
def test_a_comparison_is_launched_over_all_bytes_whose_number_needs_no_32_bits(size, blocks):
    launched = []

    class Module:
        def __init__(self, code, options):
            assert code == SOURCE

        def get_function(self, name):
            return lambda grid, block, arguments: launched.append((name, grid, arguments[2]))

    one = Array([0])
    one.size = size
    assert Comparisons(Cupy(Module)).same_bytes(one, one)
    assert launched == [("differ", (blocks,), size)]
    assert launched[0][2].dtype == np.int64
