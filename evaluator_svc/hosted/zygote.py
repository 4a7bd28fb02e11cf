"""The controller's side of a fork server: a process in a box that has torch, and forks one child a candidate."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluator_svc.hosted import box
from evaluator_svc.hosted.box import Profile
from evaluator_svc.runner.program import hosted_library, machine_sandbox
from evaluator_svc.sandbox import Box, Boxed
from shared import python_home
from shared.errors import Fatal, Retryable

START_TIMEOUT_S = 90.0
SHOWN = 600


class Zygote:
    """Starts on construction, which takes as long as importing torch does.

    Raises:
        Fatal: it did not start.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._output = os.memfd_create("ke-zygote")
        sandbox = machine_sandbox()
        self.isolated = sandbox.isolated
        # A /proc of its own takes what some containers refuse; without it children have no namespaces of their own.
        full = Box(
            mounts=box.mounts(profile),
            environment={**box.ENVIRONMENT, **profile.environment},
            temporary_bytes=box.TEMPORARY_BYTES,
            devices=(*box.DEVICES, *profile.devices),
            processes=True,
            own_user=True,
        )
        started = self._start(full) or (self._start(replace(full, processes=False)) if self.isolated else None)
        if started is None:
            said = self.printed()
            os.close(self._output)
            raise Fatal(f"the fork server of hosted kernels did not start: {said}")
        self._boxed, self._link, greeting = started
        self.pid = self._boxed.first_process()
        threads = _number(self.pid, "Threads")
        if threads != 1:
            self.close()
            raise Fatal(f"importing {', '.join(profile.modules)} leaves {threads} threads: forks copy only one")
        self.user = self._boxed.user
        self.nested = bool(greeting["nested"])
        """Children have namespaces and mounts of their own."""
        self.filters = _number(self.pid, "Seccomp_filters")
        """System call filters that every child inherits; None where the kernel does not tell."""
        self.address_space = (_number(self.pid, "VmSize") or 0) << 10
        """Bytes, of a child at its start."""

    @property
    def alive(self) -> bool:
        return self._boxed.wait(0) is None

    def spawn(self, order: dict[str, Any], fds: Sequence[int]) -> None:
        """Have a child forked for the candidate whose descriptors are ``fds``.

        Raises:
            Retryable: the fork server is gone.
        """
        try:
            socket.send_fds(self._link, [json.dumps(order).encode()], list(fds))
        except OSError as error:
            raise Retryable(f"the fork server of hosted kernels is gone: {self.printed()}") from error

    def printed(self) -> str:
        said = os.pread(self._output, 1 << 16, 0).decode("utf-8", "replace").strip()
        return said[-SHOWN:] or "it said nothing"

    def close(self) -> None:
        """End it, and every child with it."""
        self._link.close()
        self._boxed.kill()
        os.close(self._output)

    def _start(self, inside: Box) -> tuple[Boxed, socket.socket, dict[str, Any]] | None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            settings = json.dumps(self._settings(theirs.fileno(), nest=inside.processes))
            main = f"{self._code()}/evaluator_svc/hosted/zygote_main.py"
            command = [str(python_home.program()), "-I", "-S", "-B", "-u", main, settings]
            try:
                boxed = machine_sandbox().launch(command, inside, fds=(theirs.fileno(),), output=self._output)
            except BaseException:
                ours.close()
                raise
        ours.settimeout(START_TIMEOUT_S)
        try:
            greeting = ours.recv(1 << 12)
        except TimeoutError:
            greeting = b""
        if not greeting:
            ours.close()
            boxed.kill()
            return None
        said: dict[str, Any] = json.loads(greeting)
        return boxed, ours, said

    def _settings(self, link: int, *, nest: bool) -> dict[str, Any]:
        return {
            "socket": link,
            "code": self._code(),
            "paths": python_home.packages(),
            "library": self._library(),
            "modules": list(self.profile.modules),
            "boxed": self.isolated,
            "nest": nest and self.isolated,
            "own_processes": self.profile.own_processes,
            "hide_proc": self.profile.hide_proc,
            "extensions": box.EXTENSIONS,
        }

    def _code(self) -> str:
        return box.CODE if self.isolated else str(box.HERE.parents[1])

    def _library(self) -> str:
        return box.LIBRARY if self.isolated else str(hosted_library())


class Hosts:
    """The fork servers of one evaluator, one of a profile, started when first asked for. ``close`` ends them."""

    def __init__(self) -> None:
        self._open: dict[str, Zygote] = {}
        self._lock = threading.Lock()

    def zygote(self, profile: Profile) -> Zygote:
        """A live one; blocks while it starts.

        Raises:
            Fatal: it did not start.
        """
        with self._lock:
            found = self._open.get(profile.name)
            if found is not None and not found.alive:
                found.close()
                found = None
            if found is None:
                found = self._open[profile.name] = Zygote(profile)
            return found

    def close(self) -> None:
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()


def _number(pid: int, name: str) -> int | None:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return None
