"""A device at rest is told from one at work by what tiny operations take."""

from __future__ import annotations

import pytest

from evaluator_svc.hosted.device_rest import PROBES, Rest
from shared.errors import Retryable

AT_REST = [160_000] + [8_000] * PROBES
"""The first one warms up."""


def rest(*after):
    """A device that takes so long for the probes that follow those at rest."""
    times = iter([*AT_REST, *after])
    return Rest(lambda: next(times), pause=lambda _: None)


def test_the_median_of_a_device_at_rest_is_what_others_are_compared_with():
    assert rest().rest_ns == 8_000


def test_a_device_that_others_work_on_is_nothing_to_learn_rest_from():
    with pytest.raises(Retryable, match="others' work"):
        Rest(lambda: 400_000, pause=lambda _: None)


def test_one_slow_probe_is_noise_and_two_are_work():
    assert rest(900_000, 9_000).busy_ns() is None
    assert rest(900_000, 300_000).busy_ns() == 300_000
    assert rest(100_000).busy_ns() is None


def test_what_is_waited_for_beyond_rest_is_what_the_device_had_still_to_do():
    assert rest(9_000).waited_ns() == 0
    assert rest(524_000).waited_ns() == 500_000
