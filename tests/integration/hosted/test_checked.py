"""Hosted modules through the correctness stage, on real cases of a real reference."""

from __future__ import annotations

import pytest

from evaluator_svc.correctness import SETS, check
from evaluator_svc.layers import caught_by
from evaluator_svc.ledger import Ledger
from evaluator_svc.oracle import Oracle
from evaluator_svc.poison import Poison
from evaluator_svc.trusted_child import TrustedChild
from shared import operators
from tests.integration.evaluator.pipeline import OPERATOR
from tests.integration.hosted.softmax_module import RIGHT, forward

pytestmark = pytest.mark.timeout(90)

AT_FIRST_RIGHT = forward(
    "calls.append(1)",
    "return torch.softmax(x, -1) if len(calls) <= {} else torch.empty(64, 1000)",
    before="calls = []\n",
)


@pytest.fixture(scope="module")
def suite(lab, tmp_path_factory):
    operator = operators.load(OPERATOR)

    async def go():
        environment = {"OMP_NUM_THREADS": "1"}
        async with TrustedChild("oracle", cpus=(), environment=environment, where=operator.ref.name) as child:
            oracle = Oracle(child, operator.ref, tmp_path_factory.mktemp("oracle"), timeout_s=60)
            await oracle.open(operator.source, 1, "cpu")
            return await oracle.suite()

    return lab.loop.run(go())


def verdict(lab, suite, text):
    async def go():
        runner = lab.open(
            text,
            inputs=suite.inputs,
            outputs=suite.outputs,
            signature=suite.signature,
            sets=SETS,
            stained=True,
            primer=suite.public[0].inputs,
        )
        async with runner:
            return (await check(runner, suite.cases, Poison(), call_s=5.0, ledger=Ledger())).verdict

    return lab.loop.run(go())


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        forward("return torch.softmax(x.t().contiguous(), 0).t()"),
        forward(
            "kept[0].copy_(torch.softmax(x, -1))", "return kept[0]",
            before="import torch\nkept = [torch.empty(64, 1000)]\n",
        ),
    ],
    ids=["plain", "transposed", "one buffer"],
)  # fmt: skip
def test_a_right_module_passes(lab, suite, text):
    found = verdict(lab, suite, text)
    assert found.passed, found


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        (forward("return torch.empty(64, 1000)"), {"WRONG_RESULT", "NONDETERMINISTIC"}),
        (AT_FIRST_RIGHT.format(2), {"WRONG_RESULT", "NONDETERMINISTIC"}),
        (AT_FIRST_RIGHT.format(4), {"WRONG_RESULT", "NONDETERMINISTIC"}),
        (AT_FIRST_RIGHT.format(8), {"WRONG_RESULT", "NONDETERMINISTIC"}),
        (forward("return torch.zeros(64, 1000)"), {"WRONG_RESULT"}),
        (
            forward("return kept.setdefault(x.shape, torch.softmax(x, -1))", before="kept = {}\n"),
            {"CHEAT"},
        ),
        (forward("return torch.softmax(x, -1) + torch.rand(64, 1000) * 1e-4"), {"NONDETERMINISTIC"}),
        (forward("return torch.softmax(x.half().float(), -1)"), {"PRECISION_DOWNGRADE", "WRONG_RESULT"}),
        (forward("return torch.where(x > 8, 0, torch.softmax(x, -1))"), {"WRONG_RESULT"}),
    ],
    ids=["never written", "stale 2", "stale 4", "stale 8", "zeros", "cached", "random", "half", "wide values"],
)
def test_a_wrong_module_does_not(lab, suite, text, statuses):
    found = verdict(lab, suite, text)
    assert found.status.value in statuses, found
    assert caught_by(found.evidence) is not None
