"""Who writes: the configured share before there are results, and gain per cost after."""

from __future__ import annotations

from collections import Counter

from shared.events import ExpansionRequested, Memory, OperatorRef, WriterRecord
from synthesizer_svc.asking.share import assign

ARMS = ("schedule", "moves", "rewrite")
HOUR = 1_000_000
SECOND_NS = 1_000_000_000


def request(number=0, count=4, writers=()):
    return ExpansionRequested(
        search_id="s",
        expansion_id=f"e{number}",
        operator=OperatorRef(name="op", source_hash="h"),
        chip="cpu-x86_64",
        languages=("cpp",),
        seed=number,
        count=count,
        memory=Memory.PARENT,
        writers=writers,
    )


def record(writer, attempts=16, gains=0, *, gain_micro=0, seconds=16, cost_micro=0):
    return WriterRecord(
        writer=writer,
        attempts_milli=attempts * 1000,
        gains_milli=gains * 1000,
        gain_micro=gain_micro,
        time_ns=seconds * SECOND_NS,
        cost_micro=cost_micro,
    )


def shares(writers=(), arms=ARMS, share=50, expansions=400):
    found = Counter()
    for number in range(expansions):
        found.update(assign(request(number, writers=writers), arms, share_percent=share, machine_hour_micro=HOUR))
    return {arm: found[arm] / found.total() for arm in found}


def test_before_there_are_results_the_share_holds_and_the_ways_of_asking_take_turns():
    found = shares(share=30)
    assert abs(found["schedule"] - 0.7) < 0.04
    assert abs(found["moves"] - found["rewrite"]) < 0.04


def test_one_way_of_asking_keeps_its_share_whatever_its_results():
    bad = (record("schedule", gains=8, gain_micro=800_000), record("whole"))
    assert abs(shares(bad, ("schedule", "rewrite"))["rewrite"] - 0.5) < 0.04


def test_the_share_of_none_and_of_all_stays():
    paid = (record("whole", gains=16, gain_micro=9_000_000), record("schedule", gains=16, gain_micro=9_000_000))
    assert shares(paid, share=0) == {"schedule": 1.0}
    assert "schedule" not in shares(paid, share=100)
    assert shares(paid, ("moves", "rewrite"), share=50).keys() == {"moves", "rewrite"}
    assert shares(paid, ("rewrite",), share=0) == {"rewrite": 1.0}


def test_what_gains_more_for_its_cost_is_asked_more_and_nothing_is_forgotten():
    writers = (
        record("schedule", gains=2, gain_micro=100_000),
        record("moves", gains=8, gain_micro=1_600_000),
        record("whole", gains=1, gain_micro=50_000),
    )
    found = shares(writers)
    assert found["moves"] > 0.7
    assert min(found["schedule"], found["rewrite"]) > 0.01


def test_money_and_time_count_alike():
    equal = {"gains": 8, "gain_micro": 800_000}
    hour = 16 * 3600
    money = (record("moves", **equal, seconds=hour, cost_micro=160 * HOUR), record("whole", **equal, seconds=hour))
    assert shares(money, ("moves", "rewrite"), share=100)["rewrite"] > 0.8
    time = (record("moves", **equal, seconds=11 * hour), record("whole", **equal, seconds=hour))
    assert shares(time, ("moves", "rewrite"), share=100)["rewrite"] > 0.8


def test_a_writer_of_unknown_price_is_not_taken_for_free():
    equal = {"gains": 8, "gain_micro": 800_000}
    dear = record("moves", **equal, seconds=32, cost_micro=10 * HOUR)
    for unknown in ("whole", "edits"):  # of the same arm
        writers = (dear, record(unknown, **equal, seconds=160, cost_micro=-1), record("schedule"))
        # By time alone: who is faster for the same gain is asked more, whatever the other may cost.
        assert shares(writers, ("moves", "rewrite"), share=100)["moves"] > 0.7


def test_whole_kernels_and_edits_are_one_arm():
    writers = (record("edits", gains=16, gain_micro=5_000_000), record("moves"), record("schedule"))
    assert shares(writers)["rewrite"] > 0.8


def test_an_arm_without_a_record_is_tried():
    writers = (record("schedule", gains=2, gain_micro=100_000), record("moves", gains=2, gain_micro=100_000))
    assert shares(writers)["rewrite"] > 0.2


def test_equal_requests_are_shared_out_alike_and_every_index_has_a_writer():
    writers = (record("moves", gains=3, gain_micro=90_000), record("schedule"))
    for number in range(20):
        once, again = (
            assign(request(number, 5, writers), ARMS, share_percent=50, machine_hour_micro=HOUR) for _ in range(2)
        )
        assert once == again
        assert len(once) == 5
        assert set(once) <= set(ARMS)
