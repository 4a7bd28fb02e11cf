"""A trusted child process that answers JSON requests, one a line; its torch never enters the controller."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

from evaluator_svc.runner.process import KEPT_PAGES
from evaluator_svc.runner.program import stopwatch
from shared.child_environment import without_secrets
from shared.errors import OperatorError, Retryable

T = TypeVar("T")
MODULE = "evaluator_svc.oracle_child"
READ_BYTES = 1 << 16
STDERR_BYTES_SHOWN = 600
ENDED_S = 0.5
"""From a child's last byte until it has an exit code."""


class OracleLost(Retryable):
    """The trusted child died or ran past its limit: our failure, never the candidate's."""


class TrustedChild:
    """One child in one role (``oracle`` or ``baseline``); an async context manager.

    Requests are answered in order, one at a time, on a thread of the child's own, so that the event loop is neither
    blocked nor part of what ``timed`` measures. Pages are kept as in the runner: page faults on every output would
    be charged to eager PyTorch (fake wins of 4-7x).
    """

    def __init__(self, role: str, *, cpus: Iterable[int], environment: Mapping[str, str], where: str) -> None:
        self._role, self._cpus, self._where = role, sorted(cpus), where
        self._environment = {**without_secrets(os.environ), **KEPT_PAGES, **environment}
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=role)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self.killed = False
        """By us: on closing, because it did not answer, or because a question to it was cancelled."""

    async def __aenter__(self) -> Self:
        await self._in_thread(self._start)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._kill()  # first: a request under way then ends at once
        await self._in_thread(self._reap)
        self._thread.shutdown(wait=False)
        self._stderr.close()

    async def ask(self, action: str, *, timeout_s: float, **fields: object) -> dict[str, Any]:
        """The child's answer to one request.

        Raises:
            OperatorError: the operator is to blame.
            OracleLost: the child died or did not answer within ``timeout_s``; it is killed.
        """
        line = json.dumps({"action": action, **fields}).encode() + b"\n"
        return self._opened(action, await self._in_thread(lambda: self._exchange(line, timeout_s)), timeout_s)

    async def timed(self, action: str, *, timeout_s: float, **fields: object) -> tuple[int, dict[str, Any]]:
        """Like ``ask``, with the controller's clock around the request, in ns. Its answer must be short."""
        line = json.dumps({"action": action, **fields}).encode() + b"\n"
        elapsed, answer = await self._in_thread(lambda: self._measured(line, timeout_s))
        return elapsed, self._opened(action, answer, timeout_s)

    def _opened(self, action: str, line: bytes, timeout_s: float) -> dict[str, Any]:
        if not line.endswith(b"\n"):
            self._stderr.seek(0)
            said = self._stderr.read().decode(errors="replace").strip()[-STDERR_BYTES_SHOWN:]
            status = None if self._process is None else self._process.poll()
            self._kill()
            why = said or (f"{timeout_s:g} s were not enough" if status is None else f"it ended with code {status}")
            raise OracleLost(f"the {self._role} process gave no answer to `{action}`: {why}")
        answer: dict[str, Any] = json.loads(line)
        if "fault" in answer:
            raise OperatorError(answer["fault"], where=self._where)
        ok: dict[str, Any] = answer["ok"]
        return ok

    # --- below: the child's own thread ---

    async def _in_thread(self, work: Callable[[], T]) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._kill()  # its answer would be taken for the next request's
            raise

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=self._environment,
            start_new_session=True,
            bufsize=0,
        )
        if self._cpus:
            os.sched_setaffinity(self._process.pid, self._cpus)

    def _ended(self) -> None:
        """Wait for the exit code of a child that has just closed its end; one that goes on has none."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDED_S)

    def _pipes(self) -> tuple[int, int]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin.fileno(), self._process.stdout.fileno()

    def _exchange(self, line: bytes, timeout_s: float) -> bytes:
        """The answer's line; shorter than a line when the child died or time is up."""
        requests, answers = self._pipes()
        until, got = time.monotonic() + timeout_s, bytearray()
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(requests, view) :]
        except BrokenPipeError:
            self._ended()
            return b""
        while not got.endswith(b"\n"):
            ready, _, _ = select.select([answers], [], [], max(0.0, until - time.monotonic()))
            chunk = os.read(answers, READ_BYTES) if ready else b""
            if not chunk:
                break
            got += chunk
        if not got.endswith(b"\n"):
            self._ended()
        return bytes(got)

    def _measured(self, line: bytes, timeout_s: float) -> tuple[int, bytes]:
        requests, answers = self._pipes()
        answer, elapsed = ctypes.create_string_buffer(READ_BYTES), ctypes.c_int64()
        got = stopwatch().ke_round_trip(
            requests, line, len(line), answers, answer, len(answer), int(timeout_s * 1000), elapsed
        )
        line = answer.raw[: max(0, got)]
        if not line.endswith(b"\n"):
            self._ended()
        return elapsed.value, line

    def _kill(self) -> None:
        self.killed = True
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _reap(self) -> None:
        if self._process is not None:
            self._process.communicate()
