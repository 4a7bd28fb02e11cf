"""What a claim is divided by when calls on fresh values cost more than those that repeat."""

from __future__ import annotations

import pytest

from evaluator_svc.recall import discount, remembers
from evaluator_svc.samples import CANDIDATE, Measured, Samples

US = 1_000.0


def measured(fresh_ns, block_ns):
    """A candidate's own times, and a baseline on which fresh values cost nothing."""
    mine = Samples(own_fresh_ns=[fresh_ns] * 12, own_block_ns=[block_ns] * 12, lengths=[4, 8] * 6)
    baseline = Samples(own_fresh_ns=[500 * US] * 12, own_block_ns=[500 * US] * 12)
    return [Measured(samples={CANDIDATE: mine, "eager": baseline})]


def discounted(fresh_ns, block_ns, *, traffic_ns=0.0):
    return discount(measured(fresh_ns, block_ns), memory_traffic_ns=traffic_ns, overhead_ns=0.0)


def test_who_leaves_out_a_third_of_the_calls_of_a_block_is_claimed_for_whole_ones():
    assert discounted(300 * US, 200 * US) == pytest.approx(1.5)


@pytest.mark.parametrize("fresh_us", [190, 200, 210, 214])
def test_the_scatter_of_single_calls_costs_nobody_anything(fresh_us):
    assert discounted(fresh_us * US, 200 * US) == 1.0


def test_what_caches_explain_is_not_taken_off():
    assert discounted(300 * US, 200 * US, traffic_ns=300 * US) == 1.0


@pytest.mark.parametrize(("fresh_ns", "block_ns"), [(10 * US, 0), (0, 10 * US), (0, 0)])
def test_a_clock_that_says_that_nothing_took_time_gains_nothing_and_breaks_nothing(fresh_ns, block_ns):
    assert discounted(fresh_ns, block_ns) >= 1.0
    remembers(measured(fresh_ns, block_ns), memory_traffic_ns=0.0, overhead_ns=0.0)


def test_a_second_thread_that_burns_time_in_a_block_hides_nothing_from_the_clock_on_the_wall():
    found = measured(200 * US, 200 * US)
    mine = found[0].samples[CANDIDATE]
    mine.fresh_ns, mine.block_ns = [220 * US] * 12, [100 * US] * 12
    assert discount(found, memory_traffic_ns=0.0, overhead_ns=0.0) == 1.0
    assert discount(found, memory_traffic_ns=0.0, overhead_ns=0.0, round_trip_ns=20 * US) == pytest.approx(2.0)


def test_without_a_call_on_fresh_values_there_is_nothing_to_compare():
    alone = [Measured(samples={CANDIDATE: Samples(own_block_ns=[US] * 4)})]
    assert discount(alone, memory_traffic_ns=0.0, overhead_ns=0.0) == 1.0
