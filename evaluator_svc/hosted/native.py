"""Candidate's side: the functions of ``runner/hosted.cpp``, which is preloaded."""

from __future__ import annotations

import ctypes
import os


class Native:
    """Raises:
    OSError: a step was refused by the operating system.
    """

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        self._library.ke_address.restype = ctypes.c_uint64
        self._library.ke_confine.restype = ctypes.c_uint32

    def isolate(self, *, processes: bool) -> None:
        """New namespaces, one of ``processes`` too, for the process that is forked next."""
        _done(self._library.ke_isolate(int(processes)), "new namespaces")

    def settle(self, library: str, bytes_: int, *, hide_proc: bool) -> None:
        """In its new namespaces: private, empty, writable /tmp and ``library`` directory; no /proc."""
        _done(self._library.ke_settle(library.encode(), ctypes.c_uint64(bytes_), int(hide_proc)), "mounts")

    def settled(self, library: str) -> None:
        """``library`` is read-only from here on; privileges are given up."""
        _done(self._library.ke_settled(library.encode()), "giving up privileges")

    def hold(self) -> None:
        """Die with the parent; let the controller read this process' memory."""
        _done(self._library.ke_hold(), "being held")

    def prepare(self, configuration: int, report: int, inputs: int, outputs: int) -> None:
        """Map the buffers. Takes the descriptors over, but for ``report``."""
        self._library.ke_prepare(configuration, report, inputs, outputs)

    def address(self, index: int) -> int:
        """Of a tensor, counted over sets x (inputs, outputs)."""
        return int(self._library.ke_address(index))

    def confine(self) -> int:
        """Limits, Landlock and seccomp; the bits of the layers that hold."""
        return int(self._library.ke_confine())

    def enough(self, layers: int) -> bool:
        """Whether foreign code may run with these layers."""
        return bool(self._library.ke_enough(ctypes.c_uint32(layers)))

    def seal(self) -> None:
        """The stricter filter, for all threads."""
        _done(self._library.ke_seal(), "sealing")

    def note(self, kind: int, text: str) -> None:
        """Leave a word in the report."""
        self._library.ke_note(ctypes.c_uint32(kind), text.encode("utf-8", "replace")[:255])

    def stain_stack(self) -> None:
        """Where memory is stained: the stack below, too."""
        self._library.ke_stain_stack()


def _done(code: int, what: str) -> None:
    if code:
        raise OSError(code, f"{what}: {os.strerror(code)}")
