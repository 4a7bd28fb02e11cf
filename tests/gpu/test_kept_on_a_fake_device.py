"""The controller holds inputs and results on a device that is a file: protocol, freezing, verdicts, for real."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from evaluator_svc.hosted.kept import KeptRunner
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.runner.process import Ran, RunFailure
from evaluator_svc.toolchains import Built
from shared.errors import Retryable
from shared.events import Status
from tests.gpu.fake_device import FakeDevice, fake_device
from tests.integration.hosted import softmax_module
from tests.integration.hosted.softmax_module import (
    LIMITS,
    ONE_TENSOR,
    RIGHT,
    SPEC,
    Lab,
    array_of,
    forward,
    said,
    softmax,
    values,
)

pytestmark = [pytest.mark.timeout(90), pytest.mark.serial]


@dataclass(frozen=True)
class KeptLab(Lab):
    """Its runners are kept on the device."""

    device: FakeDevice

    def open(self, text: str, **options: Any) -> KeptRunner:
        path = self.directory / "module.py"
        path.write_text(text)
        built = Built(path=path, digest="", log="", build_ns=0, sandbox="", host="hosted", language="python")
        given = {"signature": ONE_TENSOR, "limits": LIMITS, "alone": True, **options}
        keeping, profile = self.device.keeping(), self.device.profile()
        return KeptRunner.keep(keeping, self.hosts, built, [SPEC], [SPEC], profile=profile, **given)


@pytest.fixture(scope="module")
def device() -> Iterator[FakeDevice]:
    with fake_device() as made:
        yield made


@pytest.fixture(scope="module")
def lab(device: FakeDevice) -> Iterator[KeptLab]:
    with softmax_module.lab() as bench:
        yield KeptLab(bench.hosts, bench.loop, bench.directory, device)


@pytest.fixture(autouse=True)
def _rested(device: FakeDevice) -> None:
    device.renew()


SOFTMAX = "return torch.softmax(x, dim=-1)"


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        forward("return torch.softmax(x.t().contiguous(), 0).t()"),
        forward("return torch.cat([torch.softmax(x, -1)] * 2, 1)[:, :1000]"),
        forward(
            "kept[0].copy_(torch.softmax(x, -1))", "return kept[0]",
            before="import torch\nkept = [torch.empty(64, 1000)]\n",
        ),
    ],
    ids=["contiguous", "transposed", "sliced", "the same buffer each time"],
)  # fmt: skip
def test_results_are_read_on_the_device_and_not_exported(lab, text) -> None:
    async def go() -> None:
        async with lab.open(text, sets=3) as runner:
            assert not runner.exporting
            for turn in range(2):
                for set_ in range(3):
                    runner.write_input(set_, 0, values(10 * turn + set_))
                ran = await runner.run(3, first_set=1)
                assert isinstance(ran, Ran), said(ran)
                assert ran.device_ns is None
                for set_ in range(3):
                    found = array_of(runner, set_)
                    np.testing.assert_allclose(found, softmax(values(10 * turn + set_)), rtol=1e-4, atol=1e-6)

    lab.loop.run(go())


def test_an_input_written_to_is_found_by_reading_it_back(lab) -> None:
    text = forward("y = torch.softmax(x, -1)", "x[3, 5] = 0", "return y")
    outcome = lab.outcome(text)
    assert isinstance(outcome, RunFailure)
    assert (outcome.status, caught_by(outcome.evidence)) == (Status.MUTATED_INPUT, Layer.INPUTS)
    assert "of input 0 of set 0" in said(outcome)


def test_an_input_returned_as_the_result_is_called_that(lab) -> None:
    outcome = lab.outcome(forward("return x"))
    assert isinstance(outcome, RunFailure)
    assert caught_by(outcome.evidence) is Layer.CONTRACT
    assert "memory of an input" in said(outcome)


BUSY = """
import mmap, os, struct, time
def occupy(seconds):
    fd = os.open(os.environ["KE_FAKE_CUDA"], os.O_RDWR)
    os.pwrite(fd, struct.pack("<Q", os.getpid()), 24)
    os.pwrite(fd, struct.pack("<Q", time.monotonic_ns() + int(seconds * 1e9)), 0)
    os.close(fd)
