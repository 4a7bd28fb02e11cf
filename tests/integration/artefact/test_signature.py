"""What is read off a reference, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.artefact import cpu_flags, identifier_of, input_names
from cli.signature import Argument, Named, Signature, describe
from evaluator_svc.tensors import TensorSpec
from shared import chips
from shared.dtypes import DType
from shared.errors import OperatorError
from shared.operators import load, parse
from tests.integration.artefact import exported

ROOT = Path(__file__).parents[3]
ONE = TensorSpec(shape=(2,), dtype=DType.F32)


def test_arguments_values_state_and_outputs_are_told_apart():
    _, signature = exported.described()
    assert [(a.name, a.literal) for a in signature.arguments] == [("x", ""), ("residual", ""), ("repeat", "3")]
    assert [named.name for named in signature.state] == ["offset", "norm.gain"]
    assert [spec.shape for spec in signature.inputs] == [(6, 40), (6, 40), (40,), (40,)]
    assert (len(signature.outputs), signature.container) == (2, "tuple")


def test_a_function_that_is_compiled_from_its_text_does_not_keep_an_operator_from_being_described():
    signature = describe(load(ROOT / "tests" / "operators" / "scripted.py"))
    assert [spec.shape for spec in (*signature.inputs, *signature.outputs)] == [(32, 500), (32, 500)]


def test_an_operator_that_raises_is_one_clear_line():
    source = exported.OPERATOR.replace("residual - x", "residual.no_such_method()")
    with pytest.raises(OperatorError, match="broken: cannot be described: AttributeError") as caught:
        describe(parse(source, name="broken"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "identifier"),
    [("softmax", "softmax"), ("19_ReLU", "op_19_ReLU"), ("a-b.c", "a_b_c"), ("lambda", "op_lambda"), ("é", "_")],
)
def test_any_operator_name_becomes_an_identifier(name, identifier):
    assert identifier_of(name) == identifier


def test_input_names_are_distinct():
    signature = Signature(
        arguments=(Argument(name="w_x", tensor=ONE), Argument(name="n", literal="3"), Argument(name="if", tensor=ONE)),
        state=(Named(name="w.x", tensor=ONE),),
        outputs=(ONE,),
        container="tensor",
    )
    assert input_names(signature) == ("w_x", "op_if", "w_x_2")


def test_the_processor_features_of_the_chosen_instruction_set_are_required():
    chip = chips.load("cpu-x86_64")
    assert cpu_flags(("-O3", *chip.isas[1].flags), chip) == ["avx2", "fma"]
    assert cpu_flags(("-O3",), chip) == []
