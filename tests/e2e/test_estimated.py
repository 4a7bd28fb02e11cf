"""A whole search for a GPU that is not here: right kernels, ranked by a model, and labelled so wherever they show."""

from __future__ import annotations

import json

import pytest
from command_line import kernelevolve, last_object

from shared import chips

pytestmark = pytest.mark.timeout(300)

OPERATOR = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(16, 128)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def estimated(home, tmp_path_factory):
    """Run directory, standard error and final object of a search without the chip."""
    folder = tmp_path_factory.mktemp("estimated")
    (folder / "rows.py").write_text(OPERATOR)
    run = folder / "run"
    asked = ("optimize", folder / "rows.py", "--chip", "amd-gfx942", "--evaluations", 4, "--out", run)
    done = kernelevolve(*asked, "--json", home=home)
    assert done.returncode == 0, done.stderr
    return run, done.stderr, last_object(done)


def test_it_ends_estimated_with_a_cost_and_no_speedup(estimated):
    run, _, result = estimated
    assert (result["outcome"], result["reason"]) == ("estimated", "evaluations")
    best = result["best"]
    assert best["language"] == "triton"
    assert best["trust"] == "L1"
    assert set(best["speedup"].values()) == {None}
    assert best["median_us"] == {}
    assert (best["estimate"]["basis"], best["estimate"]["unit"]) == ("modelled", "ns")
    assert best["estimate"]["times_less"] >= 1
    assert json.loads((run / "result.json").read_text()) == result


def test_it_replays_identically(estimated, home):
    done = kernelevolve("replay", estimated[0], home=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("identical")


def test_every_number_shown_is_labelled(estimated, home):
    run, _, result = estimated
    told = kernelevolve("explain", run, home=home).stdout
    passed = [line for line in told.splitlines() if "PASSED" in line]
    assert passed
    assert all("x modelled" in line for line in passed)
    best = kernelevolve("explain", run, "best", home=home).stdout
    assert "(modelled): by a model of the chip; nothing was measured" in " ".join(best.split())
    page = (run / "report.html").read_text()
    assert f"{result['best']['estimate']['cost']:,} ns a call (modelled)" in page
    for text in (told, best, page.partition("<script")[0]):
        assert "faster" not in text
        assert "speedup" not in text


def test_kernel_and_reference_are_left_and_promise_nothing(estimated):
    kernel = estimated[0] / "kernel"
    assert {path.name for path in kernel.iterdir()} == {"kernel.py", "reference.py", "README.md"}
    readme = (kernel / "README.md").read_text()
    assert "a call (modelled)" in readme
    assert "nothing was measured" in readme


@pytest.mark.skipif(bool(chips.missing_for(chips.load("nvidia-sm_90"), "cuda")), reason="needs clang-19")
def test_kernels_are_written_in_the_language_that_is_asked_for(home, tmp_path):
    (tmp_path / "rows.py").write_text(OPERATOR)
    run = tmp_path / "run"
    asked = ("optimize", tmp_path / "rows.py", "--chip", "nvidia-sm_90", "--language", "cuda", "--evaluations", 2)
    done = kernelevolve(*asked, "--out", run, "--json", home=home)
    assert done.returncode == 0, done.stderr
    assert last_object(done)["outcome"] == "estimated"
    assert "__global__" in (run / "kernel" / "kernel.cu").read_text()
    assert "compiled for sm_90, not run there" in (run / "kernel" / "README.md").read_text()
