"""Another system's search with this project's verdicts, over gRPC: random accumulator counts of an RMSNorm.

Start an evaluator and run the search against it::

    GRPC_LISTEN=127.0.0.1:50051 kernelevolve serve evaluator
    python examples/foreign_search.py 127.0.0.1:50051
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

from protos.evaluator.v1 import evaluator_service_pb2 as pb
from protos.evaluator.v1 import evaluator_service_pb2_grpc as rpc
from protos.events.v1 import evaluation_pb2
from shared.rpc.client import connect
from shared.rpc.errors import as_ours
from shared.rpc.settings import ClientSettings

PROBLEM = Path(__file__).parent / "submissions" / "rmsnorm_h256"
ACCUMULATORS = (1, 2, 4, 8, 16, 32)
TRIES = 3


def candidate(accumulators: int) -> str:
    """What a search of any kind writes: here, a template with one number."""
    return (PROBLEM / "rmsnorm.cpp").read_text().replace("16", str(accumulators))


async def judged(evaluator: rpc.EvaluatorServiceStub, kernel: str) -> evaluation_pb2.Evaluation:
    """The verdict on ``kernel``; says how each stage ended while it waits."""
    request = pb.EvaluateRequest(
        definition=pb.Definition(
            definition=(PROBLEM / "definition.json").read_text(),
            reference=(PROBLEM / "reference.py").read_text(),
            workload=(PROBLEM / "workload.jsonl").read_text().splitlines()[0],
        ),
        language="cpp",
        kernel_source=kernel,
    )
    async for update in evaluator.Evaluate(request):
        if update.WhichOneof("update") == "result":
            print(f"  {update.result.stage}: {update.result.outcome}, {update.result.elapsed_ns / 1e9:.2f} s")
    return update.evaluation  # the last update


async def search(server: str, seed: int = 0) -> tuple[int, float]:
    """The best number of accumulators that was tried, and its speedup; (0, 0.0) when nothing passed."""
    best = (0, 0.0)
    async with connect(ClientSettings(server=server)) as channel:
        evaluator = rpc.EvaluatorServiceStub(channel)
        for accumulators in random.Random(seed).sample(ACCUMULATORS, TRIES):  # noqa: S311 - reproducible, not secret
            print(f"{accumulators} accumulators")
            with as_ours(server):
                evaluation = await judged(evaluator, candidate(accumulators))
            print(f"  {evaluation_pb2.Status.Name(evaluation.status)}, ledger {evaluation.ledger_hash or 'none'}")
            if evaluation.speedups:
                speedup = min(each.ratio_ppm for each in evaluation.speedups) / 1e6
                best = max(best, (accumulators, speedup), key=lambda found: found[1])
    return best


if __name__ == "__main__":
    print("best: {} accumulators, {:.2f}x".format(*asyncio.run(search(sys.argv[1]))))
