"""Capturing an operator: runs the capture child with a time limit and parses its answer. No torch in this process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

from shared import reading_box
from shared.confining import CONFINED
from shared.dtypes import DType
from shared.errors import Retryable
from shared.reading_box import Command, ReaderLimits
from synthesizer_svc.schedule.graph import Call, Graph, Input, Ref, TensorType, Unsupported

CAPTURE_SECONDS = 120.0
CHILD = Path(__file__).with_name("capture_child.py")
READ_BYTES = reading_box.TEMPORARY_BYTES
"""Of what the child prints."""
REASON_MAX = 600
"""Characters of a refusal."""


def capture(source: str, *, seconds: float = CAPTURE_SECONDS) -> Graph:
    """``captured`` where no event loop runs."""
    return asyncio.run(captured(source, seconds=seconds))


async def captured(source: str, *, seconds: float = CAPTURE_SECONDS, memory_bytes: int = 0) -> Graph:
    """Export the operator's text to core ATen in a child process in a box, which ends with whoever waits for it.

    Raises:
        Unsupported: the operator raises, exceeds ``seconds`` or ``memory_bytes`` (0: what the machine has), reaches for
            what its box does not have, or contains what cannot be captured.
        Retryable: the machine did not start the box this time.
    """
    holds = await asyncio.to_thread(reading_box.machine)
    limits = ReaderLimits(memory_bytes=memory_bytes, cpu_s=(int(seconds) + 1) * (os.cpu_count() or 1))
    with reading_box.command(CHILD, limits, holds) as command:
        status, answer, said = await _run(command, source.encode(), seconds)
    began, _, rest = said.partition(CONFINED)
    if began or CONFINED not in said:
        raise Retryable(f"the box of the capture process did not start: {began.strip()[-300:] or status}")
    if status is None:
        raise Unsupported("torch.export", f"took more than {seconds:.0f} s")
    if status != 0:
        last = (rest.strip().splitlines() or ["no message"])[-1]
        raise Unsupported("torch.export", f"the capture process ended with code {status}: {last[:300]}")
    return _graph(answer)


async def _run(command: Command, source: bytes, seconds: float) -> tuple[int | None, bytes, str]:
    """The child's exit status (None: it took too long), its standard output and its standard error.

    Both go to files in memory, whose size the limit on files holds, and are never more than ``READ_BYTES``.
    """
    output, errors = os.memfd_create("ke-captured"), os.memfd_create("ke-said")
    try:
        child = await asyncio.create_subprocess_exec(
            *command.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=output,
            stderr=errors,
            env=command.environment,
            start_new_session=True,  # a terminal's Ctrl-C is ours to handle: it is no fault of the operator
        )
        try:
            async with asyncio.timeout(seconds):
                await child.communicate(source)
        except TimeoutError:
            status = None
        else:
            status = child.returncode
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)
                await child.wait()
        return status, os.pread(output, READ_BYTES, 0), os.pread(errors, READ_BYTES, 0).decode(errors="replace")
    finally:
        os.close(output)
        os.close(errors)


def _graph(answer: bytes) -> Graph:
    """What the child answered, which the operator's text may have written in its place."""
    try:
        reply = json.loads(answer)
        if "refused" in reply:
            raise Unsupported(str(reply["refused"]["node"]), str(reply["refused"]["why"])[:REASON_MAX])
        return parse(reply["graph"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unsupported(
            "torch.export", f"the capture process answered with no graph: {type(error).__name__}"
        ) from error


def parse(raw: dict[str, Any]) -> Graph:
    """The child's JSON as a frozen graph.

    Raises:
        Unsupported: a tensor has an element type outside the C ABI.
    """
    inputs = tuple(Input(name=i["name"], type=_type(i["name"], i["type"])) for i in raw["inputs"])
    calls = tuple(
        Call(
            name=c["name"],
            op=c["op"],
            arguments=tuple((name, _argument(c["op"], value)) for name, value in c["arguments"].items()),
            outputs=tuple(None if o is None else _type(c["op"], o) for o in c["outputs"]),
        )
        for c in raw["calls"]
    )
    outputs = []
    for output in raw["outputs"]:
        if not isinstance(output, dict) or "ref" not in output:
            raise Unsupported("output", "the operator returns something that is not a computed tensor")
        outputs.append(Ref(name=output["ref"], output=output["output"]))
    return Graph(inputs=inputs, calls=calls, outputs=tuple(outputs))


def _type(where: str, raw: dict[str, Any]) -> TensorType:
    return TensorType(shape=tuple(raw["shape"]), dtype=_dtype(where, raw["dtype"]), strides=tuple(raw["strides"]))


def _dtype(where: str, name: str) -> DType:
    try:
        return DType(name)
    except ValueError as error:
        raise Unsupported(where, f"element type {name} is not supported") from error


def _argument(where: str, value: Any) -> object:
    if isinstance(value, list):
        return tuple(_argument(where, item) for item in value)
    if isinstance(value, dict):
        if "ref" in value:
            return Ref(name=value["ref"], output=value["output"])
        if "dtype" in value:
            return _dtype(where, value["dtype"])
        return float(value["float"])
    return value
