"""The audit shows everything that a ledger holds, to people and to programs, of failed verdicts as well."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from cli import audit
from cli.submitted import Problem
from cli.verdicts import Answered, Asked
from evaluator_svc.ledger import Call, Ledger, Stage
from shared import ids
from shared.events import Entry, Evaluation, Status
from shared.submissions import operator_text
from shared.submissions.kernel import Kernel
from tests.unit.submissions.samples import loaded, made

KERNEL = Kernel(language="python", source="class ModelNew: ...\n", form="module with ModelNew")


def ledger() -> Ledger:
    kept = Ledger()
    kept.facts |= {"compiler": "g++ 12.2", "artefact": "ab" * 32, "sandbox": "user+seccomp"}
    kept.seeds["own inputs"] = 123456789
    kept.check("judge", "own inputs, output 0", "WRONG_RESULT [red]")
    kept.call(
        Call(
            stage=Stage.CHECK,
            process=3,
            contestant="candidate",
            case="own inputs",
            calls=2,
            controller_ns=1234567,
            cpu_ns=42,
            verified=True,
            first_use=True,
        )
    )
    return kept


def answered(kept: Ledger | None) -> Answered:
    definition = made()
    workload = loaded(definition, tolerance={"max_atol": 0.01})
    spec = operator_text.operator(definition, workload, lambda _: b"")
    asked = Asked(problem=Problem(spec=spec, definition=definition, workload=workload), kernel=KERNEL, flags=())
    evaluation = Evaluation(
        status=Status.WRONG_RESULT, evidence=(Entry(name="reason", value="wrong"),), ledger_hash="cd" * 32
    )
    return Answered(asked=asked, evaluation=evaluation, ledger=None if kept is None else kept.plain())


def printed(one: Answered) -> str:
    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        console.print(audit.tables(one))
    return captured.get()


@pytest.mark.parametrize(
    "shown",
    [
        "g++ 12.2", "ab" * 32, "user+seccomp",  # facts
        "own inputs", "123456789",  # seeds
        "judge", "WRONG_RESULT [red]",  # checks, to the character
        "check", "3", "candidate", "1,234,567", "42", "verified, first use",  # calls
        "module with ModelNew", "class ModelNew: ...", ids.content_hash(KERNEL.source.encode()), "cd" * 32,
        "max_atol 0.01 (recorded; this evaluator's judge decides)",
    ],
)  # fmt: skip
def test_every_entry_of_the_ledger_and_the_text_that_was_hashed_are_printed(shown):
    assert shown in printed(answered(ledger()))


def test_clocks_that_no_call_had_have_no_column():
    text = printed(answered(ledger()))
    assert "controller" in text
    assert "profiler" not in text


def test_for_programs_it_is_the_ledger_as_stored_with_what_was_handed_in():
    found = json.loads(json.dumps(audit.ledger_object(answered(ledger()))))
    assert {name: found[name] for name in ledger().plain()} == json.loads(ledger().encoded())
    assert found["submission"]["workload"] == "first"
    assert found["texts"]["kernel"] == KERNEL.source
    assert ids.content_hash(found["texts"]["operator"].encode()) == found["submission"]["operator_hash"]


def test_an_evaluation_without_a_ledger_says_so():
    assert audit.NO_LEDGER in printed(answered(None))
