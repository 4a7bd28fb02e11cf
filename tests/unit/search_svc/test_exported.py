"""An owner's appends are timed, lost races counted, and searches counted once per phase."""

from __future__ import annotations

import urllib.request

import pytest

from search_svc import exported
from shared import metrics
from shared.clock import ManualClock
from shared.errors import Conflict
from shared.events import SearchFinished
from tests.builders import SEARCH_ID, a_search, enveloped


def test_what_an_owner_does_is_counted() -> None:
    clock = ManualClock()
    finished = SearchFinished(search_id=SEARCH_ID, outcome="improved", reason="evaluations", evaluations=6)
    with metrics.serving("127.0.0.1:0") as address:
        with exported.appending(clock):
            clock.advance(4_000_000)
        with pytest.raises(Conflict), exported.appending(clock):
            raise Conflict("another owner")
        exported.recorded(enveloped(a_search()), [enveloped(finished)])
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    assert "kernelevolve_journal_append_seconds_sum 0.004" in text
    assert "kernelevolve_journal_append_seconds_count 1.0" in text
    assert "kernelevolve_journal_conflicts_total 1.0" in text
    assert 'kernelevolve_searches_total{phase="started"} 1.0' in text
    assert 'kernelevolve_searches_total{phase="finished"} 1.0' in text
    assert 'kernelevolve_search_outcomes_total{outcome="improved"} 1.0' in text
