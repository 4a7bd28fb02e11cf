"""The artefact of a kernel written in Python or Triton: the same promises, without a compiler of ours."""

from __future__ import annotations

import pytest

from tests.integration.artefact import exported
from tests.integration.artefact.probing import probe

TRITON = """
import torch
import triton
import triton.language as tl


class ModelNew(torch.nn.Module):
    def forward(self, x, residual, repeat, offset, gain):
        raise AssertionError("there is no such GPU here")
"""


@pytest.fixture(scope="module", params=["BY_NAME", "BY_ORDER"])
def facts(request, tmp_path_factory):
    source = getattr(exported, request.param)
    directory = exported.write(tmp_path_factory.mktemp("run") / "kernel", exported.winner(source, "python"))
    assert sorted(path.name for path in directory.iterdir()) == [
        "README.md",
        "build.json",
        "kernel.py",
        "reference.py",
        "scaled_residual_kernel.py",
    ]
    return probe(directory, tmp_path_factory.mktemp("elsewhere"), "--deep")


def test_on_its_own_inputs_the_kernel_gives_the_references_numbers(facts):
    assert facts["modules"] == []
    assert facts["warnings"] == []
    assert facts["cases"]["own inputs"] == {"same": True, "why": ""}
    assert facts["launches"] == 1


def test_outside_its_guard_the_reference_computes(facts):
    assert all(case["same"] for case in facts["cases"].values())
    assert [name for name, case in facts["cases"].items() if not case["why"]] == ["own inputs"]
    assert facts["gradients_same"]


def test_memory_that_the_kernel_uses_again_never_leaves_the_operator(facts):
    assert facts["results_are_kept"]
    for name in ("opcheck", "opcheck other shape"):
        assert set(facts[name].values()) == {"SUCCESS"}, facts[name]
    assert facts["compiled"]


def test_without_its_gpu_it_warns_and_the_reference_computes(tmp_path):
    shipped = exported.winner(TRITON, "triton")
    directory = exported.write(tmp_path / "kernel", shipped, "nvidia-sm_90")
    readme = (directory / "README.md").read_text()
    assert "PyTorch, Triton and a GPU of architecture sm_90" in readme
    assert "Contiguous GPU tensors" in readme
    facts = probe(directory, tmp_path, CUDA_VISIBLE_DEVICES="")
    assert "PyTorch finds no GPU here" in facts["warnings"][0]
    assert all(case["same"] for case in facts["cases"].values())


def test_an_altered_kernel_is_not_run(tmp_path):
    directory = exported.write(tmp_path / "kernel", exported.winner(exported.BY_NAME, "python"))
    (directory / "kernel.py").write_text(exported.BY_NAME.replace("2.0", "2.5"))
    facts = probe(directory, tmp_path)
    assert "kernel.py is not the file that was validated" in facts["warnings"][0]
    assert facts["cases"]["own inputs"]["same"]
