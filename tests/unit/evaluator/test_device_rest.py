"""A device at rest is told from one at work by what tiny operations take."""

from __future__ import annotations

from evaluator_svc.hosted.device_rest import PROBES, Rest, Waited

AT_REST = [160_000] + [8_000] * PROBES
"""The first one warms up."""


class Clock:
    """Ticks by what probes and pauses take, ns."""

    def __init__(self, *times):
        self.now, self._times = 0, iter(times)

    def probe(self):
        took = next(self._times)
        self.now += took
        return took

    def pause(self, seconds):
        self.now += round(seconds * 1e9)


def rest(*after):
    """A device that takes so long for the probes that follow those at rest."""
    clock = Clock(*AT_REST, *after)
    made = Rest(clock.probe, pause=clock.pause, clock=lambda: clock.now)
    assert made.learn() is None
    return made


def test_the_median_of_a_device_at_rest_is_what_others_are_compared_with():
    assert rest().rest_ns == 8_000


def test_a_device_that_others_work_on_is_nothing_to_learn_rest_from():
    times = iter([400_000] * 21 + [8_000] * 21 + [400_000] * 21)
    learnt = Rest(lambda: next(times), pause=lambda _: None)
    assert learnt.learn() == 400_000
    assert (learnt.learn(), learnt.rest_ns) == (None, 8_000)
    assert learnt.learn() is None  # it is known by now


def test_some_slow_probes_are_noise_and_three_in_a_row_are_work():
    assert rest(900_000, 9_000).busy_ns() is None
    assert rest(900_000, 900_000, 9_000).busy_ns() is None
    assert rest(900_000, 900_000, 300_000).busy_ns() == 300_000
    assert rest(100_000).busy_ns() is None


def test_a_device_at_rest_is_not_waited_for():
    assert rest(9_000).waited() == Waited(seen=0, charged=0)
    assert rest(104_000).waited() == Waited(seen=80_000, charged=80_000)


def test_what_is_waited_for_is_charged_until_the_device_is_at_rest():
    assert rest(524_000).waited() == Waited(seen=500_000, charged=500_000)  # shorter than a turn: it was done
    assert rest(2_024_000, 9_000).waited() == Waited(seen=2_000_000, charged=6_024_000)
    assert rest(2_024_000, 500_000, 500_000).waited() == Waited(seen=2_000_000, charged=11_024_000)
