"""What a native kernel may do in its box, and what becomes of one that does something else."""

from __future__ import annotations

import asyncio
import gc
import os
from array import array
from pathlib import Path

import numpy as np
import pytest

from evaluator_svc.runner.buffers import CANARY
from evaluator_svc.runner.layout import Spacing
from evaluator_svc.runner.process import Ran, RunFailure, Runner, RunnerLimits
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from shared.events import Status
from tests.integration.evaluator.softmax_runner import (
    INPUT,
    SPEC,
    build,
    evidence,
    expected,
    outcome,
    right_still_passes,
)

pytestmark = pytest.mark.serial

MISBEHAVING = {
    "abort": (Status.RUNTIME_ERROR, "SIGABRT"),
    "allocates_64_gb": (Status.OUT_OF_MEMORY, "68719476736"),
    "allocates_64_gb_with_new": (Status.OUT_OF_MEMORY, "68719476736"),
    "closes_channel": (Status.CHEAT, "closed the result channel"),
    "crash": (Status.RUNTIME_ERROR, "write through a null pointer"),
    "division_by_zero": (Status.RUNTIME_ERROR, "SIGFPE"),
    "endless_loop": (Status.TIMEOUT, "limit_s=0.5"),
    "exits_in_a_constructor": (Status.CHEAT, "by itself with code 0"),
    "floods_channel": (Status.CHEAT, "spoke on the result channel"),
    "forges_reply": (Status.CHEAT, "spoke on the result channel"),
    "fork_bomb": (Status.CHEAT, "starts a process"),
    "kills_parent": (Status.CHEAT, "kill (signals another process)"),
    "maps_over_input": (Status.MUTATED_INPUT, "write to byte 0 of input 0"),
    "missing_entry": (Status.LAUNCH_FAILED, "undefined symbol: ke_launch"),
    "mutates_input": (Status.MUTATED_INPUT, "write to byte 0 of input 0"),
    "network_call": (Status.CHEAT, "socket (reaches for the network)"),
    "opens_a_bad_path": (Status.CHEAT, "opens a file"),
    "prints_forever": (Status.RUNTIME_ERROR, "SIGXFSZ"),
    "prints_passed_and_exits": (Status.CHEAT, "by itself with code 0"),
    "reads_project_files": (Status.CHEAT, "argument=/etc/passwd"),
    "runs_a_command": (Status.CHEAT, "forbidden"),
    "spawns_thread_that_outlives": (Status.CHEAT, "2 alive after a call, 1 granted"),
    "stack_overflow": (Status.RUNTIME_ERROR, "past the end of the stack"),
    "throws": (Status.RUNTIME_ERROR, "no softmax today"),
    "undefined_symbol": (Status.LAUNCH_FAILED, "somewhere_else"),
    "writes_before_start": (Status.RUNTIME_ERROR, "before the start of output 0"),
    "writes_files": (Status.CHEAT, "opens a file"),
    "writes_past_end": (Status.RUNTIME_ERROR, "byte 0 past the end of output 0"),
}


@pytest.mark.parametrize("name", sorted(MISBEHAVING))
def test_a_misbehaving_kernel_gets_its_status_and_does_not_hurt_the_next_one(name):
    status, words = MISBEHAVING[name]
    got = asyncio.run(outcome(name, timeout_s=0.5 if name == "endless_loop" else 10.0))
    assert isinstance(got, RunFailure)
    assert (got.status, words in evidence(got)) == (status, True), evidence(got)
    asyncio.run(right_still_passes())


@pytest.mark.parametrize(
    "name", ["right", "slow_but_right", "zeros", "returns_input", "half_inside", "wrong_tail", "nondeterministic"]
)
def test_a_kernel_that_keeps_the_rules_runs_whatever_it_computes(name):
    assert isinstance(asyncio.run(outcome(name)), Ran)


def test_an_error_code_is_handed_on():
    got = asyncio.run(outcome("returns_error_code"))
    assert isinstance(got, Ran)
    assert got.return_code == 7


def test_calls_rotate_over_the_sets_from_the_first_one_given():
    async def scenario():
        built = await build("right")
        async with Runner.open(built.path, [SPEC], [SPEC], sets=3) as runner:
            for set_ in range(3):
                runner.write_input(set_, 0, INPUT)
                runner.output_bytes(set_, 0)[:] = b"\xff" * SPEC.nbytes
            ran = await runner.run(2, first_set=2)
            assert isinstance(ran, Ran)
            return [bytes(runner.output_bytes(set_, 0)[:4]) != b"\xff" * 4 for set_ in range(3)]

    assert asyncio.run(scenario()) == [True, False, True]


