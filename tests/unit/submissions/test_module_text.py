"""A solution of any number of files, or a module of functions, becomes one module with a ``ModelNew`` that calls it."""

from __future__ import annotations

import inspect
import json
import sys
import traceback
from typing import Any

import pytest
import torch

from shared.dtypes import DType
from shared.errors import UserError
from shared.submissions import bare, functions, interface, module_text, solution
from shared.submissions.interface import Interface, Output, State
from tests.unit.submissions.samples import RIGHT, loaded, made, run, solved

SCALE = """\
import torch


def scale(x, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
"""
CALLING = "def run(x, weight, eps):\n    return {}scale(x, eps) * weight\n"


@pytest.fixture(autouse=True)
def _as_in_a_process_of_its_own(monkeypatch):
    """A candidate's process loads one module; what a test's module imports must not meet the next one's."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("a", "b", "main", "parts", "submitted"):
            del sys.modules[name]


def inputs(rows: int = 32) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, 64, generator=generator), torch.randn(64, generator=generator), 1e-6


def right(x: Any, weight: Any, eps: float) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def text(files: dict[str, str] | None = None, **spec: Any) -> str:
    one = solution.parse(solved(files, spec=spec), where="solution.json")
    solution.check(one, made(), where="solution.json")
    return module_text.of_solution(one, interface.of_definition(made(), loaded()))


def answers(source: str, *arguments: Any) -> Any:
    return run(source).ModelNew()(*(arguments or inputs()))


@pytest.mark.parametrize(
    ("files", "entry"),
    [
        ({"main.py": RIGHT}, "main.py"),
        ({"main.py": "from .parts import scale\n" + CALLING.format(""), "parts.py": SCALE}, "main.py"),
        ({"main.py": "from parts import scale\n" + CALLING.format(""), "parts.py": SCALE}, "main.py"),
        ({"a/main.py": "from ..b.parts import scale\n" + CALLING.format(""), "b/parts.py": SCALE}, "a/main.py"),
        ({"a/main.py": "import a.parts\n" + CALLING.format("a.parts."), "a/parts.py": SCALE}, "a/main.py"),
        ({"a/main.py": "from a import scale\n" + CALLING.format(""), "a/__init__.py": SCALE}, "a/main.py"),
        ({"main.py": RIGHT + "\nclass ModelNew: ...\n"}, "main.py"),
    ],
)
def test_files_find_each_other_as_they_did_in_a_directory(files, entry):
    source = text(files, entry_point=f"{entry}::run")
    assert torch.allclose(answers(source), right(*inputs()))
    assert text(files, entry_point=f"{entry}::run") == source


def test_a_single_file_stays_as_it_is_line_by_line():
    assert text({"main.py": RIGHT}).startswith(RIGHT)


def test_a_file_imported_by_two_names_is_one_module():
    main = "import parts\nfrom . import parts as again\nassert parts is again\nimport main, sys\n" + CALLING.format(
        "parts."
    )
    assert torch.allclose(answers(text({"main.py": main, "parts.py": SCALE})), right(*inputs()))


def test_tracebacks_and_inspect_name_the_files_and_their_lines():
    source = text({"main.py": "from .parts import scale\n" + CALLING.format(""), "parts.py": SCALE})
    with pytest.raises(AttributeError) as caught:
        answers(source, "not a tensor", *inputs()[1:])
    last = traceback.extract_tb(caught.tb)[-1]
    assert last.filename.endswith("/parts.py")
    assert last.line == "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)"
    function = run(source).entry.__globals__["scale"]
    assert inspect.getsource(function) == "".join(SCALE.splitlines(keepends=True)[3:])


def test_files_that_are_not_python_lie_beside_the_module_that_reads_them(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    main = "from pathlib import Path\nNOTE = Path(__file__).with_name('note.txt').read_text()\n" + RIGHT
    module = run(text({"main.py": main, "note.txt": "kept\n"}))
    assert module.entry.__globals__["NOTE"] == "kept\n"
    run(text({"main.py": RIGHT, "other.py": ""}))
    assert len(list(tmp_path.iterdir())) == 1  # a solution of Python alone writes nothing


def test_outputs_passed_in_are_allocated_for_the_inputs_that_come():
    files = {"main.py": "def run(x, weight, eps, out):\n    out.copy_(x * weight)\n    return 'ignored'\n"}
    source = text(files, destination_passing_style=True)
    for rows in (32, 5):
        x, weight, eps = inputs(rows)
        assert torch.equal(answers(source, x, weight, eps), x * weight)


def test_sizes_of_outputs_follow_the_inputs_shapes_or_the_workload():
    follows = {"axes": {"batch": {"type": "var"}, "hidden": {"type": "const", "value": 64}, "k": {"type": "var"},
                        "half": {"type": "expr", "expression": "batch * hidden // 2"}}}  # fmt: skip
    definition = made(**follows, outputs={"y": {"shape": ["half", "k", "hidden", "7", "batch"], "dtype": "bfloat16"}})
    found = interface.of_definition(definition, loaded(definition, axes={"batch": 3, "k": 9}))
    (output,) = found.outputs
    assert output.sizes == ("int(x.shape[0] * 64 // 2)", "9", "64", "7", "x.shape[0]")


def test_where_the_reference_works_in_place_a_kernel_may_too_and_gets_copies_as_the_reference_does():
    in_place = made(reference="def run(x, weight, eps):\n    x.mul_(weight)\n    return x\n")
    one = solution.parse(solved({"main.py": "def run(x, weight, eps):\n    return x.mul_(weight)\n"}), where="s")
    source = module_text.of_solution(one, interface.of_definition(in_place, loaded()))
    x, weight, eps = inputs()
    before = x.clone()
    assert torch.equal(answers(source, x, weight, eps), before * weight)
    assert torch.equal(x, before)


@pytest.mark.parametrize("body", ["{'y': x}", "[x]", "(x,)", "x"])
def test_results_come_by_name_or_in_a_container_as_the_formats_allow(body):
    x, *others = inputs()
    assert answers(text({"main.py": f"def run(x, weight, eps):\n    return {body}\n"}), x, *others) is x


def test_a_plain_number_becomes_a_tensor_and_a_wrong_number_of_results_stays_wrong():
    assert answers(text({"main.py": "def run(x, weight, eps):\n    return 2.5\n"})).item() == 2.5
    x, *others = inputs()
    assert answers(text({"main.py": "def run(x, weight, eps):\n    return x, x\n"}), x, *others) == (x, x)


def test_a_cpp_solution_builds_its_files_as_one_extension():
    files = {"k.cpp": "int x;", "more/t.cc": "int y;", "more/t.h": "int z;"}
    one = solution.parse(
        solved(
            files,
            spec={
                "language": "cpp",
                "binding": "torch",
                "entry_point": "k.cpp::run",
                "compile_options": {"cflags": ["-O3"], "ld_flags": ["-lm"]},
            },
        ),
        where="s",
    )
    solution.check(one, made(), where="s")
    source = module_text.of_solution(one, interface.of_definition(made(), loaded()))
    assert (one.language, one.hosted_language) == ("cpp", "python")
    assert "for path in ['k.cpp', 'more/t.cc']]" in source
    assert "extra_cflags=['-O3']" in source
    assert "extra_ldflags=['-lm']" in source
    assert ").run\n" in source
    compile(source, "kernel.py", "exec")


def test_solutions_of_other_content_are_packages_of_other_names():
    names = {
        source.split("EmbeddedPackage('")[1].split("'")[0]
        for source in (text({"main.py": RIGHT, "b.py": content}) for content in ("", "x = 1"))
    }
    assert len(names) == 2


ONE = Interface(
    arguments=("x", "eps"), tensors=("x",), outputs=(Output(name="y", sizes=("x.shape[0]",), dtype=DType.F32),)
)
WEIGHED = Interface(
    arguments=("x",),
    tensors=("x",),
    outputs=ONE.outputs,
    state=(State(name="weight", shape=(4,), dtype=DType.F32), State(name="layer.bias", shape=(4,), dtype=DType.F32)),
)
TRITON = """\
import triton
import triton.language as tl

