"""The model of a GPU that is not there: what makes a kernel dearer, what it refuses, and what it believes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc import gpu_model
from evaluator_svc.gpu_model import NotModelled, Traffic, cost, model
from evaluator_svc.hosted.traffic import Kernel, told
from evaluator_svc.kernel_policy import Seen
from evaluator_svc.resources import Report, Resources
from shared import chips
from shared.events import Basis, Bound

CHIPS = ("nvidia-sm_90", "amd-gfx942", "amd-gfx90a")
SHEET = chips.load("nvidia-sm_90")
GPU, BOARD = SHEET.gpu, SHEET.board
assert GPU is not None
assert BOARD is not None
MIB = 1 << 20
ROWS = Traffic(
    name="rows",
    launches=1,
    programs=4096,
    asked=64 * MIB,
    memory=64 * MIB,
    accesses=8192,
    operations=100 * MIB,
    special=16 * MIB,
)
NEEDS = Resources(name="rows", blocks=4096, warps=4, shared=0, registers=40, stack=0)
REPORT = Report(kernels=(NEEDS,))


def ns(kernel: Traffic = ROWS, needs: Resources = NEEDS) -> float:
    return cost(kernel, needs, GPU, BOARD).total


def modelled(*kernels: Traffic, report: Report = REPORT, seen: Seen | None = None, written: int = 0):
    return model(kernels or (ROWS,), report, seen, written, GPU, BOARD)


@pytest.mark.parametrize("chip", CHIPS)
def test_every_gpu_sheet_says_what_its_costs_assume(chip):
    sheet = chips.load(chip)
    assert sheet.board is not None
    assert sheet.gpu is not None
    assert cost(ROWS, NEEDS, sheet.gpu, sheet.board).total > sheet.board.launch_ns


def test_a_copy_costs_its_traffic_at_the_boards_rate_and_a_launch():
    copy = replace(ROWS, operations=0, special=0)
    assert ns(copy) == pytest.approx(BOARD.launch_ns + 64 * MIB / BOARD.bandwidth_gb_s)


@given(st.integers(1, 1 << 32), st.integers(0, 1 << 32))
def test_more_traffic_is_dearer(memory, more):
    less = replace(ROWS, memory=memory, asked=memory)
    assert ns(replace(less, memory=memory + more + 4096, asked=memory + more + 4096, accesses=ROWS.accesses)) >= ns(
        less
    )


def test_traffic_is_dearer_also_where_arithmetic_takes_longer():
    busy = replace(ROWS, operations=1 << 40)
    assert ns(replace(busy, memory=2 * ROWS.memory, asked=2 * ROWS.asked)) > ns(busy)


def test_what_is_asked_again_is_dearer_and_dearest_where_no_cache_holds_it():
    again = replace(ROWS, memory=16 * MIB)
    assert ns(replace(again, asked=16 * MIB)) < ns(again) < ns(ROWS)
    large = replace(ROWS, memory=1024 * MIB, asked=2048 * MIB)
    assert ns(large) == pytest.approx(ns(replace(large, memory=2048 * MIB)))


def asked_again(sectors_since: int) -> float:
    """A kernel that touches more than caches hold and asks for all of it twice."""
    large = replace(ROWS, memory=1024 * MIB, asked=2048 * MIB, programs=1 << 18)
    return ns(replace(large, again={sectors_since.bit_length(): 1024 * MIB}))


def test_what_a_program_asks_again_soon_its_own_cache_still_holds():
    once = ns(replace(ROWS, memory=1024 * MIB, asked=1024 * MIB, programs=1 << 18))
    assert once < asked_again(64) < 1.15 * once


def test_what_all_programs_ask_comes_from_their_caches():
    weights = asked_again(255)  # as much as a program asks for: each finds what the one before it has asked
    assert weights == asked_again(64)
    assert weights < asked_again(1 << 14) < asked_again(1 << 24)


def test_what_was_asked_long_ago_comes_from_memory():
    large = replace(ROWS, memory=1024 * MIB, asked=2048 * MIB, programs=1 << 18)
    assert asked_again(1 << 26) == ns(large)


def test_shared_memory_leaves_less_of_a_cache_that_it_is_cut_from():
    long = replace(ROWS, memory=64 * MIB, asked=128 * MIB, programs=1 << 14, again={8: 64 * MIB})
    assert cost(long, replace(NEEDS, shared=18 << 10), GPU, BOARD).memory > cost(long, NEEDS, GPU, BOARD).memory
    other = chips.load("amd-gfx942")
    assert other.gpu is not None
    assert other.board is not None
    assert other.board.first_kib * 1024 < other.gpu.shared_total


@given(st.integers(0, 30), st.integers(0, 30))
def test_what_was_asked_longer_ago_is_never_cheaper(one, other):
    sooner, later = sorted((one, other))
    assert asked_again(1 << sooner) <= asked_again(1 << later)


@given(st.integers(1, 1 << 16))
def test_spills_are_dearer(stack):
    assert ns(needs=replace(NEEDS, stack=stack)) > ns()


@given(
    st.integers(1, 8192),
    st.sampled_from((1, 2, 4, 8, 16)),
    st.integers(16, 255),
    st.integers(0, 200_000),
    st.integers(0, 100),
    st.integers(0, 20_000),
)
def test_a_lower_occupancy_is_never_cheaper(programs, warps, registers, shared, registers_more, shared_more):
    kernel = replace(ROWS, programs=programs)
    light = replace(NEEDS, warps=warps, registers=registers, shared=shared)
    heavy = replace(light, registers=min(255, registers + registers_more), shared=shared + shared_more)
    assert ns(kernel, heavy) >= ns(kernel, light)


def test_too_few_bytes_in_flight_do_not_reach_the_memorys_rate():
    narrow = replace(ROWS, accesses=ROWS.accesses * 64)
    assert cost(narrow, NEEDS, GPU, BOARD).starved
    assert ns(narrow) > ns()
    assert modelled(narrow).diagnosis.bound is Bound.LATENCY
    assert modelled().diagnosis.bound is Bound.MEMORY


def test_another_launch_is_dearer_by_a_launch():
    twice = replace(ROWS, launches=2, programs=2 * ROWS.programs)
    assert ns(twice) == pytest.approx(ns() + BOARD.launch_ns)
    tiny = replace(ROWS, programs=1, asked=64, memory=64, accesses=2, operations=16, special=0)
    assert modelled(tiny, tiny).estimate.cost > modelled(tiny).estimate.cost
    assert modelled(tiny).diagnosis.bound is Bound.LAUNCH


def test_matrix_units_are_faster_for_narrow_types_and_unknown_types_take_the_slowest():
    def product(kind: str) -> float:
        return ns(replace(ROWS, products={kind: 1 << 36}))

    assert product("fp16") == product("bf16") < product("fp32") < product("fp64") == product("int4")
    assert product("fp8e4nv") < product("fp16")


def test_blocks_that_leave_multiprocessors_idle_are_dearer():
    even = replace(ROWS, programs=GPU.multiprocessors, operations=1 << 36)
    assert ns(replace(even, programs=GPU.multiprocessors + 1)) > ns(even)


def test_an_estimate_is_modelled_in_nanoseconds_with_its_counts():
    made = modelled().estimate
    assert (made.basis, made.unit) == (Basis.MODELLED, "ns")
    assert {count.name: count.value for count in made.counts}["bytes_touched"] == 64 * MIB


def test_nothing_is_below_what_has_to_be_written():
    forged = replace(ROWS, asked=0, memory=0, accesses=0, operations=0, special=0)
    assert modelled(forged, written=1 << 30).estimate.cost >= (1 << 30) / BOARD.bandwidth_gb_s


@pytest.mark.parametrize(
    ("kernels", "report", "library", "why"),
    [
        ((), REPORT, {}, "no launch was counted"),
        ((ROWS,), Report(kernels=()), {}, "the compiler told nothing of kernel rows"),
        ((ROWS,), REPORT, {"aten.mm": (1, 64, 9)}, "library operator aten.mm ran besides"),
    ],
    ids=["no launch", "no resources", "a library's product"],
)
def test_a_missing_fact_makes_no_estimate_and_is_named(kernels, report, library, why):
    with pytest.raises(NotModelled, match=why):
        model(kernels, report, Seen(own={"rows": 1}, library=library, compiled=False), 0, GPU, BOARD)


def test_a_library_operator_that_fills_is_a_launch_of_what_it_writes():
    seen = Seen(own={"rows": 1}, library={"aten.zeros": (1, MIB, 9)}, compiled=False)
    more = modelled(seen=seen).estimate.cost - modelled().estimate.cost
    assert more == pytest.approx(BOARD.launch_ns + 4 * MIB / BOARD.bandwidth_gb_s, abs=2)


def test_the_variant_with_as_many_blocks_is_the_one_that_ran():
    other = replace(NEEDS, blocks=7, stack=4096)
    assert modelled(report=Report(kernels=(other, NEEDS))) == modelled()
    assert modelled(report=Report(kernels=(other,))).estimate.cost > modelled().estimate.cost


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"traffic": 3}', '{"traffic": {"k": {}}}', '{"traffic": {"k": null}}', "[" * 100_000],
)
def test_a_report_of_another_form_tells_nothing(text):
    assert gpu_model.parse(text) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"memory": -1},
        {"memory": 1 << 60},
        {"memory": True},
        {"products": [1]},
        {"again": {"64": 1}},
        {"again": {"x": 1}},
        {"again": {"1": -1}},
    ],
)
def test_numbers_that_are_no_counts_are_not_believed(change):
    counts = dict.fromkeys(("launches", "programs", "asked", "memory", "accesses", "operations", "special"), 1)
    right = counts | {"products": {"fp16": 5}, "again": {"3": 96}}
    assert gpu_model.parse(json.dumps({"traffic": {"k": right}}))[0].products == {"fp16": 5}
    assert gpu_model.parse(json.dumps({"traffic": {"k": right | change}})) == ()


def test_counts_that_do_not_fit_the_page_leave_the_audit_whole():
    audit = {"own": {"k": 1}, "library": {}, "compiled": False, "replays": 0}
    kernels = {f"kernel{n}": Kernel() for n in range(3)}
    whole = told(audit, kernels, 4096)
    assert [kernel.name for kernel in gpu_model.parse(whole)] == list(kernels)
    assert told(audit, kernels, len(whole)) == whole
    cut = told(audit, kernels, len(whole) - 1)
    assert json.loads(cut) == audit
    assert gpu_model.parse(cut) == ()
