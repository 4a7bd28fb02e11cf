"""Bad input: one clear line on stderr, a non-zero exit, nothing left behind."""

from __future__ import annotations

import pytest
from command_line import OPERATOR, kernelevolve

pytestmark = pytest.mark.timeout(300)

HEAD = "import torch\n"
MODEL = "class Model(torch.nn.Module):\n    def forward(self, x):\n        return {body}\n"
INPUTS = "def get_inputs():\n    {body}\ndef get_init_inputs():\n    return []\n"
DRAW = "return [torch.randn(8, 100)]"

REFUSED = {
    "syntax_error": ("def f(:\n", "syntax error"),
    "no_model": (HEAD + INPUTS.format(body=DRAW), "no class `Model`"),
    "no_get_inputs": (HEAD + MODEL.format(body="x"), "no function `get_inputs`"),
    "raising_inputs": (HEAD + MODEL.format(body="x + 1") + INPUTS.format(body="raise RuntimeError('dry')"), "dry"),
    "raising_model": (HEAD + MODEL.format(body="x @ x") + INPUTS.format(body=DRAW), "raises"),
    "constant": (HEAD + MODEL.format(body="torch.ones_like(x)") + INPUTS.format(body=DRAW), "constant"),
    "ends_its_process": (HEAD + "import os\n" + MODEL.format(body="os._exit(0)") + INPUTS.format(body=DRAW), "ended"),
    "shape_by_value": (HEAD + MODEL.format(body="x[x > 0]") + INPUTS.format(body=DRAW), "shape"),
    "no_tensor": (HEAD + MODEL.format(body="'text'") + INPUTS.format(body=DRAW), "must return a tensor"),
}


def refused(done, said):
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1
    assert said in lines[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", REFUSED)
def test_an_operator_that_cannot_be_searched_is_refused(name, home, tmp_path):
    text, said = REFUSED[name]
    (tmp_path / "operator.py").write_text(text)
    done = kernelevolve("optimize", "operator.py", home=home, cwd=tmp_path)

    refused(done, said)
    assert list(tmp_path.glob("runs/*")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["optimize", "missing.py"], "no such file"),
        (["optimize", OPERATOR, "--chip", "nope"], "unknown chip"),
        (["optimize", OPERATOR, "--policy", "nope"], "unknown policy"),
        (["optimize", OPERATOR, "--evaluations", "0"], "at least 1"),
        (["optimize", OPERATOR, "--threads", "4096"], "threads"),
        (["optimize", OPERATOR, "--evaluations", "9" * 20], "--evaluations: 99999999999999999999 is out of range"),
        (["optimize", OPERATOR, "--seconds", "nan"], "--seconds: is nan"),
        (["optimize", OPERATOR, "--out", "/proc/nowhere"], "cannot write"),
        (["optimize", OPERATOR, "--policy-parameter", "width"], "NAME=VALUE"),
        (["evaluate", OPERATOR, "missing.cpp"], "no such file"),
        (["evaluate", OPERATOR, OPERATOR], "defines no class `ModelNew`"),
        (["evaluate", OPERATOR, "pyproject.toml"], "no such file"),
        (["resume", "nowhere"], "not a run directory"),
        (["replay", "nowhere.kelog"], "nowhere.kelog"),
        (["explain", "nowhere"], "nowhere"),
        (["report", "nowhere"], "nowhere"),
        (["knowledge", "add", "missing.md"], "no such file"),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, list) else "",
)
def test_a_mistyped_command_is_refused(arguments, said, home, tmp_path):
    refused(kernelevolve(*arguments, home=home, cwd=tmp_path), said)


def test_a_chip_whose_compiler_is_missing_says_how_to_install_it(home, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    refused(kernelevolve("optimize", OPERATOR, home=home, cwd=tmp_path), "apt-get install g++")


def test_a_directory_that_may_not_be_written_is_refused(home, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    refused(kernelevolve("optimize", OPERATOR, "--out", blocked / "run", home=home, cwd=tmp_path), "cannot write")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "name", ["optimize", "evaluate", "admit", "resume", "replay", "explain", "report", "chips", "knowledge"]
)
def test_every_command_has_help_with_an_example(name, home):
    done = kernelevolve(name, "--help", home=home)

    assert done.returncode == 0
    assert f"kernelevolve {name}" in done.stdout
    assert "Example" in done.stdout
