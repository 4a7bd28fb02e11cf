"""The controller's side of a device keeper: inputs on a GPU, results read out of it, and whether it is at rest.

Whoever asks holds the candidate frozen meanwhile. Freezing stops a processor, not a device: what a candidate has
asked its device for goes on, so its rest is asked for before anything is read.
"""

from __future__ import annotations

import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evaluator_svc.hosted.cuda_driver import LIBRARY
from evaluator_svc.hosted.strided import Strided
from evaluator_svc.runner.buffers import Buffers, turns
from shared.child_environment import without_secrets
from shared.errors import Retryable

MODULE = "evaluator_svc.hosted.device_keeper"
ROOT = Path(__file__).parents[2]
ANSWER_S = 60.0
"""For one request; beyond it the keeper counts as lost."""
READ_BYTES = 1 << 16
AT_REST_TIMES, AT_REST_SLACK_NS = 8.0, 200_000
"""A probe of a device at rest may take so many times the median, and so much more, for the processor's noise. Beside
another context's work it waits for a turn, which drivers give by milliseconds."""
REST_PROBES, REST_TRIES, REST_PAUSE_S = 20, 5, 0.004
"""To learn what rest is; how often a slow probe is asked for again, and how long after: longer than a turn, because the
next operation in the keeper's own turn is quick beside whatever load."""
SHOWN = 400


class KeeperRefused(Exception):
    """The driver shares no memory between processes here; the message says what it said."""


class KeeperLost(Retryable):
    """The keeper died or gave no answer: our failure, never the candidate's."""


class DeviceKeeper:
    """Starts on construction, with the device at rest and nothing of a candidate's on it.

    Raises:
        KeeperRefused: results have to be exported by the candidate's side.
        KeeperLost: it did not start.
    """

    def __init__(self, buffers: Buffers, *, library: str = LIBRARY) -> None:
        self._buffers, self.library = buffers, library
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        layout = buffers.layout
        files = (buffers.inputs_fd, layout.inputs_bytes, buffers.outputs_fd, layout.outputs_bytes)
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE, library, *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=(buffers.inputs_fd, buffers.outputs_fd),
            env=without_secrets(os.environ),
            cwd=ROOT,
            start_new_session=True,
            bufsize=0,
        )
        try:
            self.handle = _handle(self._answer("start"))
            """Hexadecimal; what the candidate's side opens the inputs by."""
            self.rest_ns = statistics.median(self._asked("probe") for _ in range(REST_PROBES))
            """What a probe takes on a device at rest."""
        except BaseException:
            self.close()
            raise

    def fill(self, first_set: int, calls: int) -> None:
        """Bring the inputs of the sets that ``calls`` calls are made on to the device."""
        self._asked("fill", stretches=self._stretches(first_set, calls))

    def flush(self) -> None:
        """Empty the second-level cache."""
        self._asked("flush")

    def changed(self, first_set: int, calls: int) -> str | None:
        """Where an input of those sets is no longer what it was filled with."""
        at = self._asked("changed", stretches=self._stretches(first_set, calls))
        if at is None:
            return None
        set_, rest = divmod(at, self._buffers.layout.input_stride.in_file)
        for region in self._buffers.layout.first:
            if not region.output and 0 <= rest - region.in_file < region.size:
                byte = rest - region.in_file - region.data
                return f"byte {byte} of {region.name} of set {set_}"
        return "between inputs"

    def busy_ns(self) -> int | None:
        """What a probe takes where every one is slower than on a device at rest; None where one is not."""
        allowed = AT_REST_TIMES * self.rest_ns + AT_REST_SLACK_NS
        quickest = 0
        for left in reversed(range(REST_TRIES)):
            took = int(self._asked("probe"))
            if took <= allowed:
                return None
            quickest = min(quickest, took) if quickest else took
            if left:
                time.sleep(REST_PAUSE_S)
        return quickest

    def read(self, set_: int, output: int, handle: bytes, offset: int, tensor: Strided) -> int | str:
        """Copy a result to the view of that output; its address in the keeper, or why it cannot be read."""
        layout = self._buffers.layout
        region = layout.in_first(output, output=True)
        said = self._asked(
            "read",
            handle=handle.hex(),
            offset=offset,
            shape=tensor.shape,
            strides=tensor.strides,
            itemsize=tensor.itemsize,
            at=region.in_file + set_ * layout.output_stride.in_file + region.data,
            nbytes=region.nbytes,
        )
        return str(said["refused"]) if "refused" in said else int(said["address"])

    def forget(self) -> None:
        """The candidate is gone: give up what was opened of it."""
        self._asked("forget")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._stderr.close()

    def _stretches(self, first_set: int, calls: int) -> list[tuple[int, int]]:
        stride = self._buffers.layout.input_stride.in_file
        return [(a * stride, b * stride) for a, b in turns(first_set, calls, self._buffers.sets)]

    def _asked(self, do: str, **fields: object) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
        except BrokenPipeError as error:
            raise KeeperLost(f"the device keeper is gone: {self._said()}") from error
        return self._answer(do)["ok"]

    def _answer(self, do: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        until, got = time.monotonic() + ANSWER_S, b""
        fd = self._process.stdout.fileno()
        while not got.endswith(b"\n"):
            ready, _, _ = select.select([fd], [], [], max(0.0, until - time.monotonic()))
            chunk = os.read(fd, READ_BYTES) if ready else b""
            if not chunk:
                raise KeeperLost(f"the device keeper gave no answer to `{do}`: {self._said()}")
            got += chunk
        answer: dict[str, Any] = json.loads(got)
        return answer

    def _said(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace").strip()[-SHOWN:] or "it said nothing"


def _handle(said: dict[str, Any]) -> str:
    if "refused" in said:
        raise KeeperRefused(said["refused"])
    return str(said["handle"])