@pytest.mark.parametrize("sets", [1, 7])
def test_dense_sets_are_all_called_on_and_bytes_between_them_are_watched(sets):
    async def scenario():
        built = await build("right")
        async with Runner.open(built.path, [SPEC], [SPEC], sets=sets, spacing=Spacing.DENSE) as runner:
            runner.write_sets(range(sets), 0, np.frombuffer(INPUT, dtype=np.uint8))
            rows = runner.output_rows(0)
            rows[...] = 0xFF
            runner.cool(sets - 1, sets)
            ran = await runner.run(sets, first_set=sets - 1)
            assert isinstance(ran, Ran), ran
            assert ran.settle_ns
            assert not (rows[:, :4] == 0xFF).all(axis=1).any()
            assert all(np.array_equal(row, rows[0]) for row in rows)
            broken = [runner.slack_intact()]
            runner._buffers._outputs[0] = 1
            broken.append(runner.slack_intact())
            runner._buffers._outputs[0] = CANARY
            runner._buffers._outputs[sets * runner._buffers.layout.output_stride.in_file] = 1
            return [*broken, runner.slack_intact()]

    assert asyncio.run(scenario()) == [None, "before the start of output 0", "past the end of the last output"]


def test_the_clocks_of_controller_runner_and_kernel_agree_on_a_long_block():
    async def scenario():
        built = await build("slow_but_right")
        async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
            runner.write_input(0, 0, INPUT)
            return await runner.run(3)

    ran = asyncio.run(scenario())
    assert isinstance(ran, Ran)
    assert 0 < ran.runner_ns <= ran.elapsed_ns
    assert ran.cpu_ns > 0


def test_openmp_runs_as_many_threads_as_were_granted():
    async def scenario(threads):
        built = await build("openmp_threads", "-fopenmp")
        one = TensorSpec(shape=(1,), dtype=DType.F32)
        async with Runner.open(built.path, [one], [one], threads=threads, cpus=()) as runner:
            ran = await runner.run(1)
            assert isinstance(ran, Ran), ran
            return runner.output_bytes(0, 0).cast("f")[0]

    assert [asyncio.run(scenario(n)) for n in (1, 2)] == [1.0, 2.0]


def test_a_tensor_that_ends_inside_a_cache_line_has_its_slack_watched():
    async def scenario():
        odd = TensorSpec(shape=(3, 7), dtype=DType.F32)
        built = await build("writes_one_past_end")
        async with Runner.open(built.path, [odd], [odd]) as runner:
            runner.write_input(0, 0, array("f", range(21)))
            return await runner.run(1)

    got = asyncio.run(scenario())
    assert isinstance(got, RunFailure)
    assert got.status is Status.RUNTIME_ERROR
    assert "past the end of output 0" in evidence(got)


def test_a_failed_runner_keeps_its_reason():
    async def scenario():
        built = await build("crash")
        async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
            first = await runner.run(1)
            return first, await runner.run(1), runner.failure

    first, again, kept = asyncio.run(scenario())
    assert isinstance(first, RunFailure)
    assert first == again == kept


def test_what_a_kernel_prints_is_kept_for_the_log_only():
    async def scenario():
        built = await build("prints_passed_and_exits")
        async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
            got = await runner.run(1)
            return got, runner.printed()

    got, printed = asyncio.run(scenario())
    assert printed == "PASSED\n"
    assert isinstance(got, RunFailure)


def test_cancelling_a_run_kills_the_kernel_at_once():
    async def scenario():
        built = await build("endless_loop")
        async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
            running = asyncio.ensure_future(runner.run(1, timeout_s=60))
            while runner._box.cpu_ns() < 20_000_000:
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            return runner._box._pid

    pid = asyncio.run(scenario())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def descriptors():
    gc.collect()  # of earlier tests
    return sorted(int(path.name) for path in Path("/proc/self/fd").iterdir())


def test_no_descriptor_is_left_open_by_good_or_bad_kernels():
    async def scenario():
        await outcome("right")
        before = descriptors()
        for name in ("right", "crash", "missing_entry", "closes_channel"):
            await outcome(name)
        return before, descriptors()

    before, after = asyncio.run(scenario())
    assert before == after


def test_memory_within_the_limit_may_be_allocated():
    async def scenario(memory_bytes):
        built = await build("allocates_1_gb")
        async with Runner.open(built.path, [SPEC], [SPEC], limits=RunnerLimits(memory_bytes=memory_bytes)) as runner:
            runner.write_input(0, 0, INPUT)
            return await runner.run(1)

    assert isinstance(asyncio.run(scenario(2 << 30)), Ran)
    refused = asyncio.run(scenario(256 << 20))
    assert isinstance(refused, RunFailure)
    assert refused.status is Status.OUT_OF_MEMORY


def test_the_expected_values_of_these_tests_are_a_softmax():
    assert abs(sum(expected()[:1000]) - 1) < 1e-9


def test_threads_that_are_joined_before_the_call_returns_are_no_cheat():
    async def scenario():
        built = await build("joins_its_threads")
        async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
            runner.write_input(0, 0, INPUT)
            return [await runner.run(1) for _ in range(50)]

    assert all(isinstance(ran, Ran) for ran in asyncio.run(scenario()))


def test_work_between_two_calls_is_charged_to_the_second():
    async def scenario():
        built = await build("works_between_calls")
        async with Runner.open(built.path, [SPEC], [SPEC], threads=2) as runner:
            first = await runner.run(1)
            assert isinstance(first, Ran)
            before = runner._box.cpu_ns()
            while runner._box.cpu_ns() < before + 300_000:
                await asyncio.sleep(0.001)
            return await runner.run(0)

    second = asyncio.run(scenario())
    assert isinstance(second, Ran)
    assert second.cpu_ns > 300_000
