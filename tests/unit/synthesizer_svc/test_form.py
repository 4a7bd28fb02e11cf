"""What a model's kernels are built with, by language."""

from __future__ import annotations

import pytest

from shared import chips
from synthesizer_svc.asking.form import form_of


@pytest.mark.parametrize(("chip", "language"), [("nvidia-sm_90", "cuda"), ("amd-gfx942", "hip")])
def test_what_is_built_for_a_gpu_takes_no_flags(chip, language):
    form = form_of(language, chips.load(chip).gpu, threads=2)
    assert (form.language, form.entry, form.flags) == (language, "ke_launch", ())


def test_native_kernels_are_optimised_and_threaded():
    unit = chips.load("riscv-rvv").vector
    assert form_of("c-rvv", unit, threads=1).flags == ("-O3", *unit.flags)
