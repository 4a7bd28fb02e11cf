"""What a block on a GPU takes besides its calls: the way to the process and back, and the device's change of contexts.

The controller's clock runs over all of it: a clock that stopped earlier would be one in the candidate's reach. What it
comes to is measured with a kernel of the evaluator's own in a candidate's place, once a worker, in blocks of two
lengths. The lower end of the interval of its median is taken off a candidate's blocks: little rather than much, but no
less than that, because what is left is charged to a candidate and to no baseline.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from evaluator_svc.block_sets import SHARES
from evaluator_svc.hosted.process import HostedRunner
from evaluator_svc.launchers import Launchers
from evaluator_svc.runner.layout import set_bytes
from evaluator_svc.runner.process import Ran
from evaluator_svc.scratch import BUILD, Scratch
from evaluator_svc.signature import Signature
from evaluator_svc.statistics import agreeing_needed
from evaluator_svc.target import Target
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
BLOCKS, WARM_UP = 100, 3
"""Blocks of either length that count, and that do not."""
ERROR = 0.05
"""Of the interval to its lower side: of so many short blocks, 35 lie below it."""
CALL_S = 20.0


async def measure(launchers: Launchers, target: Target, threads: int, cpus: tuple[int, ...]) -> float:
    """Ns of a block, on a device that nobody else has.

    Raises:
        Retryable: the process was lost, or is not let do what a candidate may.
    """
    with Scratch(BUILD) as work:
        path = work.path / "module.py"
        path.write_text(TEXT, encoding="utf-8")
        built = Built(path=path, digest="", log="", build_ns=0, sandbox="", host="hosted", language="triton")
        signature, sets = Signature(arguments=(None,)), sets_of(target.memory_bytes)
        async with launchers.kept(built, [SPEC], [SPEC], signature, sets=sets, threads=threads, cpus=cpus) as runner:
            taken: dict[int, list[int]] = {SHORT: [], LONG: []}
            for turn in range(BLOCKS + WARM_UP):
                for calls, times in taken.items():
                    elapsed_ns = await _block(runner, calls)
                    if turn >= WARM_UP:
                        times.append(elapsed_ns)
    return besides(taken[SHORT], taken[LONG])


def sets_of(memory_bytes: int) -> int:
    """One for each call of a block, or as many as a candidate would have on a GPU of so much memory (0: not known), two
    at least (pure).
    """
    room = memory_bytes // SHARES // set_bytes([SPEC], [SPEC]) if memory_bytes else LONG
    return max(2, min(LONG, room))


def besides(short: Sequence[float], long: Sequence[float]) -> float:
    """From the times of blocks of ``SHORT`` and of ``LONG`` calls, enough for an interval (pure)."""
    call_ns = max(0.0, (statistics.median(long) - statistics.median(short)) / (LONG - SHORT))
    agreeing = agreeing_needed(len(short), ERROR)
    assert agreeing is not None, "so few blocks have no interval"
    return max(0.0, sorted(short)[len(short) - agreeing] - SHORT * call_ns)


async def _block(runner: HostedRunner, calls: int) -> int:
    ran = await runner.run(calls, timeout_s=CALL_S)
    if not isinstance(ran, Ran):
        raise Retryable(f"a kernel of the evaluator's own fails in a candidate's place: {ran}")
    return ran.elapsed_ns
