"""Every way out of a box that we know is refused, by a kernel and during a build, in each deployment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator_svc.runner.program import ABI, compiler, machine_sandbox
from evaluator_svc.sandbox import SAME_USER
from tests.integration.evaluator.elsewhere import ONE_THREAD
from tests.integration.evaluator.test_sandbox import ROOT, private_cache

pytestmark = pytest.mark.serial

SOURCE = ROOT / "tests" / "escapes" / "escapes.cpp"
DEPLOYMENTS = (
    "as-it-is",
    "ordinary-user",
    "no-namespaces",
    "ordinary-user+no-namespaces",
    "rootless-container",
    "no-landlock",
)
HARMLESS_IN_A_BUILD = {
    # Of its own process only:
    "timer_signals", "other_personality", "undumpable", "renamed", "outlives_parent", "handles_signals",
    "own_session",  # pretended
    # In its private /tmp or its work directory:
    "makes_file", "makes_link", "makes_pipe",
}  # fmt: skip
ANSWERED = {
    # Refused to a kernel as libraries expect it, so that the kernel goes on; nothing else is let go on.
    "raises_priority", "real_time", "raises_limit", "locks_memory", "huge_pages", "too_much_memory", "other_processor",
    "undumpable", "renamed", "outlives_parent", "handles_signals", "types_into_terminal", "many_threads",
    # Without a process to aim at: in a namespace the kernel's parent is no process of its own.
    "signals_parent", "signals_a_thread_of_parent", "queues_signal", "signals_by_handle",
}  # fmt: skip
NAMED = {
    "internet": "socket", "abstract_socket": "socket", "netlink": "socket", "absolute_path": "/etc/passwd",
    "parent_directories": "../etc/passwd", "own_root": "/proc/self/root", "first_root": "/proc/1/root",
    "openat2_call": "openat2", "traces_parent": "ptrace", "reads_process": "process_vm_readv", "io_uring": "io_uring",
    "user_faults": "userfaultfd", "performance_counters": "perf_event_open", "bpf_call": "bpf", "key_ring": "keyctl",
    "runs_program": "execve", "runs_from_memory": "memfd_create", "signals_all": "kill", "kills_reaper": "kill",
    "own_session": "setsid", "sets_clock": "clock_settime", "other_personality": "personality", "mounts": "mount",
    "own_namespace": "unshare", "many_processes": "clone", "calls_as_i386": "another architecture",
    "watches_calls": "seccomp", "memory_of_parent": "/mem", "environment_of_parent": "/environ",
}  # fmt: skip
"""Words of the evidence."""


@pytest.fixture(scope="module")
def attempt():
    """The escapes as library and as program, where everybody may read them."""
    built = {"library": ("-shared", "-fPIC", f"-I{ABI}"), "program": ("-DAS_PROGRAM",)}
    with tempfile.TemporaryDirectory(prefix="escapes-") as made:
        place = Path(made)
        place.chmod(0o755)
        for name, flags in built.items():
            command = [str(compiler()), "-std=c++17", "-O1", *flags, str(SOURCE), "-o", str(place / name)]
            subprocess.run(command, check=True, capture_output=True, timeout=100)
        yield place


@pytest.fixture(scope="module", params=DEPLOYMENTS)
def found(request, attempt):
    with private_cache() as cache:
        command = [sys.executable, "-m", "tests.escapes.attempts", request.param, cache]
        command += [str(attempt / "library"), str(attempt / "program")]
        alone = {**os.environ, **ONE_THREAD}
        done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def attempts(found):
    return {name: said for name, said in found.items() if "compiler" in said}


def test_no_kernel_gets_out(found):
    through = {name for name, said in attempts(found).items() if said["kernel"]["outcome"] == "got through"}
    assert through == set()


def test_a_kernel_that_tries_is_ended_unless_libraries_try_it_too(found):
    went_on = {name for name, said in attempts(found).items() if said["kernel"]["outcome"] == "refused"}
    assert went_on <= ANSWERED, went_on - ANSWERED


def test_the_verdict_names_the_layer_and_the_call(found):
    for name, said in attempts(found).items():
        if said["kernel"]["outcome"] != "refused":
            assert said["kernel"]["caught_by"] in {"sandbox", "thread audit", "resource limits"}, (name, said)
    for name, words in NAMED.items():
        assert words in "; ".join(found[name]["kernel"].values()), (name, found[name])


def test_no_build_gets_out(found):
    through = {name for name, said in attempts(found).items() if said["compiler"]["outcome"] == "got through"}
    assert through <= HARMLESS_IN_A_BUILD, through - HARMLESS_IN_A_BUILD


def test_nothing_is_left_behind_and_the_next_kernel_runs(found):
    assert {name for name, said in found.items() if "left" in said} == set()
    assert found["remains"] == {}
    assert found["harmless afterwards"]["kernel"]["outcome"] == "ran"


def test_a_kernel_holds_its_standard_streams_and_its_two_channels_and_no_other_descriptor(found):
    assert found["harmless afterwards"]["kernel"]["descriptors"] == "5"


def test_roots_boxes_are_another_user(found, request):
    others = {"ordinary-user", "rootless-container"} & {*request.node.callspec.params["found"].split("+")}
    as_root = machine_sandbox().user != SAME_USER and not others
    for said in (found["harmless afterwards"]["kernel"], found["internet"]["compiler"]):
        assert ("user" in said["level"].split("+")) == as_root, said["level"]
