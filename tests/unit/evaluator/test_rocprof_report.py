"""What rocprofv3 is documented to write is read, by samples that were written after the documentation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_svc.profilers import rocprof
from evaluator_svc.profilers.bottleneck import decide
from evaluator_svc.profilers.call import Call
from evaluator_svc.profilers.rocprof_report import GROUPS, counters, from_csv, from_json, last_of_each, together
from shared import chips
from shared.events import Bound

SAMPLES = Path(__file__).parent / "profiles"
BANDWIDTH = 5.3e12


def runs():
    return [from_csv((SAMPLES / f"rocprof_softmax_{name}.csv").read_text()) for (name, *_) in GROUPS if _kept(name)]


def _kept(name):
    return (SAMPLES / f"rocprof_softmax_{name}.csv").exists()


def gpu(chip="amd-gfx942"):
    found = chips.load(chip).gpu
    assert found is not None
    return found


def test_runs_are_put_together_by_kernel_and_by_how_often_it_ran():
    first, second = together(runs())
    assert first.counted["FETCH_SIZE"] == 131180.5
    assert second.counted == {
        "FETCH_SIZE": 131072, "WRITE_SIZE": 131072, "L2CacheHit": 49.8, "VALUBusy": 21.5, "OccupancyPercent": 62.563927
    }  # fmt: skip
    assert last_of_each((first, second)) == (second,)


@pytest.mark.parametrize("chip", ["amd-gfx942", "amd-gfx90a"])
def test_counters_get_their_units_and_the_chips_arithmetic(chip):
    found = counters(last_of_each(together(runs()))[0], gpu(chip), BANDWIDTH)
    assert found.dram_read_bytes == 131072 * 1024
    assert found.duration_ns == 64_000
    assert found.dram_share == pytest.approx(2 * 131072 * 1024 / 64e-6 / BANDWIDTH)
    assert found.blocks == 16384
    assert found.registers == 40
    assert found.occupancy == pytest.approx(0.62563927)
    assert found.occupancy_limiter
    assert found.waves is not None
    assert found.spilled == 0


def test_what_no_run_counted_is_not_told():
    found = counters(last_of_each(together(runs()))[0], gpu(), BANDWIDTH)
    assert found.tensor_share is None
    assert found.l1_share is None
    assert found.bank_conflicts is None
    assert counters(together(runs()[:1])[1], gpu(), BANDWIDTH).dram_share is None
    assert counters(last_of_each(together(runs()))[0], gpu(), None).dram_share is None


def test_a_softmax_near_the_memorys_rate_is_memory_bound_by_the_same_rules():
    found = counters(last_of_each(together(runs()))[0], gpu(), BANDWIDTH)
    answer = decide(Call(kernels=(found,), measured_ns=70_000, bytes_min=268_435_456))
    assert answer.found is not None
    assert answer.found.bound is Bound.MEMORY


def test_scratch_is_a_spill():
    launch = replace(last_of_each(together(runs()))[0], scratch=48.0, begin_ns=0, end_ns=400_000)
    answer = decide(Call(kernels=(counters(launch, gpu(), BANDWIDTH),), measured_ns=400_000))
    assert answer.found is not None
    assert (answer.found.bound, answer.found.rule) == (Bound.OCCUPANCY, "spills")


def test_json_says_the_same_and_counts_of_instances_are_added():
    (launch,) = from_json((SAMPLES / "rocprof_softmax.json").read_text())
    assert launch.counted == {"FETCH_SIZE": 131072}
    assert launch.duration_ns == 64_000
    assert (launch.items, launch.threads, launch.scratch) == (4194304, 256, 16)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "nonsense", '{"rocprofiler-sdk-tool": []}', '"Dispatch_Id"\n1\n', "[" * 9999]
)
def test_what_is_no_report_has_no_launches(text):
    assert from_csv(text) == ()
    assert from_json(text) == ()


def test_no_runs_are_no_launches():
    assert together([]) == ()
    assert together([(), ()]) == ()


def test_a_command_counts_one_group_and_writes_where_it_is_looked_for():
    lines = rocprof.commands(Path("/opt/rocm/bin/rocprofv3"), "/build", ("python3", "one_call.py", "call.json"))
    assert len(lines) == len(GROUPS)
    first = lines[0]
    assert first[:3] == ("/opt/rocm/bin/rocprofv3", "--pmc", "FETCH_SIZE")
    assert first[first.index("--") + 1 :] == ("python3", "one_call.py", "call.json")
    assert first[first.index("--output-file") + 1] == rocprof.output(0)
    assert rocprof.written(0)[0] == "counted-0_counter_collection.csv"
