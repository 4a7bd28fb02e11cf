"""What compiles CUDA and HIP without any vendor's toolkit, and what a text of theirs may not do (pure).

clang knows both languages; the libraries of mathematics (libdevice, ocml) and NVIDIA's assembler come with Triton. A
text is compiled for the chip and for the emulator. So that both are the same kernel, it may ask the preprocessor for
nothing but the two headers: a text that tells compilers apart could be one kernel here and another there.
"""

from __future__ import annotations

import re

CUDA, HIP = "cuda", "hip"
CLANG = "clang-19"
HINT = "apt-get install clang-19"
PTX_VERSION = "+ptx83"
LATEST = 90
"""The last compute capability that clang 19 writes PTX for; a later chip's assembler takes an earlier one's."""
FREESTANDING = ("-O3", "-std=c++17", "-S", "-DKE_FREESTANDING", "--cuda-device-only", "-Wno-unknown-pragmas",
                "-Wno-pass-failed", "-Wno-unknown-cuda-version")  # fmt: skip
EMULATED = (
    "-std=c++17",
    "-O1",
    "-march=native",
    "-fPIC",
    "-DKE_SIMT",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fstack-clash-protection",
    "-w",
)
"""For g++. Products and sums are not joined: which ones a GPU's compiler joins is its own affair. Frames are touched
page by page, so that none steps over the guard of a thread's stack."""
COUNTED = (*EMULATED, "-c", "-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0")
"""The same, with a call for each access of memory: the emulator's object answers these, no sanitizer's library."""
LINKED = ("-shared", "-Wl,-Bsymbolic")
"""Of what is counted: copies of memory are the emulator's, whatever the process has loaded before."""
ALLOWED = re.compile(r'#\s*include\s*"ke_(abi|gpu)\.h"|#\s*pragma\s+unroll(\s+\d+|\s*\(\s*\d+\s*\))?')
STRANGE = re.compile(
    r"#|%:|\?\?=|<<<|\basm\b|\b_Pragma\b|\bke_simt\w*|\bKE_(SIMT|FREESTANDING)\b"
    r"|\b__(?!(global|device|shared|launch_bounds|restrict|forceinline)__\b|builtin_(nanf?|huge_valf?|memcpy)\b)\w+"
)
"""Directives, other launches, assembler, and names that the compilers give a meaning of their own."""
NAMED = 60


def device(language: str, architecture: str, library: str) -> tuple[str, ...]:
    """Arguments of clang before the files, for the chip's side alone; ``library`` is that of mathematics."""
    linked = ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", library)
    if language == HIP:
        return ("-x", "hip", f"--offload-arch={architecture}", "-nogpuinc", "-nogpulib", *FREESTANDING, *linked)
    return (
        "-x", "cuda", f"--cuda-gpu-arch={ptx_for(architecture)}",
        "--cuda-path=/nonexistent", "-nocudainc", "-nocudalib",
        "-Xclang", "-target-feature", "-Xclang", PTX_VERSION, *FREESTANDING, *linked,
    )  # fmt: skip


def ptx_for(architecture: str) -> str:
    """What PTX for the chip is written for: ``sm_90`` of ``sm_100``."""
    return f"sm_{min(int(architecture.removeprefix('sm_')), LATEST)}"


def refused(source: str) -> str:
    """What a text asks for that it may not; empty for nothing."""
    for number, line in enumerate(source.splitlines(), start=1):
        found = STRANGE.search(line)
        if found is not None and not (ALLOWED.fullmatch(line.strip()) and found[0] == "#"):
            return (
                f"line {number}: {found[0]!r} in {line.strip()[:NAMED]!r}: a text includes ke_abi.h and ke_gpu.h, may "
                "have `#pragma unroll`, launches by KE_LAUNCH, and asks nothing of a compiler's own"
            )
    return ""
