"""Register tiles and the numbers a contraction accepts."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import chips
from synthesizer_svc.schedule.emit.cpp.contraction import decisions
from synthesizer_svc.schedule.emit.cpp.contraction_plan import lanes
from synthesizer_svc.schedule.emit.cpp.contraction_spec import Access, ContractionSpec
from synthesizer_svc.schedule.emit.cpp.contraction_tiles import default_tile, fits, tiles

ISAS = chips.load("cpu-x86_64").isas
extents = st.integers(1, 3000)


def product(m: int, n: int, k: int) -> ContractionSpec:
    return ContractionSpec(
        m=m, n=n, k=k, a=Access(row=k, col=1), b=Access(row=n, col=1), c=Access(row=n, col=1)
    )  # fmt: skip


@given(m=extents, n=extents, k=extents, isa=st.sampled_from(ISAS))
def test_no_legal_tile_needs_more_registers_than_the_instruction_set_has(m, n, k, isa):
    spec = product(m, n, k)
    for tile in tiles(spec, isa):
        rows, columns = (int(part) for part in tile.split("x"))
        assert columns % lanes(spec, isa) == 0
        assert fits(rows, columns // lanes(spec, isa), isa.registers)
        assert rows <= m


@given(m=extents, n=extents, k=extents, isa=st.sampled_from(ISAS), threads=st.integers(1, 8))
def test_every_default_is_one_of_the_legal_values(m, n, k, isa, threads):
    spec = product(m, n, k)
    assert default_tile(spec, isa) in tiles(spec, isa)
    for decision in decisions(spec, isa, threads, "g"):
        assert decision.default in decision.values
        assert len(set(decision.values)) == len(decision.values)
        assert decision.key == f"g.{decision.name}"
        assert decision.why


@pytest.mark.parametrize("field", ["m", "n", "k"])
def test_an_empty_contraction_is_refused(field):
    with pytest.raises(ValueError, match="at least 1"):
        dataclasses.replace(product(2, 2, 2), **{field: 0})


def test_operands_must_have_a_stride_for_every_batch():
    with pytest.raises(ValueError, match="one batch stride"):
        dataclasses.replace(product(2, 2, 2), batch=(3,))
