"""Other systems' operators and kernels, unchanged, on the real evaluator: right ones pass and wrong ones do not.

Most run on the GPU's chip, which without a GPU is interpreted: right or wrong is told, and nothing is timed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_svc.evaluators import evaluator_of
from evaluator_svc.kernel_policy import LibraryKernels
from evaluator_svc.requested import Asked, Foreign, understand
from evaluator_svc.settings import Policy
from shared import chips, ids
from shared.events import Evaluation, EvaluationRequested, KernelRef, Purpose, Status
from shared.ports import open_ports
from shared.settings import PortSettings
from tests.integration.evaluator.pipeline import SETTINGS, evidence
from tests.unit.submissions.samples import DEFINITION, RIGHT, WORKLOAD, solved

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]

GPU, CPU = "nvidia-sm_90", "cpu-x86_64"
SMALL = Foreign(definition=json.dumps(DEFINITION), workload=json.dumps(WORKLOAD | {"axes": {"batch": 6}}))
TRITON = (Path(__file__).parents[3] / "examples" / "submissions" / "rmsnorm_h256" / "rmsnorm_triton.py").read_text()
SCALING = "import torch\n\n\ndef scale(x, eps):\n    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)\n"
ABSOLUTE = "from scaling import scale\n\n\ndef run(x, weight, eps):\n    return {'y': scale(x, eps) * weight}\n"
LAUNCHING = "from .kernels import rmsnorm\n\n\ndef run(x, weight, eps, y):\n    y.copy_(rmsnorm(x, weight, eps))\n"
MODEL_NEW = """\
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, weight, eps):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
"""
EXTENSION = """\
#include <torch/extension.h>
#include "scaling.h"

torch::Tensor run(torch::Tensor x, torch::Tensor weight, double eps) {
  return scaled(x, eps) * weight;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""
HEADER = """\
#pragma once
inline torch::Tensor scaled(const torch::Tensor& x, double eps) {
  return x * torch::rsqrt(x.pow(2).mean(-1, true) + eps);
}
"""


COMPOSED = Policy(library_kernels=LibraryKernels.ALLOW)
"""Most of these kernels are compositions of library operators: it is their form that is tested."""


class Bench:
    def __init__(self, chip: str, loop: asyncio.Runner) -> None:
        self._chip, self._loop = chip, loop
        self._context = self._opened()
        self._ports, self._evaluator = loop.run(self._context.__aenter__())

    @asynccontextmanager
    async def _opened(self):
        async with open_ports(PortSettings(store_url="memory:")) as ports:
            evaluator = evaluator_of(ports, replace(SETTINGS, chip=self._chip, policy=COMPOSED))
            try:
                yield ports, evaluator
            finally:
                await evaluator.close()

    def close(self) -> None:
        self._loop.run(self._context.__aexit__(None, None, None))

    def verdict(self, asked: Asked) -> Evaluation:
        made = understand(asked, chips.load(self._chip), ())

        async def go() -> Evaluation:
            blobs = self._ports.store.blobs
            await blobs.put(made.operator.source.encode())
            digest = await blobs.put(made.kernel.source.encode())
            request = EvaluationRequested(
                search_id="",
                evaluation_id=ids.derive("evaluation", digest),
                candidate_id=ids.derive("candidate", digest),
                kernel=KernelRef(
                    kernel_id=ids.derive(made.kernel.language, digest, made.entry),
                    language=made.kernel.language,
                    source_hash=digest,
                    flags=made.flags,
                    entry=made.entry,
                ),
                operator=made.operator.ref,
                chip=self._chip,
                purpose=Purpose.SEARCH,
            )
            return await self._evaluator.evaluate(request)

        return self._loop.run(go())


@pytest.fixture(scope="module")
def benches() -> Iterator[dict[str, Bench]]:
    with asyncio.Runner() as loop:
        made: dict[str, Bench] = {}

        class Opening(dict[str, Bench]):
            def __missing__(self, chip: str) -> Bench:
                made[chip] = self[chip] = Bench(chip, loop)
                return made[chip]

        yield Opening()
        for bench in made.values():
            bench.close()


def solution(files: dict[str, str], **spec: object) -> Asked:
    return Asked(foreign=SMALL, solution=solved(files, spec=dict(spec)))


PASS = {
    "a module with ModelNew": Asked(foreign=SMALL, language="python", kernel_source=MODEL_NEW),
    "a module of functions": Asked(foreign=SMALL, language="python", kernel_source=RIGHT),
    "a Triton module of functions": Asked(foreign=SMALL, language="triton", kernel_source=TRITON),
    "a solution of one file": solution({"main.py": RIGHT}),
    "a solution of two files with outputs passed in": solution(
        {"main.py": LAUNCHING, "kernels.py": TRITON}, language="triton", destination_passing_style=True
    ),
    "a solution whose files name each other absolutely": solution(
        {"main.py": ABSOLUTE, "scaling.py": SCALING}
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", PASS)
def test_a_right_kernel_passes_in_every_form_it_may_come_in(form, benches):
    verdict = benches[GPU].verdict(PASS[form])
    assert verdict.status is Status.PASSED, evidence(verdict)
    assert verdict.ledger_hash
    own = "rmsnorm_kernel" if PASS[form].language == "triton" or "triton" in PASS[form].solution else "none"
    assert own in evidence(verdict)["own_kernels"]  # also where it lies in a file that the module carries


@pytest.mark.slow  # a header of torch's takes a compiler tens of seconds
def test_a_cpp_solution_is_built_as_an_extension_of_all_its_files(benches):
    asked = solution(
        {"rms.cpp": EXTENSION, "scaling.h": HEADER}, language="cpp", binding="torch", entry_point="rms.cpp::run"
    )
    verdict = benches[CPU].verdict(asked)
    assert verdict.status is Status.PASSED, evidence(verdict)
    assert verdict.speedup("eager") is not None


WRONG = {
    "returns its input": ("def run(x, weight, eps):\n    return x.clone()\n", Status.WRONG_RESULT),
    "scales its input in place": ("def run(x, weight, eps):\n    return x.mul_(weight)\n", Status.MUTATED_INPUT),
    "gives another shape": ("def run(x, weight, eps):\n    return (x * weight)[:2]\n", Status.WRONG_SHAPE),
    "raises": ("def run(x, weight, eps):\n    raise ValueError('no')\n", Status.RUNTIME_ERROR),
    "imports what is not there": ("import no_such_module\ndef run(x, weight, eps): ...\n", Status.LAUNCH_FAILED),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_solution_that_does_wrong_is_told_so(what, benches):
    text, status = WRONG[what]
    verdict = benches[GPU].verdict(solution({"main.py": text}))
    assert verdict.status is status, evidence(verdict)


def test_the_error_of_a_solution_names_its_own_file_and_line(benches):
    files = {"main.py": "from .deep import go\n\n\ndef run(x, weight, eps):\n    return go(x)\n",
             "deep.py": "def go(x):\n    raise ValueError('from the deep')\n"}  # fmt: skip
    told = " ".join(evidence(benches[GPU].verdict(solution(files))).values())
    assert "from the deep" in told
