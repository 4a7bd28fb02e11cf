"""A definition under a workload is an operator: the reference's answers, its inputs, and nothing of its own."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
import torch

from shared import operators
from shared.errors import OperatorError
from shared.submissions import operator_text
from shared.submissions.definition import Definition
from shared.submissions.workload import Workload
from tests.unit.submissions.samples import DEFINITION, WORKLOAD, loaded, made, run


def nothing(path: str) -> bytes:
    raise AssertionError(path)


def text(definition: Definition, workload: Workload | None = None) -> str:
    return operator_text.operator(definition, workload or loaded(definition), nothing).source


def operator(**changes: Any) -> Any:
    return run(text(made(**changes)), "operator_of_a_definition")


def simple(body: str, **changes: Any) -> dict[str, Any]:
    """A definition of one input ``x`` and one output ``y``, with what it needs beside the reference ``body``."""
    small = {
        "name": "simple",
        "axes": {"n": {"type": "const", "value": 4}},
        "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "constraints": [],
        "reference": f"import torch\ndef run(x):\n    {body}\n",
    }
    return DEFINITION | small | changes


def of(raw: dict[str, Any], inputs: dict[str, Any] | None = None) -> Any:
    definition = made(**raw)
    workload = loaded(definition, axes={}, inputs=inputs or {})
    return run(text(definition, workload), "operator_of_a_definition")


def drawn(module: Any, seed: int) -> list[Any]:
    torch.manual_seed(seed)
    return module.get_inputs()


def test_equal_definitions_and_workloads_give_equal_operators_and_others_other_ones():
    one, again = (operator_text.operator(made(), loaded(), nothing) for _ in range(2))
    assert one == again
    assert operators.parse(one.source, name=one.ref.name) == one
    assert one.ref.name == "rmsnorm_h64 (batch=32)"
    other = operator_text.operator(made(), loaded(axes={"batch": 33}), nothing)
    assert other.ref.source_hash != one.ref.source_hash


def test_inputs_are_drawn_under_the_seed_with_the_shapes_types_and_numbers_of_the_workload():
    module = operator()
    first, again, other = drawn(module, 1), drawn(module, 1), drawn(module, 2)
    assert [(a.shape, a.dtype) for a in first[:2]] == [((32, 64), torch.float32), ((64,), torch.float32)]
    assert first[2] == 1e-6
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("int8", -128, 127), ("uint8", 0, 255), ("int32", -1024, 1023), ("bool", 0, 1)]
)
def test_integers_and_booleans_keep_their_type_and_the_formats_range(dtype, low, high):
    raw = simple("return x", inputs={"x": {"shape": ["n", "n"], "dtype": dtype}})
    (x,) = of(raw | {"axes": {"n": {"type": "const", "value": 128}}}).get_inputs()
    assert str(x.dtype) == f"torch.{dtype}"
    assert (int(x.min()), int(x.max())) == (low, high)


def test_the_model_gives_what_the_reference_gives():
    module = operator()
    x, weight, eps = drawn(module, 0)
    wanted = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
    assert torch.allclose(module.Model()(x, weight, eps), wanted)


def test_asked_in_another_precision_a_reference_that_names_float32_computes_in_that_one():
    module = operator()
    x, weight, eps = drawn(module, 0)
    wide = x.double()
    exact = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight.double()
    answer = module.Model()(wide, weight.double(), eps)
    assert torch.equal(answer, exact)
    assert not torch.equal(module.Model()(x, weight, eps).double(), exact)
    half = module.Model()(x.half(), weight.half(), eps)
    assert half.dtype == torch.float16
    assert (half - exact).abs().max() > 1e-4


@pytest.mark.parametrize(
    "body",
    ["return {'y': x * 2}", "return (x * 2,)", "return [x * 2]", "return x * 2"],
)
def test_outputs_come_by_name_or_in_a_container_as_the_formats_allow(body):
    module = of(simple(body))
    (x,) = drawn(module, 0)
    assert torch.equal(module.Model()(x), x * 2)


def test_a_plain_number_as_an_output_is_a_tensor_without_dimensions():
    module = of(simple("return x.sum().item()", outputs={"y": {"shape": None, "dtype": "float32"}}))
    (x,) = drawn(module, 0)
    assert torch.equal(module.Model()(x), x.sum())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return x.half()", r"output `y` is float16\[4\], not float32\[4\]"),
        ("return x[:2]", r"output `y` is float32\[2\], not float32\[4\]"),
        ("return x, x", "the reference returns 2 outputs, the definition has 1"),
    ],
)
def test_a_reference_that_breaks_its_own_definition_is_said_so(body, said):
    module = of(simple(body))
    with pytest.raises(ValueError, match=said):
        module.Model()(*drawn(module, 0))


@pytest.mark.parametrize(
    "body", ["return x.mul_(2)", "x *= 2; return x", "x[:] = x * 2; return x", "return torch.mul(x, 2, out=x)"]
)
def test_a_reference_that_works_in_place_leaves_the_operators_inputs_alone(body):
    module = of(simple(body))
    (x,) = drawn(module, 0)
    before = x.clone()
    assert torch.equal(module.Model()(x), before * 2)
    assert torch.equal(x, before)


def test_names_of_the_reference_do_not_meet_those_of_the_module():
    reference = (
        "class Model: scale = 2\ndef get_inputs(): return 3\ndef in_order(r): return 0\n"
        "def run(x):\n    return x * Model.scale * get_inputs()\n"
    )
    module = of(simple("", reference=reference))
    (x,) = drawn(module, 0)
    assert torch.equal(module.Model()(x), x * 6)


@pytest.mark.parametrize("tail", ["", "\\n", "'", "\r\n", "'''", '"""', "\u2028", "\x00"[:0]])
def test_a_reference_is_kept_to_the_character(tail):
    reference = f"import torch\ndef run(x):\n    return x * 2  # {tail}\nNOTE = {tail!r}\n"
    module = of(simple("", reference=reference))
    assert reference == module.REFERENCE


