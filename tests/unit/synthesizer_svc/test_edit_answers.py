"""Edits are applied as they are written or not at all, and what was not found is shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthesizer_svc.answer_text import SOURCE_BYTES_MAX, Parsed, Unparsable, edits

PARENT = """#include "ke_abi.h"
extern "C" int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream) {
  for (int i = 0; i < n; i += 4) {
    step(i);
  }
  for (int i = 0; i < m; i += 4) {
    step(i);
  }
  return KE_OK;
}
"""


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def parsed(text: str, parent: str = PARENT, **changes):
    return edits.parse(text, parent, language="cpp", entry="ke_launch", **changes)


WIDER = block("  for (int i = 0; i < n; i += 4) {", "  for (int i = 0; i < n; i += 8) {")
WIDER_SOURCE = PARENT.replace("i < n; i += 4", "i < n; i += 8")

APPLIED = {
    "one block": (WIDER, WIDER_SOURCE),
    "in a fence": (f"Wider steps.\n```cpp\n{WIDER}```\n", WIDER_SOURCE),
    "windows line ends": (WIDER.replace("\n", "\r\n"), WIDER_SOURCE),
    "longer marks": (WIDER.replace("<<<<<<<", "<<<<<<<<").replace("=======", "========"), WIDER_SOURCE),
    "two blocks": (
        WIDER + block("  return KE_OK;", "  return 0;"),
        WIDER_SOURCE.replace("return KE_OK;", "return 0;"),
    ),
    "the second on what the first made": (
        WIDER + block("  for (int i = 0; i < n; i += 8) {", "  for (int i = 0; i < n; i += 2) {"),
        PARENT.replace("i < n; i += 4", "i < n; i += 2"),
    ),
    "lines taken away": (
        block("  for (int i = 0; i < m; i += 4) {\n    step(i);\n  }", ""),
        PARENT.replace("  for (int i = 0; i < m; i += 4) {\n    step(i);\n  }\n", ""),
    ),
    "the first line": (block('#include "ke_abi.h"', '#include "ke_abi.h"\n#include <cmath>'), None),
    "the last line": (block("  return KE_OK;\n}", "  return 0;\n}"), None),
    "a whole kernel instead": (f"```cpp\n{WIDER_SOURCE}```\n", WIDER_SOURCE),
    "thinking with another block": (f"<think>{block('x', 'y')}</think>{WIDER}", WIDER_SOURCE),
}

REFUSED = {
    "lines that are not there": (block("  for (int j = 0; j < n; j += 4) {", "x"), "unmatched_edit"),
    "other white space": (block("for (int i = 0; i < n; i += 4) {", "x"), "unmatched_edit"),
    "part of a line": (block("i < n", "i < m"), "unmatched_edit"),
    "an empty search": (block("", "int x;"), "unmatched_edit"),
    "lines that stand there twice": (block("    step(i);", "    step(i + 1);"), "ambiguous_edit"),
    "no change": (block("  return KE_OK;", "  return KE_OK;"), "no_change"),
    "an open block": (WIDER.replace(">>>>>>> REPLACE", ""), "truncated"),
    "the entry taken away": (
        block(
            'extern "C" int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream) {', "x {"
        ),
        "no_entry",
    ),
    "a flood": (WIDER * 70, "too_long"),
    "prose": ("Make the steps wider.", "no_block"),
    "a refusal": ("I'm sorry, but I can't do that.", "refused"),
    "a control character": (block("  return KE_OK;", "  return \x07KE_OK;"), "unreadable"),
    "half a surrogate pair": (block("  return KE_OK;", "  return /*\ud800*/ KE_OK;"), "unreadable"),
}


@pytest.mark.parametrize(("text", "source"), APPLIED.values(), ids=APPLIED)
def test_a_block_replaces_whole_lines_that_stand_there_once(text, source):
    found = parsed(text)
    assert isinstance(found, Parsed), found
    assert source is None or found.source == source


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused_with_its_reason(text, code):
    found = parsed(text)
    assert isinstance(found, Unparsable), found
    assert found.code == code


def test_what_was_not_found_is_answered_with_the_nearest_lines():
    found = parsed(block("for (int i = 0; i < m; i += 4) {\nstep(i);", "x"))
    assert "  for (int i = 0; i < m; i += 4) {\n    step(i);" in found.shown
    renamed = parsed(block("  return KE_FINE;", "x"))
    assert "  return KE_OK;" in renamed.shown


def test_prose_around_edits_is_the_rationale_and_a_cut_answer_is_no_answer():
    assert parsed(f"Wider steps.\n{WIDER}Less overhead.").rationale == "Wider steps. Less overhead."
    assert parsed(WIDER, truncated=True).code == "truncated"


MARKS = [
    "<<<<<<< SEARCH\n",
    "=======\n",
    ">>>>>>> REPLACE\n",
    "  return KE_OK;\n",
    "x\n",
    "```\n",
    "<think>",
    "\n",
    " ",
]


@settings(max_examples=150)
@given(st.lists(st.sampled_from(MARKS)), st.booleans())
def test_no_text_breaks_the_reader_and_what_it_adds_was_in_the_text(pieces, truncated):
    text = "".join(pieces)
    found = parsed(text, truncated=truncated)
    assert isinstance(found, Parsed | Unparsable)
    if isinstance(found, Parsed):
        assert all(line in text or line in PARENT for line in found.source.split("\n"))


@pytest.mark.parametrize("piece", ["a\n", "<<<<<<< SEARCH\n", "=======\n", "<<<<<<< SEARCH\na\n=======\n", "ab", "\n"])
def test_hostile_repetition_is_read_in_linear_time(piece):
    flood = piece * (380_000 // len(piece))
    big = "int ke_launch() {\n" + "a\n" * (SOURCE_BYTES_MAX // 4) + "}\n"
    for text in (flood, block(flood[:150_000], "x"), block("a\n" * 60_000 + "b", "x")):
        assert isinstance(parsed(text, big), Unparsable)
