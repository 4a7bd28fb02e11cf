"""A candidate's process on a GPU that is started before its turn: who is there while somebody is timed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Self

import pytest

from evaluator_svc import gpu_calibration, measuring, off_calls
from evaluator_svc.calibration import Calibration
from evaluator_svc.claims import Claim
from evaluator_svc.measuring import Measurer, Subject
from evaluator_svc.roofline import MEMORY, Peaks
from evaluator_svc.settings import Settings
from evaluator_svc.stages import Stopwatch
from evaluator_svc.target import Kind, Target
from shared.errors import Retryable
from shared.events import Status, Trust

GPU = Target(kind=Kind.GPU, device="GPU-1b2c")
PEAKS = Peaks(bandwidth={"L2": 8e12, MEMORY: 4e12}, capacity={"L2": 60 << 20}, flops=0.0)
THREADS = 1


class Process:
    """A runner, as far as it is begun and ended; ``slow`` takes a while for both."""

    def __init__(self, lab: Lab, *, fails: bool) -> None:
        self._lab, self._fails = lab, fails

    async def __aenter__(self) -> Self:
        await asyncio.sleep(0)
        if self._fails:
            raise Retryable("the device has no memory now")
        self._lab.alive.append(self)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.sleep(0)
        self._lab.alive.remove(self)


class Lab:
    """A measurer whose contests are ``timed``: who was given, who was alive, and what was taken off blocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cache: object) -> None:
        self.alive: list[Process] = []
        self.timed: list[tuple[object, list[Process], float | None]] = []
        self.constants, self.statuses, self.fails = [600_000.0], [Status.PASSED], False
        device = SimpleNamespace(exclusive=self._exclusive, held=self._held)
        launchers = SimpleNamespace(unkept=lambda: "")
        self.measurer = Measurer(device, None, Settings(cache=cache, chip="nvidia-h200"), launchers)  # type: ignore[arg-type]
        monkeypatch.setattr(gpu_calibration, "calibrate", self._calibrate)
        monkeypatch.setattr(off_calls, "measure", self._measure)
        monkeypatch.setattr(measuring, "physics_of", lambda peaks, suite: None)
        monkeypatch.setattr(measuring, "claim", self._claim)
        monkeypatch.setattr(self.measurer, "_runner", self._runner)
        monkeypatch.setattr(self.measurer, "_rounds", self._rounds)

    def subject(self) -> Subject:
        bench = SimpleNamespace(threads=THREADS, cpus=(), target=GPU)
        return Subject(
            built=None, suite=None, bench=bench, baselines=None, answers=(), final=False, ledger=None  # type: ignore[arg-type]
        )  # fmt: skip

    async def measure(self, started: object = None) -> Claim:
        return await self.measurer.measure(self.subject(), Stopwatch(), started)  # type: ignore[arg-type]

    @asynccontextmanager
    async def _exclusive(self):
        yield 1

    async def _held(self, token: int) -> bool:
        return token == 1

    async def _calibrate(self, cache: object, *, afresh: bool = False) -> Calibration:
        assert not self.alive, "peaks are measured on a device that nobody has left work to"
        return Calibration(peaks=PEAKS, threads=1, at_s=0.0)

    async def _measure(self, *given: object) -> float:
        assert not self.alive, "what blocks take is measured on a device that nobody has left work to"
        return self.constants.pop(0)

    def _claim(self, *given: object, **options: object) -> Claim:
        status = self.statuses.pop(0)
        return Claim(
            status=status, trust=Trust.NONE, timings=(), speedups=(), evidence=(), median_ns=1.0,
            of_times=status is Status.CHEAT,
        )  # fmt: skip

    async def _runner(self, subject: Subject) -> Process:
        return Process(self, fails=self.fails)

    async def _rounds(self, subject: Subject, started: object) -> list[object]:
        self.timed.append((started, list(self.alive), self.measurer._off_calls_ns))
        return []


@pytest.fixture
def lab(monkeypatch, tmp_path):
    return Lab(monkeypatch, tmp_path)


def run(go):
    return asyncio.run(go())


def test_nobody_is_started_on_a_device_that_the_worker_has_yet_to_measure(lab):
    async def go():
        assert await lab.measurer.start(lab.subject()) is None
        await lab.measure()
        assert await lab.measurer.start(lab.subject()) is not None

    run(go)


def test_what_was_started_is_what_is_timed(lab):
    lab.statuses *= 2

    async def go():
        await lab.measure()
        started = await lab.measurer.start(lab.subject())
        await lab.measure(started)
        assert lab.timed[-1][:2] == (started, [started.runner])

    run(go)


def test_one_process_waits_at_a_time_and_the_next_one_when_that_has_ended(lab):
    async def go():
        await lab.measure()
        both = await asyncio.gather(*(lab.measurer.start(lab.subject()) for _ in range(2)))
        (started,) = (one for one in both if one is not None)
        assert len(lab.alive) == 1
        assert await lab.measurer.start(lab.subject()) is None
        await started.close()
        assert await lab.measurer.start(lab.subject()) is not None

    run(go)


def test_one_that_did_not_start_is_in_nobodys_way(lab):
    async def go():
        await lab.measure()
        lab.fails = True
        with pytest.raises(Retryable):
            await lab.measurer.start(lab.subject())
        lab.fails = False
        assert await lab.measurer.start(lab.subject()) is not None

    run(go)


def test_nobody_waits_on_the_device_while_another_one_is_timed_and_is_begun_anew_in_its_turn(lab):
    lab.statuses *= 3

    async def go():
        await lab.measure()
        started = await lab.measurer.start(lab.subject())
        await lab.measure()
        assert lab.timed[-1][:2] == (None, [])
        await lab.measure(started)
        assert lab.timed[-1][:2] == (None, [])

    run(go)


def test_whoever_asks_second_for_its_end_waits_for_it_too(lab):
    async def go():
        await lab.measure()
        started = await lab.measurer.start(lab.subject())
        first = asyncio.create_task(started.close())
        await asyncio.sleep(0)
        await started.close()
        assert not lab.alive
        await first

    run(go)


@pytest.mark.parametrize(("found", "taken"), [(200_000.0, 200_000.0), (900_000.0, 600_000.0)])
def test_before_a_time_is_called_a_cheat_what_is_taken_off_blocks_is_measured_again_and_the_less_counts(
    lab, found, taken
):
    lab.constants, lab.statuses = [600_000.0, found], [Status.CHEAT, Status.PASSED]
    made = run(lab.measure)
    assert made.status is Status.PASSED
    assert [off_ns for _, _, off_ns in lab.timed] == [600_000.0, taken]


def test_nothing_that_is_taken_off_stays_nothing(lab):
    lab.constants, lab.statuses = [0.0, 300_000.0], [Status.CHEAT, Status.PASSED]
    run(lab.measure)
    assert lab.timed[-1][2] == 0.0