@triton.autotune(configs=[], key=[])
@triton.jit
def double_kernel(x, y):
    pass

def _helper(x, eps):
    pass

def grid(meta):
    pass

"""


def called(source: str, interface_: Interface = ONE, name: str = "") -> Any:
    return bare.entry(functions.parse(source, where="k.py"), interface_, name, where="k.py")


def test_the_operator_is_the_only_public_function_with_as_many_arguments_as_it_has_inputs():
    assert called(TRITON + "def double(x, eps): ...") == ("double", False)
    assert called("def double(x, eps, block=128): ...\ndef three(a, b, c): ...") == ("double", False)
    assert called("def f(*everything): ...") == ("f", False)
    assert called("def weigh(x, weight, bias): ...\ndef other(): ...", WEIGHED) == ("weigh", False)


def refused(source: str, name: str = "") -> str:
    with pytest.raises(UserError) as caught:
        called(source, ONE, name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_where_several_could_be_meant_or_none_they_are_named():
    several = "def a(x, eps): ...\ndef b(x, eps): ..."
    assert refused(several) == "k.py: several functions could be the operator: a, b (--entry NAME)"
    assert called(several, name="b") == ("b", False)
    lacking = "k.py: defines no class `ModelNew`, and no function takes (x, eps) (it has a(x, y, z); --entry NAME)"
    assert refused("def a(x, y, z): ...") == lacking
    assert refused("class Other: ...") == "k.py: defines no class `ModelNew`, and has no public function"
    assert refused(several, "c") == "k.py: has no function `c` (it has a, b)"
    assert refused(several, "c\nd") == "k.py: has no function `c?d` (it has a, b)"
    assert refused("def a(): ...", "a") == "k.py: `a` takes (), expected (x, eps)"
    assert "k.py:1: syntax error" in refused("def a(:")
    assert "k.py: syntax error: source code string cannot contain null bytes" in refused("def a():\0 pass")


def test_a_named_function_may_take_its_outputs_and_any_may_leave_out_plain_numbers():
    assert called("def into(x, eps, y): ...", name="into") == ("into", True)
    source = "def into(x, eps, y):\n    y.copy_(x.sum(-1))\ndef total(x):\n    return x.sum(-1)\n"
    for name in ("into", "total", ""):
        module = run(module_text.of_functions(source, ONE, name, where="k.py"))
        assert module.ModelNew()(torch.ones(3, 2), 1e-6).tolist() == [2.0, 2.0, 2.0]


def test_a_function_gets_the_operators_parameters_after_its_arguments():
    source = "def weigh(x, weight, bias):\n    return x * weight + bias\n"
    model = run(module_text.of_functions(source, WEIGHED, "", where="k.py")).ModelNew(1, features=2)
    assert list(model.state_dict()) == ["weight", "layer.bias"]
    model.load_state_dict({"weight": torch.full((4,), 2.0), "layer.bias": torch.ones(4)})
    assert model(torch.ones(4)).tolist() == [3.0] * 4


def test_the_text_of_the_functions_stays_as_it_is():
    source = "from __future__ import annotations\nx = 1\ndef torch(x, eps):\n    return x"
    wrapped = module_text.of_functions(source, ONE, "", where="k.py")
    assert wrapped.startswith(source)
    x = torch.ones(2)
    assert run(wrapped).ModelNew()(x, 0.0) is x


def test_a_record_round_trips_through_json_to_the_same_text():
    raw = json.loads(solved({"main.py": RIGHT, "b.py": 's = \'\\\\ """ \\u2028\'\n'}))
    one, again = (solution.parse(json.dumps(raw, indent=indent), where="s") for indent in (None, 4))
    assert one == again
