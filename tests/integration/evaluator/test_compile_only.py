"""GPUs that are not here: Triton kernels are compiled for them, and what they need is told before a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from evaluator_svc.evaluators import evaluator_of
from shared import ids, operators
from shared.events import Basis, Bound, Evaluation, EvaluationRequested, KernelRef, Purpose, Status, Trust
from shared.ports import open_ports
from shared.settings import PortSettings
from tests.integration.evaluator.pipeline import SETTINGS, evidence

pytestmark = pytest.mark.timeout(300)

CHIPS = ("nvidia-sm_90", "amd-gfx942")
OPERATOR = """\
import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(128, 128), torch.randn(128, 128)]


def get_init_inputs():
    return []
"""
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, N, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + i[:, None] * N + k[None, :])
        y = tl.load(b + k[:, None] * N + j[None, :])
        total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(c + i[:, None] * N + j[None, :], total)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty_like(a)
        BM, BN, BK = TILE
        product[(128 // BM, 128 // BN)](a, b, c, 128, BM, BN, BK, OPTIONS)
        return c
"""


def kernel(tile: str, options: str) -> str:
    return KERNEL.replace("TILE", tile).replace("OPTIONS", options)


SMALL = kernel("64, 64, 64", "num_stages=2, num_warps=4")
SPILLING = {"nvidia": "64, 64, 32", "amd": "128, 128, 32"}
"""Tiles of one warp that its registers do not hold."""


@dataclass(frozen=True, kw_only=True)
class Judge:
    vendor: str
    evaluate: Callable[[str], Evaluation]

    def __call__(self, source: str) -> Evaluation:
        return self.evaluate(source)


@pytest.fixture(scope="module", params=CHIPS)
def judge(request):
    """Evaluates a module on a chip that this machine does not have."""
    with asyncio.Runner() as loop:
        ports = open_ports(PortSettings(store_url="memory:"))
        opened = loop.run(ports.__aenter__())
        evaluator = evaluator_of(opened, replace(SETTINGS, chip=request.param))

        async def evaluate(source: str):
            spec = operators.parse(OPERATOR, name="product")
            await opened.store.blobs.put(spec.source.encode())
            digest = await opened.store.blobs.put(source.encode())
            made = KernelRef(
                kernel_id=ids.derive("triton", digest),
                language="triton",
                source_hash=digest,
                flags=(),
                entry="ModelNew",
            )
            return await evaluator.evaluate(
                EvaluationRequested(
                    search_id="search",
                    evaluation_id=ids.derive("evaluation", digest),
                    candidate_id=ids.derive("candidate", digest),
                    kernel=made,
                    operator=spec.ref,
                    chip=request.param,
                    purpose=Purpose.SEARCH,
                )
            )

        try:
            yield Judge(vendor=request.param.partition("-")[0], evaluate=lambda source: loop.run(evaluate(source)))
        finally:
            loop.run(evaluator.close())
            loop.run(ports.__aexit__(None, None, None))


def test_a_right_kernel_passes_without_a_time_and_says_what_it_takes_of_the_chip(judge):
    evaluation = judge(SMALL)
    assert evaluation.status is Status.PASSED, evaluation.evidence
    assert evaluation.trust is Trust.L1
    assert not evaluation.timings
    said = evidence(evaluation)["resources"]
    assert "product: 4 blocks of 4 warps" in said
    assert "registers a thread" in said
    assert "nothing spilled" in said
    assert "warps resident" in said


def test_its_cost_is_modelled_from_what_it_moves_and_multiplies(judge):
    evaluation = judge(SMALL)
    estimate = evaluation.estimate
    assert estimate is not None, evaluation.evidence
    assert (estimate.basis, estimate.unit) == (Basis.MODELLED, "ns")
    counts = {count.name: count.value for count in estimate.counts}
    matrix, tile = 128 * 128 * 4, 64 * 64 * 4
    assert (counts["launches"], counts["programs"]) == (1, 4)
    assert counts["bytes_touched"] == 3 * matrix
    assert counts["bytes_asked"] == 4 * (2 * 2 * tile + tile)  # each block reads two tiles of both, and writes one
    assert counts["matrix_multiply_adds"] == 128**3
    assert evaluation.diagnosis.bound in (Bound.LATENCY, Bound.LAUNCH)  # four blocks keep few bytes in flight
    assert "modelled" in evidence(evaluation)
    assert not evaluation.speedups


def test_a_library_operator_whose_cost_nobody_knows_makes_no_estimate(judge):
    evaluation = judge(SMALL.replace("        return c", "        return c + torch.mm(a, b) * 0"))
    assert evaluation.status is Status.PASSED, evaluation.evidence
    assert evaluation.estimate is None
    assert "library operator aten." in evidence(evaluation)["not_modelled"]


def test_more_shared_memory_than_a_block_has_is_told_before_any_run(judge):
    evaluation = judge(kernel("128, 128, 64", "num_stages=6, num_warps=8"))
    assert evaluation.status is Status.LAUNCH_FAILED, evaluation.evidence
    assert "bytes of shared memory a block" in evidence(evaluation)["resources"]


def test_registers_that_go_to_memory_are_told(judge):
    evaluation = judge(kernel(SPILLING[judge.vendor], "num_stages=1, num_warps=1"))
    assert evaluation.status is Status.PASSED, evaluation.evidence
    assert "bytes spilled a thread" in evidence(evaluation)["resources"]


def test_what_the_compiler_refuses_is_a_compile_error_in_its_words(judge):
    evaluation = judge(SMALL.replace("x, y, total", "x, undefined_y, total"))
    assert evaluation.status is Status.COMPILE_ERROR, evaluation.evidence
    assert "undefined_y is not defined" in evidence(evaluation)["first_error"]


def test_a_wrong_kernel_is_wrong_there_too(judge):
    evaluation = judge(SMALL.replace("None, :], total)", "None, :], total * 1.01)"))
    assert evaluation.status is Status.WRONG_RESULT, evaluation.evidence
