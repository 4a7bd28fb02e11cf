"""CUDA and HIP on a machine without the chip: compiled for it, judged as native kernels are, counted and modelled."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace

import pytest

from evaluator_svc.evaluators import evaluator_of, toolchain_of
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.toolchains import BuildFailed, Built, artefacts, gpu
from evaluator_svc.toolchains.build_box import Finished
from evaluator_svc.toolchains.gpu import devices_of
from shared import chips, ids, operators
from shared.events import Basis, Bound, Entry, Evaluation, EvaluationRequested, KernelRef, Purpose, Status, Trust
from shared.ports import open_ports
from shared.settings import PortSettings
from tests.integration.evaluator.pipeline import SETTINGS
from tests.integration.simt.kernels import APART, DOUBLED, GREEDY, HEAD, ON_THE_HOST, SUMMED, deep, unit

CHIPS = {"cuda": "nvidia-sm_90", "hip": "amd-gfx942"}
SHEET = chips.load(CHIPS["cuda"])

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("clang-19") is None, reason="needs clang-19: apt-get install clang-19"),
]

OPERATOR = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x


def get_inputs():
    return [torch.randn(4096)]


def get_init_inputs():
    return []
"""
FIRST_HALF = "{ const int i = ke_block() * ke_threads() + ke_thread(); if (i < 2048) b[i] = 2 * a[i]; }"
SPILLS = """{
  float x[96];
  for (int i = 0; i < 96; ++i) x[i] = a[(ke_thread() * 97 + i * 31) & 4095];
  for (int r = 0; r < 50; ++r)
    for (int i = 0; i < 96; ++i) x[i] = x[(i * 7 + r + ke_thread()) % 96] * 1.01f + x[i];
  float s = 0;
  for (int i = 0; i < 96; ++i) s += x[i];
  b[ke_block() * 256 + ke_thread()] = s;
}"""


def built(source: str, language: str = "cuda") -> Built | BuildFailed:
    return asyncio.run(toolchain_of(CHIPS[language]).build(source, (), language=language))


def judged(*sources: str, language: str = "cuda") -> list[Evaluation]:
    """The verdicts on kernels that should double what they are given."""
    return asyncio.run(_judged(sources, language))


async def _judged(sources: tuple[str, ...], language: str) -> list[Evaluation]:
    settings = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")
    async with open_ports(settings) as ports:
        evaluator = evaluator_of(ports, replace(SETTINGS, chip=CHIPS[language]))
        try:
            spec = operators.parse(OPERATOR, name="operator")
            await ports.store.blobs.put(OPERATOR.encode())
            found = []
            for number, source in enumerate(sources):
                await ports.store.blobs.put(source.encode())
                kernel = KernelRef(
                    kernel_id=f"k{number}",
                    language=language,
                    source_hash=ids.content_hash(source.encode()),
                    flags=(),
                    entry="ke_launch",
                )
                request = EvaluationRequested(
                    search_id="s",
                    evaluation_id=f"e{number}",
                    candidate_id=f"c{number}",
                    kernel=kernel,
                    operator=spec.ref,
                    chip=CHIPS[language],
                    purpose=Purpose.SEARCH,
                )
                found.append(await evaluator.evaluate(request))
            return found
        finally:
            await evaluator.close()


def said(evaluation: Evaluation | BuildFailed, name: str) -> str:
    return next((entry.value for entry in evaluation.evidence if entry.name == name), "")


def test_right_wrong_and_hosted_kernels_get_the_verdicts_they_deserve():
    right, half, host = judged(unit(DOUBLED), unit(FIRST_HALF), HEAD + ON_THE_HOST)
    assert (right.status, right.trust) == (Status.PASSED, Trust.L1)
    assert right.estimate is not None
    assert right.estimate.basis is Basis.MODELLED
    counts = {count.name: count.value for count in right.estimate.counts}
    assert counts["bytes_touched"] == 8 * 4096
    assert counts["programs"] == 16
    assert right.diagnosis is not None
    assert right.diagnosis.bound is Bound.LAUNCH  # 32 KiB
    assert "16 blocks of 8 warps" in said(right, "resources")
    assert "not run there" in said(right, "resources")
    assert "not timed" in said(right, "interpreted")
    assert half.status is Status.WRONG_RESULT
    assert host.status is Status.LAUNCH_FAILED
    assert said(host, "reason") == "host code touches tensors of the chip"


def test_what_goes_wrong_among_the_threads_of_a_block_is_told_with_its_place():
    apart, overflown = judged(unit(APART), deep())
    assert apart.status is Status.RUNTIME_ERROR
    assert "thread 0 at the barrier in line 5, thread 100 at the barrier in line 7" in said(apart, "printed")
    assert overflown.status is Status.RUNTIME_ERROR
    assert "past the end of the stack" in said(overflown, "fault")


def test_launches_that_the_device_would_not_take_have_failed():
    of_256 = unit(DOUBLED)
    two, eight = (of_256.replace("(k, 16, 256,", f"(k, {4096 // n}, {n},") for n in (2048, 512))
    more_than_there_are, more_than_it_is_for = judged(two, eight)
    assert more_than_there_are.status is more_than_it_is_for.status is Status.LAUNCH_FAILED
    assert "did not take a launch" in said(more_than_there_are, "reason")
    assert "512 threads a block, it is compiled for 256" in said(more_than_it_is_for, "reason")


