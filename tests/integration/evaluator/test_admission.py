"""Operators are admitted or refused with one clear line, before any kernel is judged on them."""

from __future__ import annotations

import asyncio

import pytest

from evaluator_svc import admission
from evaluator_svc.admission import Admission
from evaluator_svc.oracle import Oracle
from evaluator_svc.trusted_child import TrustedChild
from shared import operators
from shared.errors import OperatorError
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


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    """Admits any operator in one process of its own: importing torch is what takes time."""
    scratch = tmp_path_factory.mktemp("oracle")
    with asyncio.Runner() as loop:
        child = TrustedChild("oracle", cpus=(), environment={}, where="trial")
        loop.run(child.__aenter__())

        async def go(spec: OperatorSpec) -> Admission:
            one = Oracle(child, spec.ref, scratch, timeout_s=60)
            await one.open(spec.source, threads=1)
            return await admission.admit(one, await one.suite(public=2), where=spec.ref.name)

        try:
            yield lambda spec: loop.run(go(spec))
        finally:
            loop.run(child.__aexit__())


@pytest.mark.parametrize("what", REFUSED)
def test_a_useless_operator_is_refused_with_the_reason(oracle, what):
    spec, reason = REFUSED[what]
    with pytest.raises(OperatorError) as caught:
        oracle(spec)
    assert reason in str(caught.value)
    assert str(caught.value).startswith("trial: ")
    assert "\n" not in str(caught.value)


ADMITTED = {
    "integer output": operator("return x.argmax(-1) + y.argmax(-1)"),
    "several outputs": operator("return x + y, (x * y).sum(-1)"),
    "boolean output": operator("return x > y"),
    "half precision": operator("return x * y", "[torch.randn(8, 64).half(), torch.randn(8, 64).half()]"),
    "an argument that is a number": operator("return x * y", "[torch.randn(8, 64), 3.0]"),
    "integer input": operator("return x[:, None] * 2.0 + y[:, None]", "[torch.randint(0, 9, (64,)), torch.randn(64)]"),
    "prints": operator("print('hello'); return x + y", extra="print('at import')"),
}


@pytest.mark.parametrize("what", ADMITTED)
def test_a_usable_operator_is_admitted(oracle, what):
    assert oracle(ADMITTED[what]).killed > 0


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
