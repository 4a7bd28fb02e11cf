"""One operator on two chips: stopped in the second search, resumed, one table, and each search a log of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import ROOT, command, environment, kernelevolve, last_object

from cli import history
from search_svc import replay
from shared import chips, ids
from shared.events import Prior
from shared.machine import processor
from synthesizer_svc.schedule import capture, emit, plan
from synthesizer_svc.schedule.schedule import Schedule
from synthesizer_svc.schedule.transfer import transfer

OPERATOR = ROOT / "examples" / "operators" / "riscv" / "vector_add.py"
FIRST, SECOND = "simulated", "riscv-rvv"
MISSING = chips.missing_tools(chips.load(SECOND))

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def stopped(home, tmp_path_factory):
    """Directory of both searches, exit code and standard error of a command that Ctrl-C stopped in the second one."""
    run = tmp_path_factory.mktemp("chips") / "both"
    both = ("--chip", FIRST, "--chip", SECOND, "--evaluations", 3)
    process = subprocess.Popen(
        command("optimize", OPERATOR, *both, "--out", run),
        cwd=ROOT,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if f"{SECOND} (2 of 2)" in "".join(seen) and "[1/3]" in line:
            break
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert printed == ""
    return run, process.returncode, "".join(seen), said


@pytest.fixture(scope="module")
def resumed(stopped, home):
    """The final object of the same searches, resumed, and that of the first search before."""
    before = json.loads((stopped[0] / FIRST / "result.json").read_text())
    done = kernelevolve("resume", stopped[0], "--json", home=home)
    assert done.returncode == 0, done.stderr
    return last_object(done), before


def tree_of(run: Path):
    return asyncio.run(history.open_past(run)).tree


def kernel_here(prior: Prior, run: Path) -> str:
    """The id of the kernel that ``prior``'s schedule makes on the second chip."""
    schedule = Schedule.from_json(asyncio.run(history.open_past(run / SECOND)).blobs[prior.schedule_hash])
    built = plan.build(capture.capture(OPERATOR.read_text()))
    sheet = chips.load(SECOND)
    machine, (language,) = chips.machine_of(sheet, processor().flags), sheet.languages
    carried = transfer(emit.space(language, built, machine, 1), schedule).schedule
    made = emit.render(language, built, carried, machine, 1)
    return ids.derive(language, ids.content_hash(made.source.encode()), *made.flags, made.entry)


def test_ctrl_c_says_how_each_search_stands_and_how_to_go_on(stopped):
    run, code, _, said = stopped
    assert code == 130
    assert said.splitlines()[-3:] == [
        f"interrupted; `kernelevolve resume {run}` goes on from here with every chip, or one alone:",
        f"  {FIRST}: done, in {run / FIRST}",
        f"  {SECOND}: `kernelevolve resume {run / SECOND}`",
    ]
    assert "Traceback" not in said


def test_both_searches_show_their_progress(stopped):
    _, _, seen, _ = stopped
    assert f"vector_add on {FIRST} (1 of 2): greedy, 3 evaluations" in seen
    assert f"to be tried here: {FIRST}'s schedule of kernel" in seen


def test_resumed_it_searches_only_where_it_had_not_ended(resumed):
    result, first_before = resumed
    first, second = result["chips"]
    assert first == first_before | {"seeds": []}
    assert (second["chip"], second["evaluations"]) == (SECOND, 3)
    assert json.loads((Path(result["run_dir"]) / "result.json").read_text()) == result


def test_the_second_search_tried_the_first_one_s_schedule_and_says_so(resumed, stopped, home):
    run = stopped[0]
    (seed,) = resumed[0]["chips"][1]["seeds"]
    (prior,) = tree_of(run / SECOND).search.priors
    assert (seed["chip"], seed["kernel_id"]) == (FIRST, prior.kernel_id)
    assert tree_of(run / FIRST).nodes[prior.candidate_id].kernel.kernel_id == prior.kernel_id
    tree = tree_of(run / SECOND)
    tried = tree.nodes[tree.kernels[kernel_here(prior, run)]]
    assert tried.passed
    if seed["status"] == "duplicate":  # which drafts are its own is random, and one of them came to that kernel before
        assert seed["candidate_id"] is None
        assert tried.move.name in ("draft:default", "draft:random")
        assert "that kernel is known already" in seed["detail"]
        return
    assert (seed["candidate_id"], seed["status"]) == (tried.candidate_id, "PASSED")
    node = tree.nodes[seed["candidate_id"]]
    assert any(entry.name.startswith("g0.") for entry in node.move.parameters)
    told = kernelevolve("explain", run / SECOND, seed["candidate_id"], home=home).stdout
    assert f"seeded from {FIRST}'s schedule of kernel {prior.kernel_id}" in " ".join(told.split())
    assert "untested here" in " ".join(told.split())


def test_each_search_replays_identically_from_its_exported_log_alone(resumed, stopped, tmp_path):
    del resumed
    for chip in (FIRST, SECOND):
        alone = tmp_path / f"{chip}.kelog"
        alone.write_bytes((stopped[0] / chip / "search.kelog").read_bytes())
        past = asyncio.run(history.open_past(alone))
        assert replay.verify(past.entries).entries == len(past.entries)
        assert {prior.schedule_hash for prior in past.started.priors} <= past.blobs.keys()


def test_a_finished_campaign_is_printed_again_as_one_table(resumed, stopped, home):
    del resumed
    done = kernelevolve("resume", stopped[0], home=home)
    assert done.returncode == 0, done.stderr
    heads, first, second, seed, where = done.stdout.splitlines()
    assert heads.split()[:3] == ["operator", "chip", "outcome"]
    assert first.split()[:2] == ["vector_add", FIRST]
    assert second.split()[:2] == ["vector_add", SECOND]
    assert seed.startswith(f"seed      {SECOND} was seeded from {FIRST}'s schedule of kernel")
    assert where == f"runs      {stopped[0]} (a run directory for each chip)"
