"""An accelerator by its maker's tools: the example passes the check and a whole search, and is its folder alone."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from command_line import ROOT, kernelevolve, last_object

from shared import chips

EXAMPLE = ROOT / "examples" / "accelerators" / "corvid"
SHEET = EXAMPLE / "corvid-v1.toml"
SETTINGS = {"KERNELEVOLVE_CHIPS": str(EXAMPLE), "KNOWLEDGE_PATH": str(EXAMPLE / "manual")}
CROSS = Path("/usr/riscv64-linux-gnu")
TOOLS = pytest.mark.skipif(
    bool(chips.missing_tools(chips.read(SHEET))) or not CROSS.is_dir() or shutil.which("g++") is None,
    reason="the tools that the example's maker would bring are not installed",
)
OPERATOR = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x, b):
        return torch.relu(x + b)


def get_inputs():
    return [torch.randn(16, 96), torch.randn(96)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def searched(home, tmp_path_factory):
    """Run directory, final object and what was shown of a search for the example's chip."""
    folder = tmp_path_factory.mktemp("external")
    (folder / "biased.py").write_text(OPERATOR)
    run = folder / "run"
    asked = ("optimize", folder / "biased.py", "--chip", SHEET, "--evaluations", 3, "--seed", 1, "--out", run, "--json")
    done = kernelevolve(*asked, home=home, settings={"KNOWLEDGE_PATH": SETTINGS["KNOWLEDGE_PATH"]})
    assert done.returncode == 0, done.stderr
    return run, last_object(done), done.stderr


@TOOLS
def test_the_example_meets_every_requirement(home):
    done = kernelevolve("chips", "check", SHEET, home=home)
    assert done.returncode == 0, done.stdout
    assert len(done.stdout.splitlines()) == 11
    assert all(line.startswith("ok  ") for line in done.stdout.splitlines())


@TOOLS
def test_a_broken_adapter_ends_the_check_with_one(home, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "corvid")
    program = tmp_path / "corvid" / "tools" / "run.py"
    program.write_text(program.read_text().replace("json.dumps(answer)", "str(answer)"))
    done = kernelevolve("chips", "check", tmp_path / "corvid" / "corvid-v1.toml", home=home)
    assert done.returncode == 1
    broken = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert len(broken) == 1
    assert broken[0].startswith("FAIL  run: `run` result.json is no JSON")


@TOOLS
def test_a_whole_search_counts_right_kernels(searched, home):
    run, result, _ = searched
    assert result["statuses"] == {"PASSED": 3}
    told = kernelevolve("explain", run, home=home).stdout
    assert "PASSED 1.00x counted" in told
    assert told.count("x counted") == 3
    assert result["outcome"] in ("improved", "estimated")  # which draft comes first is a matter of the machine
    best = result["best"]
    assert best["language"] == "c-rvv"
    assert (best["estimate"]["basis"], best["estimate"]["unit"]) == ("counted", "instructions")
    assert (best["estimate"]["times_less"] > 1) == (result["outcome"] == "improved")
    assert best["trust"] == "L3"
    assert best["estimate"]["counts"]["instructions"] == best["estimate"]["cost"]
    assert set(best["speedup"].values()) == {None}


@TOOLS
def test_the_search_replays_without_the_sheet(searched, home):
    done = kernelevolve("replay", searched[0], home=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("identical")


@TOOLS
def test_a_kernel_of_ones_own_is_judged_by_the_vendors_tools(home, tmp_path):
    (tmp_path / "biased.py").write_text(OPERATOR.replace("torch.relu(x + b)", "x + b"))
    right, wrong = (EXAMPLE / "kernels" / f"{name}.c" for name in ("right", "wrong"))
    passed = kernelevolve("evaluate", tmp_path / "biased.py", right, "--chip", SHEET, "--json", home=home)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    failed = kernelevolve("evaluate", tmp_path / "biased.py", wrong, "--chip", SHEET, "--json", home=home)
    assert failed.returncode == 1
    assert "WRONG_RESULT" in failed.stdout


def test_the_manual_is_found_for_its_chip_alone(home):
    def titles(chip: str) -> str:
        asked = ("knowledge", "search", "longer vectors", "--chip", chip, "--language", "c-rvv", "--json")
        return kernelevolve(*asked, home=home, settings=SETTINGS).stdout

    assert "hardware/corvid/v1" in titles("corvid-v1")
    assert "hardware/corvid/v1" not in titles("riscv-rvv")


def test_the_chip_is_listed_where_its_folder_is_named(home):
    listed = kernelevolve("chips", "--json", home=home, settings=SETTINGS)
    found = {json.loads(line)["chip"]: json.loads(line)["state"] for line in listed.stdout.splitlines()}
    assert found["corvid-v1"] in ("ready", "missing tool")
    assert "corvid-v1" not in kernelevolve("chips", "--json", home=home).stdout


def test_no_line_outside_of_the_example_knows_the_chip():
    services = ("search_svc", "synthesizer_svc", "knowledge_svc", "evaluator_svc", "shared", "cli", "deploy", "protos")
    texts = [path for name in services for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".toml", ".md")]
    assert len(texts) > 300
    assert [path for path in texts if "corvid-v1" in path.read_text() and path.name != "chips.py"] == []


@pytest.mark.parametrize("service", ["search_svc", "synthesizer_svc", "knowledge_svc"])
def test_who_searches_and_writes_knows_no_vendors_tool(service):
    knows = re.compile(r"chips\.external|chips import .*\bExternal|evaluator_svc|\.external\b")
    assert [path for path in (ROOT / service).rglob("*.py") if knows.search(path.read_text())] == []


def test_the_examples_tools_use_the_standard_library_alone():
    imports = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
    used = {name for path in (EXAMPLE / "tools").glob("*.py") for name in imports.findall(path.read_text())}
    standard = {"collections", "json", "pathlib", "re", "signal", "struct", "subprocess", "sys", "threading", "time"}
    assert used <= standard | {"machine"}
