"""Which rule decides, and that any set of counters has an answer."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.profilers.advice import PIPES
from evaluator_svc.profilers.bottleneck import decide
from evaluator_svc.profilers.call import Call
from evaluator_svc.profilers.counters import Counters, Stall
from evaluator_svc.profilers.ncu_report import parse
from evaluator_svc.profilers.told import diagnosis
from evaluator_svc.roofline import Floors
from shared.events import Bound

QUIET = Counters(
    kernel="k", duration_ns=100_000, blocks=1000, threads=128, multiprocessors=132, waves=3.8,
    dram_read_bytes=5e7, dram_written_bytes=5e7, dram_share=0.2, l2_share=0.2, l2_hit=0.5, l1_share=0.2, l1_hit=0.0,
    bank_conflicts=0.0, load_use=1.0, store_use=1.0, memory_share=0.2, compute_share=0.3, tensor_share=0.0,
    fma_share=0.1, alu_share=0.1, special_share=0.1, double_share=0.0, issue_share=0.3, occupancy=0.7,
    occupancy_possible=0.75, occupancy_limiter="registers", registers=40, shared_bytes=0, spill_load_bytes=0,
    spill_store_bytes=0, stalls=(Stall(reason="selected", share=0.5), Stall(reason="long_scoreboard", share=0.4)),
)  # fmt: skip
"""Nothing is near its peak: a kernel that waits for memory."""


def call(measured_ns=105_000.0, **changed):
    return Call(kernels=(replace(QUIET, **changed),), measured_ns=measured_ns, bytes_min=100_000_000)


CASES = [
    ("a call that takes longer than its launch", call(measured_ns=131_000), Bound.LAUNCH, "host"),
    ("fewer blocks than multiprocessors", call(blocks=100), Bound.OCCUPANCY, "few_blocks"),
    ("memory at three quarters", call(dram_share=0.75), Bound.MEMORY, "dram"),
    ("the second level before memory", call(l2_share=0.8), Bound.MEMORY, "second_level"),
    ("memory as busy as the second level", call(l2_share=0.8, dram_share=0.7), Bound.LATENCY, "stall_long_scoreboard"),
    ("the first level", call(l1_share=0.8), Bound.MEMORY, "first_level"),
    ("bank conflicts of a busy first level", call(l1_share=0.5, bank_conflicts=0.2), Bound.MEMORY, "bank_conflicts"),
    ("conflicts that do not matter", call(l1_share=0.1, bank_conflicts=0.2), Bound.LATENCY, "stall_long_scoreboard"),
    *((f"{pipe} at 70 %", call(**{pipe: 0.7}), Bound.COMPUTE, pipe.removesuffix("_share")) for pipe in PIPES),
    ("instructions issued all the time", call(issue_share=0.85), Bound.COMPUTE, "issue"),
    ("part of a wave with nothing busy", call(waves=0.5), Bound.OCCUPANCY, "part_of_a_wave"),
    ("a persistent kernel at the memory's rate", call(waves=0.5, dram_share=0.9), Bound.MEMORY, "dram"),
    ("spills", call(spill_load_bytes=4096), Bound.OCCUPANCY, "spills"),
    ("few warps", call(occupancy=0.1), Bound.OCCUPANCY, "few_warps"),
    ("few warps that feed tensor cores", call(occupancy=0.1, tensor_share=0.5), Bound.LATENCY, "stall_long_scoreboard"),
    ("waiting", call(), Bound.LATENCY, "stall_long_scoreboard"),
    ("waiting at barriers", call(stalls=(Stall(reason="barrier", share=0.6),)), Bound.LATENCY, "stall_barrier"),
    ("waiting for who knows what", call(stalls=()), Bound.LATENCY, "latency"),
    ("a reason that nobody described", call(stalls=(Stall(reason="new", share=0.6),)), Bound.LATENCY, "stall_new"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "seen", "bound", "rule"), CASES, ids=[case[0] for case in CASES])
def test_the_first_rule_that_applies_decides(what, seen, bound, rule):
    answer = decide(seen)
    assert answer.found is not None
    assert (answer.found.bound, answer.found.rule) == (bound, rule)
    assert answer.found.says
    assert "\n" not in answer.found.says
    assert answer.missing == ()


def test_a_rule_whose_counter_is_missing_is_not_taken_and_says_so():
    answer = decide(call(dram_share=None, l1_share=0.9))
    assert answer.found is not None
    assert answer.found.rule == "first_level"
    assert answer.missing == ("dram_share",)


def test_nothing_is_concluded_from_rates_that_nobody_told():
    answer = decide(call(dram_share=None))
    assert answer.found is None
    assert "dram_share" in answer.missing
    assert decide(call(compute_share=None, issue_share=None, alu_share=None)).found is None


def test_missing_spills_are_no_absence_of_spills():
    told = {entry.name for entry in diagnosis(call(spill_load_bytes=None), "tool").evidence}
    assert "spills" not in told
    assert "spills" in {entry.name for entry in diagnosis(call(), "tool").evidence}


def test_no_launches_decide_nothing():
    answer = decide(Call(kernels=()))
    assert (answer.found, answer.missing) == (None, ("launches",))
    assert diagnosis(Call(kernels=()), "tool").bound is Bound.UNKNOWN


def test_launches_are_added_up_and_the_longest_is_looked_at():
    short, long = replace(QUIET, kernel="short", duration_ns=1000), replace(QUIET, kernel="long", dram_share=0.9)
    seen = Call(kernels=(short, long), measured_ns=105_000, bytes_min=50_000_000)
    found = diagnosis(seen, "tool")
    evidence = {entry.name: entry.value for entry in found.evidence}
    assert found.bound is Bound.MEMORY
    assert "moves 4.0 times what it must" in found.summary
    assert evidence["kernel"] == "long"
    assert evidence["launches"].startswith("2 launches, 101.0 µs on the device")


def test_a_call_whose_launches_are_not_all_there_is_not_called_launch_bound():
    answer = decide(replace(call(measured_ns=1e9), complete=False))
    assert answer.found is not None
    assert answer.found.bound is not Bound.LAUNCH
    assert answer.missing == ("duration_ns",)


def test_many_launches_are_advised_to_be_one():
    answer = decide(Call(kernels=(QUIET,) * 5, measured_ns=1e6))
    assert answer.found is not None
    assert "5 launches" in answer.found.says
    assert "fused" in answer.found.says


def test_evidence_has_the_numbers_and_the_distance_to_the_speed_of_light():
    bounds = Floors(memory_ns=60_000, compute_ns=0, level="memory")
    sample = parse((Path(__file__).parent / "profiles" / "ncu_softmax.csv").read_text()).kernels
    found = diagnosis(Call(kernels=sample, measured_ns=75_000, bytes_min=268_435_456, floors=bounds), "ncu")
    evidence = {entry.name: entry.value for entry in found.evidence}
    assert found.bound is Bound.MEMORY
    assert evidence["counted_by"] == "ncu"
    assert evidence["speed_of_light"] == "80%: the floor is 60.0 µs"
    assert (
        evidence["dram"]
        == "78% of the peak rate, 134.3 MB read, 129.9 MB written, the call moves 0.98 times what it must"
    )
    assert evidence["occupancy"].endswith(
        "limited by registers, 40 registers a thread, 1088 bytes of shared memory a block"
    )
    assert evidence["stalls"].startswith("long_scoreboard 62%")
    assert evidence["spills"] == "0"
    assert "not_told" not in evidence


def test_a_short_last_wave_and_scattered_accesses_are_noted():
    noted = {e.name: e.value for e in diagnosis(call(waves=2.25, load_use=0.25, bank_conflicts=0.05), "tool").evidence}
    assert noted["tail"] == "the last of 3 waves fills 25% of the chip"
    assert noted["scattered_loads"] == "25% of the bytes moved are used"
    assert noted["bank_conflicts"].startswith("5%")


NUMBERS = [f.name for f in fields(Counters) if f.name not in ("kernel", "stalls", "occupancy_limiter")]
ANY = st.fixed_dictionaries(
    {name: st.none() | st.floats(min_value=0, max_value=1e12) for name in NUMBERS}
    | {
        "kernel": st.just("k"),
        "occupancy_limiter": st.sampled_from([None, "registers"]),
        "stalls": st.lists(
            st.builds(Stall, reason=st.sampled_from(["barrier", "selected", "x"]), share=st.floats(0, 1)), max_size=3
        ).map(tuple),
    }
)


@given(st.lists(ANY.map(lambda told: Counters(**told)), max_size=3).map(tuple), st.floats(0, 1e12), st.booleans())
def test_any_set_of_counters_has_an_answer(kernels, measured_ns, complete):
    seen = Call(kernels=kernels, measured_ns=measured_ns, bytes_min=1000, complete=complete)
    found = diagnosis(seen, "tool")
    assert found.summary
    assert all(entry.value for entry in found.evidence)
    answer = decide(seen)
    assert (answer.found is None) == (found.bound is Bound.UNKNOWN)
    if kernels and answer.found is None:
        assert answer.missing
