"""The exported artefact, used as its reader would: in fresh processes, elsewhere, with nothing but PyTorch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cli.artefact import export_winner
from search_svc.tree import Node, Stage
from shared.errors import UserError
from shared.events import Budget, Context, Memory, Move, SearchStarted, Usage
from tests.integration.artefact import exported
from tests.integration.artefact.probing import probe


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return exported.write(tmp_path_factory.mktemp("run") / "kernel")


@pytest.fixture(scope="module")
def facts(directory, tmp_path_factory):
    return probe(directory, tmp_path_factory.mktemp("elsewhere"), "--deep")


@pytest.fixture(scope="module")
def without_compiler(directory, tmp_path_factory):
    return probe(directory, tmp_path_factory.mktemp("bare"), CXX="no-such-compiler")


def test_the_directory_holds_everything_and_nothing_else(directory):
    assert sorted(path.name for path in directory.iterdir()) == [
        "README.md",
        "build.json",
        "ke_abi.h",
        "kernel.cpp",
        "reference.py",
        "scaled_residual_kernel.py",
    ]
    assert (directory / "kernel.cpp").read_text() == exported.KERNEL
    assert (directory / "reference.py").read_text() == exported.OPERATOR
    assert [p.name for p in directory.parent.iterdir()] == ["kernel"]


def test_the_readme_states_the_evidence(directory):
    text = (directory / "README.md").read_text()
    for fact in (
        "| eager | 4.000 | 3.900 to 4.100 |",
        "trust level L3",
        "40.0 % of a floor of 0.6 us",
        "Example 9000",
        "kernelevolve optimize scaled.py --seed 1",
        "| `norm_gain` | 40 | float32 |",
    ):
        assert fact in text


def test_it_imports_elsewhere_without_this_project(facts):
    assert facts["modules"] == []
    assert facts["warnings"] == []


def test_on_its_own_inputs_the_kernel_gives_the_references_numbers(facts):
    assert facts["cases"]["own inputs"] == {"same": True, "why": ""}
    assert facts["keywords"] == {"same": True, "why": ""}
    assert facts["launches"] == 1


def test_the_references_state_dict_loads(facts):
    assert facts["loads_state"] == "<All keys matched successfully>"


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("another shape", "has another shape than"),
        ("strided", "input 0 is not contiguous"),
        ("misaligned", "input 0 is not aligned to 64 bytes"),
        ("another value", "a value built into the kernel differs"),
        ("a default", "forward got 2 arguments, not 3"),
        ("double", "input 0 is torch.float64, not torch.float32"),
        ("half", "input 0 is torch.float16, not torch.float32"),
        ("other constructor", "other arguments than the validated one"),
    ],
)
def test_outside_its_guard_the_reference_computes(facts, case, why):
    assert facts["cases"][case]["same"]
    assert why in facts["cases"][case]["why"]


def test_a_wanted_gradient_goes_to_the_reference_and_is_right(facts):
    assert facts["gradient"].startswith("a gradient is wanted")
    assert facts["gradients_same"]


def test_autocast_goes_to_the_reference(facts):
    assert facts["autocast"] == "autocast is on"


def test_the_operator_called_directly_outside_its_guard_is_the_reference(facts):
    assert facts["declined op"]
    assert facts["misaligned op"]


def test_the_operator_passes_opcheck(facts):
    for name in ("opcheck", "opcheck other shape"):
        assert set(facts[name].values()) == {"SUCCESS"}, facts[name]


def test_the_module_compiles_without_graph_breaks(facts):
    assert facts["compiled"]
    assert facts["compiled other shape"]


def test_without_a_compiler_it_warns_and_the_reference_computes(without_compiler):
    (warning,) = without_compiler["warnings"]
    assert "no C++ compiler found" in warning
    assert all(case["same"] for case in without_compiler["cases"].values())
    assert "no C++ compiler found" in without_compiler["cases"]["own inputs"]["why"]


def test_an_altered_kernel_is_not_run(directory, tmp_path):
    altered = tmp_path / "kernel"
    altered.mkdir()
    for path in filter(Path.is_file, directory.iterdir()):
        (altered / path.name).write_bytes(path.read_bytes())
    (altered / "kernel.cpp").write_text(exported.KERNEL.replace("2.0f", "2.5f"))
    facts = probe(altered, tmp_path)
    assert "kernel.cpp is not the file that was validated" in facts["warnings"][0]
    assert facts["cases"]["own inputs"]["same"]


def test_the_winner_of_a_search_is_exported_as_it_was_re_measured(tmp_path):
    spec, _ = exported.described()
    shipped = exported.winner()
    best = Node(
        candidate_id="c1",
        birth=0,
        expansion_id="e1",
        parent_ids=(),
        kernel=shipped.kernel,
        move=Move(name="draft:default"),
        context=Context(memory=Memory.PARENT),
        usage=Usage(),
        reasons=(),
        stage=Stage.DONE,
        evaluation=replace(exported.EVALUATION, speedups=()),
        final=exported.EVALUATION,
    )
    search = SearchStarted(
        search_id="s1",
        operator=spec.ref,
        chip="cpu-x86_64",
        policy="greedy",
        seed=3,
        budget=Budget(evaluations=40),
    )
    blobs = {shipped.kernel.source_hash: exported.KERNEL.encode()}
    directory = export_winner(tmp_path / "kernel", spec, best, blobs, search)
    readme = (directory / "README.md").read_text()
    assert "| eager | 4.000 | 3.900 to 4.100 |" in readme
    assert (
        "kernelevolve optimize scaled-residual.py --chip cpu-x86_64 --policy greedy "
        "--evaluations 40 --seed 3 --threads 1"
    ) in readme


def test_exporting_again_replaces_the_directory(tmp_path):
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "left_over").write_text("")
    exported.write(tmp_path / "kernel")
    assert not (tmp_path / "kernel" / "left_over").exists()


def test_a_directory_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written") as caught:
        exported.write(tmp_path / "file" / "kernel")
    assert "\n" not in str(caught.value)
