"""What a block on a GPU takes besides its calls: the way to the process and back, and the device's change of contexts.

The controller's clock runs over all of it: a clock that stopped earlier would be one in the candidate's reach. What it
comes to is measured with a kernel of the evaluator's own in a candidate's place, once a worker, in blocks of two
lengths. Of these the quick ones count, so that little rather than much is taken off a candidate's blocks.
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
SPEC = TensorSpec(shape=(1 << 24,), dtype=DType.F32)
"""Larger than caches: its calls come from memory, as a candidate's do."""
SHORT, LONG = 8, 32
"""Calls of a block."""
BLOCKS, WARM_UP = 20, 3
"""Blocks of either length that count, and that do not."""
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
        async with launchers.kept(built, [SPEC], [SPEC], signature, sets=LONG, threads=threads, cpus=cpus) as runner:
            taken: dict[int, list[int]] = {SHORT: [], LONG: []}
            for turn in range(BLOCKS + WARM_UP):
                for calls, times in taken.items():
                    elapsed_ns = await _block(runner, calls)
                    if turn >= WARM_UP:
                        times.append(elapsed_ns)
    return besides(taken[SHORT], taken[LONG])


def besides(short: Sequence[float], long: Sequence[float]) -> float:
    """From the times of blocks of ``SHORT`` and of ``LONG`` calls (pure)."""
    call_ns = max(0.0, (statistics.median(long) - statistics.median(short)) / (LONG - SHORT))
    return max(0.0, sorted(short)[int(QUICK * len(short))] - SHORT * call_ns)


def without(block_ns: float, off_calls_ns: float) -> float:
    """What the calls of a block take (pure)."""
    return max(block_ns - off_calls_ns, LEAST * block_ns)


async def _block(runner: HostedRunner, calls: int) -> int:
    ran = await runner.run(calls, timeout_s=CALL_S)
    if not isinstance(ran, Ran):
        raise Retryable(f"a kernel of the evaluator's own fails in a candidate's place: {ran}")
    return ran.elapsed_ns
