"""What is wrong with a definition, a workload or a solution is told in one line that says where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.errors import UserError
from shared.submissions import definition, solution, workload
from tests.unit.submissions.samples import DEFINITION, RIGHT, SOLUTION, WORKLOAD, loaded, made, solved


def line(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(UserError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def axes(**changes: Any) -> dict[str, Any]:
    return {"axes": DEFINITION["axes"] | changes}


def given(**changes: Any) -> dict[str, Any]:
    return {"inputs": WORKLOAD["inputs"] | changes}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"name": }', "d.json:1:10: is not JSON: Expecting value"),
        (b'{\n "name": "a",\n}', "d.json:3:1: is not JSON"),
        (b"", "d.json:1:1: is not JSON"),
        (b"[]", "d.json: is [], not an object"),
        (b'{"name": "\xff"}', "d.json: is not UTF-8 (byte 10)"),
        (b"[" * 100_000, "d.json: is not JSON: nested too deeply"),
        (b" " * (5 << 20), "d.json: is larger than 4 MiB"),
        (b'{"name": 1' + b"0" * 5000 + b"}", "d.json: is not JSON: a number has more digits than can be read"),
        (b"{}", "d.json: has no `name`"),
    ],
    ids=str,
)
def test_text_that_is_no_json_object_is_refused_with_its_place(data: bytes, said: str) -> None:
    assert said in line(definition.parse, data, where="d.json")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": 3}, "name: is 3, not a string"),
        ({"name": "\ud800"}, "name: is not UTF-8 (character 0)"),
        ({"axes": None}, "has no `axes`"),
        (axes(hidden={"value": 4}), "axes.hidden: has no `type`"),
        (axes(hidden={"type": "const", "value": "4"}), 'axes.hidden: value: is "4", not an integer'),
        (axes(hidden={"type": "const", "value": 0}), "axes.hidden: is 0"),
        (axes(hidden={"type": "lambda"}), "axes.hidden: has type `lambda` (const, var or expr)"),
        ({"inputs": {}}, "inputs: is empty"),
        ({"inputs": {"not a name": {"shape": [], "dtype": "float32"}}}, "inputs: `not a name` cannot name an argument"),
        ({"inputs": {"self": {"shape": [], "dtype": "float32"}}}, "inputs: `self` cannot name an argument"),
        ({"inputs": {"x": {"shape": ["batch", "rows"], "dtype": "float32"}}}, "inputs.x: shape: `rows` is no axis"),
        ({"inputs": {"x": {"dtype": "float32"}}}, "inputs.x: has no `shape`"),
        ({"inputs": {"x": {"shape": ["batch"], "dtype": "float8_e4m3fn"}}}, "`float8_e4m3fn` is not supported"),
        ({"inputs": {"x": {"shape": ["batch"], "dtype": "fp32"}}}, "`fp32` is unknown"),
        ({"inputs": {"eps": {"shape": None, "dtype": "float32"}}}, "no input is a tensor"),
        ({"outputs": {"x": {"shape": ["batch"], "dtype": "float32"}}}, "`x` is both an input and an output"),
        ({"reference": None}, "has no `reference` (inline, or as reference.py in the same directory)"),
        ({"reference": "def run(x, weight, eps:"}, "reference:1: syntax error"),
        ({"reference": "def run():\0 pass"}, "reference: syntax error: source code string cannot contain null bytes"),
        ({"reference": "def go(x): ..."}, "reference: has no function `run`"),
        ({"reference": "def run(x): ..."}, "reference: `run` takes (x), the inputs are (x, weight, eps)"),
        ({"custom_inputs_entrypoint": "draw"}, "reference: has no function `draw`"),
    ],
    ids=str,
)
def test_a_definition_that_is_none_is_refused(changes: dict[str, Any], said: str) -> None:
    assert said in line(made, **changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"uuid": ""}, "uuid: is empty"),
        ({"axes": {}}, "gives no size for axis `batch`"),
        ({"axes": {"batch": 0}}, "axes.batch: is 0"),
        ({"axes": {"batch": True}}, "axes.batch: is true, not an integer"),
        ({"axes": {"batch": 3, "hidden": 65}}, "axes.hidden: is 65, the definition says 64"),
        ({"uuid": "u" * 201}, "uuid: is not one line of at most 200 characters"),
        ({"uuid": "two\nlines"}, "uuid: is not one line of at most 200 characters"),
        ({"axes": {"batch": 3, "rows": 1}}, "axes: `rows` is no axis of `rmsnorm_h64`"),
        (given(z={"type": "random"}), "inputs: `z` is no input of `rmsnorm_h64`"),
        (given(x={"type": "poem"}), "inputs.x: has type `poem` (random, scalar, safetensors, custom)"),
        (given(eps={"type": "random"}), "inputs.eps: a plain number from `random` is not supported"),
        (given(eps={"type": "scalar"}), "inputs.eps: has no `value`"),
        (given(eps={"type": "scalar", "value": "1"}), 'inputs.eps: value: is "1", not a number or a truth value'),
        (given(eps={"type": "scalar", "value": float("nan")}), "inputs.eps: value: is nan"),
        (given(x={"type": "scalar", "value": 1}), "inputs.x: is one number, the definition says a tensor"),
        (given(x={"type": "safetensors", "path": "a"}), "inputs.x: has no `tensor_key`"),
        (given(x={"type": "custom"}), "input `x` is custom, and the definition has no `custom_inputs_entrypoint`"),
    ],
    ids=str,
)
def test_a_workload_that_fits_no_definition_is_refused(changes: dict[str, Any], said: str) -> None:
    assert said in line(loaded, **changes)


def test_a_workload_of_another_definition_or_twice_the_same_is_refused() -> None:
    wrapped = {"definition": "softmax", "workload": WORKLOAD, "solution": None}
    assert "is of definition `softmax`, not `rmsnorm_h64`" in line(workload.parse, json.dumps(wrapped), made(), "w")
    twice = "\n\n".join([json.dumps(WORKLOAD)] * 2)
    assert "w.jsonl:3: uuid `first` occurs twice" in line(workload.parse_lines, twice, made(), "w.jsonl")
    assert "w.jsonl: has no workload" in line(workload.parse_lines, "\n \n", made(), "w.jsonl")


def test_a_workload_is_chosen_by_its_uuid_or_the_beginning_of_it() -> None:
    some = [loaded(uuid=uuid) for uuid in ("abc", "abd", "x")]
    assert workload.choose(some, "all", "w") == tuple(some)
    assert workload.choose(some, "x", "w") == (some[2],)
    assert "2 workloads begin with `ab`" in line(workload.choose, some, "ab", "w")
    assert "no workload `y` (it has abc, abd, x)" in line(workload.choose, some, "y", "w")


def test_axes_that_follow_from_others_are_worked_out_in_any_order() -> None:
    follows = {"total": {"type": "expr", "expression": "rows * 2"}, "rows": {"type": "expr", "expression": "batch + 1"}}
    assert loaded(made(**axes(**follows))).axes == {"batch": 32, "hidden": 64, "rows": 33, "total": 66}
    given_too = loaded(made(**axes(**follows)), axes={"batch": 32, "total": 66})
    assert given_too.axes["total"] == 66
    assert "axes.total: is 65, the definition says 66" in line(
        loaded, made(**axes(**follows)), axes={"batch": 32, "total": 65}
    )
    circle = {"a": {"type": "expr", "expression": "b"}, "b": {"type": "expr", "expression": "a"}}
    assert "axis `a` follows from itself" in line(loaded, made(**axes(**circle)))
    for expression, said in {
        "hidden / 5": "`hidden / 5` is 12.8, not a whole number",
        "hidden // 0": "cannot work out `hidden // 0`: integer division or modulo by zero",
        "__import__('os')": "is more than arithmetic on axes",
        "hidden ** 999": "exponent 999",
        "hidden ** 60": "out of range",
        "rows": "`rows` is no axis",
        "hidden +": "syntax error",
    }.items():
        assert said in line(loaded, made(**axes(a={"type": "expr", "expression": expression}))), expression


def test_constraints_on_axes_are_checked_and_others_are_kept_as_unchecked() -> None:
    assert "breaks the definition's constraint `hidden < batch`" in line(
        loaded, made(constraints=["hidden < batch", "batch > 0"])
    )
    kept = ["total == offsets[-1].item()"]
    assert loaded(made(constraints=["0 < batch <= hidden and hidden % 2 == 0", *kept])).unchecked == tuple(kept)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": None}, "has no `name`"),
        ({"definition": 7}, "definition: is 7, not a string"),
        ({"spec": []}, "spec: is [], not an object"),
        ({"spec": {}}, "spec: has no `language`"),
        ({"spec": {"language": "tilelang"}}, "spec: language: `tilelang` is not supported (cpp, cuda"),
        ({"spec": {"languages": ["triton", "cuda_cpp"]}}, "languages: mixes Python and C++: triton, cuda_cpp"),
        ({"spec": {"languages": []}}, "spec: languages: is empty"),
        ({"spec": {"language": "python"}}, "spec: has no `entry_point`"),
        ({"spec": {"language": "python", "entry_point": "run"}}, 'entry_point: is "run" (FILE::FUNCTION)'),
        (
            {"spec": {"language": "python", "entry_point": "other.py::run"}},
            "entry_point: there is no file `other.py` in sources (there is main.py)",
        ),
        ({"spec": {"language": "cpp", "entry_point": "main.py::run"}}, "`main.py` is no C++ file"),
        ({"sources": []}, "sources: is empty"),
        ({"sources": [{"path": "main.py"}]}, "sources[0]: has no `content`"),
        ({"sources": [{"path": "../main.py", "content": ""}]}, "`../main.py` leads out of the solution"),
        ({"sources": [{"path": "a/../../b.py", "content": ""}]}, "leads out of the solution"),
        ({"sources": [{"path": "/etc/passwd", "content": ""}]}, "`/etc/passwd` is not relative"),
        ({"sources": [{"path": "C:\\a.py", "content": ""}]}, "is not relative"),
        ({"sources": [{"path": "a\u0000.py", "content": ""}]}, "names no file"),
        ({"sources": [{"path": "main.py", "content": "\udcff"}]}, "content: is not UTF-8 (character 0)"),
        ({"sources": [{"path": p, "content": ""} for p in ("main.py", "./main.py")]}, "`main.py` occurs twice"),
        ({"sources": [{"path": p, "content": ""} for p in ("a", "a/b.py")]}, "`a` is a file and a directory"),
    ],
    ids=str,
)
def test_a_solution_that_is_none_is_refused(changes: dict[str, Any], said: str) -> None:
    assert said in line(solution.parse, json.dumps(SOLUTION | changes), where="s.json")


def test_a_binding_that_is_not_torchs_is_refused_by_name() -> None:
    def bound(**spec: Any) -> str:
        return solved({"k.cpp": "int x;"}, spec={"language": "cpp", "entry_point": "k.cpp::run"} | spec)

    assert "binding: is `tvm-ffi` (supported: torch)" in line(solution.parse, bound(binding="tvm-ffi"), where="s")
    assert "binding: is missing, which means `tvm-ffi`" in line(solution.parse, bound(), where="s")
    assert solution.parse(bound(binding="torch"), where="s").compiled


@pytest.mark.parametrize(
    ("text", "dps", "said"),
    [
        ("def go(): ...", False, "main.py: has no function `run` (it defines go)"),
        ("x = 1", False, "main.py: has no function `run` (it defines no function)"),
        ("def run(:", False, "main.py:1: syntax error"),
        ("def run(x, weight): ...", False, "`run` takes (x, weight), expected (x, weight, eps)"),
        ("def run(weight, x, eps): ...", False, "`run` takes (weight, x, eps), expected (x, weight, eps)"),
        ("def run(a, x, eps): ...", False, "`run` takes (a, x, eps), expected (x, weight, eps)"),
        ("def run(x, weight, y, eps): ...", True, "`run` takes (x, weight, y, eps), expected (x, weight, eps, y)"),
        ("def run(x, weight, eps): ...", True, "expected (x, weight, eps, y): the definition's inputs, then outputs"),
        ("def run(x, weight, eps, *, block): ...", False, "`run` takes (x, weight, eps, block=)"),
    ],
)
def test_an_entry_that_cannot_be_called_with_the_inputs_is_refused_with_both_signatures(
    text: str, dps: bool, said: str
) -> None:
    one = solution.parse(solved({"main.py": text}, spec={"destination_passing_style": dps}), where="s.json")
    assert said in line(solution.check, one, made(), where="s.json")


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        "def run(x, weight, eps, block=128): ...",
        "def run(*tensors, **options): ...",
        "def run(hidden_states, w, epsilon): ...",
        "def run(hidden_states, weight, e): ...",
        "def run(x, *others): ...",
        "from kernels import run",
        "run = make(1)",
    ],
)
def test_an_entry_that_can_be_called_by_position_is_taken(text: str) -> None:
    solution.check(solution.parse(solved({"main.py": text}), where="s"), made(), where="s")


def test_a_solution_of_another_definition_is_refused() -> None:
    other = solution.parse(solved(definition="softmax_64"), where="s.json")
    assert line(solution.check, other, made(), where="s.json") == (
        "s.json: is of definition `softmax_64`, OPERATOR is `rmsnorm_h64`"
    )


def test_fields_that_the_formats_add_are_passed_over() -> None:
    one = solution.parse(
        solved(spec={"language": "triton", "binding": None, "future": {"a": 1}}, description=None, score=3), where="s"
    )
    assert (one.hosted_language, one.destination_passing) == ("triton", False)
    assert made(version=9, description=None).name == "rmsnorm_h64"
    assert loaded(tolerance={"max_atol": 0.1}, notes="x").tolerance == {"max_atol": 0.1}


def test_destination_passing_is_the_default_as_in_both_formats() -> None:
    spec = {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run"}
    assert solution.parse(json.dumps(SOLUTION | {"spec": spec}), where="s").destination_passing
