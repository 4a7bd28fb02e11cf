"""What capture takes an operator's inputs to be."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from synthesizer_svc.schedule.capture import capture, captured
from synthesizer_svc.schedule.graph import Unsupported
from tests.aio import on_loop
from tests.integration.schedule import table

ROOT = Path(__file__).parents[3]


def test_inputs_are_dense_rows_whatever_get_inputs_returns():
    graph = capture(table.source(("x * 2", ["torch.randn(6, 4).t()"])))

    assert [given.type.shape for given in graph.inputs] == [(4, 6)]
    assert [given.type.strides for given in graph.inputs] == [(6, 1)]


def test_a_function_that_is_compiled_from_its_text_is_captured_as_what_it_computes():
    graph = capture((ROOT / "tests" / "operators" / "scripted.py").read_text())

    assert {"aten.relu.default", "aten.sigmoid.default"} <= {call.op for call in graph.calls}


PR_SET_NAME, NAME = 15, "endless"
ENDLESS = f"import ctypes, time\nctypes.CDLL(None).prctl({PR_SET_NAME}, b'{NAME}', 0, 0, 0)\ntime.sleep(600)\n"
"""Seen from outside of its box by its name."""


def readers() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.name() == NAME:
                found.append(child)
    return found


@on_loop
async def test_whoever_stops_waiting_ends_the_child_which_no_signal_of_a_terminal_reaches():
    waiting = asyncio.create_task(captured(ENDLESS))
    while not (reading := readers()):
        await asyncio.sleep(0.05)
    assert os.getsid(0) not in {os.getsid(child.pid) for child in reading}
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not psutil.wait_procs(reading, timeout=10)[1]


@on_loop
async def test_an_operator_that_takes_too_long_is_refused_for_that():
    with pytest.raises(Unsupported, match="took more than 1 s"):
        await captured(ENDLESS, seconds=1.0)
