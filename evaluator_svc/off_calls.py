"""What a block on a GPU takes besides its calls: the way to the process and back, and the device's change of contexts.

The controller's clock runs over all of it: a clock that stopped earlier would be one in the candidate's reach. What it
comes to is measured with a kernel of the evaluator's own in a candidate's place, once a worker, in blocks of one call
and of several. Of these the quick ones count, so that little rather than much is taken off a candidate's blocks.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from evaluator_svc.hosted.process import HostedRunner
from evaluator_svc.launchers import Launchers
from evaluator_svc.runner.process import Ran
from evaluator_svc.scratch import BUILD, Scratch
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built
from shared.dtypes import DType
from shared.errors import Retryable

TEXT = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.neg(x)
"""
SPEC = TensorSpec(shape=(1 << 20,), dtype=DType.F32)
SEVERAL, BLOCKS, WARM_UP = 9, 20, 3
"""Calls of the longer blocks; blocks of either length that count, and that do not."""
QUICK = 0.1
"""Of the blocks so many are as quick, or quicker."""
LEAST = 0.25
"""Of a block so much is its calls, whatever it takes besides."""
CALL_S = 20.0


async def measure(launchers: Launchers, threads: int, cpus: tuple[int, ...]) -> float:
    """Ns of a block, on a device that nobody else has.

    Raises:
        Retryable: the process was lost, or is not let do what a candidate may.
    """
    with Scratch(BUILD) as work:
        path = work.path / "module.py"
        path.write_text(TEXT, encoding="utf-8")
        built = Built(path=path, digest="", log="", build_ns=0, sandbox="", host="hosted", language="triton")
        signature = Signature(arguments=(None,))
        async with launchers.kept(built, [SPEC], [SPEC], signature, sets=SEVERAL, threads=threads, cpus=cpus) as runner:
            taken: dict[int, list[int]] = {1: [], SEVERAL: []}
            for turn in range(BLOCKS + WARM_UP):
                for calls, times in taken.items():
                    elapsed_ns = await _block(runner, calls)
                    if turn >= WARM_UP:
                        times.append(elapsed_ns)
    return besides(taken[1], taken[SEVERAL], SEVERAL)


def besides(one: Sequence[float], several: Sequence[float], calls: int) -> float:
    """From the times of blocks of one call and of ``calls`` (pure)."""
    call_ns = max(0.0, (statistics.median(several) - statistics.median(one)) / (calls - 1))
    return max(0.0, sorted(one)[int(QUICK * len(one))] - call_ns)


def without(block_ns: float, off_calls_ns: float) -> float:
    """What the calls of a block take (pure)."""
    return max(block_ns - off_calls_ns, LEAST * block_ns)


async def _block(runner: HostedRunner, calls: int) -> int:
    ran = await runner.run(calls, timeout_s=CALL_S)
    if not isinstance(ran, Ran):
        raise Retryable(f"a kernel of the evaluator's own fails in a candidate's place: {ran}")
    return ran.elapsed_ns
