"""What a member may commit, what it missed, and when the broker has lost records."""

from __future__ import annotations

from shared.bus.positions import Positions


def at(committed: int, highwater: int, *, dense: bool = True) -> Positions:
    """One partition, of which nothing is read yet."""
    positions = Positions(dense=dense)
    positions.assign({0: committed})
    positions.hear(0, highwater)
    return positions


def test_lag_is_what_the_group_has_not_committed() -> None:
    positions = at(3, 10)
    positions.hand(0, 3)
    assert positions.lag() == 7
    positions.commit(0, 3)
    assert positions.lag() == 6


def test_only_what_was_handed_out_is_committed_and_never_backwards() -> None:
    positions = at(3, 10)
    assert not positions.may_commit(0, 3)
    for offset in (3, 4, 5):
        positions.hand(0, offset)
    assert positions.may_commit(0, 5)
    positions.commit(0, 5)
    assert not positions.may_commit(0, 3)
    assert not positions.may_commit(0, 6)
    assert not positions.may_commit(1, 0)


def test_a_record_in_flight_over_a_rebalance_may_be_committed_where_it_came_back() -> None:
    positions = at(3, 10)
    positions.hand(0, 3)
    positions.revoke()
    assert not positions.may_commit(0, 3)
    positions.assign({0: 3})
    assert positions.may_commit(0, 3)
    positions.revoke()
    positions.assign({0: 7})
    assert not positions.may_commit(0, 3)


def test_a_record_that_was_committed_after_a_rebalance_is_not_missing() -> None:
    positions = at(3, 10)
    positions.hand(0, 3)
    positions.hand(0, 4)
    positions.assign({0: 3})
    positions.commit(0, 4)
    assert positions.hand(0, 5) == 0
    assert positions.hand(0, 8) == 2


def test_holes_are_counted_unless_the_topic_is_compacted() -> None:
    positions, compacted = at(3, 10), at(3, 10, dense=False)
    assert positions.hand(0, 5) == 2
    assert positions.hand(0, 6) == 0
    assert positions.gaps == 2
    assert compacted.hand(0, 5) == 0


def test_a_log_that_ends_before_the_group_for_long_has_lost_records() -> None:
    positions = at(7, 7)
    assert positions.went_back(0.0, 3.0) == []
    positions.hear(0, 2)
    assert positions.went_back(1.0, 3.0) == []
    positions.hear(0, 7)
    assert positions.went_back(3.0, 3.0) == []  # a new leader had not caught up
    positions.hear(0, 2)
    assert positions.went_back(4.0, 3.0) == []
    assert positions.went_back(7.0, 3.0) == [0]


def test_after_a_rewind_the_new_log_is_committed_and_the_old_one_is_not() -> None:
    positions = at(5, 9)
    positions.hand(0, 5)
    positions.hear(0, 2)
    positions.rewind(0)
    assert not positions.may_commit(0, 5)
    positions.hear(0, 2)
    assert positions.hand(0, 0) == 0
    assert positions.may_commit(0, 0)
