"""Which terms of an index are made wide: those whose products, or whose sum, may go beyond 32 bits, and no others."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.reach import widened
from synthesizer_svc.schedule.index import Axis, Index, Indirect

ROW, COLUMN = Axis("i", 1 << 16), Axis("j", 1 << 15)


def read(dtype: DType) -> Indirect:
    return Indirect(ex.load("x", (ix.of(ROW),), dtype))


def test_an_index_that_fits_is_left_as_it_is():
    assert widened(Index(0, {ROW: 1 << 15, COLUMN: 1}), wide=False) == frozenset()


def test_a_product_or_a_sum_that_may_not_fit_is_made_wide():
    assert widened(Index(0, {ROW: 1 << 15, COLUMN: 2}), wide=False) == {ROW, COLUMN}
    assert widened(Index(1 << 31, {COLUMN: 1}), wide=False) == {COLUMN}
    assert widened(Index(0, {ROW: -(1 << 15), COLUMN: 2}), wide=False) == {ROW, COLUMN}


def test_positions_of_64_bits_need_nothing_more():
    assert widened(Index(0, {ROW: 1 << 20}), wide=True) == frozenset()


def test_an_index_from_memory_is_wide_as_it_is_or_may_be_anything_of_32_bits():
    long, short = read(DType.I64), read(DType.I32)
    assert widened(Index(0, {long: 1 << 20, COLUMN: 1}), wide=False) == frozenset()
    assert widened(Index(0, {short: 2}), wide=True) == {short}


def test_a_division_of_what_was_made_wide_is_wide():
    quotient = ix.Div(Index(0, {ROW: 1 << 16}), 3)
    assert widened(quotient.inner, wide=False) == {ROW}
    assert widened(Index(0, {quotient: 2, COLUMN: 1}), wide=False) == frozenset()