def test_the_same_text_is_judged_for_the_other_vendors_chip():
    (right,) = judged(unit(DOUBLED), language="hip")
    assert right.status is Status.PASSED
    assert right.estimate is not None
    assert "16 blocks of 4 warps" in said(right, "resources")


@pytest.mark.parametrize(("language", "there"), [("cuda", "49152"), ("hip", "65536")])
def test_more_shared_memory_than_a_block_has_is_refused_before_any_launch(language, there):
    found = built(unit(GREEDY), language)
    assert isinstance(found, BuildFailed)
    assert found.status is Status.LAUNCH_FAILED
    assert caught_by(found.evidence) is Layer.LAUNCH
    told = said(found, "resources")
    assert told.startswith("k needs 80000 bytes of shared memory a block")
    assert there in told


@pytest.mark.parametrize("language", ["cuda", "hip"])
def test_compilers_tell_registers_shared_memory_bounds_and_the_mix_of_a_kernel(language):
    found = built(unit(SUMMED.replace("BARRIER", "ke_barrier();")), language)
    assert isinstance(found, Built), found
    assert found.device is not None
    (device,) = devices_of(found.device)
    warp = chips.load(CHIPS[language]).gpu.warp
    assert device.name == "k"
    assert 8 <= device.registers <= 64
    assert (device.stack, device.shared, device.threads) == (0, 4 * 256 // warp, 256)
    assert device.accesses == 2
    assert device.plain > 4


def test_what_goes_to_the_stack_is_told():
    found = built(unit(SPILLS))
    assert isinstance(found, Built), found
    assert found.device is not None
    assert devices_of(found.device)[0].stack >= 96 * 4


def test_a_second_build_is_the_first():
    once, again = built(unit(DOUBLED)), built(unit(DOUBLED))
    assert isinstance(once, Built)
    assert isinstance(again, Built)
    assert (again.digest, again.build_ns) == (once.digest, 0)


@pytest.mark.parametrize("gone", [gpu.COUNTING, gpu.REPORT])
def test_a_kept_build_that_lacks_a_part_is_built_anew(tmp_path, gone):
    toolchain = gpu.GpuToolchain(gpu=SHEET.gpu, language="cuda", directory=tmp_path)
    once = asyncio.run(toolchain.build(unit(DOUBLED), ()))
    assert isinstance(once, Built)
    (once.path.parent / gone).unlink()
    again = asyncio.run(toolchain.build(unit(DOUBLED), ()))
    assert isinstance(again, Built)
    assert (again.digest, again.path) == (once.digest, once.path)
    assert again.build_ns > 0
    assert (again.path.parent / gone).exists()


def test_a_kept_build_whose_record_tells_nothing_is_none(tmp_path):
    kept = asyncio.run(gpu.GpuToolchain(gpu=SHEET.gpu, language="cuda", directory=tmp_path).build(unit(DOUBLED), ()))
    assert isinstance(kept, Built)
    for record in ("{}", "[]", ""):
        (kept.path.parent / artefacts.RECORD).write_text(record)
        assert gpu._find(kept.path.parent, language="cuda") is None


@pytest.mark.parametrize("leaves", [(), (gpu.DEVICE,), (gpu.DEVICE, gpu.ASSEMBLED)])
def test_a_compiler_that_ends_well_and_leaves_nothing_has_failed(tmp_path, monkeypatch, leaves):
    async def run(self, work, arguments, program=None):
        for name in leaves:
            (work / name).write_text("// nothing")
        return Finished(status=0, log="", sandbox="")

    monkeypatch.setattr(gpu.GpuToolchain, "_run", run)
    found = asyncio.run(gpu.GpuToolchain(gpu=SHEET.gpu, language="cuda", directory=tmp_path).build(unit(DOUBLED), ()))
    assert isinstance(found, BuildFailed)
    assert found.status is Status.COMPILE_ERROR
    assert said(found, "first_error").startswith("the build left no")
    assert not list(tmp_path.iterdir())


def test_errors_are_those_of_the_chips_compiler():
    found = built(unit("{ b[0] = undefined_name; }"))
    assert isinstance(found, BuildFailed)
    assert found.status is Status.COMPILE_ERROR
    assert "undefined_name" in said(found, "first_error")


@pytest.mark.parametrize(
    "line",
    ["#ifdef __CUDA_ARCH__", "#include <cuda_runtime.h>", "k<<<1, 2>>>(a);", "int v = __GNUC__;", 'asm("nop");',
     "%:if 1", "#define k j", "int w = ke_simt_place.block;"],
)  # fmt: skip
def test_a_text_that_could_tell_the_emulator_from_the_chip_is_refused(line):
    found = built(f"{line}\n{unit(DOUBLED)}")
    assert isinstance(found, BuildFailed)
    assert caught_by(found.evidence) is Layer.STATIC
    assert "line 1" in said(found, "first_error")


def test_flags_are_refused():
    found = asyncio.run(toolchain_of(CHIPS["cuda"]).build(unit(DOUBLED), ("-O1",), language="cuda"))
    assert isinstance(found, BuildFailed)
    assert found.evidence[-1] == Entry(name="first_error", value="flag '-O1': this language takes none")
