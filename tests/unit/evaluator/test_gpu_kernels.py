"""The comparisons that a GPU makes by kernels of our own, run by the host: they agree with those of NumPy's arrays."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from evaluator_svc import gpu_kernels
from evaluator_svc.arrays import same_bytes
from evaluator_svc.gpu_kernels import NEAR, Comparisons
from evaluator_svc.nearness import rows_near
from shared.dtypes import DType
from tests.fakes.cuda_on_host import Array, RawModule

STORED = {DType.F16: np.uint16, DType.BF16: np.uint16, DType.F32: np.float32, DType.F64: np.float64}
TYPES = {DType.F16: "unsigned short", DType.BF16: "unsigned short", DType.F32: "float", DType.F64: "double"}
PARAMETERS = {
    **{
        NEAR[
            one
        ]: f"const char*, long long, const {kind}*, long long, {'double' if one is DType.F64 else 'float'}, int*"
        for one, kind in TYPES.items()
    },
    "differ": "const char*, const char*, long long, int*",
}
LIMIT = 0.25
floating = pytest.mark.parametrize("dtype", list(NEAR), ids=str)


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory):
    directory = tmp_path_factory.mktemp("kernels")
    cupy = SimpleNamespace(
        zeros=lambda count, dtype: Array(np.zeros(count, dtype)),
        RawModule=lambda code, options: RawModule(code, options, PARAMETERS, directory),
    )
    return Comparisons(cupy)


def stored(values, dtype):
    """As the memory of an output holds them."""
    if dtype is DType.BF16:
        return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    kind = {DType.F16: np.float16, DType.F32: np.float32, DType.F64: np.float64}[dtype]
    return np.asarray(values, kind).view(STORED[dtype])


def declared(values, dtype):
    return stored(values, dtype).view(np.float16) if dtype is DType.F16 else stored(values, dtype)


def memory(rows, stride, offset=0):
    """``rows`` ``stride`` bytes apart, the first one ``offset`` bytes after a whole line; and between them NaN."""
    count, nbytes = len(rows), rows[0].nbytes
    whole = np.full(64 + offset + count * stride, 0xFF, np.uint8)
    begin = -whole.ctypes.data % 64 + offset
    at = np.lib.stride_tricks.as_strided(whole[begin:], (count, nbytes), (stride, 1))
    for place, row in zip(at, rows, strict=True):
        place[:] = row.view(np.uint8)
    return at


def both(comparisons, rows, right, dtype, limit=LIMIT):
    """What the kernels say and what NumPy's say; that they agree is the caller's to look at."""
    given = (np.float64 if dtype is DType.F64 else np.float32)(limit)
    theirs = comparisons.rows_near(Array(rows), Array(right), dtype, given)
    with np.errstate(invalid="ignore", over="ignore"):
        return theirs.tolist(), rows_near(rows, right, dtype, given).tolist()


VALUES = {
    "equal": (1.0, 1.0, True),
    "at the limit": (1.25, 1.0, True),
    "beyond it": (1.5, 1.0, False),
    "below it": (0.5, 1.0, False),
    "a zero of the other sign": (-0.0, 0.0, True),
    "a subnormal": (6e-8, 0.0, True),
    "NaN": (np.nan, 1.0, False),
    "NaN for NaN": (np.nan, np.nan, False),
    "an infinity": (np.inf, 1.0, False),
    "the same infinity": (np.inf, np.inf, False),
    "the largest of the other sign": (-60000.0, 60000.0, False),
}


@floating
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("at", [0, 6, 1023, 1030])
def test_one_element_anywhere_decides_over_its_row_and_no_other(comparisons, dtype, value, at):
    mine, theirs, near = value
    right, wrong = np.linspace(-2, 2, 1031), np.linspace(-2, 2, 1031)
    right[at], wrong[at] = theirs, mine
    rows = [stored(one, dtype) for one in (right, wrong, right)]
    found, known = both(comparisons, memory(rows, 1 << 14), declared(right, dtype), dtype)
    assert found == known
    assert found[1] is near


@floating
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 255, 4096, gpu_kernels.THREADS * gpu_kernels.BLOCKS_MOST + 3])
@pytest.mark.parametrize("offset", [0, 16, 8])
def test_wherever_a_row_lies_its_last_element_counts_and_what_follows_it_does_not(comparisons, dtype, size, offset):
    right = np.sin(np.arange(size))
    wrong = right.copy()
    wrong[-1] += 1.0
    rows, stride = [stored(one, dtype) for one in (right, wrong)], -(-size * dtype.itemsize // 8) * 8 + 8
    found, known = both(comparisons, memory(rows, stride, offset), declared(right, dtype), dtype)
    assert found == known == [True, False]


def test_more_rows_than_a_grid_has_on_its_second_axis(comparisons, monkeypatch):
    monkeypatch.setattr(gpu_kernels, "ROWS_MOST", 3)
    right = np.zeros(4, np.float32)
    rows = np.zeros((8, 16), np.uint8)
    rows.view(np.float32)[[2, 3, 7], 1] = 1.0
    found, known = both(comparisons, rows, right, DType.F32)
    assert found == known == [True, True, False, False, True, True, True, False]


def test_no_rows_are_no_answers(comparisons):
    found, known = both(comparisons, np.zeros((0, 16), np.uint8), np.zeros(4, np.float32), DType.F32)
    assert found == known == []


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 4097, 1 << 20])
@pytest.mark.parametrize("offset", [0, 1])
def test_bytes_differ_by_one_bit_anywhere(comparisons, size, offset):
    one, other = (np.zeros(size + 80, np.uint8) for _ in range(2))
    first, second = one[-one.ctypes.data % 16 :][offset:][:size], other[-other.ctypes.data % 16 :][:size]
    assert comparisons.same_bytes(Array(first), Array(second))
    for at in sorted({0, size // 2, size - 1} if size else set()):
        second[at] = 0x80
        assert not comparisons.same_bytes(Array(first), Array(second))
        assert not same_bytes(first, second)
        second[at] = 0
