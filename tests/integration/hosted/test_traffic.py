"""What is counted of an interpreted kernel: sectors touched and asked for, operations, products.

In a process of its own, because the interpreter is chosen when Triton is imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = '''\
import json

from evaluator_svc.hosted import interpreter

interpreter.install()

import torch
import triton
import triton.language as tl

from evaluator_svc.hosted.traffic import Traffic


@triton.jit
def copies(a, b, n, STRIDE: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(a + i * STRIDE, mask=i < n)
    tl.store(b + i, tl.exp(x.to(tl.float32)).to(b.dtype.element_ty), mask=i < n)


@triton.jit
def reads_twice(a, b, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(b + i, tl.load(a + i) + tl.load(a + i))


@triton.jit
def adds(a, total, B: tl.constexpr):
    tl.atomic_add(total + tl.arange(0, B) * 0, tl.load(a + tl.arange(0, B)))


@triton.jit
def scales(a, weights, b, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    w = tl.load(weights + tl.arange(0, B))
    tl.store(b + i, tl.load(a + i) * w)


def aligned(n, dtype):
    """A tensor that begins with a sector."""
    size = torch.empty(0, dtype=dtype).element_size()
    room = torch.zeros(n + 64 // size, dtype=dtype)
    return room[-room.data_ptr() % 64 // size :][:n]


def counted(launch):
    with Traffic() as traffic:
        launch()
    return {name: kernel.report() for name, kernel in traffic.kernels.items()}


f32, bf16 = aligned(4096, torch.float32), aligned(4096, torch.bfloat16)
weights = aligned(256, torch.float32)
out, out16 = aligned(4096, torch.float32), aligned(4096, torch.bfloat16)
told = {
    "dense": counted(lambda: copies[(4,)](f32, out, 1000, 1, 256)),
    "bf16": counted(lambda: copies[(4,)](bf16, out16, 1024, 1, 256)),
    "strided": counted(lambda: copies[(1,)](f32, out, 256, 16, 256)),
    "twice": counted(lambda: [reads_twice[(1,)](f32, out, 256) for _ in range(3)]),
    "shared": counted(lambda: scales[(4,)](f32, weights, out, 256)),
    "atomic": counted(lambda: adds[(1,)](f32, out, 256)),
}
copies[(1,)](f32, out, 16, 1, 256)  # nobody counts any more
print(json.dumps(told))
'''


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    program = tmp_path_factory.mktemp("traffic") / "counted.py"  # kernels are read from a file
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program)], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_dense_masked_traffic_is_what_is_read_and_written(told):
    counts = told["dense"]["copies"]
    assert (counts["launches"], counts["programs"], counts["accesses"]) == (1, 4, 8)
    assert counts["memory"] == counts["asked"] == 2 * 4000


def test_half_as_wide_elements_are_half_the_traffic(told):
    assert told["bf16"]["copies"]["memory"] == 2 * 1024 * 2


def test_a_stride_touches_whole_sectors(told):
    assert told["strided"]["copies"]["memory"] == 256 * 32 + 256 * 4


def test_what_a_launch_reads_again_is_asked_of_the_caches_and_launches_share_no_cache(told):
    counts = told["twice"]["reads_twice"]
    assert counts["launches"] == 3
    assert counts["memory"] == 3 * 2 * 1024
    assert counts["asked"] == 3 * 3 * 1024


def test_it_is_told_how_much_was_asked_since(told):
    assert told["twice"]["reads_twice"]["again"] == {"6": 3 * 1024}  # the 32 sectors of the first read
    assert told["shared"]["scales"]["again"] == {"7": 3 * 1024}  # a program asks for 96 sectors, 32 of them as all do
    assert told["dense"]["copies"]["again"] == {}


def test_an_atomic_operation_touches_its_place(told):
    assert told["atomic"]["adds"]["memory"] == 1024 + 32


def test_special_functions_are_counted_apart(told):
    assert told["dense"]["copies"]["special"] == 4 * 256
    assert told["twice"]["reads_twice"]["special"] == 0
    assert told["twice"]["reads_twice"]["operations"] >= 3 * 256
