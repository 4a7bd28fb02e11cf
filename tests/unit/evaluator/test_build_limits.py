"""What a build that did not end by itself is answered with."""

from __future__ import annotations

import pytest

from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.toolchains.build_box import BuildLimits, Finished, beyond_limits
from shared.events import Status

LIMITS = BuildLimits(time_s=60.0)


@pytest.mark.parametrize(
    ("excess", "status", "said"),
    [
        ("", Status.TIMEOUT, "took longer than 60 s"),
        ("more than 3072 MiB of memory", Status.OUT_OF_MEMORY, "took more than 3072 MiB of memory"),
        ("more than 64 processes", Status.COMPILE_ERROR, "took more than 64 processes"),
    ],
)
def test_a_build_that_was_ended_says_what_it_took_too_much_of(excess, status, said):
    done = Finished(status=None, log="half of it", sandbox="seccomp", excess=excess)
    failed = beyond_limits(done, LIMITS, 7)
    assert failed.status is status
    assert caught_by(failed.evidence) is Layer.LIMITS
    assert failed.evidence[1].value == said
    assert (failed.log, failed.build_ns, failed.sandbox) == ("half of it", 7, "seccomp")


def test_a_build_that_ended_by_itself_kept_to_its_limits():
    assert beyond_limits(Finished(status=1, log="error: x", sandbox=""), LIMITS, 7) is None
