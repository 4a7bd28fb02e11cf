"""Other systems' files through the command line: verdict, aggregate, audit and traces; what is wrong is one line."""

from __future__ import annotations

import json
import shutil

import pytest
from command_line import ROOT, kernelevolve, last_object

pytestmark = pytest.mark.timeout(600)

PROBLEM = ROOT / "examples" / "submissions" / "rmsnorm_h256"
SOFTMAX = ROOT / "examples" / "operators" / "softmax.py"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.serial
def test_a_kernel_is_judged_on_every_workload_and_each_verdict_is_a_trace(home, tmp_path):
    traces = tmp_path / "traces.jsonl"
    done = kernelevolve("evaluate", PROBLEM, PROBLEM / "rmsnorm.cpp", "--trace", traces, "--json", home=home)
    found = last_object(done)
    assert done.returncode == 0, [one["evidence"] for one in found["workloads"].values()]
    assert found["definition"] == "rmsnorm_h256"
    verdicts = found["workloads"]
    assert {verdict["status"] for verdict in verdicts.values()} == {"PASSED"}
    product = 1.0
    for verdict in verdicts.values():
        product *= verdict["best_speedup"]
    assert found["geometric_mean_speedup"] == pytest.approx(product ** (1 / len(verdicts)))
    written = lines(traces)
    assert [trace["workload"]["uuid"] for trace in written] == list(verdicts)
    assert {trace["evaluation"]["status"] for trace in written} == {"PASSED"}
    assert all(trace["evaluation"]["performance"]["latency_ms"] > 0 for trace in written)


@pytest.mark.serial
def test_the_audit_of_a_failed_solution_is_its_ledger(home, tmp_path):
    solution = json.loads((PROBLEM / "solution.json").read_text())
    solution["sources"][0]["content"] = "def run(x, weight, eps, y):\n    y.copy_(x)\n"
    (tmp_path / "wrong.json").write_text(json.dumps(solution))
    arguments = ("evaluate", PROBLEM, tmp_path / "wrong.json", "--workload", "c3f2", "--chip", "nvidia-sm_90")
    done = kernelevolve(*arguments, "--audit", "--json", home=home)
    ledger = last_object(done)
    assert done.returncode == 1
    assert ledger["format"] == "kernelevolve-ledger/1"
    assert ledger["facts"]["status"] == "WRONG_RESULT"
    assert ledger["calls"]
    assert "y.copy_(x)" in ledger["texts"]["kernel"]


@pytest.mark.serial
def test_a_bare_triton_module_is_checked_without_a_gpu_and_leaves_no_trace_of_times(home, tmp_path):
    traces = tmp_path / "traces.jsonl"
    arguments = (PROBLEM, PROBLEM / "rmsnorm_triton.py", "--workload", "c3f2", "--chip", "nvidia-sm_90")
    done = kernelevolve("evaluate", *arguments, "--trace", traces, "--audit", home=home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "module of functions, called at `rmsnorm`" in done.stdout
    if "interpreted" in done.stdout:  # no GPU here
        assert "nothing was timed" in done.stderr
        assert not traces.exists()


def broken(name, **changes):
    text = json.loads((PROBLEM / "solution.json").read_text())
    return name, json.dumps(text | changes)


BAD = {
    "malformed": (("s.json", '{"name": "s",\n "spec": }'), "s.json:2:10: is not JSON: Expecting value"),
    "no entry": (broken("s.json", sources=[{"path": "main.py", "content": "x = 1"}]), "has no function `run`"),
    "signature": (
        broken("s.json", sources=[{"path": "main.py", "content": "def run(x): ..."}]),
        "`run` takes (x), expected (x, weight, eps, y)",
    ),
    "mismatch": (broken("s.json", definition="softmax"), "is of definition `softmax`, OPERATOR is `rmsnorm_h256`"),
    "language": (
        broken("s.json", spec={"language": "triton", "entry_point": "main.py::run"}),
        "spec: is in language `triton` (chip `cpu-x86_64` takes",
    ),
    "climbs": (broken("s.json", sources=[{"path": "../main.py", "content": ""}]), "leads out of the solution"),
    "no function": (("k.py", "import torch\n"), "defines no class `ModelNew`, and has no public function"),
    "syntax": (("k.py", "def f(:\n"), "k.py:1: syntax error"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_kernel_that_is_none_is_refused_in_one_line_and_nothing_is_written(what, home, tmp_path):
    (name, text), said = BAD[what]
    (tmp_path / name).write_text(text)
    shutil.copytree(PROBLEM, tmp_path / "problem")
    before = sorted(tmp_path.rglob("*"))
    done = kernelevolve("evaluate", "problem", name, "--trace", "traces.jsonl", home=home, cwd=tmp_path)
    errors = [line for line in done.stderr.splitlines() if line.strip()]
    assert done.returncode == 2, done.stderr
    assert len(errors) == 1
    assert said in errors[0]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((PROBLEM, PROBLEM / "solution.json", "--workload", "nope"), "no workload `nope`"),
        ((SOFTMAX, PROBLEM / "solution.json"), "OPERATOR is no definition"),
        ((PROBLEM, PROBLEM / "solution.json", "--trace", "no/where.jsonl"), "there is no such directory"),
        ((PROBLEM, PROBLEM / "solution.json", "--flag", "-O3"), "--flag: is for language `cpp`"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(arguments, said, home, tmp_path):
    done = kernelevolve("evaluate", *arguments, home=home, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
