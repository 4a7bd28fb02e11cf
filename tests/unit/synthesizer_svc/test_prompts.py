"""The prompt, byte for byte, and what holds for every prompt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared import chips
from shared.errors import UserError
from shared.events import Basis, Bound, Move, MoveOutcome, Status
from synthesizer_svc.prompts import Asking, Fate, compose, has_contract, parts
from synthesizer_svc.prompts.budget import PartName
from tests.builders import an_estimate
from tests.unit.synthesizer_svc.situations import (
    CHOICES,
    FIRST_DRAFT,
    GOLDEN,
    HOPPER,
    IMPROVE,
    SITUATIONS,
    TRITON_IMPROVE,
    as_text,
    path_of,
    refused,
    timed,
)

REGENERATE = "python -m tests.unit.synthesizer_svc.situations writes the files anew"


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_prompt_is_the_golden_one(name):
    assert as_text(compose(SITUATIONS[name])) == path_of(name).read_text(encoding="utf-8"), REGENERATE


def test_every_golden_file_is_of_a_situation():
    assert {path.name for path in GOLDEN.glob("prompt_*.txt")} == {path_of(name).name for name in SITUATIONS}


@pytest.mark.parametrize("name", SITUATIONS)
def test_equal_input_gives_equal_bytes_and_its_parts_add_up(name):
    prompt = compose(SITUATIONS[name])
    assert compose(SITUATIONS[name]) == prompt
    assert prompt.tokens >= len(f"{prompt.system}{prompt.user}".encode())
    assert {part.fate for part in prompt.parts} == {Fate.KEPT}


def test_expansions_of_one_chip_language_and_asking_have_one_system_message():
    of_cpp = [given for given in SITUATIONS.values() if given.language == "cpp" and given.asking is Asking.WHOLE]
    assert len(of_cpp) > 3
    assert len({compose(given).system for given in of_cpp}) == 1
    assert compose(replace(IMPROVE, operator_name="other", threads=8)).system == compose(FIRST_DRAFT).system


def test_expansions_of_one_search_share_their_beginning_up_to_the_diagnosis():
    texts = [as_text(compose(given)) for given in SITUATIONS.values() if given.language == "cpp"]
    users = [text.partition("=== user ===")[2] for text in texts]
    shared_beginning = users[0][: users[0].index("# Task")]
    assert "It runs on 1 thread." in shared_beginning
    assert all(user.startswith(shared_beginning) for user in users)


def test_the_operator_comes_first_then_the_diagnosis_and_what_is_known_for_it_and_the_task_last():
    user = compose(IMPROVE).user
    order = [
        "# Operator",
        "# Diagnosis",
        "# Documents for what is bound by memory",
        "# Measured before",
        "# Tried, and failed",
        "# Failed, do not repeat",
        "# Tried beside it",
        "# Kernel to improve",
        "# How it came to be",
        "# Task",
    ]
    assert sorted(order, key=user.index) == order
    assert user.index("streaming-stores") < user.index("cache-blocking")  # as retrieved: most relevant first


def test_equal_errors_are_told_once_and_the_parents_own_first():
    user = compose(SITUATIONS["failed_compile"]).user
    tried = user[user.index("# Tried") : user.index("# Failed")]
    assert tried.count("'vexp' was not declared") == 1
    assert tried.index("vexp") < tried.index("WRONG_RESULT")
    assert "(2 times)" in compose(IMPROVE).user


def test_a_move_that_did_not_pay_is_told_with_its_measured_ratio():
    assert "pointwise:unroll=8: speedup 1.100, 1.182 times the time of what it changed" in compose(IMPROVE).user


@pytest.mark.parametrize("bound", Bound)
def test_every_bottleneck_is_explained(bound):
    parent = replace(IMPROVE.parents[0], evaluation=timed(1.2, bound, ""))
    assert f"Bound by {bound.value}: " in compose(replace(IMPROVE, parents=(parent,))).user


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASSED])
def test_every_failure_is_explained(status):
    parent = replace(IMPROVE.parents[0], evaluation=refused(status, "judge", ("reason", "made up")))
    user = compose(replace(IMPROVE, parents=(parent,))).user
    assert f"failed: {status.value}, " in user
    assert "- reason: made up" in user


def test_an_unknown_floor_is_said_to_be_unknown():
    parent = replace(IMPROVE.parents[0], evaluation=timed(1.2, Bound.UNKNOWN, "", light=0))
    assert "Distance to the speed of light: unknown." in compose(replace(IMPROVE, parents=(parent,))).user


def test_a_model_that_chooses_moves_sees_the_choices_and_no_source():
    prompt = compose(SITUATIONS["moves"])
    assert CHOICES in prompt.user
    assert "ke_launch" not in prompt.system + prompt.user
    assert PartName.CHOICES in [part.name for part in prompt.parts]


def test_choices_are_for_moves_alone():
    assert CHOICES not in compose(replace(IMPROVE, choices=CHOICES)).user


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (replace(FIRST_DRAFT, asking=Asking.EDITS), "edits need a kernel"),
        (replace(FIRST_DRAFT, asking=Asking.MOVES), "moves need choices"),
    ],
)
def test_an_asking_without_what_it_is_about_is_a_mistake_of_the_caller(given, problem):
    with pytest.raises(ValueError, match=problem):
        compose(given)


@pytest.mark.parametrize("chip", chips.known())
def test_every_language_of_every_chip_has_a_contract(chip):
    sheet = chips.load(chip)
    for language in sheet.languages:
        prompt = compose(replace(FIRST_DRAFT, chip=sheet, machine=None, language=language))
        assert sheet.title in prompt.system


@pytest.mark.parametrize("language", ["cobol", "rules/../cpp", "../system", ""])
def test_a_language_without_a_contract_is_refused_by_name(language):
    assert not has_contract(language)
    with pytest.raises(UserError, match="no contract is written"):
        compose(replace(FIRST_DRAFT, language=language))


def test_a_gpus_limits_are_constraints_and_its_threads_no_setting():
    prompt = compose(TRITON_IMPROVE)
    assert HOPPER.gpu is not None
    assert f"{HOPPER.gpu.shared_bytes // 1024} KiB of shared memory" in prompt.system
    assert "It runs on" not in prompt.user
    assert "```python\nimport torch\nimport triton" in prompt.user


def test_what_came_of_a_kernel_is_said_once_in_its_history():
    assert compose(IMPROVE).user.count("One pass instead of two.") == 1


def test_a_kernel_in_another_language_is_fenced_as_that():
    parent = replace(IMPROVE.parents[0], source="import triton", language="triton")
    assert "```python\nimport triton" in compose(replace(IMPROVE, parents=(parent,))).user


def test_a_cost_is_told_with_what_it_rests_on_and_as_no_time():
    estimated = an_estimate(4_711, Basis.COUNTED, unit="model cycles")
    [parent] = IMPROVE.parents[:1]
    told = compose(replace(IMPROVE, parents=(replace(parent, evaluation=estimated),))).user
    assert "Cost of a call, counted, not timed: 4711 model cycles." in told
    outcome = MoveOutcome(
        candidate_id="c",
        parent_ids=("p",),
        move=Move(name="m"),
        status=Status.PASSED,
        ratio_ppm=2_000_000,
        gain_ppm=4_000_000,
        basis="counted",
    )
    assert (
        parts.came_to(outcome) == "2.000 times less cost (counted, not timed), 0.250 times the cost of what it changed"
    )


def test_a_model_is_told_what_a_kernel_for_an_emulated_machine_may_not_do():
    sheet = chips.load("riscv-rvv")
    system = compose(replace(FIRST_DRAFT, chip=sheet, machine=None, language="c-rvv")).system
    assert "a system call ends it" in system
    assert "VLEN is 256 bits and ELEN 64" in system
