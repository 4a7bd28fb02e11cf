"""A naive harness, as many were published: one process that loads, checks once and times. It shows that a cheat is one.

Its faults are those that KernelBench's and others' early versions had: the candidate runs in the process that holds the
reference and its answer, seeds are known, one set of values is checked with a tolerance of 1e-2 and then timed again
and again by a clock in reach, timed outputs are not looked at, and the report is what the process printed last.

Serves requests, a line of JSON each, and forks for each one: torch is imported once.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
import types

import torch

REPEATS, FEW = 40, 10
"""Timed calls of the reference, and of the candidate."""
TOLERANCE = 1e-2
SEED = 42
NAMES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")
DTYPES = [getattr(torch, name) for name in NAMES]


class KeTensor(ctypes.Structure):
    """As in ``ke_abi.h``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * 8),
        ("strides", ctypes.c_int64 * 8),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


def described(tensors):
    array = (KeTensor * len(tensors))()
    for at, tensor in zip(array, tensors, strict=True):
        at.data, at.ndim, at.dtype = tensor.data_ptr(), tensor.dim(), DTYPES.index(tensor.dtype)
        at.shape[: tensor.dim()], at.strides[: tensor.dim()] = tensor.shape, tensor.stride()
    return array


def native(library, state):
    """A candidate in C++ as a callable; its output is memory as the allocator gives it."""
    launch = ctypes.CDLL(library).ke_launch

    def call(out, *inputs):
        given = [*inputs, *state]
        if launch(described(given), len(given), described([out]), 1, None) != 0:
            raise RuntimeError("ke_launch failed")
        return out

    return call


def executed(text, name):
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


def close_enough(expected, got):
    return expected.shape == got.shape and torch.allclose(expected, got, rtol=TOLERANCE, atol=TOLERANCE)


def per_call(call, repeats=REPEATS):
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


def trial(request):
    operator = executed(request["operator"], "reference")
    torch.manual_seed(SEED)
    model = operator.Model(*operator.get_init_inputs()).eval()
    inputs = operator.get_inputs()
    reference_s = per_call(lambda: model(*inputs))
    if request["language"] == "cpp":
        candidate, with_output = native(request["library"], list(model.state_dict().values())), True
    else:
        module = executed(request["source"], "candidate")
        torch.manual_seed(SEED)
        candidate, with_output = module.ModelNew(*operator.get_init_inputs()).eval(), False
    torch.manual_seed(SEED)
    inputs = operator.get_inputs()

    def run(memory):
        """``memory`` is what an allocator gives: as CUDA's does, the memory that was freed last, as it was left."""
        return candidate(memory, *inputs) if with_output else candidate(*inputs)

    if request["order"] == "reference first":
        freed = model(*inputs)
        expected = freed.clone()
        got = run(freed)
    else:
        got = run(torch.empty_like(model(*[torch.ones_like(x) for x in inputs])))
        expected = model(*inputs)
        reference_s = per_call(lambda: model(*inputs))
    correct = bool(close_enough(expected, got))
    candidate_s = per_call(lambda: run(got), FEW)
    return {"correct": correct, "speedup": reference_s / max(candidate_s, 1e-12)}


def main():
    torch.set_num_threads(1)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                with torch.no_grad():
                    print(json.dumps(trial(request)), flush=True)
            except BaseException as error:  # noqa: BLE001 - whatever it raises is a report
                print(json.dumps({"correct": False, "error": f"{type(error).__name__}: {error}"}), flush=True)
            sys.exit(0)
        os.waitpid(child, 0)
        print("done", flush=True)


if __name__ == "__main__":
    main()
