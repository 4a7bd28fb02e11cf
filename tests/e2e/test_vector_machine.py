"""A search for a RISC-V machine with vectors, whose instructions an emulator counts: as few as in kernels by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from command_line import kernelevolve

from cli import history
from shared import chips

OPERATORS = Path(__file__).parents[2] / "examples" / "operators" / "riscv"
MISSING = chips.missing_tools(chips.load("riscv-rvv"))
BY_HAND = {"vector_add": 2_826, "softmax": 27_685, "matmul": 34_037}
"""Instructions of a call at VLEN 256, of kernels that a person wrote."""

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
]


def counted(run: Path, operator: str, home: Path) -> dict[str, dict[str, int]]:
    """By kernel: what was counted of a call, by its name."""
    arguments = ("optimize", OPERATORS / f"{operator}.py", "--chip", "riscv-rvv", "--evaluations", 2, "--out", run)
    done = kernelevolve(*arguments, home=home)
    assert done.returncode == 0, done.stderr
    tree = asyncio.run(history.open_past(run)).tree
    verdicts = {node.kernel.kernel_id: node.evaluation for node in tree.passed()}
    return {
        kernel: {count.name: count.value for count in verdict.estimate.counts}
        for kernel, verdict in verdicts.items()
        if verdict is not None and verdict.estimate is not None
    }


@pytest.mark.parametrize("operator", BY_HAND)
def test_a_kernel_takes_no_more_instructions_than_one_written_by_hand(tmp_path, operator, home):
    found = counted(tmp_path / "run", operator, home)
    assert min(counts["instructions"] for counts in found.values()) <= BY_HAND[operator]


def test_counts_are_the_same_on_every_repetition(tmp_path):
    first = counted(tmp_path / "first", "softmax", tmp_path / "one")
    again = counted(tmp_path / "again", "softmax", tmp_path / "two")
    both = first.keys() & again.keys()
    assert both
    assert {kernel: first[kernel] for kernel in both} == {kernel: again[kernel] for kernel in both}
