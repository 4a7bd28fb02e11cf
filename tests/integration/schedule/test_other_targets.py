"""Other instruction sets and more threads: the same operators, still as exact as torch."""

from pathlib import Path

import pytest

from shared import chips
from tests.integration.schedule import compiled, judging, table

R = "torch.randn(45, 337)"
OPERATORS = {
    "pointwise": ("F.gelu(x + y) + x", [R, "torch.randn(337)"]),
    "softmax": ("F.softmax(x, -1)", [R]),
    "across": ("F.layer_norm(x.t(), (45,)) + x.sum(0)[:, None]", [R]),
    "scan": ("x.cumsum(1)", [R]),
    "arg": ("x.argmax(1)", [R]),
    "matmul": ("F.relu(x @ y.t() + z)", [R, "torch.randn(50, 337)", "torch.randn(50)"]),
    "batched": ("x @ (x.transpose(1, 2) @ y)", ["torch.randn(5, 7, 21)", "torch.randn(5, 7, 9)"]),
    "convolution": ("self.c(x)", ["torch.randn(3, 5, 41)"], "self.c = nn.Conv1d(5, 7, 3, padding=1)"),
    "double": ("torch.tanh(x).sum(1)", ["torch.randn(45, 37, dtype=torch.float64)"]),
    "half": ("F.silu(x).mean(1)", ["torch.randn(45, 37).half()"]),
    "long": ("x.sum()", ["torch.rand(30000)"]),
}


def supported():
    line = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    flags = frozenset(line.split(":")[1].split())
    return [isa for isa in chips.load("cpu-x86_64").isas if flags.issuperset(isa.cpu_flags)]


def problems(isa, threads, folder):
    cases = []
    for name, case in OPERATORS.items():
        built, model, inputs = compiled.planned(table.source(case))
        cases.append((name, compiled.render(built, isa=isa, threads=threads), model, inputs))
    launchers = compiled.compile_together([c[1].source for c in cases], folder, cases[0][1].flags)
    found = []
    for (name, _, model, inputs), launcher in zip(cases, launchers, strict=True):
        declared, exact = judging.references(model, inputs)
        tensors = compiled.kernel_inputs(model, inputs)
        problem = judging.agrees(compiled.launch(launcher, tensors, declared), declared, exact)
        if problem:
            found.append((name, problem))
    return found


@pytest.mark.parametrize("isa", supported(), ids=lambda isa: isa.name)
def test_every_instruction_set_of_this_processor_gives_exact_kernels(isa, tmp_path):
    assert problems(isa, 1, tmp_path) == []


def test_two_threads_give_exact_kernels(tmp_path):
    assert problems(compiled.this_isa(), 2, tmp_path) == []
