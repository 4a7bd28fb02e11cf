"""What an honest module may do, and that its results are read as it means them."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.runner.process import Ran, RunFailure
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from shared.events import Status
from tests.integration.hosted.softmax_module import RIGHT, SPEC, array_of, forward, said, softmax, values

pytestmark = pytest.mark.timeout(60)

SOFTMAX = "return torch.softmax(x, dim=-1)"
HONEST = {
    "calls torch": RIGHT,
    "returns a list": forward("return [torch.softmax(x, -1)]"),
    "returns a transposed tensor": forward("return torch.softmax(x.t().contiguous(), 0).t()"),
    "returns a slice of a larger tensor": forward("return torch.cat([torch.softmax(x, -1)] * 2, 1)[:, :1000]"),
    "returns every second column": forward("return torch.softmax(x, -1).repeat_interleave(2, 1)[:, ::2]"),
    "returns what is marked as negated": forward(
        "z = torch.complex(x, -torch.softmax(x, -1))", "return z.conj().imag"
    ),
    "returns the same buffer each time": forward(
        "kept[0].copy_(torch.softmax(x, -1))", "return kept[0]", before="import torch\nkept = [torch.empty(64, 1000)]\n"
    ),
    "keeps a workspace": forward(
        "torch.exp(x - x.amax(-1, keepdim=True), out=space)", "return space / space.sum(-1, keepdim=True)",
        before="import torch\nspace = torch.empty(64, 1000)\n",
    ),
    "prints": forward("print('hello')", SOFTMAX),
    "keeps a cache while it is loaded": (
        "import os\nos.makedirs('/tmp/cache')\nopen('/tmp/cache/x', 'w').write('x')\n" + RIGHT
    ),
    "writes a cache on its first call": forward(
        "first and (first.pop(), open('/tmp/cache', 'w').close())", SOFTMAX, before="first = [1]\n"
    ),
    "imports on its first call": forward("import sqlite3, xml.dom, decimal", SOFTMAX),
    "uses numpy": forward(
        "e = numpy.exp(x.numpy() - x.numpy().max(-1, keepdims=True))",
        "return torch.from_numpy(e / e.sum(-1, keepdims=True))", before="import numpy\n",
    ),
    "joins its threads": forward(
        "with ThreadPool(2) as pool: rows = list(pool.map(lambda r: torch.softmax(r, -1), x.chunk(4)))",
        "return torch.cat(rows)",
        before="from concurrent.futures import ThreadPoolExecutor as ThreadPool\n",
    ),
    "registers an operator": """
