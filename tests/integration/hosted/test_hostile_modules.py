"""What a misbehaving module becomes: a status and the layer that caught it, and the next one is none the wiser."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest

from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.runner.box import RunnerLimits
from evaluator_svc.runner.process import Ran, RunFailure
from tests.integration.hosted.softmax_module import RIGHT, forward, said, values

SOFTMAX = "return torch.softmax(x, dim=-1)"
GONE_S = 10.0
MREMAP = """
import ctypes, torch
libc = ctypes.CDLL(None)
libc.mremap.restype = ctypes.c_uint64
def again(x):
    page = x.data_ptr() & ~4095
    size = ctypes.c_size_t((x.nbytes + 8191) & ~4095)
    there = libc.mremap(ctypes.c_void_p(page), ctypes.c_size_t(0), size, 1) + x.data_ptr() - page
    memory = (ctypes.c_char * x.nbytes).from_address(there)
    return torch.frombuffer(memory, dtype=torch.float32).reshape(x.shape)
"""
PIPES = """
import os, stat
def pipes():
    for fd in range(3, 4096):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                yield fd
        except OSError:
            pass
"""
WRITABLE = """
def writable(fd):
    try:
        return os.write(fd, b"") == 0
    except OSError:
        return False
"""
LATER = """
import threading, time, torch
def later(out, x):
    time.sleep(60)
    out.copy_(torch.softmax(x, -1))
"""
FORGED = (
    PIPES
    + """
import gc, struct, sys
def forged(code):
    frame = sys._getframe()
    while "sequence" not in frame.f_locals:
        frame = frame.f_back
    for fd in pipes():
        try:
            os.write(fd, struct.pack("<IIiIQ", 0x4B45564F, frame.f_locals["sequence"], code, 0, 1))
        except OSError:
            pass
