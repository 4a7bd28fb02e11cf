"""The class follows the evidence: roofline first, then the loops."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from evaluator_svc.diagnosis import Profile, diagnose
from evaluator_svc.loops import LoopFacts, Throughput, innermost
from evaluator_svc.mca import parse, throughputs
from evaluator_svc.roofline import Floors
from shared.events import Bound

UNKNOWN = Profile(loops_reason="no tool", throughputs_reason="no tool")


def floors(memory=0.0, compute=0.0):
    return Floors(memory_ns=memory, compute_ns=compute, level="L3")


def loop(packed=8, scalar=0, spills=0, calls=()):
    return LoopFacts(
        label=".L3", instructions=("nop",), packed=packed, scalar=scalar, spills=spills, vector_bits=512, calls=calls
    )


CASES = [
    ("near the bandwidth", floors(memory=70_000), 100_000, UNKNOWN, Bound.MEMORY),
    ("near the peak rate", floors(memory=10_000, compute=80_000), 100_000, UNKNOWN, Bound.COMPUTE),
    ("a very short call", floors(memory=100), 5_000, UNKNOWN, Bound.LAUNCH),
    ("spills", floors(memory=10_000), 100_000, Profile(loops=(loop(spills=4),)), Bound.LATENCY),
    ("a call in the loop", floors(memory=10_000), 100_000, Profile(loops=(loop(calls=("erff",)),)), Bound.COMPUTE),
    ("scalar code", floors(memory=10_000), 100_000, Profile(loops=(loop(packed=1, scalar=9),)), Bound.COMPUTE),
    (
        "waiting for results",
        floors(memory=10_000),
        100_000,
        Profile(loops=(loop(),), throughputs=(Throughput(loop=".L3", cycles=20, port_cycles=5, cpu="native"),)),
        Bound.LATENCY,
    ),
    ("instructions", floors(memory=10_000), 100_000, Profile(loops=(loop(),)), Bound.COMPUTE),
    ("a third of the bandwidth", floors(memory=40_000), 100_000, UNKNOWN, Bound.MEMORY),
]


@pytest.mark.parametrize(("what", "bounds", "time", "profile", "expected"), CASES, ids=[c[0] for c in CASES])
def test_the_bound_follows_the_evidence(what, bounds, time, profile, expected):
    found = diagnose(bounds, time, profile)
    assert found.bound is expected
    assert found.summary
    assert "\n" not in found.summary


def test_missing_tools_and_unknown_peaks_are_said_not_guessed():
    entries = {e.name: e.value for e in diagnose(floors(), 100_000, UNKNOWN).evidence}
    assert entries["hot_loops"] == "unavailable: no tool"
    assert entries["llvm_mca"] == "unavailable: no tool"
    assert entries["memory_floor_ns"].startswith("unavailable")
    assert entries["compute_floor_ns"].startswith("unavailable")


ASSEMBLY = """
ke_launch:
        movq    (%rdi), %rax
.L2:
        xorl    %ecx, %ecx
.L3:
        vmovups (%rax,%rcx), %zmm0
        vaddps  %zmm0, %zmm1, %zmm1
        vfmadd231ps 64(%rax,%rcx), %zmm0, %zmm2
        vmovaps %zmm2, 64(%rsp)
        addq    $64, %rcx
        cmpq    %rdx, %rcx
        jne     .L3
        incq    %rsi
        jne     .L2
.L5:
        vaddss  (%rax), %xmm0, %xmm0
        addq    $4, %rax
        jne     .L5
.L6:
        decq    %rax
        jne     .L6
        ret
"""


def test_innermost_loops_are_cut_out_with_their_facts():
    vector, scalar = innermost(ASSEMBLY)
    assert (vector.label, vector.packed, vector.scalar, vector.spills, vector.vector_bits) == (".L3", 2, 0, 1, 512)
    assert (scalar.label, scalar.packed, scalar.scalar) == (".L5", 0, 1)
    assert not any(text.startswith("j") for text in vector.instructions)


def test_registers_saved_around_a_call_are_no_spills():
    text = ASSEMBLY.replace(
        "        addq    $64, %rcx\n", "        call    _ZGVeN16v_erff@PLT\n        addq    $64, %rcx\n"
    )
    assert (innermost(text)[0].calls, innermost(text)[0].spills) == (("_ZGVeN16v_erff",), 0)


def test_a_report_without_figures_is_no_throughput():
    report = "Iterations:        100\nTotal Cycles:      1234\n\nBlock RThroughput: 4.5\n"
    assert parse(report, ".L3", "native") == Throughput(loop=".L3", cycles=12.34, port_cycles=4.5, cpu="native")
    assert parse("error: unknown instruction", ".L3", "native") is None


def test_the_tool_is_asked_about_a_loop_once(tmp_path, monkeypatch):
    report, asked = "[0] Code Region\nTotal Cycles:      1234\nBlock RThroughput: 4.5\n", tmp_path / "asked"
    tool = tmp_path / "llvm-mca"
    tool.write_text(f"#!/bin/sh\ncat >/dev/null\necho >>{asked}\nprintf '{report}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for _ in range(2):
        (found,), reason = asyncio.run(throughputs([replace(loop(), vector_bits=256)]))
        assert (found.cycles, found.port_cycles, reason) == (12.34, 4.5, "")
    assert asked.read_text() == "\n"
