"""Blocks on a core: what is right on a GPU is right here, and what a GPU would leave to chance is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from evaluator_svc.correctness import KE_LAUNCH_FAILED
from evaluator_svc.runner.program import ABI
from evaluator_svc.simt import programs
from evaluator_svc.toolchains.gpu_commands import COUNTED, EMULATED, LINKED
from tests.integration.simt.kernels import (
    APART,
    ASKS_WHO_LEFT,
    COPIED_ON_THE_HOST,
    DOUBLED,
    ENTRY,
    HALF_A_WARP,
    HEAD,
    LEAVES,
    ON_ONE_LINE,
    ON_THE_HOST,
    OUTSIDE,
    STRIDED,
    SUMMED,
    deep,
    unit,
)

COUNT = 4096
CALL = """
import ctypes, sys
import numpy as np
a, b = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
class T(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8),
                ("ndim", ctypes.c_int32), ("dtype", ctypes.c_int32)]
def aligned(x):
    room = np.zeros(4096 + 16, np.float32)
    at = -room.ctypes.data % 64 // 4
    room[at : at + 4096] = x
    return room[at : at + 4096]
a, b = aligned(a), aligned(b)
t = [T(data=x.ctypes.data, ndim=1, dtype=0) for x in (a, b)]
for one in t: one.shape[0], one.strides[0] = 4096, 1
launch = ctypes.CDLL(sys.argv[1]).ke_launch
codes = []
for _ in range(2):
    codes.append(launch(ctypes.byref(t[0]), 1, ctypes.byref(t[1]), 1, None))
    b.tofile(sys.argv[2] + str(len(codes)))
sys.exit(codes[0])
"""


def ran(source, folder, *, warp=32, counting=False):
    """Exit status, results of two calls, what was printed."""
    text, library = folder / "k.cpp", folder / "k.so"
    text.write_text(source)
    flags = (f"-DKE_WARP={warp}", f"-I{ABI}", f"-I{programs.HERE}")
    emulator = str(programs.emulator(warp, counting=counting))
    if counting:
        subprocess.run(["g++", *COUNTED, *flags, str(text), "-o", str(folder / "k.o")], check=True)
        subprocess.run(["g++", *LINKED, str(folder / "k.o"), emulator, "-o", str(library)], check=True)
    else:
        subprocess.run(["g++", *EMULATED, "-shared", *flags, str(text), emulator, "-o", str(library)], check=True)
    command = [sys.executable, "-c", CALL, str(library), str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False, timeout=60)
    calls = [np.fromfile(path, np.float32) for path in sorted(folder.glob("out*"))]
    return done.returncode, calls, done.stdout + done.stderr


def counts(source, folder, *, warp=32):
    _, _, printed = ran(source, folder, warp=warp, counting=True)
    return json.loads(printed.splitlines()[0])["simt"]


@pytest.mark.parametrize("warp", [32, 64])
def test_warps_and_blocks_work_together(tmp_path, warp):
    code, calls, _ = ran(unit(SUMMED.replace("BARRIER", "ke_barrier();")), tmp_path, warp=warp)
    expected = np.arange(COUNT, dtype=np.float32).reshape(16, 256).sum(1, keepdims=True).repeat(256, 1).reshape(-1)
    assert code == 0
    assert all(np.array_equal(call, expected) for call in calls)


def test_a_missing_barrier_shows(tmp_path):
    _, (first, second), _ = ran(unit(SUMMED.replace("BARRIER", "")), tmp_path)
    assert np.isnan(first).any()
    assert not np.array_equal(first, second, equal_nan=True)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (APART, "thread 0 at the barrier in line 5, thread 100 at the barrier in line 7"),
        (ON_ONE_LINE, "thread 0 at the barrier in line 3, thread 100 at the barrier in line 3"),
        (HALF_A_WARP, "thread 0 at the barrier in line 5, thread 10 at a shuffle"),
        (OUTSIDE, "not in the warp"),
        (ASKS_WHO_LEFT, "not in the warp"),
    ],
)
def test_threads_that_wait_in_vain_fail_the_call(tmp_path, body, told):
    code, _, printed = ran(unit(body), tmp_path)
    assert code == 101
    assert told in printed


def test_threads_that_have_ended_are_waited_for_no_more(tmp_path):
    code, calls, printed = ran(unit(LEAVES), tmp_path)
    expected = np.arange(COUNT, dtype=np.float32).reshape(16, 256)
    expected[:, :200], expected[:, 200:] = expected[:, 199::-1], 0
    assert (code, printed) == (0, "")
    assert all(np.array_equal(call, expected.reshape(-1)) for call in calls)


@pytest.mark.parametrize("counting", [False, True])
def test_a_thread_whose_stack_is_too_small_ends_there_and_scribbles_on_no_other(tmp_path, counting):
    code, _, _ = ran(deep(), tmp_path, counting=counting)
    assert code == -signal.SIGSEGV


def test_a_block_of_too_many_threads_is_not_launched(tmp_path):
    code, _, printed = ran(unit(DOUBLED, blocks=1, threads=2048), tmp_path)
    assert code == KE_LAUNCH_FAILED
    assert "1 to 1024 threads" in printed


@pytest.mark.parametrize("warp", [32, 64])
def test_traffic_is_counted_by_warp_and_sector(tmp_path, warp):
    (told,) = counts(unit(DOUBLED), tmp_path, warp=warp)["kernels"]
    accesses = 2 * COUNT // warp
    assert told == {
        "name": "k", "launches": 1, "blocks": 16, "threads": 256, "asked": 8 * COUNT, "memory": 8 * COUNT,
        "accesses": accesses, "lanes": 2 * COUNT,
    }  # fmt: skip


def test_kernels_are_counted_by_their_whole_names(tmp_path):
    names = [f"a_kernel_whose_name_says_all_that_it_does_and_to_what_{n}" for n in (1, 2)]
    first = unit(DOUBLED).replace(" k(", f" {names[0]}(").replace("(k,", f"({names[0]},")
    body = first[len(HEAD) : first.index('extern "C" int')]
    launch = first[first.index("  KE_LAUNCH") : first.index("  return KE_OK")]
    source = first.replace(body, body + body.replace(*names)).replace(launch, launch + launch.replace(*names))
    assert [one["name"] for one in counts(source, tmp_path)["kernels"]] == names


def test_scattered_accesses_ask_for_whole_sectors(tmp_path):
    (told,) = counts(unit(STRIDED), tmp_path)["kernels"]
    assert told["asked"] == 2 * 32 * COUNT  # each element another sector
    assert told["memory"] == 8 * COUNT


@pytest.mark.parametrize("entry", [ON_THE_HOST, COPIED_ON_THE_HOST])
def test_host_code_that_touches_tensors_is_told(tmp_path, entry):
    assert counts(HEAD + entry, tmp_path)["host"] is True
    assert counts(unit(DOUBLED), tmp_path)["host"] is False


@pytest.mark.parametrize(("elements", "touched"), [(4096, False), (4095, True)])
def test_what_lies_behind_a_tensor_is_not_the_tensors(tmp_path, elements, touched):
    beside = f"((volatile char*)out[0].data)[{elements} * 4] = 0; (void)in; return KE_OK;"
    assert counts(HEAD + f"{ENTRY} {{ {beside} }}", tmp_path)["host"] is touched
