"""Operators given as a call of an ATen function."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from shared import operators
from shared.errors import OperatorError


def called(call: str) -> tuple[torch.Tensor, torch.Tensor]:
    """What the written module computes, and its first input."""
    spec = operators.load(Path(call))
    space: dict = {}
    exec(spec.source, space)
    torch.manual_seed(0)
    inputs = space["get_inputs"]()
    return space["Model"](*space["get_init_inputs"]())(*inputs), inputs[0]


def test_a_call_becomes_a_module_that_computes_it():
    output, x = called("aten::softmax(f32[4, 16], dim=-1)")
    assert torch.equal(output, torch.softmax(x, -1))


def test_overloads_lists_and_keywords_are_passed_on():
    output, _ = called("aten::add.Tensor(f32[3], f32[3], alpha=2)")
    assert output.shape == (3,)
    output, _ = called("aten::cat([f32[2, 3], f32[4, 3]], 0)")
    assert output.shape == (6, 3)
    output, _ = called('aten::gelu(bf16[8], approximate="tanh")')
    assert output.dtype is torch.bfloat16


def test_integers_stay_below_their_bound():
    output, weight = called("aten::embedding(f32[7, 5], i64[1000] < 7)")
    assert output.shape == (1000, 5)
    assert weight.shape == (7, 5)


def test_equal_calls_are_the_same_operator_however_they_are_spaced():
    one, other = (operators.load(Path(f"aten::{text}")) for text in ("exp(f32[2,3])", "exp( f32[2, 3] )"))
    assert one.ref == other.ref
    assert one.ref.name == "aten_exp"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("aten::softmax", "is not a call of an ATen function"),
        ("aten::softmax(f32[2", "is not a call"),
        ("aten::exp(2.0)", "takes no tensor"),
        ("aten::exp(f31[2])", "`f31[2]` has no element type of"),
        ("aten::exp(f32[-2])", "is no whole number from 0 on"),
        ("aten::exp(f32[n])", "is no whole number from 0 on"),
        ("aten::exp(f32[2] < 3)", "a bound is for those"),
        ("aten::exp(f32[99999999, 99999999])", "larger than any tensor"),
        ("aten::exp(f32[2], open('x'))", "neither a tensor nor a literal"),
        ("aten::exp(f32[2], **{})", "`**` stands for no argument"),
        ("aten::a.b.c(f32[2])", "is not a call of an ATen function"),
        ("aten::exp('''" + '"""' + "''', f32[2]).__class__", "is not a call of an ATen function"),
    ],
)
def test_what_is_no_call_is_one_error_that_names_the_part(call, said):
    with pytest.raises(OperatorError, match=".*") as raised:
        operators.load(Path(call))
    assert said in str(raised.value)


def test_a_literal_cannot_close_the_docstring():
    spec = operators.load(Path('aten::exp(f32[2], name=\'"""\\nimport os\\n"""\')'))
    assert "\nimport os" not in spec.source
