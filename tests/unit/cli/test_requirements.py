"""What a machine needs before a search begins: said with how to get it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cli.requirements import require_language
from shared import chips
from shared.chips import state
from shared.errors import ChipError, UserError

SHEET = chips.load("nvidia-sm_90")


def test_without_a_language_kernels_are_in_any_of_the_chips():
    assert require_language(SHEET, "") == SHEET.languages


def test_a_language_that_the_chip_does_not_take_is_refused_with_those_it_takes():
    with pytest.raises(UserError, match="takes triton, cuda, python"):
        require_language(SHEET, "hip")


def test_a_language_whose_compiler_is_missing_says_how_to_get_it():
    sheet = replace(SHEET, needs={"nobody-has-this": "buy it"}, language_needs={"cuda": {"clang-0": "apt-get it"}})
    with pytest.raises(ChipError, match="needs clang-0") as caught:
        require_language(sheet, "cuda")
    assert caught.value.hint == "apt-get it"
    assert require_language(sheet, "triton") == ("triton",)
    assert "cuda needs clang-0: apt-get it" in str(state.of(sheet))


def test_a_language_that_is_only_compiled_is_refused_where_the_chip_is():
    sheet = replace(SHEET, needs={}, language_needs={})
    with pytest.raises(UserError, match="not run on the chip"):
        require_language(sheet, "cuda")
    assert require_language(replace(sheet, needs={"nobody-has-this": ""}), "cuda") == ("cuda",)
