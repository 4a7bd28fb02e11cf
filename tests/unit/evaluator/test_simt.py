"""What compilers' texts and an emulator's line tell of a GPU's kernels, and what is made of them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from evaluator_svc.judge import Verdict
from evaluator_svc.runner.process import Ran
from evaluator_svc.simt import assembly, judging
from evaluator_svc.simt.assembly import Device
from evaluator_svc.toolchains import Built
from shared.events import Status

PTX = """
.visible .entry g0(
	.param .u64 g0_param_0
)
.maxntid 128, 1, 1
{
	.shared .align 4 .b8 parts[16];
	.shared .align 8 .f64 one;
	ld.param.u64 	%rd1, [g0_param_0];
	ld.global.nc.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd1];
	ld.global.nc.f32 	%f5, [%rd1];
	add.f32 	%f6, %f1, %f2;
	@%p1 bra 	$L__BB0_2;
$L__BB0_1:
	ld.global.f32 	%f7, [%rd1];
	ex2.approx.ftz.f32 	%f8, %f6;
	fma.rn.f32 	%f9, %f8, %f8, %f6;
$L__BB0_2:
	st.global.f32 	[%rd1], %f9;
	ret;
}
.visible .entry g1(
	.param .u64 g1_param_0
)
{
	st.global.f32 	[%rd1], %f9;
	ret;
}
"""
PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'g1' for 'sm_90'
ptxas info    : Function properties for g1
    384 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, 384 bytes cumulative stack size
ptxas info    : Compiling entry function 'g0' for 'sm_90'
ptxas info    : Function properties for g0
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 24 bytes smem
"""
"""As ptxas of CUDA 12.8 and 13 prints it."""
DEVICE = Device(
    name="k", registers=40, stack=0, shared=0, threads=256, accesses=2, plain=10, special=2, burst=4
)  # fmt: skip
LINE = {"name": "k", "launches": 2, "blocks": 32, "threads": 256, "asked": 65536, "memory": 32768, "accesses": 512,
        "lanes": 16384}  # fmt: skip


def moved(tmp_path: Path, printed: str, *devices: Device) -> judging.Moved:
    report = tmp_path / "device.json"
    report.write_text(json.dumps([asdict(one) for one in devices or (DEVICE,)]))
    built = Built(path=tmp_path, digest="", log="", build_ns=0, sandbox="", language="cuda", device=report)
    ran = Ran(elapsed_ns=1, runner_ns=1, cpu_ns=1, return_code=0)
    return judging.moved(ran, printed, built, Verdict(), 32)


def line(**changed: object) -> str:
    told = {"complete": True, "host": False, "kernels": [LINE], **changed}
    return json.dumps({"simt": told}, separators=(",", ":"))


def test_resources_and_the_mix_of_instructions_are_read_from_ptx_and_its_assembler():
    g0, g1 = assembly.nvidia(PTX, PTXAS, 1024)
    assert g0 == Device(
        name="g0", registers=40, stack=0, shared=24, threads=128, accesses=4, plain=2, special=1, burst=2
    )
    assert (g1.registers, g1.stack, g1.shared, g1.threads) == (12, 384, 0, 1024)


def test_declared_shared_memory_is_known_before_the_assembler_runs():
    assert assembly.shared_of_ptx(PTX) == {"g0": 24, "g1": 0}
    assert assembly.shared_of_ptx("// nothing") == {}


def test_kernels_that_the_assembler_told_nothing_of_are_left_out():
    assert assembly.nvidia(PTX, "", 1024) == ()


def test_too_much_local_memory_is_told_by_kernel():
    log = "k.cu:3:51: error: local memory (80000) exceeds limit (65536) in 'rows'"
    assert assembly.beyond_lds(log) == "rows needs 80000 bytes of shared memory a block, there are 65536"
    assert not assembly.beyond_lds("k.cu:3: error: something else")


def test_counts_of_warps_become_those_of_blocks_with_all_that_is_in_flight(tmp_path):
    found = moved(tmp_path, f"noise of the kernel's own\n{line()}\n")
    assert found.verdict.passed
    (traffic,) = found.traffic
    assert (traffic.launches, traffic.programs, traffic.asked, traffic.memory) == (2, 32, 65536, 32768)
    assert traffic.accesses == 512 // (8 * 4)
    assert (traffic.operations, traffic.special) == (16384 // 2 * 10, 16384)
    assert found.grids == (("k", 16, 256),)


def test_a_kernel_that_the_compiler_does_not_know_is_not_modelled(tmp_path):
    assert moved(tmp_path, line(kernels=[LINE | {"name": "other"}])).traffic == ()
    assert moved(tmp_path, line(complete=False)).traffic == ()


def test_kernels_are_known_by_their_whole_names(tmp_path):
    names = [f"a_kernel_whose_name_says_all_that_it_does_and_to_what_{n}" for n in (1, 2)]
    found = moved(
        tmp_path, line(kernels=[LINE | {"name": name} for name in names]), *(replace(DEVICE, name=n) for n in names)
    )
    assert [one.name for one in found.traffic] == names


def test_more_threads_than_a_kernel_is_bound_to_convict(tmp_path):
    found = moved(tmp_path, line(kernels=[LINE | {"threads": 512}]))
    assert found.verdict.status is Status.LAUNCH_FAILED
    reason = next(entry.value for entry in found.verdict.evidence if entry.name == "reason")
    assert reason == "k is launched with 512 threads a block, it is compiled for 256"


def test_no_launch_and_work_on_the_host_convict(tmp_path):
    assert moved(tmp_path, line(kernels=[])).verdict.status is Status.NO_CUSTOM_KERNEL
    assert moved(tmp_path, line(host=True)).verdict.status is Status.LAUNCH_FAILED


@pytest.mark.parametrize(
    "printed",
    ["", "{}", '{"simt":', '{"simt":{}}', '{"simt":[]}', line(kernels=[{"name": "k"}]), line(kernels=7),
     *(line(kernels=[LINE | wrong]) for wrong in ({"asked": -1}, {"lanes": 1e9}, {"launches": 0}))],
)  # fmt: skip
def test_a_line_of_another_form_models_nothing_and_acquits_nobody_it_convicts(tmp_path, printed):
    found = moved(tmp_path, printed)
    assert found.traffic == ()
