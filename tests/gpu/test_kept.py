"""On a real GPU: the evaluator holds inputs and results itself, and what a kernel does behind its back shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from evaluator_svc import gpu_arrays, nvidia
from evaluator_svc.arrays import on_host
from evaluator_svc.hosted import on_gpu
from evaluator_svc.hosted.keeping import Keeping
from evaluator_svc.hosted.kept import KeptRunner
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.runner.box import RunnerLimits
from evaluator_svc.runner.process import Ran, RunFailure
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built
from shared.dtypes import DType
from shared.events import Status
from tests.integration.hosted import softmax_module
from tests.integration.hosted.softmax_module import ONE_TENSOR, Lab, forward, said, softmax

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not nvidia.present(), reason="no NVIDIA GPU"),
]

SHAPE = (2048, 4096)
SPEC = TensorSpec(shape=SHAPE, dtype=DType.F16)
LIMITS = RunnerLimits(memory_bytes=4 << 30, load_s=120.0)
TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def _softmax(x, y, columns, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * columns + at, (e / tl.sum(e, 0)).to(tl.float16), mask=mask)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        _softmax[(x.shape[0],)](x, y, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
        return y
"""
SPIN = """
import torch
side = None
def spin(seconds):
    global side
    side = side or torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(int(seconds * 1.9e9))
"""


@dataclass(frozen=True)
class GpuLab(Lab):
    keeping: Keeping

    def open(self, text: str, **options: Any) -> KeptRunner:
        path = self.directory / "module.py"
        path.write_text(text)
        built = Built(path=path, digest="", log="", build_ns=0, sandbox="", host="hosted", language="triton")
        given = {"signature": ONE_TENSOR, "limits": LIMITS, "alone": True, "profile": on_gpu.profile(), **options}
        return KeptRunner.keep(self.keeping, self.hosts, built, [SPEC], [SPEC], **given)

    def outcome(self, text: str, *, calls: int = 1, timeout_s: float = 20.0, **options: Any) -> Ran | RunFailure:
        async def go() -> Ran | RunFailure:
            async with self.open(text, **options) as runner:
                runner.write_input(0, 0, drawn(0))
                return await runner.run(calls, timeout_s=timeout_s)

        return self.loop.run(go())


def drawn(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float16)


@pytest.fixture(scope="module")
def lab() -> Iterator[GpuLab]:
    keeping = Keeping(gpu_arrays)
    assert keeping.ask() == ""
    with softmax_module.lab() as bench:
        yield GpuLab(bench.hosts, bench.loop, bench.directory, keeping)


@pytest.mark.parametrize(
    "text",
    [
        TRITON,
        forward("return torch.softmax(x.t().contiguous(), 0).t()"),
        forward("return torch.cat([torch.softmax(x, -1)] * 2, 1)[:, :4096]"),
        forward(
            "kept[0].copy_(torch.softmax(x, -1))",
            "return kept[0]",
            before="import torch\nkept = [torch.empty(2048, 4096, dtype=torch.float16, device='cuda')]\n",
        ),
    ],
    ids=["triton", "transposed", "sliced", "the same buffer each time"],
)
def test_results_are_read_where_they_lie(lab, text) -> None:
    async def go() -> None:
        async with lab.open(text, sets=4) as runner:
            assert not runner.exporting
            for turn in range(3):
                for set_ in range(4):
                    runner.write_input(set_, 0, drawn(10 * turn + set_))
                ran = await runner.run(4, first_set=turn, timeout_s=20.0)
                assert isinstance(ran, Ran), said(ran)
                for set_ in range(4):
                    found = on_host(runner.output_bytes(set_, 0)).view(np.float16).reshape(SHAPE)
                    wanted = softmax(drawn(10 * turn + set_).astype(np.float32))
                    np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=5e-3, atol=1e-6)

    lab.loop.run(go())


def test_an_honest_kernel_is_timed_alike_from_block_to_block(lab) -> None:
    async def go() -> list[float]:
        async with lab.open(TRITON, sets=16) as runner:
            for set_ in range(16):
                runner.write_input(set_, 0, drawn(set_))
            times = []
            for _ in range(12):
                ran = await runner.run(16, timeout_s=20.0)
                assert isinstance(ran, Ran), said(ran)
                times.append(ran.elapsed_ns / 16)
            return times

    times = lab.loop.run(go())
    print(f"ns per call, 16 in a block: {[round(one) for one in times]}")
    assert min(times) > 2 * SPEC.nbytes / 4.8e12 * 1e9  # nobody is faster than an H200's memory


def test_an_input_written_to_is_found(lab) -> None:
    outcome = lab.outcome(forward("y = torch.softmax(x, -1)", "x[3, 5] = 0", "return y"))
    assert isinstance(outcome, RunFailure)
    assert (outcome.status, caught_by(outcome.evidence)) == (Status.MUTATED_INPUT, Layer.INPUTS)
    assert "of input 0 of set 0" in said(outcome)


def test_an_input_returned_as_the_result_is_called_that(lab) -> None:
    outcome = lab.outcome(forward("return x"))
    assert isinstance(outcome, RunFailure)
    assert caught_by(outcome.evidence) is Layer.CONTRACT
    assert "memory of an input" in said(outcome)


def test_work_on_another_stream_after_the_answer_is_seen(lab) -> None:
    before = SPIN + "torch.cuda.synchronize = lambda *_: None\n"
    # The driver's own synchronise would wait for it: it is the candidate's process, so that can be taken away.
    before += "from evaluator_svc.hosted import cuda_driver\ncuda_driver.Driver.synchronise = lambda self: None\n"
    text = forward("y = torch.softmax(x, -1)", "spin(0.5)", "return y", before=before)
    outcome = lab.outcome(text, persistent_weights=True)  # not warmed up
    assert isinstance(outcome, RunFailure), outcome
    assert outcome.status is Status.CHEAT
    assert caught_by(outcome.evidence) in (Layer.LATE, Layer.CLOCKS)


def test_a_kernel_that_answers_before_it_is_done_is_charged_for_the_rest(lab) -> None:
    before = SPIN + "from evaluator_svc.hosted import cuda_driver\ncuda_driver.Driver.synchronise = lambda self: None\n"
    text = forward("torch.cuda._sleep(1_900_000)", "return torch.softmax(x, -1)", before=before)  # about a millisecond
    outcome = lab.outcome(text)
    if isinstance(outcome, RunFailure):
        assert caught_by(outcome.evidence) in (Layer.LATE, Layer.CLOCKS), said(outcome)
    else:
        assert outcome.elapsed_ns > 700_000


def test_a_result_whose_memory_was_given_back_is_a_named_failure(lab) -> None:
    before = """
import torch
class Lent:
    def __init__(self, tensor):
        self.__cuda_array_interface__ = {
            "data": (tensor.data_ptr(), False), "shape": tuple(tensor.shape), "typestr": "<f2", "version": 3,
        }
"""
    text = forward(
        "y = torch.softmax(x, -1)",
        "gone = torch.as_tensor(Lent(y), device='cuda')",
        "torch.cuda.synchronize()",
        "del y",
        "torch.cuda.empty_cache()",
        "return gone",
        before=before,
    )
    outcome = lab.outcome(text, persistent_weights=True)
    assert isinstance(outcome, RunFailure), outcome
    assert caught_by(outcome.evidence) is Layer.CONTRACT
    assert "cannot be shared" in said(outcome)
