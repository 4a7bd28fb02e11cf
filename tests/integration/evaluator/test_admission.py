"""Operators are admitted or refused with one clear line, before any kernel is judged on them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from evaluator_svc import admission
from evaluator_svc.admission import Admission
from evaluator_svc.judge import judge
from evaluator_svc.mutation import Fate
from evaluator_svc.oracle import Oracle
from evaluator_svc.trusted_child import TrustedChild
from shared import operators
from shared.errors import OperatorError
from shared.events import Status
from shared.operators import OperatorSpec
from tests.integration.evaluator.pipeline import ROOT, admit, opened

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]

EXAMPLES = sorted((ROOT / "examples" / "operators").glob("*.py"))


def operator(forward: str, inputs: str = "[torch.randn(8, 64), torch.randn(8, 64)]", extra: str = ""):
    text = (
        "import torch\n"
        f"{extra}\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x, y):\n"
        f"        {forward}\n"
        "def get_inputs():\n"
        f"    return {inputs}\n"
        "def get_init_inputs():\n"
        "    return []\n"
    )
    return operators.parse(text, name="trial")


REFUSED = {
    "constant output": (operator("return torch.ones(8)"), "constant"),
    "zero by its own arithmetic": (operator("return x - x + (y - y)"), "constant"),
    "a softmax summed": (operator("return torch.softmax(x * y, -1).sum(-1)"), "is constant"),
    "zero weights": (operator("return (x * y) @ torch.zeros(64, 8)"), "is constant"),
    "a saturated activation": (operator("return torch.tanh((x * y).abs() * 1e4 + 50)"), "is constant"),
    "the mean of much noise, rounded": (operator("return (x * y).mean().round()"), "is constant"),
    "changes an input": (operator("return x.add_(1.0) * y"), "changes input 0 in place"),
    "exempts what is no mutant": (
        operator("return x * y", extra="CONTRACT = {'exempt_mutants': {'zeroes': 'why not'}}"),
        "names 'zeroes', which is no mutant of it",
    ),
    "a contract that is none": (operator("return x * y", extra="CONTRACT = {'bitwize': True}"), "names 'bitwize'"),
    "blind to an input": (operator("return torch.exp(x) + 0 * y.shape[0]"), "does not depend on input 1"),
    "random": (operator("return torch.nn.functional.dropout(x, 0.5, training=True) + y"), "not deterministic"),
    "not finite": (operator("return torch.log(x) + y"), "not finite"),
    "forward raises": (operator("raise ValueError('no luck')"), "Model.forward raises ValueError: no luck"),
    "no tensor out": (operator("return {'x': x}"), "must return a tensor"),
    "a number out": (operator("return 3.0"), "must return a tensor"),
    "inputs raise": (operator("return x", "1 / 0"), "get_inputs() raises ZeroDivisionError: division by zero"),
    "inputs are no list": (operator("return x", "torch.randn(4)"), "get_inputs() must return a list"),
    "no tensor in": (operator("return torch.zeros(3)", "[1, 2]"), "returns no tensor"),
    "top level raises": (operator("return x + y", extra="import nowhere_to_be_found"), "its top level raises"),
    "complex": (operator("return torch.complex(x, y)"), "dtype torch.complex64"),
    "empty": (operator("return x[:0] + y[:0]"), "is empty"),
}


ADMITTED = {
    "integer output": operator("return x.argmax(-1) + y.argmax(-1)"),
    "several outputs": operator("return x + y, (x * y).sum(-1)"),
    "boolean output": operator("return x > y"),
    "half precision": operator("return x * y", "[torch.randn(8, 64).half(), torch.randn(8, 64).half()]"),
    "an argument that is a number": operator("return x * y", "[torch.randn(8, 64), 3.0]"),
    "integer input": operator("return x[:, None] * 2.0 + y[:, None]", "[torch.randint(0, 9, (64,)), torch.randn(64)]"),
    "declares an exemption": operator(
        "return (x * y).sum(-1, keepdim=True).expand(8, 64) * 1.0",
        extra="CONTRACT = {'exempt_mutants': {'shifted by one element': 'a row has one value', "
        "'shifted back by one element': 'a row has one value'}}",
    ),
    "declares its changes": operator("return x.add_(1.0) * y", extra="CONTRACT = {'mutates': [0]}"),
    "declares chance": operator("return x * y + torch.rand(1) / 2**30", extra="CONTRACT = {'nondeterministic': True}"),
    "bitwise": operator("return x * y", extra="CONTRACT = {'bitwise': True}"),
    "bfloat16": operator("return x * y", "[torch.randn(8, 64).bfloat16(), torch.randn(8, 64).bfloat16()]"),
    "float64": operator("return x @ y.T", "[torch.randn(8, 64).double(), torch.randn(8, 64).double()]"),
    "masked": operator(
        "return torch.softmax(x.masked_fill(y, -30.0), -1)", "[torch.randn(8, 64), torch.rand(8, 64) > 0.5]"
    ),
    "prints": operator("print('hello'); return x + y", extra="print('at import')"),
    "a function compiled from its text": operators.load(ROOT / "tests" / "operators" / "scripted.py"),
}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Admits any operator in one process of its own: importing torch is what takes time."""

    loop: asyncio.Runner
    child: TrustedChild
    scratch: Path

    def open(self, spec: OperatorSpec) -> Oracle:
        one = Oracle(self.child, spec.ref, self.scratch, timeout_s=60)
        self.loop.run(one.open(spec.source, threads=1, device="cpu"))
        return one

    def admit(self, spec: OperatorSpec) -> Admission:
        one = self.open(spec)

        async def go() -> Admission:
            return await admission.admit(one, await one.suite(public=2), where=spec.ref.name)

        return self.loop.run(go())


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    with asyncio.Runner() as loop:
        child = TrustedChild("oracle", cpus=(), environment={}, where="trial")
        loop.run(child.__aenter__())
        try:
            yield Bench(loop=loop, child=child, scratch=tmp_path_factory.mktemp("oracle"))
        finally:
            loop.run(child.__aexit__())


