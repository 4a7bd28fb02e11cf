"""A worker's probe of itself, through its real boxes, judge and clock; and what it makes of a worker that is broken."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from evaluator_svc.canary import CHEATS, KERNELS, Canary
from evaluator_svc.noise_floor import NoiseFloor
from evaluator_svc.poison import Poison
from evaluator_svc.toolchains.cpu import CpuToolchain
from shared.events import Status
from tests.integration.evaluator import pipeline

CPUS = (0,)


@pytest.fixture(scope="module")
def worker():
    with pipeline.bench() as made:
        yield made


def canary(worker, **changed):
    evaluator = worker.evaluator
    return Canary(CpuToolchain(), evaluator._device, Poison(), evaluator.settings, **changed)


def test_a_sound_worker_passes_its_own_probe_in_which_every_known_cheat_is_caught(worker):
    found = worker.loop.run(canary(worker).judge(CPUS, cheats=len(CHEATS)))
    assert found.fault == ""
    assert set(found.tried) == {"right", *CHEATS}


def test_a_cheat_that_passes_is_a_fault_that_names_it(worker, tmp_path):
    for name in ("right", "zeros"):
        (tmp_path / f"{name}.cpp").write_text((KERNELS / "right.cpp").read_text())
    broken = canary(worker, kernels=tmp_path, cheats={"zeros": (Status.WRONG_RESULT,)})
    assert worker.loop.run(broken.judge(CPUS, cheats=1)).fault == "the known cheat `zeros` passed"


def test_a_cheat_that_fails_in_another_way_is_a_fault_too(worker, tmp_path):
    (tmp_path / "right.cpp").write_text((KERNELS / "right.cpp").read_text())
    (tmp_path / "zeros.cpp").write_text("#error\n")
    broken = canary(worker, kernels=tmp_path, cheats={"zeros": (Status.WRONG_RESULT,)})
    assert "COMPILE_ERROR" in worker.loop.run(broken.judge(CPUS, cheats=1)).fault


def test_a_right_kernel_that_is_refused_is_a_fault(worker, tmp_path):
    (tmp_path / "right.cpp").write_text((KERNELS / "zeros.cpp").read_text())
    fault = worker.loop.run(canary(worker, kernels=tmp_path, cheats={}).judge(CPUS, cheats=0)).fault
    assert fault.startswith("a kernel that is right was refused: WRONG_RESULT")


def test_a_pair_of_equal_kernels_goes_into_the_workers_history(worker, tmp_path):
    settings = replace(worker.evaluator.settings, cache=tmp_path)
    probe = Canary(CpuToolchain(), worker.evaluator._device, Poison(), settings)
    found = worker.loop.run(probe.clock(CPUS))
    assert "refused" not in found.fault
    assert len(NoiseFloor(tmp_path).history(1)) in (len(found.tried), len(found.tried) - 1)


def test_the_evaluator_probes_itself(worker):
    assert worker.loop.run(worker.evaluator.probe(thorough=False)).healthy


def test_a_history_that_was_torn_by_a_crash_is_begun_again(tmp_path):
    floor = NoiseFloor(tmp_path)
    floor.add(1, 0.01)
    (file,) = (tmp_path / "equal-pairs").iterdir()
    file.write_text(file.read_text()[:5])
    assert floor.history(1) == []
    floor.add(1, 0.02)
    assert floor.history(1) == [0.02]


def test_histories_are_by_number_of_threads_and_take_no_nonsense(tmp_path):
    floor = NoiseFloor(tmp_path)
    floor.add(1, 0.01)
    assert floor.history(2) == []
    with pytest.raises(ValueError, match="no log-ratio"):
        floor.add(1, float("nan"))


def test_a_missing_compiler_is_a_fault_and_no_exception(worker, tmp_path):
    class Gone(CpuToolchain):
        async def build(self, source, flags, *, language="cpp"):
            raise OSError("no compiler")

    broken = Canary(Gone(), worker.evaluator._device, Poison(), worker.evaluator.settings)
    assert "no compiler" in asyncio.run(broken.judge(CPUS, cheats=0)).fault
