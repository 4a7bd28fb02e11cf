"""The fork server's program: imports torch once, then forks a child for every order that arrives on its socket.

Started by ``zygote.Zygote`` inside a box, without ``site`` and with its settings as JSON in the first argument. It
holds no operator, no seed and no answer, and stays single-threaded: a fork copies only the thread that forks. Every
order comes with the descriptors of one candidate; they are closed here as soon as the child has them.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any

ORDER_BYTES = 1 << 16
DESCRIPTORS_MAX = 200


def main() -> None:
    settings: dict[str, Any] = json.loads(sys.argv[1])
    if "LD_PRELOAD" not in os.environ:  # set here and not by the controller: bubblewrap would want it too
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "LD_PRELOAD": settings["library"]})  # noqa: S606
    sys.argv = [""]
    sys.path[:] = [settings["code"], *settings["paths"]]
    server = socket.socket(fileno=int(settings["socket"]))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    for name in settings["modules"]:
        importlib.import_module(name)
    native = importlib.import_module("evaluator_svc.hosted.native").Native(settings["library"])
    importlib.import_module("evaluator_svc.hosted.candidate").warm(settings["modules"])
    nested = settings["nest"] and _can_nest(native, settings)
    server.sendall(json.dumps({"nested": nested}).encode())
    gc.collect()
    gc.freeze()  # collections of the children then leave these pages shared
    while True:
        order, descriptors, _, _ = socket.recv_fds(server, ORDER_BYTES, DESCRIPTORS_MAX)
        if not order:
            return
        if os.fork() == 0:
            server.close()
            _reaper(native, settings, json.loads(order), descriptors, nested=nested)
        for fd in descriptors:
            os.close(fd)


def _reaper(native: Any, settings: dict[str, Any], order: dict[str, Any], fds: list[int], *, nested: bool) -> None:
    """Fork the candidate's process, wait for its end, and tell the controller its status. Never returns."""
    status, *others = fds
    code = 0
    try:
        native.hold()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if nested:
            native.isolate(processes=settings["own_processes"])
        elif settings["boxed"] and order["extensions"]:
            order["library"] = tempfile.mkdtemp()
        child = os.fork()
        if child == 0:
            os.close(status)
            from evaluator_svc.hosted.candidate import live

            live(native, settings, order, others, nested=nested)
        for fd in others:
            os.close(fd)
        _, code = os.waitpid(child, 0)
    except BaseException:  # noqa: BLE001 - shown to the controller, which sees that nothing started
        traceback.print_exc()
    finally:
        with contextlib.suppress(BrokenPipeError):  # nobody asks any more
            os.write(status, code.to_bytes(4, "little"))
        if "library" in order:
            shutil.rmtree(order["library"], ignore_errors=True)
        os._exit(0)


def _can_nest(native: Any, settings: dict[str, Any]) -> bool:
    """Whether a child may make namespaces of its own: some systems allow one level, or none."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    outer = os.fork()
    if outer == 0:
        inner, code = 0, 1
        try:
            native.isolate(processes=settings["own_processes"])
            inner = os.fork()
            if inner == 0:
                native.settle(settings["extensions"], 1 << 16, hide_proc=settings["hide_proc"])
                native.settled(settings["extensions"])
                os._exit(0)
            code = os.waitpid(inner, 0)[1] != 0
        except OSError as error:
            print(f"candidates share namespaces: {error}")
        finally:
            os._exit(int(code))
    _, status = os.waitpid(outer, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return status == 0


if __name__ == "__main__":
    main()
