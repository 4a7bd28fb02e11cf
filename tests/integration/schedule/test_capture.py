"""What capture takes an operator's inputs to be."""

from __future__ import annotations

import asyncio
import os

import pytest

from synthesizer_svc.schedule.capture import capture, captured
from synthesizer_svc.schedule.graph import Unsupported
from tests.aio import on_loop
from tests.integration.schedule import table


def test_inputs_are_dense_rows_whatever_get_inputs_returns():
    graph = capture(table.source(("x * 2", ["torch.randn(6, 4).t()"])))

    assert [given.type.shape for given in graph.inputs] == [(4, 6)]
    assert [given.type.strides for given in graph.inputs] == [(6, 1)]


ENDLESS = "import os, time\nopen({!r}, 'w').write(f'{{os.getpid()}} {{os.getsid(0)}}')\ntime.sleep(600)\n"


@on_loop
async def test_whoever_stops_waiting_ends_the_child_which_no_signal_of_a_terminal_reaches(tmp_path):
    told = tmp_path / "child"
    waiting = asyncio.create_task(captured(ENDLESS.format(str(told))))
    while not (told.exists() and told.read_text()):
        await asyncio.sleep(0.01)
    child, session = map(int, told.read_text().split())
    assert session == child
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@on_loop
async def test_an_operator_that_takes_too_long_is_refused_for_that(tmp_path):
    with pytest.raises(Unsupported, match="took more than 1 s"):
        await captured(ENDLESS.format(str(tmp_path / "child")), seconds=1.0)
