"""What a model or a compiler wrote is shown as it is, whatever it looks like to the terminal's markup."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from cli.commands.explain import facts, label, measurements
from shared.events import Diagnosis, Entry, Move, Status
from tests.builders import a_failure, a_pass
from tests.unit.cli.asked import Asked

HOSTILE = "[/INST] a[i] [bold]x [enabled by default]"


def shown(renderable) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(renderable)
    return console.file.getvalue()


def test_a_models_reason_is_shown_to_the_letter():
    asked = Asked()
    name = asked.wrote(0, "kernel", a_pass())
    node = replace(asked.tree.nodes[name], move=Move(name=HOSTILE, rationale=HOSTILE))
    assert shown(facts(asked.tree, node)).count(HOSTILE) == 2
    assert HOSTILE in shown(label(asked.tree, node))


def test_a_compilers_words_and_a_diagnosis_are_shown_to_the_letter():
    evidence = (Entry(name="log", value=HOSTILE),)
    failed = replace(a_failure(Status.COMPILE_ERROR), evidence=evidence)
    assert HOSTILE in shown(measurements("m", failed))
    told = replace(a_pass(), diagnosis=Diagnosis(summary=HOSTILE, evidence=evidence))
    assert shown(measurements("m", told)).count(HOSTILE) == 2
