"""What a process does to itself before it reads somebody's text, and one that holds secrets against being read."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38
CAPABILITY_VERSION_3 = 0x20080522
PATHS = (1 << 1) | (1 << 2)
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH of <linux/capability.h>: so root reads a Python that another user owns."""

_libc = ctypes.CDLL(None, use_errno=True)


def refuse_inspection() -> None:
    """Have the kernel refuse this process' memory, environment, descriptors and control by ``ptrace`` to every process
    that lacks CAP_SYS_PTRACE, those of the same user included. It also writes no core dump. A program that is started
    by this process is none of this.
    """
    _checked(_libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl(PR_SET_DUMPABLE)")


def leave_privileges() -> None:
    """Give up what root may do to other processes, for good: also a program that is started from here has it no more.

    What root's capabilities do for paths stays. Whoever is not root gives up nothing but set-user-id programs.
    """
    _checked(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
    kept = _permitted() & PATHS
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    sets = struct.pack("6I", kept, kept, 0, 0, 0, 0)
    _checked(_libc.capset(header, sets), "capset")


def _permitted() -> int:
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1], 16) for line in status if line.startswith("CapPrm:"))


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