@pytest.mark.parametrize("what", REFUSED)
def test_a_useless_operator_is_refused_with_the_reason(oracle, what):
    spec, reason = REFUSED[what]
    with pytest.raises(OperatorError) as caught:
        oracle.admit(spec)
    assert reason in str(caught.value)
    assert str(caught.value).startswith("trial:")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ADMITTED)
def test_a_usable_operator_is_admitted_with_a_full_score(oracle, what):
    score = oracle.admit(ADMITTED[what]).score
    assert score.killed > 0
    assert score.killed + score.count(Fate.EXEMPT) == score.total


def fates(found: Admission) -> dict[str, Fate]:
    return {outcome.mutant: outcome.fate for outcome in found.score.outcomes}


def forward(body: str, inputs: str, extra: str = "") -> OperatorSpec:
    """An operator of one input."""
    text = (
        f"import torch\n{extra}\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        {body}\n"
        f"def get_inputs():\n    return [{inputs}]\ndef get_init_inputs():\n    return []\n"
    )
    return operators.parse(text, name="trial")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_zeros_are_told_from_a_softmax_over_a_vocabulary_in_any_precision(oracle, dtype):
    one = oracle.open(forward("return torch.softmax(x, -1)", f"torch.randn(2, 393216, dtype=torch.{dtype})"))
    case, _ = oracle.loop.run(one.case(1))
    (reference,) = case.references
    assert judge(reference, reference.declared.tobytes()).passed
    assert judge(reference, bytes(reference.spec.nbytes)).status is Status.WRONG_RESULT


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_softmax_over_a_vocabulary_is_admitted_in_any_precision(oracle, dtype):
    spec = forward("return torch.softmax(x, -1)", f"torch.randn(4, 393216, dtype=torch.{dtype})")
    assert fates(oracle.admit(spec))["zeros"] is Fate.KILLED


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("epsilon", ["1e-5", "1e-6"])
def test_a_tenth_of_the_epsilon_of_a_norm_is_told_from_it_in_any_precision(oracle, dtype, epsilon):
    body = f"return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + {epsilon}).to(x.dtype)"
    if dtype == "float32":
        body = body.replace(".float()", "")
    found = fates(oracle.admit(forward(body, f"torch.randn(32, 256, dtype=torch.{dtype})")))
    tenth = [fate for name, fate in found.items() if name.startswith("constant") and name.endswith("a tenth")]
    assert tenth == [Fate.KILLED]


def test_a_bitwise_contract_is_held_against_the_last_bit(oracle):
    one = oracle.open(operator("return x * y", extra="CONTRACT = {'bitwise': True}"))
    case, _ = oracle.loop.run(one.case(1))
    (reference,) = case.references
    other = np.nextafter(reference.declared, np.float32(9))
    assert judge(reference, reference.declared.tobytes()).passed
    assert judge(reference, other.tobytes()).status is Status.WRONG_RESULT


def test_the_catalogue_skips_by_name_what_the_reference_refuses_or_cannot_answer(oracle):
    spec = forward("return torch.log(x)", "torch.rand(8, 64) + 0.1")
    suite = oracle.loop.run(oracle.open(spec).suite(public=1))
    assert any(line.startswith("zeros: the reference is not finite there") for line in suite.skipped)
    assert any(line.startswith("alternating: its inputs have one sign") for line in suite.skipped)
    assert {"own inputs", "scaled_up", "spikes", "not_finite"} - {case.name for case in suite.cases} == {"spikes"}


def test_relations_are_measured_not_guessed(oracle):
    def relations(body: str) -> set[str]:
        one = oracle.open(forward(body, "torch.randn(8, 64)"))
        return {relation.name for relation in oracle.loop.run(one.relations())}

    assert "unchanged by a shift of input 0" in relations("return torch.softmax(x, -1)")
    assert "output 0 sums to a constant along its last axis" in relations("return torch.softmax(x, -1)")
    assert "affine in input 0" in relations("return x.cumsum(-1) + 1")
    assert "homogeneous of degree 1 in input 0" in relations("return x.relu()")
    assert "output 0 unchanged when axis 1 of input 0 is permuted" in relations("return x.amax(-1)")
    assert relations("return x.cumsum(-1).sin().cumsum(0)") == set()


def test_integers_whose_sums_are_exact_are_found_for_a_sum_of_products(oracle):
    spec = operators.load(ROOT / "examples" / "operators" / "conv1d.py")
    case, reason = oracle.loop.run(oracle.open(spec).case(1, "integers"))
    assert reason == ""
    (reference,) = case.references
    assert np.array_equal(reference.exact, np.round(reference.exact))
    assert np.array_equal(reference.exact, reference.declared)
    assert 0 < np.abs(reference.exact).max() <= 2**16


def admit_alone(spec: OperatorSpec) -> None:
    async def go() -> None:
        async with opened() as (ports, evaluator):
            await admit(ports, evaluator, spec)

    asyncio.run(go())


def test_the_evaluator_admits_an_example_and_refuses_a_bad_operator():
    admit_alone(operators.load(ROOT / "examples" / "operators" / "matmul.py"))
    with pytest.raises(OperatorError, match="is constant"):
        admit_alone(REFUSED["constant output"][0])


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_every_example_operator_is_admitted(path):
    admit_alone(operators.load(path))
