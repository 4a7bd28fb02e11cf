"""Texts of CUDA and HIP kernels: what they may ask of a compiler, and what clang is asked."""

from __future__ import annotations

import pytest

from evaluator_svc.toolchains import gpu_commands

PLAIN = """\
#include "ke_abi.h"
  #pragma unroll 4
#pragma unroll
const float x = __builtin_huge_valf();
__shared__ float s[4];
"""


def test_the_headers_unrolling_and_the_languages_own_words_are_taken():
    assert gpu_commands.refused(PLAIN) == ""


@pytest.mark.parametrize(
    "line",
    ["#if 1", "# include <cmath>", "/* */ #ifdef X", "%:define A", "a <<<1, 1>>> b", "__CUDA_ARCH__", "__clang__",
     'asm volatile("")', "__asm__", "_Pragma(x)", "ke_simt_run", "KE_SIMT", "__builtin_trap()", "#pragma GCC poison x"],
)  # fmt: skip
def test_whatever_could_make_it_two_kernels_is_refused_with_its_line(line):
    assert gpu_commands.refused(f"{PLAIN}{line}\n").startswith("line 6: ")


def test_a_later_chips_assembler_is_given_the_ptx_of_an_earlier_one():
    assert "--cuda-gpu-arch=sm_90" in gpu_commands.device("cuda", "sm_100", "lib.bc")
    assert "--offload-arch=gfx90a" in gpu_commands.device("hip", "gfx90a", "lib.bc")


@pytest.mark.parametrize(
    ("chip", "written"), [("sm_80", "sm_80"), ("sm_89", "sm_89"), ("sm_100", "sm_90"), ("sm_120", "sm_90")]
)
def test_ptx_is_written_for_the_chip_or_for_the_last_one_that_clang_knows(chip, written):
    assert f"--cuda-gpu-arch={written}" in gpu_commands.device("cuda", chip, "libdevice.bc")
