"""What a claim is divided by when calls on new values cost more than those on known ones."""

from __future__ import annotations

import pytest

from evaluator_svc.recall import discount, remembers
from evaluator_svc.samples import CANDIDATE, Block, Measured, Novelty, Samples

US = 1_000.0


def measured(pairs, *, wall=None):
    """``pairs``: a call on new and on known values, ns of work, in blocks of 4 and of 10 calls."""
    novelty = [
        Novelty(
            new=Block(calls=4, wall_ns=4 * (wall or (new, known))[0], own_ns=4 * new),
            known=Block(calls=10, wall_ns=10 * (wall or (new, known))[1], own_ns=10 * known),
        )
        for new, known in pairs
    ]
    return [Measured(samples={CANDIDATE: Samples()}, novelty=novelty)]


def test_who_leaves_out_a_third_on_known_values_is_claimed_for_new_ones():
    assert discount(measured([(300 * US, 200 * US)] * 8), overhead_ns=0.0) == pytest.approx(1.5)


@pytest.mark.parametrize("new_us", [190, 200, 205, 209])
def test_the_scatter_of_blocks_costs_nobody_anything(new_us):
    assert discount(measured([(new_us * US, 200 * US)] * 8), overhead_ns=0.0) == 1.0


def test_a_few_pairs_that_disagree_cost_nobody_anything():
    pairs = [(300 * US, 200 * US)] * 5 + [(190 * US, 200 * US)] * 3
    assert discount(measured(pairs), overhead_ns=0.0) == 1.0
    assert discount(measured([(300 * US, 200 * US)] * 3), overhead_ns=0.0) == 1.0


def test_the_command_around_a_block_is_no_part_of_its_calls():
    # 40 us in 4 calls and in 10.
    pairs = [(30 * US, 24 * US)] * 8
    assert discount(measured(pairs), overhead_ns=40 * US) == 1.0
    assert discount(measured(pairs), overhead_ns=0.0) > 1.0


def test_an_accusation_takes_half_a_gain_in_nearly_all_pairs():
    assert not remembers(measured([(290 * US, 200 * US)] * 8), overhead_ns=0.0)
    assert not remembers(measured([(500 * US, 200 * US)] * 5 + [(200 * US, 200 * US)] * 3), overhead_ns=0.0)
    assert remembers(measured([(500 * US, 200 * US)] * 7 + [(200 * US, 200 * US)]), overhead_ns=0.0)


@pytest.mark.parametrize("pair", [(10 * US, 0), (0, 10 * US), (0, 0)])
def test_a_clock_that_says_that_nothing_took_time_gains_nothing_and_breaks_nothing(pair):
    assert discount(measured([pair] * 8), overhead_ns=0.0) >= 1.0
    remembers(measured([pair] * 8), overhead_ns=0.0)


def test_a_second_thread_that_burns_time_in_a_block_hides_nothing_from_the_clock_on_the_wall():
    found = measured([(200 * US, 200 * US)] * 8, wall=(200 * US, 100 * US))
    assert discount(found, overhead_ns=0.0) == 1.0
    assert discount(found, overhead_ns=0.0, round_trip_ns=0.0) == pytest.approx(2.0)


def test_without_blocks_on_new_values_there_is_nothing_to_compare():
    assert discount(measured([]), overhead_ns=0.0) == 1.0


def in_flight(new_us, known_us, *, claimed_us, besides_us, calls=2, pairs=8):
    """Blocks of calls in flight together, of which ``besides_us`` are no call, and are not claimed either."""

    def block(call_us):
        whole = (besides_us + calls * call_us) * US
        return Block(calls=calls, wall_ns=whole, own_ns=whole)

    novelty = [Novelty(new=block(new_us), known=block(known_us))] * pairs
    samples = {CANDIDATE: Samples(block_ns=[claimed_us * US] * 22)}
    return [Measured(samples=samples, novelty=novelty, pipelined=True, alike=True, off_calls_ns=besides_us * US)]


def test_what_a_block_takes_besides_its_calls_hides_no_memory_where_it_is_not_claimed():
    # Of 100 us a call, 80 are left out on known values; with 600 us in each block that is a quarter of it.
    found = in_flight(100, 20, claimed_us=20, besides_us=600)
    assert discount(found, overhead_ns=100 * US) == pytest.approx(5.0)


def test_nor_does_it_make_an_honest_kernel_one_that_remembers():
    assert discount(in_flight(70, 70, claimed_us=70, besides_us=600), overhead_ns=100 * US) == 1.0
    assert discount(in_flight(70, 70, claimed_us=0, besides_us=600), overhead_ns=100 * US) == 1.0
