"""What a block on a GPU takes besides its calls, and what that changes in a claim."""

from __future__ import annotations

import random
import statistics

import pytest

from evaluator_svc import off_calls
from evaluator_svc.samples import CANDIDATE, Measured
from tests.unit.evaluator.contest import ROUND_TRIP_NS, WORK_NS, Baselines, contest, honest

US = 1_000


def blocks(off):
    """Times of short and of long blocks of calls of 30 us that take ``off`` besides."""
    return ([one + calls * 30 * US for one in off] for calls in (off_calls.SHORT, off_calls.LONG))


def test_it_is_what_a_short_block_takes_less_its_calls():
    assert off_calls.besides(*blocks([500 * US] * off_calls.BLOCKS)) == pytest.approx(500 * US)


def test_where_it_scatters_it_is_less_than_its_median_and_near_it():
    draw = random.Random(1)
    found = []
    for _ in range(200):
        off = [draw.lognormvariate(0.0, 0.2) * 400 * US for _ in range(off_calls.BLOCKS)]
        found.append(off_calls.besides(*blocks(off)))
    assert sum(one > 400 * US for one in found) <= 0.05 * len(found)
    assert statistics.median(found) > 0.9 * 400 * US


def test_calls_are_never_taken_for_less_than_nothing():
    assert off_calls.besides([100 * US] * 99, [90 * US] * 99) == 100 * US


def test_no_block_is_less_than_a_quarter_of_what_it_took():
    for off_us, calls_us in ((400, 600), (5_000, 250)):
        one = Measured(samples={}, off_calls_ns=off_us * US)
        assert one.of_calls(1_000 * US) == calls_us * US


def test_it_is_no_part_of_a_candidates_calls_and_a_baselines_are_timed_by_its_device():
    class ByDevice(Baselines):
        async def run(self, which, calls, *, first, span, timeout_s):
            elapsed = await super().run(which, calls, first=first, span=span, timeout_s=timeout_s)
            self.device_ns = self.own_ns - 1_000
            return elapsed

    measured, ledger = contest(honest, pipelined=True, baselines=ByDevice(), off_calls_ns=float(ROUND_TRIP_NS))
    mine, theirs = measured.samples[CANDIDATE], measured.samples["eager"]
    assert statistics.median(mine.block_ns) == pytest.approx(WORK_NS, rel=0.01)
    for taken, calls in zip(theirs.block_ns, theirs.lengths, strict=True):
        assert taken == pytest.approx((10 * WORK_NS * calls - 1_000) / calls)
    told = [call.device_ns / call.calls for call in ledger.calls if (call.contestant, call.stage) == ("eager", "block")]
    assert told == pytest.approx(theirs.block_ns)


def test_its_buffers_are_no_more_than_a_candidates_share_of_a_small_gpu():
    assert [off_calls.sets_of(gib << 30) for gib in (0, 1, 8, 24, 141)] == [off_calls.LONG, 2, 6, 19, off_calls.LONG]
