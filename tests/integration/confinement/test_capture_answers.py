"""Whatever a text does in its box is a refusal to capture it; what the machine does is no fault of the text."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from shared import operators, python_home
from shared.errors import Retryable
from synthesizer_svc.schedule import captured
from synthesizer_svc.schedule.capture import capture
from synthesizer_svc.schedule.captured import CapturedLowering
from synthesizer_svc.schedule.graph import Unsupported
from tests.integration.confinement.spy import OPERATOR

FORGED = """
import os
for fd in map(int, os.listdir("/proc/self/fd")):
    try:
        os.write(fd, {!r})
    except OSError:
        pass
os._exit(0)
"""
RESERVES = (
    "import mmap\nmmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE\n"
)
PRINTS = "import os\nwhile True:\n    os.write(2, bytes(1 << 20))\n"
FILLS = """
import os
with open(os.environ["TMPDIR"] + "/big", "wb") as file:
    while True:
        file.write(bytes(1 << 20))
"""


@pytest.mark.parametrize("said", [b"", b"{", b"[]", b'{"graph": 7}', b'{"graph": {"inputs": [{}]}}', b"[" * 100_000])
def test_an_answer_that_is_no_graph_is_a_refusal(said):
    with pytest.raises(Unsupported, match="answered with no graph"):
        capture(FORGED.format(said))


@pytest.mark.parametrize(
    ("text", "why"), [(RESERVES, "Cannot allocate memory"), (PRINTS, "File too large"), (FILLS, "No space|too large")]
)
def test_a_text_that_takes_more_than_its_share_is_a_refusal(text, why):
    with pytest.raises(Unsupported, match=why):
        capture(text, seconds=60)


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ("import a_neighbour", "ModuleNotFoundError"),
        ("open('weights.bin')", "FileNotFoundError"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 9))", "PermissionError"),
    ],
)
def test_a_text_that_needs_what_its_box_lacks_is_told_so_and_where(first, why):
    with pytest.raises(Unsupported, match=f"its top level: {why}.* captured in a box"):
        capture(f"{first}\nimport torch\n{OPERATOR}")


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("def get_inputs():", "get_inputs()"),
        ("def get_init_inputs():", "get_init_inputs()"),
    ],
)
def test_what_an_operator_raises_is_told_with_the_step(line, where):
    text = "import torch\n" + OPERATOR
    assert line in text
    with pytest.raises(Unsupported, match=re.escape(f"{where}: ValueError: no luck")):
        capture(text.replace(line, f"{line}\n    raise ValueError('no luck')"))


def test_a_text_that_starts_threads_and_looks_at_the_processor_is_captured():
    text = "import os, threading\nt = threading.Thread(target=os.cpu_count)\nt.start()\nt.join()\nimport torch\n"
    assert [call.op for call in capture(text + OPERATOR).calls] == ["aten.relu.default"]


def test_a_box_that_does_not_start_says_nothing_of_the_operator_and_is_tried_again(monkeypatch):
    operator = operators.parse("import torch\n" + OPERATOR, name="relu")
    monkeypatch.setattr(captured, "_plan", lambda graph, target: graph)

    async def twice():
        lowering = CapturedLowering(capture_s=60, operators_max=1)
        with monkeypatch.context() as broken:
            broken.setattr(python_home, "program", lambda: Path("/nowhere/python"))
            with pytest.raises(Retryable, match="did not start"):
                await lowering.lower(operator, None)
        return await lowering.lower(operator, None)

    assert [call.op for call in asyncio.run(twice()).calls] == ["aten.relu.default"]
