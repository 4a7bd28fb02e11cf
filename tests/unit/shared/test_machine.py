"""Reading the processor's facts from the kernel's files."""

from __future__ import annotations

from shared import chips
from shared.machine import processor

CPUINFO = """processor\t: 0
model name\t: Example 9000
flags\t\t: fpu sse2 avx2 fma

processor\t: 1
model name\t: Another
flags\t\t: fpu
"""


def test_the_first_processors_facts_are_read(tmp_path):
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    for name, facts in {"index0": ("1", "Data", "32K"), "index1": ("3", "Unified", "16M")}.items():
        (tmp_path / name).mkdir()
        for file, text in zip(("level", "type", "size"), facts, strict=True):
            (tmp_path / name / file).write_text(text + "\n")
    facts = processor(tmp_path / "cpuinfo", tmp_path)
    assert facts.model == "Example 9000"
    assert facts.flags == {"fpu", "sse2", "avx2", "fma"}
    assert facts.cache_bytes == {"L1d": 32 << 10, "L3": 16 << 20}
    assert facts.cores >= 1


def test_what_the_machine_does_not_tell_is_empty(tmp_path):
    facts = processor(tmp_path / "none", tmp_path)
    assert (facts.model, facts.flags, facts.cache_bytes) == ("", frozenset(), {})


def test_this_machine_has_an_instruction_set_of_the_cpu_sheet():
    assert chips.best_isa(chips.load("cpu-x86_64"), processor().flags).vector_bits >= 128
