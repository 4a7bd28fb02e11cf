"""Kernels for an emulated chip meet the admission, judge and held-out cases that native ones meet; then they count."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace

import pytest

from evaluator_svc.evaluators import evaluator_of
from shared import chips, ids, operators
from shared.events import Basis, Evaluation, EvaluationRequested, KernelRef, Purpose, Status, Trust
from shared.ports import open_ports
from shared.settings import PortSettings
from tests.integration.emulated.rvv_kernels import ENTRY, HEAD, MATMUL, SOFTMAX, VADD
from tests.integration.evaluator.pipeline import SETTINGS

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        bool(chips.missing_tools(chips.load("riscv-rvv"))) or shutil.which("g++") is None,
        reason="the tools of riscv-rvv are not installed",
    ),
]

CHIP = "riscv-rvv"
OPERATOR = """\
import torch


class Model(torch.nn.Module):
    def forward(self, {arguments}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
SUM = OPERATOR.format(arguments="a, b", result="a + b", inputs="torch.randn(16384), torch.randn(16384)")
ROWS = OPERATOR.format(arguments="a", result="torch.softmax(a, 1)", inputs="torch.randn(64, 256)")
PRODUCT = OPERATOR.format(arguments="a, b", result="a @ b", inputs="torch.randn(64, 64), torch.randn(64, 64)")


def judged(*asked: tuple[str, str, Purpose]) -> list[Evaluation]:
    """The verdicts on kernels, each against its operator."""
    return asyncio.run(_judged(asked))


async def _judged(asked: tuple[tuple[str, str, Purpose], ...]) -> list[Evaluation]:
    settings = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")
    flags = ("-O3", *chips.load(CHIP).vector.flags)
    async with open_ports(settings) as ports:
        evaluator = evaluator_of(ports, replace(SETTINGS, chip=CHIP))
        try:
            found = []
            for number, (operator, kernel, purpose) in enumerate(asked):
                spec = operators.parse(operator, name="operator")
                await ports.store.blobs.put(operator.encode())
                await ports.store.blobs.put(kernel.encode())
                request = EvaluationRequested(
                    search_id="s",
                    evaluation_id=f"e{number}",
                    candidate_id=f"c{number}",
                    kernel=KernelRef(
                        kernel_id=f"k{number}",
                        language="c-rvv",
                        source_hash=ids.content_hash(kernel.encode()),
                        flags=flags,
                        entry="ke_launch",
                    ),
                    operator=spec.ref,
                    chip=CHIP,
                    purpose=purpose,
                )
                found.append(await evaluator.evaluate(request))
            return found
        finally:
            await evaluator.close()


def counts(evaluation: Evaluation) -> dict[str, int]:
    assert evaluation.status is Status.PASSED, evaluation
    assert evaluation.estimate is not None
    return {count.name: count.value for count in evaluation.estimate.counts}


def test_hand_written_kernels_pass_with_exact_counts_that_every_evaluation_repeats():
    search, final, rows, product = judged(
        (SUM, VADD, Purpose.SEARCH),
        (SUM, VADD, Purpose.FINAL),
        (ROWS, SOFTMAX, Purpose.SEARCH),
        (PRODUCT, MATMUL, Purpose.SEARCH),
    )
    assert search.trust is final.trust is Trust.L3
    assert search.estimate == final.estimate
    assert search.estimate.basis is Basis.COUNTED
    assert search.estimate.unit == "model cycles"
    assert counts(search)["instructions"] <= 2826
    assert counts(rows)["instructions"] <= 30_000
    assert counts(product)["instructions"] <= 35_000
    assert not search.timings


def test_kernels_that_are_wrong_are_told_from_right_ones_and_have_no_cost():
    half = VADD.replace("in[0].shape[0])", "in[0].shape[0] / 2)")
    first = VADD.replace("in[1].data", "in[0].data")
    clock = f"""{HEAD}
static volatile int sink;
{ENTRY}
  unsigned long now;
  __asm__ volatile("rdtime %0" : "=r"(now));
  for (unsigned long i = 0; i < (now >> 4) % 4096; ++i) sink = 1;
  add(in[0].data, in[1].data, out[0].data, in[0].shape[0]);
  return 0;
}}
"""
    found = judged(*((SUM, source, Purpose.SEARCH) for source in (half, first, clock)))
    assert [one.status for one in found] == [Status.WRONG_RESULT, Status.WRONG_RESULT, Status.NONDETERMINISTIC]
    assert all(one.estimate is None for one in found)