import torch
@torch.library.custom_op("mine::soft", mutates_args=())
def soft(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return soft(x)
""",
    "is scripted": """
import torch
def soft(x):
    return torch.softmax(x, dim=-1)
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.soft = torch.jit.script(soft)
    def forward(self, x):
        return self.soft(x)
""",
    "is a function with a gradient": """
import torch
class Soft(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.softmax(x, -1)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Soft.apply(x)
""",
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_module_that(lab, name):
    got = lab.result(HONEST[name], values(3), stained=True, threads=1)
    np.testing.assert_allclose(got, softmax(values(3)), rtol=1e-5, atol=1e-7)


def test_each_set_holds_the_result_of_the_last_call_on_it(lab):
    text = HONEST["returns the same buffer each time"]

    async def scenario():
        async with lab.open(text, sets=3, stained=True) as runner:
            for set_ in range(3):
                runner.write_input(set_, 0, values(set_))
            assert isinstance(await runner.run(3, first_set=1), Ran)
            return [array_of(runner, set_) for set_ in range(3)]

    for set_, got in enumerate(lab.loop.run(scenario())):
        np.testing.assert_allclose(got, softmax(values(set_)), rtol=1e-5, atol=1e-7)


def test_new_values_arrive_under_the_same_address(lab):
    text = forward("seen.add(x.data_ptr())", "return torch.full_like(x, len(seen))", before="seen = set()\n")

    async def scenario():
        async with lab.open(text) as runner:
            for seed in range(3):
                runner.write_input(0, 0, values(seed))
                assert isinstance(await runner.run(2), Ran)
            return array_of(runner)

    assert lab.loop.run(scenario()).max() == 1


def test_a_cached_answer_is_a_wrong_one_for_the_next_values(lab):
    text = forward(
        "key = (x.data_ptr(), x.shape)", "return cache.setdefault(key, torch.softmax(x, -1))", before="cache = {}\n"
    )

    async def scenario():
        async with lab.open(text) as runner:
            for seed in range(2):
                runner.write_input(0, 0, values(seed))
                assert isinstance(await runner.run(1), Ran)
            return array_of(runner)

    assert np.abs(lab.loop.run(scenario()) - softmax(values(1))).max() > 1e-3


def test_memory_that_held_the_right_answer_does_not_hold_it_any_more(lab):
    text = forward(
        "calls.append(1)", "return torch.softmax(x, -1) if len(calls) % 2 else torch.empty(64, 1000)",
        before="calls = []\n",
    )  # fmt: skip

    async def scenario():
        wrong = []
        async with lab.open(text, stained=True) as runner:
            runner.write_input(0, 0, values())
            for _ in range(4):
                assert isinstance(await runner.run(1), Ran)
                wrong.append(float(np.nanmean(np.abs(array_of(runner) - softmax(values())))))
            return sorted(wrong)

    right, _, stale, _ = lab.loop.run(scenario())
    assert right < 1e-6
    assert stale > 0.5


def test_an_output_that_changes_after_it_was_returned_is_caught(lab):
    # Written by the thread that answers, when it is asked the next question.
    text = forward(
        "out = torch.softmax(x, -1)", "kept.append(out)", "return out",
        before="""
import torch
from evaluator_svc.hosted import wire
kept = []
unpack = wire.COMMAND.unpack
class Late:
    size = wire.COMMAND.size
    def unpack(self, data):
        with torch.inference_mode():
            for out in kept:
                out.zero_()
        return unpack(data)
wire.COMMAND = Late()
""",
    )  # fmt: skip
    ended = lab.outcome(text, stained=True)
    assert isinstance(ended, RunFailure)
    assert caught_by(ended.evidence) is Layer.LATE, said(ended)


def test_a_thread_that_fills_the_result_later_is_caught_though_it_ends(lab):
    text = forward(
        "out = torch.zeros_like(x)",
        "threading.Thread(target=lambda: (time.sleep(0.3), out.copy_(torch.softmax(x, -1)))).start()",
        "return out",
        before="import threading, time\n",
    )
    ended = lab.outcome(text)
    assert isinstance(ended, RunFailure)
    assert caught_by(ended.evidence) is Layer.LATE, said(ended)


def test_calls_without_a_call_measure_the_round_trip(lab):
    ran = lab.outcome(RIGHT, calls=0)
    assert isinstance(ran, Ran)
    assert ran.elapsed_ns > 0


def test_blocks_of_calls_take_longer_than_one(lab):
    async def scenario():
        async with lab.open(RIGHT) as runner:
            runner.write_input(0, 0, values())
            one, many = await runner.run(1), await runner.run(200)
            assert isinstance(one, Ran)
            assert isinstance(many, Ran)
            return one.cpu_ns, many.cpu_ns

    one, many = lab.loop.run(scenario())
    assert many > 5 * one


WOKEN = """
import sys, time
host = sys.modules["evaluator_svc.hosted.candidate"]._Candidate
done = host._done
def busy(self, verb, calls, first_set):
    until = time.process_time() + ({seconds} if verb.name == "SETTLE" else 0.0)
    while time.process_time() < until:
        pass
    return done(self, verb, calls, first_set)
host._done = busy
"""


def test_what_a_module_works_while_it_is_woken_counts_as_its_call(lab):
    ran = lab.outcome(forward("return torch.softmax(x, dim=-1)", before=WOKEN.format(seconds=0.01)))
    assert isinstance(ran, Ran), said(ran)
    assert min(ran.cpu_ns, ran.elapsed_ns) > 9_000_000


def test_a_module_that_works_while_it_is_woken_most_of_all_is_accused(lab):
    failed = lab.outcome(forward("return torch.softmax(x, dim=-1)", before=WOKEN.format(seconds=0.06)))
    assert isinstance(failed, RunFailure)
    assert failed.status is Status.CHEAT
    assert "worked_before_it_was_asked_ns" in said(failed)


def test_two_outputs_may_be_parts_of_one_tensor_but_not_the_same_part(lab):
    half = TensorSpec(shape=(32, 1000), dtype=DType.F32)

    async def scenario(body):
        async with lab.open(forward(body), outputs=[half, half]) as runner:
            runner.write_input(0, 0, values())
            return await runner.run(1), array_of(runner, 0, 1, half) if runner.failure is None else None

    ran, second = lab.loop.run(scenario("return torch.softmax(x, -1).chunk(2)"))
    assert isinstance(ran, Ran), said(ran)
    np.testing.assert_allclose(second, softmax(values())[32:], rtol=1e-5, atol=1e-7)
    ran, second = lab.loop.run(scenario("y = torch.softmax(x, -1)[::2]; return y[:, :500], y[:, 500:]"))
    assert isinstance(ran, RunFailure)
    ran, _ = lab.loop.run(scenario("y = torch.softmax(x, -1)[:32]; return y, y"))
    assert "shares memory with output 0" in said(ran)


def test_an_operator_that_changes_an_input_is_given_a_copy_that_is_new_each_time(lab):
    async def scenario():
        text = forward("return x.exp_().sum(-1)")
        sums = TensorSpec(shape=(64,), dtype=DType.F32)
        async with lab.open(text, outputs=[sums, SPEC], mutates=(0,)) as runner:
            runner.write_input(0, 0, values())
            assert isinstance(await runner.run(3), Ran)
            return array_of(runner, 0, 0, sums), array_of(runner, 0, 1)

    sums, changed = lab.loop.run(scenario())
    np.testing.assert_allclose(changed, np.exp(values()), rtol=1e-5)
    np.testing.assert_allclose(sums, np.exp(values()).sum(-1), rtol=1e-4)


def test_what_it_prints_is_kept_and_believed_by_nobody(lab):
    async def scenario():
        async with lab.open(forward("print('check: pass')", SOFTMAX)) as runner:
            runner.write_input(0, 0, values())
            await runner.run(1)
            return runner.printed()

    assert "check: pass" in lab.loop.run(scenario())


def test_as_many_threads_as_granted_may_stay(lab):
    text = forward("y = torch.randn(4096, 512) @ torch.randn(512, 64)", SOFTMAX)
    ran = lab.outcome(text, threads=2)
    assert isinstance(ran, Ran), said(ran)


def test_cancelling_ends_the_candidate(lab):
    text = forward("while not first: pass", "first.clear()", SOFTMAX, before="first = [1]\n")

    async def scenario():
        async with lab.open(text, persistent_weights=True) as runner:  # so it is not warmed up
            runner.write_input(0, 0, values())
            assert isinstance(await runner.run(1), Ran)
            running = asyncio.create_task(runner.run(1, timeout_s=60))
            await asyncio.sleep(0.1)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    lab.loop.run(scenario())
    assert isinstance(lab.outcome(RIGHT), Ran)
