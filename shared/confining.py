"""What a process does to itself before it reads somebody's text, and one that holds secrets against being read.

As a program, ``python -I confining.py ORDER``, it does all of that and then runs another program in its place. ORDER is
JSON: ``limits`` (``resource``'s names to ceilings), ``paths`` (those that stay visible, each with whether it may be
written to), ``filter`` (a seccomp program, base64), ``required`` (layers without which nothing is run), ``modules``
(where Python finds more of them) and ``program``, empty for telling, as a JSON list, which layers hold here.

It may lie alone in a box, so it imports nothing but the standard library.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import resource
import runpy
import stat
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
SECCOMP_MODE_FILTER = 2
FILTER_INSTRUCTION_BYTES = 8
CAPABILITY_VERSION_3 = 0x20080522
PATHS = (1 << 1) | (1 << 2)
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH of <linux/capability.h>: so root reads a Python that another user owns."""
SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_ADD_RULE, SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_VERSION, LANDLOCK_PATH_BENEATH = 1, 1
READ_FILE = (1 << 0) | (1 << 2)
"""Of linux/landlock.h: execute, read."""
READ = READ_FILE | (1 << 3)
"""And list."""
OF_FILES = READ_FILE | (1 << 1) | (1 << 14) | (1 << 15)
"""And write, truncate, a device's ioctl: rights that a rule for a file may have."""
MISSING_LAYER = 79
"""Exit status where a required layer does not hold."""
CONFINED = "confined\n"
"""The first that the process writes to standard error: what becomes of it from then on is the program's doing."""
LAYERS = ("rlimits", "privileges", "landlock", "seccomp")
"""In the order in which they are put on."""

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


def limit(ceilings: Mapping[str, int]) -> None:
    """Lower the limits of those names (``RLIMIT_AS``); what is lower already stays."""
    for name, ceiling in ceilings.items():
        which = getattr(resource, name)
        _, hard = resource.getrlimit(which)
        lower = ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard)
        resource.setrlimit(which, (lower, lower))


def see_only(paths: Sequence[tuple[str, bool]]) -> None:
    """Have Landlock refuse all files but those at or below ``paths``, and writing where it is False there; also TCP,
    and, from Linux 6.12, signals and abstract sockets beyond this process and what it starts.

    Raises:
        OSError: this kernel has no Landlock.
    """
    version = _checked(_libc.syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION), "Landlock")
    files = (1 << (13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16)) - 1
    handled = struct.pack("QQQ", files, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _checked(_libc.syscall(SYS_LANDLOCK_CREATE_RULESET, handled, size, 0), "Landlock's rules")
    try:
        for path, writable in paths:
            _allow(rules, path, files, writable=writable)
        _checked(_libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, rules, 0), "Landlock")
    finally:
        os.close(rules)


def _allow(rules: int, path: str, files: int, *, writable: bool) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        directory = stat.S_ISDIR(os.fstat(place).st_mode)
        rights = (files if writable else READ) if directory else (OF_FILES if writable else READ_FILE)
        rule = struct.pack("=Qi", rights & files, place)
        _checked(_libc.syscall(SYS_LANDLOCK_ADD_RULE, rules, LANDLOCK_PATH_BENEATH, rule, 0), f"Landlock of {path}")
    finally:
        os.close(place)


def call_only(program: bytes) -> None:
    """Have the seccomp ``program`` decide on every system call from now on; takes ``leave_privileges`` before."""
    instructions = ctypes.create_string_buffer(program, len(program))
    filtered = struct.pack("HxxxxxxP", len(program) // FILTER_INSTRUCTION_BYTES, ctypes.addressof(instructions))
    _checked(_libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filtered, 0, 0), "prctl(PR_SET_SECCOMP)")


def confine(limits: Mapping[str, int], paths: Sequence[tuple[str, bool]], program: bytes) -> dict[str, str]:
    """Put on every layer; what refused those that do not hold, by layer."""
    with suppress(OSError):  # short of memory, the kernel is to end this process and not the one that asked for it
        Path("/proc/self/oom_score_adj").write_text("1000")
    steps: dict[str, Callable[[], None]] = {
        "rlimits": lambda: limit(limits),
        "privileges": leave_privileges,
        "landlock": lambda: see_only(paths),
        "seccomp": lambda: call_only(program),
    }
    refused: dict[str, str] = {}
    for layer in LAYERS:
        try:
            steps[layer]()
        except (OSError, ValueError) as error:
            refused[layer] = str(error)
    return refused


def main() -> int:
    order = json.loads(sys.argv[1])
    refused = confine(order["limits"], order["paths"], base64.b64decode(order["filter"]))
    missing = [f"{layer}: {why}" for layer, why in refused.items() if layer in order["required"]]
    if missing:
        print("; ".join(missing), file=sys.stderr)
        return MISSING_LAYER
    if not order["program"]:
        json.dump([layer for layer in LAYERS if layer not in refused], sys.stdout)
        return 0
    os.write(2, CONFINED.encode())
    sys.path += [path for path in order["modules"] if path not in sys.path]
    sys.argv = [order["program"]]
    runpy.run_path(order["program"], run_name="__main__")
    return 0


def _permitted() -> int:
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1], 16) for line in status if line.startswith("CapPrm:"))


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


if __name__ == "__main__":
    sys.exit(main())
