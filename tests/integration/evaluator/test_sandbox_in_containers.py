"""What the sandbox makes of the system call filters of containers, applied to a process here."""

from __future__ import annotations

import json
import subprocess
import sys

from deploy.validation.variables import ROOT
from evaluator_svc.runner.program import machine_sandbox

PROFILE = ROOT / "deploy" / "k8s" / "components" / "sandbox" / "nodes" / "evaluator.json"
PROGRAM = """
import errno, json, sys
import seccompy
refused = json.loads(sys.argv[1])
rules = seccompy.Filter(default=seccompy.Action.ALLOW)
for name in refused:
    rules.errno(name, errno.EPERM)
NEW_USER = 0x10000000
if "unshare" in refused:
    rules.errno("clone3", errno.ENOSYS)
    rules.errno("clone", errno.EPERM, args=[(0, seccompy.CmpOp.MASKED_EQ, NEW_USER, NEW_USER)])
rules.load()
from evaluator_svc.runner.program import machine_sandbox
sandbox = machine_sandbox()
print(json.dumps([sandbox.isolated, sandbox.refused]))
"""
RUNTIME_DEFAULT = ["unshare", "setns", "mount", "umount2", "pivot_root"]
"""What the runtimes' default profiles refuse to a process without capabilities, as far as the sandbox cares."""


def sandbox_under(refused):
    command = [sys.executable, "-c", PROGRAM, json.dumps(refused)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def names_known_here(names):
    import seccompy

    known = []
    for name in names:
        try:
            seccompy.syscall_nr(name)
        except ValueError:  # gone from this architecture
            continue
        known.append(name)
    return known


def test_the_sandbox_has_all_its_layers_under_our_profile():
    (rule,) = json.loads(PROFILE.read_text())["syscalls"]
    refused = names_known_here(rule["names"])
    assert len(refused) > 40
    isolated, why = sandbox_under(refused)
    assert (isolated, why) == (machine_sandbox().isolated, machine_sandbox().refused)


def test_the_sandbox_does_without_namespaces_under_a_runtimes_default_profile():
    isolated, why = sandbox_under(RUNTIME_DEFAULT)
    assert not isolated
    assert "bwrap" in why
