"""Runs test kernels where the machine grants less, and prints what became of them as JSON.

``python elsewhere.py CONDITION[+CONDITION] CACHE KERNEL...``. Conditions: ``ordinary-user`` (root becomes nobody);
``no-namespaces`` (a filter refuses new namespaces, as container runtimes' do); ``rootless-container`` (a user namespace
with one user, in which the kernel allows no further one); ``no-landlock``; ``no-seccomp``. The refusals are real: the
kernel's own, or seccomp filters that answer the system calls with the error such a machine gives.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import os
import sys
from pathlib import Path

import seccompy

from evaluator_svc.runner.process import Ran, Runner
from evaluator_svc.toolchains import BuildFailed
from evaluator_svc.toolchains.cpu import CpuToolchain
from shared.errors import UserError
from tests.integration.evaluator.softmax_runner import SPEC, source

NAMESPACES = 0x7E020000
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}."""
NOBODY = 65534
PR_SET_SECCOMP = 22

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""For programs that enter a namespace of users, which a process with several threads may not: numpy starts some."""


def impose(conditions: list[str]) -> None:
    rules = seccompy.Filter()
    if "ordinary-user" in conditions and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    if "rootless-container" in conditions:
        _enter_rootless_container()
    if "no-namespaces" in conditions:
        rules.errno("unshare", errno.EPERM)
        rules.errno("clone3", errno.ENOSYS)
        for bit in range(32):
            if NAMESPACES >> bit & 1:
                rules.errno("clone", errno.EPERM, args=[(0, seccompy.CmpOp.MASKED_EQ, 1 << bit, 1 << bit)])
    if "no-landlock" in conditions:
        rules.errno("landlock_create_ruleset", errno.ENOSYS)
    if "no-seccomp" in conditions:
        rules.errno("seccomp", errno.ENOSYS)
        rules.errno("prctl", errno.EINVAL, args=[(0, seccompy.CmpOp.EQ, PR_SET_SECCOMP)])
    if {*conditions} & {"no-namespaces", "no-landlock", "no-seccomp"}:
        rules.load()


def _enter_rootless_container() -> None:
    """Root of a namespace that maps nobody else and may hold no user namespace."""
    new_user, user, group = 0x10000000, os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(new_user) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


async def outcomes(names: list[str]) -> dict[str, str]:
    found = {}
    for name in names:
        built = await CpuToolchain().build(source(name), ["-O2"])
        if isinstance(built, BuildFailed):
            found[name] = str(built.status)
            continue
        async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
            got = await runner.run(1)
            found[name] = "ran" if isinstance(got, Ran) else str(got.status)
        found |= {"build level": built.sandbox, "runner level": runner.sandbox}
    return found


if __name__ == "__main__":
    impose(sys.argv[1].split("+"))
    os.environ["XDG_CACHE_HOME"] = sys.argv[2]
    try:
        print(json.dumps(asyncio.run(outcomes(sys.argv[3:]))))
    except UserError as error:
        print(json.dumps({"refused": str(error)}))
