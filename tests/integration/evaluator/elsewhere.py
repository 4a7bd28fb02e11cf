"""Runs test kernels where the machine grants less, and prints what became of them as JSON.

``python elsewhere.py CONDITION CACHE KERNEL...``. Conditions: ``as-is``; ``ordinary-user`` (root becomes nobody);
``no-namespaces`` (the kernel refuses new namespaces, as container runtimes do); ``no-landlock``; ``no-seccomp``.
The refusals are real: seccomp filters that answer the system calls with the error such a machine gives.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys

import seccompy

from evaluator_svc.runner.process import Ran
from tests.integration.evaluator.softmax_runner import SPEC, outcome, right_still_passes  # noqa: F401 - loads it early

NAMESPACES = 0x7E020000
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}."""
NOBODY = 65534


def impose(condition: str) -> None:
    rules = seccompy.Filter()
    if condition == "ordinary-user" and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    elif condition == "no-namespaces":
        rules.errno("unshare", errno.EPERM)
        rules.errno("clone3", errno.ENOSYS)
        for bit in range(32):
            if NAMESPACES >> bit & 1:
                rules.errno("clone", errno.EPERM, args=[(0, seccompy.CmpOp.MASKED_EQ, 1 << bit, 1 << bit)])
        rules.load()
    elif condition == "no-landlock":
        rules.errno("landlock_create_ruleset", errno.ENOSYS)
        rules.load()
    elif condition == "no-seccomp":
        rules.errno("seccomp", errno.ENOSYS)
        rules.load()


async def outcomes(names: list[str]) -> dict[str, str]:
    from evaluator_svc.runner.process import Runner
    from tests.integration.evaluator.softmax_runner import build

    found = {}
    for name in names:
        got = await outcome(name, timeout_s=5)
        found[name] = "ran" if isinstance(got, Ran) else str(got.status)
    built = await build("right")
    async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
        found["runner level"] = runner.sandbox
    found["build level"] = built.sandbox
    return found


if __name__ == "__main__":
    impose(sys.argv[1])
    os.environ["XDG_CACHE_HOME"] = sys.argv[2]
    print(json.dumps(asyncio.run(outcomes(sys.argv[3:]))))
