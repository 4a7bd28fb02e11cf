"""Verdicts on demand hold up nobody, and a worker that cannot end one says that it is stuck."""

from __future__ import annotations

import asyncio

from evaluator_svc.observer import Counts, Happening
from evaluator_svc.on_demand import OnDemand
from evaluator_svc.pool import Worker
from evaluator_svc.requested import Asked
from evaluator_svc.settings import Settings
from tests.aio import on_loop
from tests.unit.evaluator.pooling import CHIP, QUICK, Puppet, pool

OPERATOR = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


@on_loop
async def test_an_evaluation_that_cannot_be_ended_makes_the_worker_stuck() -> None:
    free, told = asyncio.Event(), []

    async def hang(_: str) -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    async with pool() as made:
        puppet = Puppet(Settings(chip=CHIP, pool=QUICK), hang)
        worker = Worker(made.ports, puppet, observer=Counts(), when_stuck=lambda: told.append(1))
        asked = Asked(operator_name="x", operator_source=OPERATOR, language="cpp", kernel_source="int x;")
        updates = OnDemand(made.ports.store, puppet, worker).evaluate(asked)
        while await anext(updates) != "correctness":
            pass
        await updates.aclose()
        assert told == [1]
        assert isinstance(worker.observer, Counts)
        assert worker.observer.happenings[Happening.STUCK] == 1
        free.set()
