"""Baselines on a GPU: draws go through shared memory once, and the device's sets are copies of them."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from evaluator_svc.baselines import EAGER, Baselines
from evaluator_svc.target import Kind, Target
from shared.events import OperatorRef
from tests.unit.evaluator.contest import SPEC, fresh

SETS, DRAWS = 64, 4


class Child:
    """Takes requests, and answers as the baseline's process does."""

    def __init__(self):
        self.asked = []
        self.device_ns = 3_000

    async def ask(self, action, *, timeout_s, **fields):
        self.asked.append((action, fields))
        return {}

    async def timed(self, action, *, timeout_s, **fields):
        self.asked.append((action, fields))
        return 5_000, {"own_ns": 4_000, "device_ns": self.device_ns}

    def named(self, action):
        return [fields for name, fields in self.asked if name == action]


@pytest.fixture
def opened(tmp_path):
    def open_(kind):
        child, operator = Child(), OperatorRef(name="softmax", source_hash="0" * 64)
        baselines = Baselines(child, operator, tmp_path, target=Target(kind=kind, device="it"))
        asyncio.run(baselines.open("", [SPEC], sets=SETS, draws=DRAWS, threads=1, timeout_s=1.0))
        return baselines, child

    return open_


def run(baselines):
    async def go():
        await baselines.cool(3, 8, SETS, outputs=True)
        return await baselines.run(EAGER, 8, first=3, span=SETS, timeout_s=1.0)

    return asyncio.run(go())


def test_a_gpu_has_all_sets_and_shared_memory_only_the_draws(opened):
    on_gpu, on_cpu = opened(Kind.GPU)[1].named("attach"), opened(Kind.CPU)[1].named("attach")
    assert [(one["sets"], one["draws"]) for one in (*on_gpu, *on_cpu)] == [(SETS, DRAWS), (SETS, SETS)]


def test_draws_are_written_and_loaded_once_for_all_blocks(opened):
    baselines, child = opened(Kind.GPU)
    pool = [fresh(number) for number in range(3)]
    for _ in range(2):
        baselines.fill(pool, SETS)
        assert run(baselines) == 5_000
    assert child.named("load") == [{"draws": 3}]
    assert [np.array_equal(baselines._rows[0][i], pool[i].case.inputs[0]) for i in range(3)] == [True] * 3
    assert len(child.named("cool")) == 2, "a block begins with a cache that holds none of it"


def test_what_an_operator_changes_is_loaded_anew_for_every_block(opened):
    baselines, child = opened(Kind.GPU)
    for _ in range(2):
        baselines.fill([fresh(0)], SETS, again=True)
        run(baselines)
    assert child.named("load") == [{"draws": 1}] * 2


def test_a_device_that_saw_no_time_pass_saw_one_ns_because_ratios_are_taken_of_it(opened):
    baselines, child = opened(Kind.GPU)
    child.device_ns = 0
    run(baselines)
    assert baselines.device_ns == 1
    child.device_ns = None
    run(baselines)
    assert baselines.device_ns is None
