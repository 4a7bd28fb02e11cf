"""What a model or a compiler wrote is shown as it is: neither markup nor a terminal's commands in it are obeyed."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from cli import conversations
from cli.commands.explain import difference, facts, label, measurements, overview, show_conversation
from cli.history import Past
from cli.live import LiveView
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


COMMAND = "\x1b]52;c;aGk=\x07 \x9b2J \u202e"
"""Writes to the clipboard, clears the screen, turns what follows around."""


def test_no_command_to_a_terminal_is_obeyed():
    asked = Asked()
    name = asked.wrote(0, "kernel", a_pass())
    asked.refused(1, COMMAND, "no_block")
    node = replace(asked.tree.nodes[name], move=Move(name="rewrite", rationale=COMMAND))
    failed = replace(a_failure(Status.COMPILE_ERROR), evidence=(Entry(name="log", value=COMMAND),))
    past = Past(search_id="s", entries=tuple(asked.drive.entries), blobs=asked.blobs, damaged={})
    rejected = next(each for each in conversations.rejected(past.entries))
    gone = replace(rejected, detail=COMMAND)
    console, live = Console(file=io.StringIO(), width=200), Console(file=io.StringIO(), width=200)
    show_conversation(console, past, rejected.candidate_id)
    view = LiveView(live, title="t")
    view.show(gone)
    for text in (
        shown(facts(asked.tree, node)),
        shown(measurements("m", failed)),
        shown(overview(asked.tree, (gone,))),
        console.file.getvalue(),
        live.file.getvalue(),
    ):
        assert "]52;c;aGk=" in text
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)


def test_a_comment_in_a_kernel_turns_no_line_around():
    asked = Asked()
    name = asked.wrote(0, "kernel", a_pass())
    node = asked.tree.nodes[name]
    blobs = {node.kernel.source_hash: f"// {COMMAND}\n\tint x;".encode()}
    text = difference(replace(asked.tree, nodes={}), node, blobs)
    assert "+// \\x1b]52;c;aGk=\\x07 \\x9b2J \\u202e\n+\tint x;" in text
