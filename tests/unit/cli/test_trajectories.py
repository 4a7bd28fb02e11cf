"""Exported rows are what models wrote and what was measured of it, and nothing that was not shown."""

from __future__ import annotations

import json

import pytest

from cli import conversations, trajectories
from cli.commands import export
from shared.errors import LogError, UserError
from shared.events import Status
from tests.builders import a_failure, a_pass
from tests.unit.cli.asked import Asked


@pytest.fixture
def asked() -> Asked:
    return Asked()


def answers(asked: Asked) -> list[dict]:
    return list(trajectories.supervised(asked.tree, asked.drive.entries, asked.blobs))


def pairs(asked: Asked) -> list[dict]:
    return list(trajectories.preferences(asked.tree, asked.drive.entries, asked.blobs))


def test_an_answer_whose_kernel_passed_is_a_row_with_its_evidence(asked):
    name = asked.wrote(0, "fast", a_pass(1_500_000))
    [row] = answers(asked)
    assert row["messages"] == [
        {"role": "system", "content": "You write kernels."},
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": "fast"},
    ]
    evidence = row["evidence"]
    assert (evidence["candidate_id"], evidence["status"], evidence["trust"]) == (name, "PASSED", "L3")
    assert (evidence["speedup"], evidence["ci_low"], evidence["ci_high"]) == (1.5, 1.45, 1.55)
    assert (evidence["endpoint"], evidence["model"], evidence["asking"]) == ("large", "m-1", "whole")
    assert evidence["usage"]["cost"] == 0.001234
    assert evidence["best"] is True


def test_failures_are_no_answers_to_learn_from(asked):
    asked.wrote(0, "wrong", a_failure())
    asked.refused(1, "prose", "no_block")
    assert answers(asked) == []


def test_turns_before_the_answer_are_part_of_the_conversation(asked):
    asked.wrote(0, "mended", a_pass(), turns=[("prose", "no_block", "code, please")])
    [row] = answers(asked)
    assert [message["content"] for message in row["messages"]] == [
        "You write kernels.", "Q", "prose", "code, please", "mended",
    ]  # fmt: skip


def test_only_the_fastest_answer_to_a_question_is_its_best(asked):
    asked.wrote(0, "slow", a_pass(1_100_000))
    asked.wrote(1, "fast", a_pass(2_000_000))
    asked.wrote(2, "other", a_pass(1_200_000), question="another")
    assert [row["evidence"]["best"] for row in answers(asked)] == [False, True, True]


def test_what_a_schedule_wrote_instead_is_in_neither_file(asked):
    asked.wrote(0, "scheduled", a_pass(2_000_000), stood_in=True)
    asked.wrote(1, "slow", a_pass(1_100_000))
    assert [row["messages"][-1]["content"] for row in answers(asked)] == ["slow"]
    assert not [pair for pair in pairs(asked) if pair["chosen"][0]["content"] == "scheduled"]


def test_of_two_answers_the_one_whose_interval_lies_above_is_chosen(asked):
    asked.wrote(0, "slow", a_pass(1_100_000))
    asked.wrote(1, "fast", a_pass(1_500_000))
    [pair] = pairs(asked)
    assert pair["prompt"] == [
        {"role": "system", "content": "You write kernels."},
        {"role": "user", "content": "Q"},
    ]
    assert pair["chosen"] == [{"role": "assistant", "content": "fast"}]
    assert pair["rejected"] == [{"role": "assistant", "content": "slow"}]
    assert pair["evidence"]["because"] == "its speedup is at least 1.450, the other's at most 1.150"


def test_intervals_that_touch_prefer_nothing(asked):
    asked.wrote(0, "one", a_pass(1_500_000))
    asked.wrote(1, "two", a_pass(1_550_000))
    assert pairs(asked) == []


def test_answers_to_different_questions_are_not_compared(asked):
    asked.wrote(0, "slow", a_pass(1_100_000))
    asked.wrote(1, "fast", a_pass(1_500_000), question="another")
    assert pairs(asked) == []


@pytest.mark.parametrize("status", [Status.WRONG_RESULT, Status.COMPILE_ERROR, Status.CHEAT])
def test_a_kernel_that_passed_is_preferred_to_one_that_failed(asked, status):
    asked.wrote(0, "bad", a_failure(status))
    asked.wrote(1, "good", a_pass(900_000))
    [pair] = pairs(asked)
    assert pair["rejected"][0]["content"] == "bad"
    assert pair["evidence"]["because"] == f"the other failed: {status.value}"


@pytest.mark.parametrize(("code", "rows"), [("no_block", 1), ("truncated", 1), ("budget", 0), ("endpoint", 0)])
def test_an_answer_that_was_none_is_rejected_and_a_call_that_failed_is_not(asked, code, rows):
    asked.refused(0, "prose", code)
    asked.wrote(1, "good", a_pass())
    assert len(pairs(asked)) == rows


def test_nobody_is_blamed_for_noise(asked):
    asked.wrote(0, "good", a_pass())
    assert pairs(asked) == []


def test_a_conversation_without_its_blob_is_an_error_and_not_a_gap(asked):
    asked.wrote(0, "good", a_pass())
    asked.blobs = {}
    with pytest.raises(LogError, match="is missing or unreadable"):
        answers(asked)


def test_a_candidate_is_found_by_the_beginning_of_its_id_also_when_it_was_rejected(asked):
    name = asked.refused(0, "prose", "no_block")
    assert conversations.find(asked.drive.entries, name[:6]).candidate_id == name
    held = conversations.of(conversations.find(asked.drive.entries, name), asked.blobs)
    assert [answer.code for answer in held.answers] == ["no_block"]
    with pytest.raises(UserError, match="no candidate `zz`"):
        conversations.find(asked.drive.entries, "zz")


def test_rows_are_written_one_a_line(tmp_path, asked):
    asked.wrote(0, "größer", a_pass())
    assert export.write(tmp_path / "answers.jsonl", answers(asked)) == 1
    [line] = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["messages"][-1]["content"] == "größer"
    with pytest.raises(UserError, match="cannot be written"):
        export.write(tmp_path / "nowhere" / "answers.jsonl", [])


def test_answers_and_pairs_in_one_file_are_refused_before_anything_is_read(tmp_path):
    file = str(tmp_path / "rows.jsonl")
    with pytest.raises(UserError, match="named twice"):
        export.command.main(["no-such-run", "--sft", file, "--preferences", file], standalone_mode=False)


def test_every_conversation_is_in_the_totals_of_its_search(asked):
    asked.wrote(0, "good", a_pass())
    asked.refused(1, "prose", "no_block")
    assert (asked.tree.spent.requests, asked.tree.spent.cost_micro) == (4, 2468)
    [record] = asked.tree.endpoints.values()
    assert (record.endpoint, record.asked, record.gains, record.tokens) == ("large", 2, 1, 2000)
