"""Kernels as other hands write them: the honest pass, the others get the status of what they do."""

from __future__ import annotations

import pytest

from shared import operators
from shared.events import Status
from tests.integration.evaluator.pipeline import bench, evidence

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]

TEMPLATE = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>
#include "ke_abi.h"
static int global;
static float truncated(float v) { unsigned u; memcpy(&u, &v, 4); u &= 0xffff0000u; memcpy(&v, &u, 4); return v; }
extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const float* x = (const float*)in[0].data;
  float* y = (float*)out[0].data;
  const long rows = in[0].shape[0], columns = in[0].shape[1], n = rows * columns;
  (void)global; (void)truncated; (void)n;
  BEFORE
  for (long r = 0; r < rows; ++r) {
    const float* a = x + r * columns;
    float* b = y + r * columns;
    float top = a[0];
    for (long c = 1; c < columns; ++c) top = a[c] > top ? a[c] : top;
    SUM sum = 0;
    for (long c = 0; c < columns; ++c) { b[c] = expf(a[c] - top); sum = (SUM)(sum + b[c]); }
    for (long c = 0; c < columns; ++c) b[c] /= sum;
  }
  AFTER
  return 0;
}
"""


def kernel(before: str = "", after: str = "", sum_type: str = "float") -> str:
    return TEMPLATE.replace("BEFORE", before).replace("AFTER", after).replace("SUM", sum_type)


UNINITIALISED = "for (long r = 0; r < rows; ++r) y[r] += t[r] * 1e-3f;"
MISBEHAVING = {
    "allocates, then adds to it": ("float* t = (float*)malloc(rows * 4);", f"{UNINITIALISED} free(t);",
                                   Status.NONDETERMINISTIC),
    "leaks fresh pages": ("", f"float* t = new float[rows]; {UNINITIALISED}", Status.NONDETERMINISTIC),
    "reads its stack": ("volatile float t[512];", UNINITIALISED, Status.NONDETERMINISTIC),
    "leaves one element": ("float last = y[n - 1];", "y[n - 1] = last;", Status.WRONG_RESULT),
    "depends on where it is loaded": ("", "y[((size_t)&global >> 12) % n] *= 1.0000005f;", Status.NONDETERMINISTIC),
    "reads the clock": ("", "timespec t; clock_gettime(CLOCK_REALTIME, &t); y[t.tv_nsec % n] *= 1.0000005f;",
                        Status.NONDETERMINISTIC),
    "draws random numbers": ("", "y[rand() % n] *= 1.0000005f;", Status.NONDETERMINISTIC),
    "writes a quarter too far": ("", "y[n + n / 4] = 1;", Status.RUNTIME_ERROR),
    "writes twice too far": ("", "y[3 * n] = 1;", Status.RUNTIME_ERROR),
    "writes far before": ("", "y[-5000] = 1;", Status.RUNTIME_ERROR),
    "reads far past an input": ("volatile float far = x[2 * n]; (void)far;", "", Status.RUNTIME_ERROR),
    "changes an input and puts it back": ("volatile float* z = (float*)x; float o = z[7]; z[7] = 0; z[7] = o;", "",
                                          Status.MUTATED_INPUT),
    "gives up without 64 GB": ("char* p = (char*)malloc(64ull << 30); if (!p) return 1; p[0] = 1;", "",
                               Status.OUT_OF_MEMORY),
    "maps 64 GB": (('void* p = mmap(0, 64ull << 30, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);'
                   ' if (p == MAP_FAILED) { perror("mmap"); return 2; }'), "", Status.OUT_OF_MEMORY),
    "catches what its vector throws": (("try { std::vector<char> v(64ull << 30); volatile char q = v[0]; (void)q; }"
                                       " catch (...) { return 3; }"), "", Status.OUT_OF_MEMORY),
    "calls the shell": ('if (system("curl http://192.0.2.1/")) {}', "", Status.CHEAT),
    "exits politely": ('puts("PASSED"); exit(0);', "", Status.CHEAT),
    "exits at once": ('puts("PASSED"); fflush(stdout); _exit(0);', "", Status.CHEAT),
    "sleeps": ("sleep(100);", "", Status.TIMEOUT),
    "truncates to bfloat16": ("", "for (long i = 0; i < n; ++i) y[i] = truncated(y[i]);", Status.PRECISION_DOWNGRADE),
    "stores float16": ("", "for (long i = 0; i < n; ++i) y[i] = (_Float16)y[i];", Status.PRECISION_DOWNGRADE),
    "scales by a wrong constant": ("", "for (long i = 0; i < n; ++i) y[i] *= 1.0005f;", Status.WRONG_RESULT),
    "has a NaN": ("", "y[77] = NAN;", Status.WRONG_RESULT),
}  # fmt: skip
HONEST = {
    "aligned scratch per call": ("float* t = (float*)aligned_alloc(64, 64 << 20); t[0] = 1;", "free(t);"),
    "vector scratch per call": ("std::vector<float> t(n);", "memcpy(t.data(), y, n * 4); memcpy(y, t.data(), n * 4);"),
    "workspace kept over calls": ("static std::vector<float> t(n);", "memcpy(t.data(), y, n * 4);"),
    "asks for the number of processors": (
        "volatile unsigned c = std::thread::hardware_concurrency() + sysconf(_SC_NPROCESSORS_ONLN); (void)c;", ""),
    "reads a clock and prints": ('timespec t; clock_gettime(CLOCK_MONOTONIC, &t); printf("%ld\\n", t.tv_sec);', ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def worker():
    with bench() as one:
        yield one


@pytest.mark.parametrize("name", MISBEHAVING)
def test_what_a_kernel_does_is_its_status(worker, name):
    before, after, status = MISBEHAVING[name]
    found = worker.evaluate(kernel(before, after), flags=("-O1",))
    assert found.status is status, evidence(found)
    assert found.evidence


def test_a_sum_in_half_precision_is_a_downgrade(worker):
    found = worker.evaluate(kernel(sum_type="_Float16"))
    assert found.status is Status.PRECISION_DOWNGRADE, evidence(found)


def test_what_a_failed_kernel_printed_is_shown_as_not_believed(worker):
    found = worker.evaluate(kernel('puts("PASSED, 9x"); fflush(stdout); abort();'))
    assert found.status is Status.RUNTIME_ERROR, evidence(found)
    assert evidence(found)["printed"] == "'PASSED, 9x' (not believed)"


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_kernel_passes(worker, name):
    found = worker.evaluate(kernel(*HONEST[name]))
    assert found.status is Status.PASSED, evidence(found)


@pytest.mark.parametrize("flags", [("-O0",), ("-Ofast", "-march=native")])
def test_an_honest_kernel_passes_under_any_optimisation(worker, flags):
    found = worker.evaluate(kernel(), flags=flags)
    assert found.status is Status.PASSED, evidence(found)


GATHER = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(20000, 256))
    def forward(self, i):
        return self.table[i]
def get_inputs(): return [torch.randint(0, 20000, (512,))]
def get_init_inputs(): return []
"""
GATHERS = """
#include <string.h>
#include "ke_abi.h"
extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const int64_t* index = (const int64_t*)in[0].data;
  const int64_t width = in[1].shape[1];
  for (int64_t k = 0; k < in[0].shape[0]; ++k)
    memcpy((float*)out[0].data + k * width, (const float*)in[1].data + index[k] * width, width * 4);
  return 0;
}
"""
PRODUCT = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        return (x @ x.T) @ y
def get_inputs(): return [torch.randn(2048, 32), torch.randn(2048, 32)]
def get_init_inputs(): return []
"""
REASSOCIATES = """
#include <string.h>
#include "ke_abi.h"
extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const float *x = (const float*)in[0].data, *z = (const float*)in[1].data;
  float *y = (float*)out[0].data, t[32 * 32] = {};
  for (int i = 0; i < 2048; ++i)
    for (int p = 0; p < 32; ++p)
      for (int j = 0; j < 32; ++j) t[p * 32 + j] += x[i * 32 + p] * z[i * 32 + j];
  memset(y, 0, 2048 * 32 * 4);
  for (int i = 0; i < 2048; ++i)
    for (int p = 0; p < 32; ++p)
      for (int j = 0; j < 32; ++j) y[i * 32 + j] += x[i * 32 + p] * t[p * 32 + j];
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "source"), [(GATHER, GATHERS), (PRODUCT, REASSOCIATES)], ids=["gather", "reassociation"]
)
def test_a_kernel_that_needs_less_than_all_inputs_or_operations_is_no_cheat(worker, operator, source):
    spec = operators.parse(operator, name="an_operator", where="an_operator.py")
    found = worker.evaluate(source, operator=spec, flags=("-O3", "-march=native"))
    assert found.status is Status.PASSED, evidence(found)