"""


def test_a_kernel_whose_device_still_works_after_its_answer_is_seen(lab) -> None:
    text = forward("y = torch.softmax(x, -1)", "occupy(5)", "return y", before=BUSY)
    # Not warmed up: the first call is the one that is timed.
    outcome = lab.outcome(text, persistent_weights=True)
    assert isinstance(outcome, RunFailure)
    assert (outcome.status, caught_by(outcome.evidence)) == (Status.CHEAT, Layer.LATE)
    assert "the device worked" in said(outcome)


def test_work_that_ends_before_the_answer_is_nobodys_fault(lab) -> None:
    text = forward("occupy(0.01)", "time.sleep(0.02)", SOFTMAX, before=BUSY)
    outcome = lab.outcome(text)
    assert isinstance(outcome, Ran), said(outcome)


LYING = """
from evaluator_svc.hosted import wire
true = wire.share
def lie(slot, handle, offset):
    true(slot, {handle}, {offset})
wire.share = lie
"""
LIES = {
    "a handle of nothing": ("bytes(64)", "offset", "no device memory"),
    "an offset past its allocation": ("handle", "1 << 33", "past its allocation"),
    "an offset that wraps": ("handle", "(1 << 64) - 8", "past its allocation"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_place_that_is_a_lie_is_a_named_failure(lab, lie) -> None:
    handle, offset, expected = LIES[lie]
    text = forward(SOFTMAX, before=LYING.format(handle=handle, offset=offset))
    outcome = lab.outcome(text)
    assert isinstance(outcome, RunFailure)
    assert (outcome.status, caught_by(outcome.evidence)) == (Status.CHEAT, Layer.CONTRACT)
    assert expected in said(outcome)


def test_a_result_that_is_told_without_a_handle_is_a_named_failure(lab) -> None:
    text = forward(SOFTMAX, before="from evaluator_svc.hosted import wire\nwire.share = lambda *told: None\n")
    outcome = lab.outcome(text)
    assert isinstance(outcome, RunFailure)
    assert "cannot be shared" in said(outcome)


def test_results_that_change_after_the_answer_are_found_when_the_process_is_asked_again(lab) -> None:
    before = """
from evaluator_svc.hosted import candidate
known, true = [], candidate._Candidate._done
def late(self, verb, calls, first_set):
    if verb is candidate.Verb.SETTLE and known:
        with candidate.torch.inference_mode():
            known[-1].zero_()
    return true(self, verb, calls, first_set)
candidate._Candidate._done = late
"""
    text = forward("known.append(torch.softmax(x, -1))", "return known[-1]", before=before)
    outcome = lab.outcome(text, stained=True)
    assert isinstance(outcome, RunFailure)
    assert (outcome.status, caught_by(outcome.evidence)) == (Status.CHEAT, Layer.LATE)
    assert "changed after the call" in said(outcome)


def test_without_a_device_of_its_own_nobody_asks_whether_it_is_at_rest(lab) -> None:
    text = forward("y = torch.softmax(x, -1)", "occupy(5)", "return y", before=BUSY)
    outcome = lab.outcome(text, alone=False)
    assert isinstance(outcome, Ran), said(outcome)


def test_a_device_that_others_work_on_times_nobody(lab, device) -> None:
    device.busy(30)
    with pytest.raises(Retryable, match="busy with others' work"):
        lab.outcome(RIGHT)


def test_a_driver_that_shares_no_memory_says_so_before_anything_is_opened(device) -> None:
    device.refuses(handles=True)
    assert "cuIpcGetMemHandle" in device.keeping().refused


def test_a_box_that_opens_no_memory_turns_the_worker_to_the_other_way(lab, device, monkeypatch) -> None:
    runner = lab.open(RIGHT)
    told = runner._keeping.told
    monkeypatch.setattr(type(runner._keeping), "told", lambda self, memory: {**told(memory), "handle": "00" * 64})

    async def go() -> None:
        async with runner:
            pass

    with pytest.raises(Retryable, match="cannot be opened"):
        lab.loop.run(go())
    assert "cannot be opened" in runner._keeping.refused


def test_one_box_that_opens_no_memory_says_nothing_where_others_could(lab, monkeypatch) -> None:
    first, runner = lab.open(RIGHT), lab.open(RIGHT)
    runner._keeping = first._keeping

    async def go(one: KeptRunner) -> None:
        async with one:
            pass

    lab.loop.run(go(first))
    told = first._keeping.told
    monkeypatch.setattr(type(runner._keeping), "told", lambda self, memory: {**told(memory), "handle": "00" * 64})
    with pytest.raises(Retryable, match="cannot be opened"):
        lab.loop.run(go(runner))
    assert not runner._keeping.refused


def test_nothing_of_it_reaches_a_candidate_on_the_processor(lab) -> None:
    async def go() -> None:
        async with Lab.open(lab, RIGHT, sets=2) as runner:
            assert "kept" not in runner._candidate.told

    lab.loop.run(go())
