"""``kernelevolve admit`` from a shell: the score of a usable operator, one line about a useless one."""

from __future__ import annotations

import json

import pytest
from command_line import OPERATOR, kernelevolve

pytestmark = pytest.mark.timeout(300)

SUMMED = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1).sum(-1)
def get_inputs():
    return [torch.randn(8, 100)]
def get_init_inputs():
    return []
"""


def test_a_usable_operator_shows_its_score_as_json(home, tmp_path):
    done = kernelevolve("admit", str(OPERATOR), "--json", home=home, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["admitted"] is True
    assert said["killed"] == said["total"] > 20
    assert said["mutants"]["zeros"]["fate"] == "killed"
    assert said["skipped"]
    assert said["properties"]


def test_an_operator_whose_answer_never_changes_is_refused_in_one_line(home, tmp_path):
    (tmp_path / "summed.py").write_text(SUMMED)
    done = kernelevolve("admit", "summed.py", home=home, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "is constant" in line
