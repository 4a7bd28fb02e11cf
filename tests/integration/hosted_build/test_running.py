"""From a module's text to the hosted runner: prebuilt extensions, interpreted Triton, and whose kernel it was."""

import asyncio
from collections import Counter

import numpy as np
import pytest

from evaluator_svc.hosted.process import INTERPRETED, PYTHON, HostedRunner, Hosts
from evaluator_svc.kernel_policy import LibraryKernels, decide, parse
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.runner.process import Ran
from evaluator_svc.toolchains import Built
from evaluator_svc.toolchains.hosted import HostedToolchain
from shared.events import Status
from tests.integration.hosted.softmax_module import LIMITS, ONE_TENSOR, SPEC, array_of, softmax, values

TORCH_EXTENSION = """
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = '''
#include <cmath>
torch::Tensor softmax(torch::Tensor x) {
  auto y = torch::empty_like(x);
  for (int64_t r = 0; r < x.size(0); ++r) {
    const float* in = x.data_ptr<float>() + r * x.size(1);
    float* out = y.data_ptr<float>() + r * x.size(1);
    float most = in[0], sum = 0;
    for (int64_t c = 0; c < x.size(1); ++c) most = std::max(most, in[c]);
    for (int64_t c = 0; c < x.size(1); ++c) sum += out[c] = std::exp(in[c] - most);
    for (int64_t c = 0; c < x.size(1); ++c) out[c] /= sum;
  }
  return y;
}
'''
fast = load_inline(name="fast_softmax", cpp_sources=SOURCE, functions=["softmax"], extra_cflags=["-O2"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return fast.softmax(x)
"""
RAW_EXTENSION = '''
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <Python.h>
#include <cmath>
static PyObject* softmax(PyObject*, PyObject* args) {
  long long in_at, out_at, rows, columns;
  if (!PyArg_ParseTuple(args, "LLLL", &in_at, &out_at, &rows, &columns)) return nullptr;
  for (long long r = 0; r < rows; ++r) {
    const float* in = (const float*)in_at + r * columns;
    float *out = (float*)out_at + r * columns, most = in[0], sum = 0;
    for (long long c = 0; c < columns; ++c) most = std::fmax(most, in[c]);
    for (long long c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - most);
    for (long long c = 0; c < columns; ++c) out[c] /= sum;
  }
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"softmax", softmax, METH_VARARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "raw", "", -1, methods};
PyMODINIT_FUNC PyInit_raw() { return PyModule_Create(&definition); }
"""
raw = load_inline(name="raw", cpp_sources=SOURCE, no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        BODY
'''
OWN = """out = torch.empty_like(x)
        raw.softmax(x.data_ptr(), out.data_ptr(), *x.shape)
        return out"""
FELL_BACK = """try:
            return raw.missing(x)
        except AttributeError:
            return torch.softmax(x, -1)"""
TRITON = """
import torch
import triton
import triton.language as tl


@triton.jit
def row_softmax(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + at, at < n, other=float("-inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * n + at, e / tl.sum(e, 0), at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        row_softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
"""
ON_A_GPU = TRITON.replace("torch.empty_like(x)", "torch.empty_like(x, device='cuda')")
LIBRARY = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)
"""


@pytest.fixture(scope="module")
def hosts():
    found = Hosts()
    yield found
    found.close()


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory):
    return HostedToolchain(directory=tmp_path_factory.mktemp("modules"))


def evaluated(toolchain, hosts, text, *, language="python", library=LibraryKernels.REFUSE):
    """What it computes of ``values()``, and the finding of the kernel audit; or why it failed."""
    profile = INTERPRETED if language == "triton" else PYTHON

    async def go():
        built = await toolchain.build(text, [], language=language)
        assert isinstance(built, Built), built
        opened = HostedRunner.open(
            hosts, built, [SPEC], [SPEC], signature=ONE_TENSOR, limits=LIMITS, profile=profile, primer=[values(1)]
        )
        async with opened as runner:
            runner.write_input(0, 0, values())
            ran = await runner.run(1, timeout_s=60.0)
            if not isinstance(ran, Ran):
                return ran, None
            return array_of(runner), decide(built.static, parse(await runner.audit()), library=library)

    return asyncio.run(go())


def told(verdict):
    return Counter({entry.name: entry.value for entry in verdict.evidence})


@pytest.mark.parametrize(
    ("text", "language", "kernel"),
    [
        (RAW_EXTENSION.replace("BODY", OWN), "python", "raw.softmax (1x)"),
        (TRITON, "triton", "row_softmax (1x)"),
        pytest.param(
            TORCH_EXTENSION, "python", "fast_softmax.softmax (1x)", marks=[pytest.mark.slow, pytest.mark.timeout(600)]
        ),
    ],
    ids=["an extension", "a Triton kernel", "an extension with torch's headers"],
)
def test_a_module_with_a_kernel_of_its_own_computes_by_it(toolchain, hosts, text, language, kernel):
    result, verdict = evaluated(toolchain, hosts, text, language=language)
    np.testing.assert_allclose(result, softmax(values()), rtol=1e-5)
    assert verdict.status is Status.PASSED, verdict
    assert told(verdict)["own_kernels"] == kernel


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LIBRARY, "defines no kernel of its own: a composition of library operators"),
        (RAW_EXTENSION.replace("BODY", FELL_BACK), "defines raw, but none of it ran: it fell back"),
    ],
    ids=["a composition", "a fallback"],
)
def test_a_module_that_computes_by_the_library_alone_is_no_custom_kernel(toolchain, hosts, text, reason):
    _, verdict = evaluated(toolchain, hosts, text)
    assert verdict.status is Status.NO_CUSTOM_KERNEL
    assert caught_by(verdict.evidence) is Layer.KERNELS
    assert told(verdict)["reason"] == reason
    assert told(verdict)["library_operators"].startswith("aten.softmax 1x")


def test_a_composition_passes_where_the_user_allows_it(toolchain, hosts):
    _, verdict = evaluated(toolchain, hosts, LIBRARY, library=LibraryKernels.ALLOW)
    assert verdict.status is Status.PASSED


def test_a_module_that_insists_on_a_gpu_fails_with_torchs_own_line(toolchain, hosts):
    failed, _ = evaluated(toolchain, hosts, ON_A_GPU, language="triton")
    assert failed.status in (Status.LAUNCH_FAILED, Status.RUNTIME_ERROR)
    assert "Torch not compiled with CUDA enabled" in str(failed.evidence)
