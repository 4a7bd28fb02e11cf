"""What an intake may commit: the contiguous finished prefix of each partition, in the order of delivery."""

from __future__ import annotations

from evaluator_svc.tracking import Tracking
from shared.bus import Delivery, Record

RECORD = Record(key="k", value=b"", headers={})


def delivery(offset: int, partition: int = 0) -> Delivery:
    return Delivery(topic="t", partition=partition, offset=offset, record=RECORD)


def taken(tracking: Tracking, *offsets: int, partition: int = 0) -> None:
    for offset in offsets:
        tracked = tracking.track(delivery(offset, partition), f"work {partition}/{offset}")
        assert tracked is not None
        tracked.added = True


def committable(tracking: Tracking) -> list[tuple[int, int]]:
    return [(each.delivery.partition, each.delivery.offset) for each in tracking.committable()]


def test_nothing_is_committed_past_an_unfinished_request() -> None:
    tracking = Tracking()
    taken(tracking, 0, 1, 2)
    tracking.finish({"work 0/1", "work 0/2"})
    assert committable(tracking) == []
    tracking.finish({"work 0/0"})
    assert committable(tracking) == [(0, 2)]


def test_offsets_that_are_missing_from_the_log_hold_nothing_up() -> None:
    tracking = Tracking()
    taken(tracking, 3, 7, 9)
    tracking.finish({"work 0/3", "work 0/7"})
    assert committable(tracking) == [(0, 7)]


def test_partitions_are_committed_on_their_own() -> None:
    tracking = Tracking()
    taken(tracking, 0, 1)
    taken(tracking, 5, partition=3)
    tracking.finish({"work 3/5"})
    assert committable(tracking) == [(3, 5)]
    tracking.committed(tracking.committable()[0])
    assert len(tracking) == 2


def test_a_delivery_that_comes_again_is_tracked_once() -> None:
    tracking = Tracking()
    taken(tracking, 0, 1)
    assert tracking.track(delivery(0), "work 0/0") is None
    assert len(tracking) == 2


def test_a_partition_that_starts_over_is_another_log() -> None:
    tracking = Tracking()
    taken(tracking, 57, 58)
    taken(tracking, 3)
    assert [each.delivery.offset for each in tracking.waited_for()] == [3]
    other = tracking.track(delivery(3), "other work at the same place")
    assert other is not None
    assert len(tracking) == 1


def test_what_was_in_flight_of_a_lost_partition_is_forgotten() -> None:
    tracking = Tracking()
    taken(tracking, 0, 1)
    (first, _) = tracking.waited_for()
    tracking.forget(0)
    assert not tracking.is_tracked(first)
    assert len(tracking) == 0