CUSTOM = """
import torch
def draw(axes_and_scalars, device):
    n = axes_and_scalars["n"]
    return {"x": torch.randint(0, n, (n,), device=device), "s": axes_and_scalars.get("s", 2)}
def run(x, s):
    return x * s
"""
INTEGERS = {"x": {"shape": ["n"], "dtype": "int64"}, "s": {"shape": None, "dtype": "int32"}}


def test_inputs_that_the_reference_draws_itself_are_drawn_under_the_seed():
    raw = simple("", reference=CUSTOM, inputs=INTEGERS, custom_inputs_entrypoint="draw")
    module = of(
        raw | {"outputs": {"y": {"shape": ["n"], "dtype": "int64"}}}, {name: {"type": "custom"} for name in "xs"}
    )
    x, s = drawn(module, 3)
    assert torch.equal(drawn(module, 3)[0], x)
    assert int(x.max()) < 4
    assert s == 2
    mixed = of(raw, {"x": {"type": "custom"}, "s": {"type": "scalar", "value": 5}})
    assert drawn(mixed, 3)[1] == 5


def test_what_the_reference_draws_must_be_what_its_definition_says():
    raw = simple("", reference=CUSTOM, custom_inputs_entrypoint="draw", inputs=INTEGERS)
    raw["inputs"] = INTEGERS | {"x": {"shape": ["n"], "dtype": "int32"}}
    module = of(raw, {name: {"type": "custom"} for name in "xs"})
    with pytest.raises(ValueError, match=r"makes `x` int64\[4\], not int32\[4\]"):
        module.get_inputs()


def test_a_sampling_operator_gets_probabilities():
    raw = simple("return probs", op_type="sampling", inputs={"probs": {"shape": ["n"], "dtype": "float32"}})
    (probs,) = of(raw | {"reference": "def run(probs):\n    return probs\n"}).get_inputs()
    assert float(probs.sum()) == pytest.approx(1.0)


def stored(dtype: str, shape: list[int], data: bytes, *, key: str = "x", offsets: list[int] | None = None) -> bytes:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": offsets or [0, len(data)]}
    header = json.dumps({"__metadata__": {"a": "b"}, key: entry}).encode()
    return struct.pack("<Q", len(header)) + header + data


def with_file(data: bytes) -> operators.OperatorSpec:
    definition = made(**simple("return x * x", inputs={"x": {"shape": ["n"], "dtype": "int32"}}))
    workload = loaded(
        definition, axes={}, inputs={"x": {"type": "safetensors", "path": "blob/x.safetensors", "tensor_key": "x"}}
    )
    return operator_text.operator(definition, workload, lambda path: data if path == "blob/x.safetensors" else b"")


def test_a_small_tensor_of_a_file_becomes_part_of_the_operator():
    module = run(
        with_file(stored("I32", [4], struct.pack("<4i", 1, -2, 3, 2**31 - 1))).source, "operator_of_a_definition"
    )
    assert module.get_inputs()[0].tolist() == [1, -2, 3, 2**31 - 1]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is no safetensors file"),
        (b"\xff" * 64, "is no safetensors file"),
        (struct.pack("<Q", 4) + b"nope" + b"x" * 8, "has a malformed header"),
        (stored("I32", [4], bytes(16), key="z"), "has no tensor `x`"),
        (stored("F32", [4], bytes(16)), "tensor `x` is F32[4], the definition says int32[4]"),
        (stored("I32", [2, 2], bytes(16)), "tensor `x` is I32[2, 2], the definition says int32[4]"),
        (stored("I32", [4], bytes(16), offsets=[0, 12]), "has a malformed header"),
        (stored("I32", [4], bytes(8), offsets=[0, 16]), "has a malformed header"),
    ],
)
def test_a_file_of_tensors_that_does_not_hold_what_it_should_is_refused(data, said):
    with pytest.raises(OperatorError) as caught:
        with_file(data)
    assert said in str(caught.value)


def test_a_tensor_too_large_for_a_text_is_refused():
    definition = made(**simple("return x * x", axes={"n": {"type": "const", "value": 1 << 20}}))
    workload = loaded(
        definition,
        axes={},
        inputs={"x": WORKLOAD["inputs"]["x"] | {"type": "safetensors", "path": "a", "tensor_key": "x"}},
    )
    with pytest.raises(OperatorError, match="more than the 256 KiB supported"):
        operator_text.operator(definition, workload, lambda _: stored("F32", [1 << 20], bytes(4 << 20)))