"""
)

CASES = {
    "exits": (forward("os._exit(0)", before="import os\n"), "CHEAT", Layer.CHANNEL),
    "raises SystemExit": (forward("raise SystemExit(0)"), "CHEAT", Layer.CHANNEL),
    "exits while loaded": ("import os\nos._exit(0)\n", "CHEAT", Layer.CHANNEL),
    "closes the reply pipe": (
        forward("[os.close(fd) for fd in pipes()]", SOFTMAX, before=PIPES), "CHEAT", Layer.CHANNEL
    ),
    "floods the reply pipe": (
        forward("[os.write(fd, b'x' * 4096) for fd in pipes() if writable(fd)]", SOFTMAX,
                before=PIPES + WRITABLE),
        "CHEAT", Layer.CHANNEL,
    ),
    "answers for the runner": (forward("forged(0)", SOFTMAX, before=FORGED), "CHEAT", Layer.CHANNEL),
    "answers and leaves": (forward("forged(0)", "os._exit(0)", before=FORGED), "CHEAT", Layer.CHANNEL),
    "forks": (forward("os.fork()", SOFTMAX, before="import os\n"), "CHEAT", Layer.SANDBOX),
    "forks while loaded": ("import os\nos.fork()\n" + RIGHT, "CHEAT", Layer.SANDBOX),
    "runs a program": (
        forward("subprocess.run(['/bin/true'])", SOFTMAX, before="import subprocess\n"), "CHEAT", Layer.SANDBOX
    ),
    "opens a socket": (forward("socket.socket()", SOFTMAX, before="import socket\n"), "CHEAT", Layer.SANDBOX),
    "asks for a web page": (
        "import urllib.request\nurllib.request.urlopen('http://192.0.2.1/')\n" + RIGHT, "CHEAT", Layer.SANDBOX
    ),
    "writes a file while called": (forward("open('/tmp/answers', 'w')", SOFTMAX), "CHEAT", Layer.SANDBOX),
    "writes over torch": (
        "import torch\nopen(torch.__file__, 'a')\n" + RIGHT, "LAUNCH_FAILED", Layer.SANDBOX
    ),
    "reads a file of the machine": (forward("open('/etc/passwd')", SOFTMAX), "RUNTIME_ERROR", Layer.SANDBOX),
    "reads /proc of its parent": (forward("open('/proc/1/maps')", SOFTMAX), "RUNTIME_ERROR", Layer.SANDBOX),
    "imports the judge": ("import evaluator_svc.judge\n" + RIGHT, "LAUNCH_FAILED", Layer.LAUNCH),
    "signals its parent": (forward("os.kill(os.getppid(), 9)", before="import os\n"), "CHEAT", Layer.SANDBOX),
    "traces": (forward("ctypes.CDLL(None).ptrace(16, 1, 0, 0)", before="import ctypes\n"), "CHEAT", Layer.SANDBOX),
    "keeps the seal off": (
        "from evaluator_svc.hosted import native\nnative.Native.seal = lambda self: None\n" + RIGHT,
        "CHEAT", Layer.SANDBOX,
    ),
    "leaves a thread": (
        forward("threading.Thread(target=time.sleep, args=(60,)).start()", SOFTMAX, before="import threading, time\n"),
        "CHEAT", Layer.THREADS,
    ),
    "computes in a thread that it does not wait for": (
        forward("out = torch.empty_like(x)", "threading.Thread(target=later, args=(out, x)).start()", "return out",
                before=LATER),
        "CHEAT", Layer.THREADS,
    ),
    "never ends": (forward("while torch.is_tensor(x): pass"), "TIMEOUT", Layer.LIMITS),
    "never ends while loaded": ("while True: pass\n", "TIMEOUT", Layer.LIMITS),
    "allocates 32 GiB": (forward("torch.empty(1 << 33).fill_(1)", SOFTMAX), "OUT_OF_MEMORY", Layer.LIMITS),
    "prints without end": (forward("print('x' * (1 << 22))", SOFTMAX), "RUNTIME_ERROR", Layer.LIMITS),
    "crashes": (forward("ctypes.string_at(0)", before="import ctypes\n"), "RUNTIME_ERROR", Layer.CRASH),
    "raises": (forward("raise ValueError('no')"), "RUNTIME_ERROR", Layer.CRASH),
    "raises what cannot be shown": (
        forward("raise Silent", before="class Silent(Exception):\n    def __str__(self): raise RuntimeError('no')\n"),
        "RUNTIME_ERROR", Layer.CRASH,
    ),
    "raises what cannot be shown while loaded": (
        "class Silent(Exception):\n    def __str__(self): raise SystemExit(0)\nraise Silent\n",
        "LAUNCH_FAILED", Layer.LAUNCH,
    ),
    "asks for a compiler": (forward("return torch.compile(torch.softmax)(x, -1)"), "RUNTIME_ERROR", Layer.CRASH),
    "is no Python": ("def (:\n", "LAUNCH_FAILED", Layer.LAUNCH),
    "has no ModelNew": ("x = 1\n", "LAUNCH_FAILED", Layer.LAUNCH),
    "writes to its input": (forward("return torch.softmax(x, -1, out=x)"), "MUTATED_INPUT", Layer.INPUTS),
    "returns its input": (forward("return x"), "CHEAT", Layer.CONTRACT),
    "returns a view of its input": (forward("return x.t().t().view(-1).view(64, 1000)"), "CHEAT", Layer.CONTRACT),
    "returns its input at another address": (forward("return again(x)", before=MREMAP), "CHEAT", Layer.CONTRACT),
    "returns memory that is not there": (
        forward("torch.Tensor.data_ptr = lambda t: 4096 * 17", SOFTMAX), "CHEAT", Layer.CONTRACT
    ),
    "returns a lazy tensor": (
        forward("return torch.softmax(x, -1).as_subclass(Lazy)",
                before="import torch\nclass Lazy(torch.Tensor): pass\n"),
        "CHEAT", Layer.CONTRACT,
    ),
    "returns a parameter": (forward("return torch.nn.Parameter(torch.softmax(x, -1))"), "WRONG_SHAPE", Layer.CONTRACT),
    "returns nothing": (forward("pass"), "WRONG_SHAPE", Layer.CONTRACT),
    "returns an array": (forward("return torch.softmax(x, -1).numpy()"), "WRONG_SHAPE", Layer.CONTRACT),
    "returns two": (forward("y = torch.softmax(x, -1)", "return y, y"), "WRONG_SHAPE", Layer.CONTRACT),
    "returns a sparse tensor": (forward("return torch.softmax(x, -1).to_sparse()"), "WRONG_SHAPE", Layer.CONTRACT),
    "returns no data": (forward("return torch.softmax(x, -1).to('meta')"), "WRONG_SHAPE", Layer.CONTRACT),
    "returns another shape": (forward("return torch.softmax(x, -1).t()"), "WRONG_SHAPE", Layer.CONTRACT),
    "returns an expanded value": (forward("return torch.zeros(1).expand(64, 1000)"), "WRONG_SHAPE", Layer.CONTRACT),
    "returns another type": (forward("return torch.softmax(x, -1).double()"), "WRONG_DTYPE", Layer.CONTRACT),
    "returns a quantized tensor": (
        forward("return torch.quantize_per_tensor(torch.softmax(x, -1), 1.0, 0, torch.qint8)"),
        "WRONG_DTYPE", Layer.CONTRACT,
    ),
}  # fmt: skip


def limits(load_s):
    return RunnerLimits(memory_bytes=1 << 30, load_s=load_s)


@pytest.mark.parametrize("name", CASES)
def test_a_module_that(lab, name):
    text, status, layer = CASES[name]
    patience_s = 2.0 if status == "TIMEOUT" else 20.0
    ended = lab.outcome(text, timeout_s=patience_s, limits=limits(load_s=patience_s))
    assert isinstance(ended, RunFailure), f"{name}: it ran"
    assert (ended.status.value, caught_by(ended.evidence)) == (status, layer), said(ended)


@pytest.mark.parametrize(
    "before",
    [
        "import torch\ntorch.allclose = lambda *a, **k: True\ntorch.cuda.Event.elapsed_time = lambda *a: 1e-3\n",
        "import time\ntime.perf_counter = time.perf_counter_ns = time.monotonic = lambda: 0\n",
        "import atexit, os\natexit.register(os._exit, 0)\n",
        "import sys\nsys.modules['evaluator_svc.judge'] = sys.modules['reference'] = sys\n",
        "import gc\nfor one in gc.get_objects():\n    if type(one).__name__ == 'Tensor':\n        found = one\n",
        "import os\nos.environ.clear()\nprint('check: pass')\n",
    ],
    ids=["torch", "clocks", "atexit", "modules", "gc", "environment"],
)
def test_patching_its_own_process_changes_nothing_for_the_controller(lab, before):
    ran = lab.outcome(before + RIGHT)
    assert isinstance(ran, Ran), said(ran)
    assert ran.elapsed_ns > 1000


def test_what_one_candidate_leaves_the_next_does_not_find(lab):
    first = "open('/tmp/answers', 'w').write('x')\nimport torch\ntorch.left = 1\n" + RIGHT
    assert isinstance(lab.outcome(first), Ran)
    second = "import os, torch\nassert os.listdir('/tmp') == ['extensions'] and not hasattr(torch, 'left')\n" + RIGHT
    ended = lab.outcome(second)
    assert isinstance(ended, Ran), said(ended)


def test_hostile_candidates_leave_no_process_no_descriptor_and_no_thread(lab):
    def held():
        mine = psutil.Process()
        below = mine.children(recursive=True)
        zombies = {one.pid for one in below if one.status() == psutil.STATUS_ZOMBIE}
        descriptors = {one.name for one in Path("/proc/self/fd").iterdir() if one.is_symlink()}
        return {one.pid for one in below}, descriptors, zombies, {thread.ident for thread in threading.enumerate()}

    async def hostile(name):
        text, _, _ = CASES[name]
        async with lab.open(text, limits=limits(load_s=0.5)) as runner:
            runner.write_input(0, 0, values())
            await runner.run(1, timeout_s=0.5)

    names = ["exits", "forks", "leaves a thread", "never ends", "crashes", "floods the reply pipe"]
    lab.outcome(RIGHT)
    settled = held()
    for name in names:
        lab.loop.run(hostile(name))
    deadline = time.monotonic() + GONE_S
    while not held()[0] <= settled[0] and time.monotonic() < deadline:
        time.sleep(0.01)  # who was killed is gone when the system says so
    after = held()
    # What other tests left may go meanwhile; nothing may come.
    assert [now - before for now, before in zip(after, settled, strict=True)] == [set()] * 4
    assert isinstance(lab.outcome(RIGHT), Ran)
