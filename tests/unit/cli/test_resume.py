"""Telling a fork that began from one that was cut off while its history was copied."""

from __future__ import annotations

from cli.going_on import begun
from search_svc import chain, replay
from shared import wire
from tests.builders import a_search
from tests.fakes.drive import Drive


def test_a_fork_has_begun_once_its_own_first_event_is_journalled():
    drive = Drive(order_seed=1)
    drive.run(a_search(evaluations=4))
    history, envelope = replay.fork(drive.entries, at_seq=5, search_id="fork-1", policy="beam", seed=2)
    first = chain.link(history[-1].digest, 5, envelope.id, wire.pack(envelope), ())
    assert not begun(history, "fork-1")
    assert begun([*history, first], "fork-1")
    assert not begun([*history, first], "fork-of-fork-1")
