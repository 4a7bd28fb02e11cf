"""Operators and kernels are found as files where their formats put them; what is wrong is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.submitted import read_kernel, read_problems, read_within
from shared import chips
from shared.errors import OperatorError, UserError
from shared.submissions.kernel import Kernel
from tests.unit.submissions.samples import DEFINITION, REFERENCE, RIGHT, WORKLOAD, solved

CPU, GPU = chips.load("cpu-x86_64"), chips.load("nvidia-sm_90")
SECOND = WORKLOAD | {"uuid": "second", "axes": {"batch": 7}}
LINES = json.dumps(WORKLOAD) + "\n" + json.dumps({"definition": "rmsnorm_h64", "workload": SECOND}) + "\n"
SOFTMAX = Path(__file__).parents[2] / "operators" / "row_softmax.py"


def directory(path: Path, **changes: Any) -> Path:
    path.mkdir(exist_ok=True)
    (path / "definition.json").write_text(json.dumps(DEFINITION | changes))
    (path / "workload.jsonl").write_text(LINES)
    return path


def refused(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(UserError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def kernel(path: Path, text: str, operator: Path, *, language: str = "", entry: str = "", sheet: Any = CPU) -> Kernel:
    path.write_text(text)
    problems = read_problems(operator, "all", None)[:1]
    return read_kernel(path, problems, sheet, language=language, entry=entry).kernels[0]


def test_a_directory_is_as_many_operators_as_it_has_workloads(tmp_path):
    problems = read_problems(directory(tmp_path / "rms"), "all", None)
    assert [problem.spec.ref.name for problem in problems] == ["rmsnorm_h64 (batch=32)", "rmsnorm_h64 (batch=7)"]
    assert read_problems(tmp_path / "rms", "sec", None) == problems[1:]
    assert read_problems(tmp_path / "rms" / "definition.json", "all", None) == problems


def test_a_reference_beside_the_definition_is_used_when_it_has_none_inline(tmp_path):
    inline = read_problems(directory(tmp_path / "rms"), "all", None)
    (tmp_path / "rms" / "reference.py").write_text("raise SystemExit  # the one inline decides")
    assert read_problems(tmp_path / "rms", "all", None) == inline
    directory(tmp_path / "rms", reference=None)
    (tmp_path / "rms" / "reference.py").write_text(REFERENCE)
    assert [p.spec for p in read_problems(tmp_path / "rms", "all", None)] == [p.spec for p in inline]


def test_a_data_sets_workloads_and_tensors_are_found_from_its_root(tmp_path):
    definition = tmp_path / "definitions" / "rmsnorm" / "rmsnorm_h64.json"
    workloads = tmp_path / "workloads" / "rmsnorm" / "rmsnorm_h64.jsonl"
    for path in (definition, workloads):
        path.parent.mkdir(parents=True)
    definition.write_text(json.dumps(DEFINITION))
    stored = {"type": "safetensors", "path": "./blob/w.safetensors", "tensor_key": "w"}
    workloads.write_text(json.dumps(WORKLOAD | {"inputs": WORKLOAD["inputs"] | {"weight": stored}}))
    assert "there is no file `./blob/w.safetensors`" in refused(read_problems, definition, "all", None)
    header = json.dumps({"w": {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}}).encode()
    (tmp_path / "blob").mkdir()
    (tmp_path / "blob" / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(256))
    (problem,) = read_problems(definition, "all", None)
    assert "loaded(" in problem.spec.source


def test_a_workloads_file_may_lie_anywhere(tmp_path):
    (tmp_path / "rms.json").write_text(json.dumps(DEFINITION))
    assert "no workload.jsonl beside it (--workloads FILE)" in refused(
        read_problems, tmp_path / "rms.json", "all", None
    )
    (tmp_path / "w.jsonl").write_text(LINES)
    assert len(read_problems(tmp_path / "rms.json", "all", tmp_path / "w.jsonl")) == 2
    (tmp_path / "rms.jsonl").write_text(LINES)
    assert len(read_problems(tmp_path / "rms.json", "all", None)) == 2


def test_files_of_tensors_outside_the_data_set_are_not_read(tmp_path):
    root = tmp_path / "set"
    root.mkdir()
    (tmp_path / "secret").write_text("x")
    (root / "link").symlink_to(tmp_path / "secret")
    for name in ("../secret", "/etc/passwd", "link"):
        with pytest.raises(OperatorError, match="leads out of"):
            read_within(root, name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.json", "all", None), "missing.json: no such file"),
        ((".", "all", None), "definition.json: no such file"),
        (("rms", "third", None), "no workload `third` (it has first, second)"),
        ((str(SOFTMAX), "first", None), "--workload: is for definitions"),
        (("latin.json", "all", None), "latin.json: is not UTF-8"),
    ],
)
def test_an_operator_that_is_not_there_is_refused(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directory(Path("rms"))
    Path("latin.json").write_bytes(b'{"name": "\xe9"}')
    path, uuid, workloads = arguments
    assert said in refused(read_problems, Path(path), uuid, workloads)


def test_the_language_of_a_kernel_is_told_by_its_suffix_and_its_imports(tmp_path):
    plain = kernel(tmp_path / "k.py", "def f(x): ...", SOFTMAX)
    assert (plain.language, plain.form) == ("python", "module of functions, called at `f`")
    triton = "import triton\n\ndef f(x): ...\n"
    assert kernel(tmp_path / "k.py", triton, SOFTMAX, sheet=GPU).language == "triton"
    assert kernel(tmp_path / "k.py", triton, SOFTMAX, language="python").language == "python"
    assert kernel(tmp_path / "k.txt", "int x;", SOFTMAX, language="cpp").entry == "ke_launch"
    assert "is in language `triton` (chip `cpu-x86_64` takes" in refused(kernel, tmp_path / "k.py", triton, SOFTMAX)
    assert "suffix `.txt` tells no language" in refused(kernel, tmp_path / "k.txt", "int x;", SOFTMAX)
    assert "entry: is for a module of functions" in refused(kernel, tmp_path / "k.cpp", "", SOFTMAX, entry="f")


def test_a_solution_is_a_kernel_of_its_definition_alone(tmp_path):
    rms = directory(tmp_path / "rms")
    one = kernel(tmp_path / "s.json", solved(), rms)
    assert one.source.startswith(RIGHT)
    assert one.form == "solution `plain`, entry main.py::run"
    found = read_kernel(tmp_path / "s.json", read_problems(rms, "all", None), CPU)
    assert (found.name, found.kernels) == ("plain", (one, one))
    assert "OPERATOR is no definition" in refused(kernel, tmp_path / "s.json", solved(), SOFTMAX)
    assert "says its language and entry itself" in refused(kernel, tmp_path / "s.json", solved(), rms, entry="run")
    other = solved(definition="other")
    assert "is of definition `other`, OPERATOR is `rmsnorm_h64`" in refused(kernel, tmp_path / "s.json", other, rms)


def test_a_kernel_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "k.py").write_bytes(b"\xff")
    problems = read_problems(SOFTMAX, "all", None)
    assert "not UTF-8 (byte 0)" in refused(read_kernel, tmp_path / "k.py", problems, CPU)
    assert "no such file" in refused(read_kernel, tmp_path / "none.py", problems, CPU)
    (tmp_path / "big.cpp").write_bytes(b" " * (5 << 20))
    assert "is larger than 4 MiB" in refused(read_kernel, tmp_path / "big.cpp", problems, CPU)
