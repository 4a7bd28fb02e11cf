"""Capturing an operator: runs the capture child with a time limit and parses its answer. No torch in this process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from shared.child_environment import without_secrets
from shared.dtypes import DType
from synthesizer_svc.schedule.graph import Call, Graph, Input, Ref, TensorType, Unsupported

CAPTURE_SECONDS = 120.0
CHILD = "synthesizer_svc.schedule.capture_child"


def capture(source: str, *, seconds: float = CAPTURE_SECONDS) -> Graph:
    """``captured`` where no event loop runs."""
    return asyncio.run(captured(source, seconds=seconds))


async def captured(source: str, *, seconds: float = CAPTURE_SECONDS) -> Graph:
    """Export the operator's text to core ATen in a child process, which ends with whoever waits for it.

    Raises:
        Unsupported: the operator raises, exceeds ``seconds``, or contains what cannot be captured.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=without_secrets(os.environ),
        start_new_session=True,  # a terminal's Ctrl-C is ours to handle: it is no fault of the operator
    )
    try:
        async with asyncio.timeout(seconds):
            printed, said = await child.communicate(source.encode())
    except TimeoutError as expired:
        raise Unsupported("torch.export", f"took more than {seconds:.0f} s") from expired
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        last = (said.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise Unsupported("torch.export", f"the capture process ended with code {child.returncode}: {last[:300]}")
    reply = json.loads(printed)
    if "refused" in reply:
        raise Unsupported(reply["refused"]["node"], reply["refused"]["why"])
    return parse(reply["graph"])


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
