"""Calls that compute in different ways, each under the kernel audit; a program of its own, for it interprets Triton.

Prints one JSON object: way -> report.
"""

import json
import sys
import types

import torch

from evaluator_svc.hosted import extensions, interpreter

interpreter.install()

import triton
import triton.language as tl

from evaluator_svc.hosted.kernel_audit import Audit


@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) * 2, at < n)


@torch.library.custom_op("candidate::hidden", mutates_args=())
def hidden(x: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, x)


def launch(x):
    out = torch.empty_like(x)
    doubled[(1,)](x, out, x.numel(), BLOCK=16)
    return out


def fallen_back(x):
    try:
        doubled[(1,)](x, missing, x.numel(), BLOCK=16)
    except NameError:
        return torch.mm(x, x)


def main():
    library = types.ModuleType("fast")
    library.forward = lambda x: x
    library.Worker = type("Worker", (), {"run": lambda self, x: x, "__module__": "fast"})
    fast = extensions._counted(library, "fast")
    worker = fast.Worker()
    native = torch.library.Library("candidate_native", "DEF")
    native.define("twice(Tensor x) -> Tensor")
    native.impl("twice", lambda x: x + x, "CPU")
    x = torch.ones(4, 4)
    ways = {
        "library": lambda: torch.mm(x, x).view(16),
        "views": lambda: x.t().reshape(16),
        "triton": lambda: launch(x),
        "mixed": lambda: torch.softmax(launch(x), -1),
        "fallback": lambda: fallen_back(x),
        "extension": lambda: fast.forward(x),
        "method": lambda: worker.run(x),
        "operator": lambda: torch.ops.candidate_native.twice(x),
        "python operator": lambda: hidden(x),
    }
    seen = {}
    for name, call in ways.items():
        with Audit() as audit, torch.inference_mode():
            call()
        seen[name] = audit.report()
    launch(x)  # not audited: counted nowhere
    with Audit() as audit:
        pass
    seen["nothing"] = audit.report()
    json.dump(seen, sys.stdout)


main()
