"""Where buffers lie, and how an address is told in words."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.runner.layout import ALIGNMENT, GUARD, Spacing, plan, set_bytes
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType

specs = st.lists(
    st.builds(
        TensorSpec, shape=st.lists(st.integers(0, 70), max_size=3).map(tuple), dtype=st.sampled_from(list(DType))
    ),
    min_size=1,
    max_size=4,
)


@given(specs, specs, st.integers(1, 3))
def test_every_buffer_is_aligned_and_ends_less_than_one_line_before_a_guard(inputs, outputs, sets):
    layout = plan(inputs, outputs, sets)
    assert len(layout.regions) == sets * (len(inputs) + len(outputs))
    for region in layout.regions:
        assert (region.at + region.data) % ALIGNMENT == 0
        assert region.size - region.data - region.nbytes <= ALIGNMENT
        assert region.data >= 0


@given(specs, specs, st.integers(1, 3))
def test_neighbours_have_two_guards_between_them_and_the_span_ends_in_one(inputs, outputs, sets):
    layout = plan(inputs, outputs, sets)
    for one, next_ in itertools.pairwise(layout.regions):
        assert next_.at - (one.at + one.size) == 2 * GUARD
    assert layout.regions[0].at == GUARD
    assert layout.span >= layout.regions[-1].at + layout.regions[-1].size + GUARD


@given(specs, specs, st.integers(1, 3))
def test_no_two_buffers_share_bytes_of_a_file(inputs, outputs, sets):
    layout = plan(inputs, outputs, sets)
    for output, total in ((False, layout.inputs_bytes), (True, layout.outputs_bytes)):
        mine = [r for r in layout.regions if r.output is output]
        assert sum(r.size for r in mine) == total
        assert all(one.in_file + one.size == next_.in_file for one, next_ in itertools.pairwise(mine))


@given(specs, specs, st.integers(1, 5))
def test_dense_buffers_lie_a_line_of_canaries_apart_and_each_file_is_one_stretch(inputs, outputs, sets):
    layout = plan(inputs, outputs, sets, Spacing.DENSE)
    for output, total in ((False, layout.inputs_bytes), (True, layout.outputs_bytes)):
        mine = [r for r in layout.regions if r.output is output]
        for region in mine:
            assert (region.at + region.data) % ALIGNMENT == 0
            assert region.data == ALIGNMENT
            assert region.at - mine[0].at == region.in_file
        assert all(one.at + one.size == next_.at for one, next_ in itertools.pairwise(mine))
        assert mine[-1].in_file + mine[-1].size + ALIGNMENT <= total
    assert sum(r.size for r in layout.first) == set_bytes(inputs, outputs)
    last_input = [r for r in layout.regions if not r.output][-1]
    assert next(r for r in layout.regions if r.output).at - (last_input.at + last_input.size) >= GUARD
    assert layout.span >= max(r.at + r.size for r in layout.regions) + GUARD


def test_an_address_is_told_relative_to_the_nearest_buffer():
    layout = plan([TensorSpec(shape=(16,), dtype=DType.F32)], [TensorSpec(shape=(1024,), dtype=DType.F32)], 1)
    x, y = layout.regions
    assert layout.where(x.at + x.data + 4) == "byte 4 of input 0"
    assert layout.where(x.at + x.data - 8) == "8 bytes before the start of input 0"
    assert layout.where(y.at + y.size) == "byte 0 past the end of output 0"
    assert layout.where(y.at - 1) == "1 bytes before the start of output 0"
    assert layout.where(y.at + y.size + GUARD) == "between buffers"
