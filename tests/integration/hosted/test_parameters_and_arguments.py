"""What a module is constructed and called with: the reference's parameters, constructor arguments and plain values."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.hosted.plain import NotPlain, decode, encode
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.runner.process import Ran, RunFailure
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from shared.errors import OperatorError
from tests.integration.hosted.softmax_module import array_of, said, values

pytestmark = pytest.mark.timeout(60)

ROWS, INNER, OUTER = 4, 8, 6
INPUTS = [
    TensorSpec(shape=(ROWS, INNER), dtype=DType.F32),
    TensorSpec(shape=(OUTER, INNER), dtype=DType.F32),
    TensorSpec(shape=(OUTER,), dtype=DType.F32),
]
OUTPUT = TensorSpec(shape=(ROWS, OUTER), dtype=DType.F32)
AFFINE = Signature(arguments=(None,), state=("linear.weight", "linear.bias"), init=(INNER, OUTER))
MODULE = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}
"""
SAME_NAMES = MODULE.format(init="self.linear = torch.nn.Linear(inner, outer)", forward="return self.linear(x)")
OTHER_NAMES = MODULE.format(
    init="self.w = torch.nn.Parameter(torch.zeros(outer, inner)); self.b = torch.nn.Parameter(torch.zeros(outer))",
    forward="return x @ self.w.T + self.b",
)
WITH_ITS_OWN = MODULE.format(
    init="self.register_buffer('space', torch.zeros(3)); self.linear = torch.nn.Linear(inner, outer)",
    forward="return self.linear(x) + self.space.sum()",
)
WITHOUT_STATE = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x, weight, bias):
        return torch.nn.functional.linear(x, weight, bias)
"""


def affine(tensors):
    x, weight, bias = tensors
    return x @ weight.T + bias


def drawn(seed):
    return [values(seed + i, spec.shape) for i, spec in enumerate(INPUTS)]


def calls(lab, text, seeds, *, signature=AFFINE, **options):
    """Results of one process on parameters and inputs drawn anew for each of ``seeds``."""

    async def go():
        found = []
        async with lab.open(text, inputs=INPUTS, outputs=[OUTPUT], signature=signature, **options) as runner:
            for seed in seeds:
                for index, data in enumerate(drawn(seed)):
                    runner.write_input(0, index, data)
                ran = await runner.run(2)
                if isinstance(ran, RunFailure):
                    return ran
                found.append(array_of(runner, spec=OUTPUT))
        return found

    return lab.loop.run(go())


@pytest.mark.parametrize("text", [SAME_NAMES, OTHER_NAMES, WITH_ITS_OWN, WITHOUT_STATE],
                         ids=["by name", "by order", "beside its own", "as arguments"])  # fmt: skip
def test_parameters_are_the_references_and_change_between_calls(lab, text):
    for seed, got in zip((0, 10), calls(lab, text, (0, 10)), strict=True):
        np.testing.assert_allclose(got, affine(drawn(seed)), rtol=1e-4, atol=1e-5)


def test_several_sets_have_parameters_of_their_own(lab):
    async def go():
        options = {"inputs": INPUTS, "outputs": [OUTPUT], "signature": AFFINE, "sets": 2}
        async with lab.open(SAME_NAMES, **options) as runner:
            for set_ in range(2):
                for index, data in enumerate(drawn(set_)):
                    runner.write_input(set_, index, data)
            assert isinstance(await runner.run(2), Ran)
            return [array_of(runner, set_, spec=OUTPUT) for set_ in range(2)]

    for set_, got in enumerate(lab.loop.run(go())):
        np.testing.assert_allclose(got, affine(drawn(set_)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("init", "why"),
    [
        (
            "self.linear = torch.nn.Linear(inner, outer, bias=False)",
            "ModelNew has no linear.bias; it has linear.weight",
        ),
        ("self.linear = torch.nn.Linear(outer, outer)", "linear.weight is float32[6, 6] in ModelNew, float32[6, 8] in"),
        ("self.linear = torch.nn.Linear(inner, outer).double()", "linear.weight is float64[6, 8] in ModelNew"),
    ],
)
def test_parameters_that_do_not_match_are_named(lab, init, why):
    ended = calls(lab, MODULE.format(init=init, forward="return self.linear(x)"), (0,))
    assert isinstance(ended, RunFailure)
    assert (ended.status.value, caught_by(ended.evidence)) == ("LAUNCH_FAILED", Layer.LAUNCH)
    assert why in said(ended)


def test_weights_packed_once_are_stale_for_the_next_ones(lab):
    packing = MODULE.format(
        init="self.linear = torch.nn.Linear(inner, outer); self.packed = None",
        forward="self.packed = self.linear.weight.T.contiguous() if self.packed is None else self.packed\n"
        "        return x @ self.packed + self.linear.bias",
    )
    _, second = calls(lab, packing, (0, 10))
    assert np.abs(second - affine(drawn(10))).max() > 1e-3
    # Declared persistent, other ones come in another process.
    for seed, got in zip((0, 10), calls(lab, packing, (0, 10), persistent_weights=True), strict=True):
        np.testing.assert_allclose(got, affine(drawn(seed)), rtol=1e-4, atol=1e-5)


def test_plain_arguments_are_given_in_their_places(lab):
    signature = Signature(
        arguments=({"plain": encode(2.5)}, None, {"plain": encode((1, -1))}),
        init_kwargs={"limit": encode(float("inf")), "kind": encode({"a": None})},
    )
    text = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, limit, kind):
        super().__init__()
        self.limit = limit
        assert kind == {"a": None}

    def forward(self, factor, x, shape):
        assert shape == (1, -1)
        return (x * factor).clamp(max=self.limit)
"""
    got = lab.result(text, values(1), signature=signature)
    np.testing.assert_allclose(got, values(1) * 2.5, rtol=1e-6)


def test_a_constructor_that_raises_is_a_launch_failure_with_its_line(lab):
    text = MODULE.format(init="raise ValueError('no such size')", forward="return x")
    ended = calls(lab, text, (0,))
    assert isinstance(ended, RunFailure)
    assert "ValueError: no such size (line 7)" in said(ended)


def test_an_operator_with_other_than_plain_arguments_is_refused_by_name(lab):
    signature = Signature(arguments=(None,), refused="Model(...) is constructed with a value of type torch.Tensor")
    with pytest.raises(OperatorError, match="my-operator: .*torch.Tensor.*hosted by Python"):
        lab.open(SAME_NAMES, signature=signature, where="my-operator")


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, "x", [1, [2]], (1, (2.0,)), {"a": (1,), 2: None}, float("inf"), -float("inf")]
)
def test_plain_values_come_back_as_they_were(value):
    back = decode(encode(value), dtype=None)
    assert back == value
    assert type(back) is type(value)


def test_other_values_are_not_plain():
    with pytest.raises(NotPlain, match="builtins.object"):
        encode([object()])
