"""One operator on several chips: what is refused at once, what seeds what, the table, and the directory of all."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli import campaign, chip_by_chip, chip_table, conversations, outcome, priors, rundir
from cli.chip_table import Ended
from cli.commands import optimize, submit
from cli.interrupted import Interrupted, InterruptedOnChips
from shared import operators
from shared.errors import ChipError, LogError, OperatorError, UserError
from shared.events import Entry, Status
from tests.builders import a_failure, a_search
from tests.fakes.drive import Drive
from tests.fakes.landscape import Clockless

OPERATOR = "tests/operators/row_softmax.py"
CHIPS = ("cpu-x86_64", "riscv-rvv")


def said(command, *arguments) -> UserError:
    error = CliRunner().invoke(command, arguments).exception
    assert isinstance(error, UserError)
    return error


@pytest.mark.parametrize("command", [optimize.command, submit.command])
def test_a_chip_that_is_named_twice_is_refused_in_one_line(command):
    error = said(command, OPERATOR, "--chip", "simulated", "--chip", "riscv-rvv", "--chip", "simulated")
    assert str(error) == "--chip: names `simulated` twice"


def test_a_chip_named_by_id_and_by_its_sheet_is_named_twice(tmp_path):
    sheet = tmp_path / "simulated.toml"
    sheet.write_text(Path("shared/chips/simulated.toml").read_text())
    assert "names `simulated` twice" in str(said(optimize.command, OPERATOR, "--chip", "simulated", "--chip", sheet))


def test_an_unknown_chip_among_several_is_refused_before_anything_is_made(tmp_path):
    out = tmp_path / "run"
    error = said(optimize.command, OPERATOR, "--chip", "simulated", "--chip", "nowhere-1", "--out", out)
    assert isinstance(error, ChipError)
    assert "nowhere-1" in str(error)
    assert not out.exists()


def test_a_server_is_asked_for_one_chip_at_a_time():
    error = said(submit.command, OPERATOR, "--chip", "simulated", "--chip", "riscv-rvv")
    assert str(error) == "--chip: a search on a server is for one chip (submit once for each)"


def with_schedules(drive: Drive, names) -> None:
    for name in names:
        node = drive.tree.nodes[name]
        scheduled = replace(node, kernel=replace(node.kernel, schedule_hash=f"schedule-{name}"))
        drive.tree = replace(drive.tree, nodes={**drive.tree.nodes, name: scheduled})


@pytest.fixture(params=["timed", "counted"])
def searched(request):
    drive = Drive(landscape=Clockless()) if request.param == "counted" else Drive()
    drive.run(a_search(evaluations=12))
    assert drive.tree.winner_id
    return drive


def test_the_winner_s_schedule_is_offered_with_what_its_numbers_rest_on(searched):
    tree = searched.tree
    with_schedules(searched, [tree.winner_id])
    found = priors.best_schedule(searched.tree)
    assert (found.candidate_id, found.search_id, found.chip) == (tree.winner_id, tree.search.search_id, "cpu-x86_64")
    assert found.schedule_hash == f"schedule-{tree.winner_id}"
    assert f"({tree.reference.basis if tree.reference else 'measured'})" in found.found


def test_a_winner_without_a_schedule_leaves_the_best_that_has_one(searched):
    tree = searched.tree
    passed = sorted((n for n in tree.passed() if n.candidate_id != tree.winner_id), key=lambda n: n.score_ppm)
    with_schedules(searched, [passed[0].candidate_id, passed[-1].candidate_id])
    assert priors.best_schedule(searched.tree).candidate_id == passed[-1].candidate_id


def test_nothing_is_offered_by_a_search_without_schedules(searched):
    assert priors.best_schedule(searched.tree) is None


def test_what_failed_when_it_was_tried_again_is_not_offered(searched):
    tree = searched.tree
    with_schedules(searched, [tree.winner_id])
    fell = replace(searched.tree.nodes[tree.winner_id], final=a_failure(Status.WRONG_RESULT))
    assert priors.best_schedule(replace(searched.tree, nodes={**tree.nodes, tree.winner_id: fell})) is None


def test_numbers_of_the_simulated_chip_are_not_called_measured():
    drive = Drive()
    drive.run(a_search(evaluations=4))
    node = next(drive.tree.passed())
    noted = (Entry(name="simulated", value="nothing was measured"),)
    made_up = replace(node, final=None, evaluation=replace(node.evaluation, environment=noted))
    assert priors.standing(drive.tree, made_up).endswith("(simulated)")


def ended(drive: Drive, chip: str) -> Ended:
    made = outcome.final_object(drive.tree, run_dir=Path("runs/x") / chip, artefact=None, total_ns=1)
    seeds = priors.seeds(drive.tree, conversations.facts(drive.entries))
    return Ended(
        chip=chip, finished=outcome.Finished(tree=drive.tree, result={**made, "chip": chip}, artefact=None), seeds=seeds
    )


def test_the_table_has_a_row_for_each_chip_with_labelled_numbers(searched):
    both = [ended(searched, "cpu-x86_64"), Ended(chip="mtia", refused="has no toolchain")]
    heads, first, second, *rest = chip_table.lines("toy", "runs/x", both)
    assert heads.split() == list(chip_table.COLUMNS)
    assert first.startswith("toy       cpu-x86_64  ")
    assert f"({searched.tree.reference.basis if searched.tree.reference else 'measured'})" in first
    assert second.split()[:4] == ["toy", "mtia", "refused", "-"]
    assert "refused   mtia: has no toolchain" in rest
    told = chip_table.final_object("toy", "runs/x", both)
    assert [each["chip"] for each in told["chips"]] == ["cpu-x86_64", "mtia"]
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (("improved", "no_improvement"), 0),
        (("improved", "paused"), 75),
        (("paused", "failed", "improved"), 1),
        (("failed", "refused"), 2),
    ],
)
def test_the_exit_code_is_the_worst_of_them(outcomes, code):
    drive = Drive()
    drive.run(a_search(evaluations=4))

    def one(word: str) -> Ended:
        done = ended(drive, word)
        return (
            Ended(chip=word)
            if word == "refused"
            else replace(done, finished=replace(done.finished, result={"outcome": word}))
        )

    assert chip_table.exit_code([one(word) for word in outcomes]) == code


@pytest.fixture
def asked(tmp_path):
    spec = operators.load(Path(OPERATOR))
    searches = tuple(a_search(operator=spec.ref, chip=chip) for chip in CHIPS)
    return campaign.create(tmp_path / "all", spec, searches, Path(OPERATOR))


def test_what_was_asked_reads_back_as_written(asked):
    found = campaign.read(asked.directory.path)
    assert (found.spec, found.searches) == (asked.spec, asked.searches)
    assert found.operator_path == Path(OPERATOR).resolve()


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 9}', '{"format": 1, "searches": []}'])
def test_a_broken_campaign_is_a_log_error_that_names_it(asked, text):
    (asked.directory.path / rundir.CAMPAIGN).write_text(text)
    with pytest.raises(LogError, match=r"campaign\.json"):
        campaign.read(asked.directory.path)


def test_commands_on_one_run_say_that_there_are_several(asked):
    run = asked.run("cpu-x86_64")
    run.path.mkdir()
    run.manifest.touch()
    with pytest.raises(LogError, match=r"holds a run for each chip \(give one of them: .*cpu-x86_64\)"):
        rundir.open_existing(asked.directory.path)


def test_a_signal_tells_where_each_search_stands_and_how_all_go_on(asked, monkeypatch):
    def stopped(spec, started, operator, out, **how):
        out.mkdir()
        (out / "run.json").touch()
        raise Interrupted(out, signal.SIGTERM)

    monkeypatch.setattr(chip_by_chip, "begin", stopped)
    with pytest.raises(InterruptedOnChips) as caught:
        chip_by_chip.see_through(asked, as_json=False)
    path = asked.directory.path
    assert caught.value.exit_code == 143
    assert str(caught.value).splitlines() == [
        f"interrupted; `kernelevolve resume {path}` goes on from here with every chip, or one alone:",
        f"  cpu-x86_64: `kernelevolve resume {path}/cpu-x86_64`",
        "  riscv-rvv: not begun",
    ]


def test_if_every_chip_refuses_the_operator_nothing_is_left_and_the_exit_code_says_so(asked, monkeypatch, capsys):
    def refuses(spec, started, operator, out, **how):
        raise OperatorError("has no inputs", where=started.chip)

    monkeypatch.setattr(chip_by_chip, "begin", refuses)
    assert chip_by_chip.see_through(asked, as_json=True) == 2
    told = json.loads(capsys.readouterr().out)
    assert [(each["chip"], each["outcome"]) for each in told["chips"]] == [(chip, "refused") for chip in CHIPS]
    assert not asked.directory.path.exists()


def test_if_every_chip_refuses_now_what_was_searched_before_is_left(asked, monkeypatch, capsys):
    begun = asked.run(CHIPS[0])
    begun.path.mkdir()
    begun.manifest.write_text("{}")
    begun.database.write_text("the journal")

    def refuses(*_, **__):
        raise ChipError("needs a compiler that is gone")

    monkeypatch.setattr(chip_by_chip, "_one", refuses)
    assert chip_by_chip.see_through(asked, as_json=True) == 2
    assert [each["outcome"] for each in json.loads(capsys.readouterr().out)["chips"]] == ["refused", "refused"]
    assert begun.database.read_text() == "the journal"
    assert campaign.read(asked.directory.path).searches == asked.searches


def test_what_a_killed_process_left_of_a_chip_s_beginning_is_in_nobody_s_way(asked, monkeypatch):
    for chip in CHIPS:
        asked.run(chip).path.mkdir()
        (asked.run(chip).path / ".run.json.4711").touch()
    seen = []

    def begins(spec, started, operator, out, **how):
        seen.append(rundir.create(out, "toy").path)
        raise OperatorError("has no inputs", where=started.chip)

    monkeypatch.setattr(chip_by_chip, "begin", begins)
    assert chip_by_chip.see_through(asked, as_json=True) == 2
    assert seen == [asked.run(chip).path for chip in CHIPS]


def test_two_processes_do_not_work_on_the_same_chips(asked):
    with rundir.exclusive(asked.directory), pytest.raises(UserError, match="another process"):
        chip_by_chip.see_through(asked, as_json=False)
