"""Any text is a literal of exactly itself."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.submissions.text import literal

AWKWARD = ["", "'", "'''", "\\", "a\\", "\r\n", "\n", "a\n'", "\x00", "\u2028", "\x0c", "\ufeff", "é\n", "{x}", '"""']


@pytest.mark.parametrize("text", AWKWARD, ids=repr)
def test_awkward_texts_are_kept(text):
    assert ast.literal_eval(literal(text)) == text


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_every_text_is_kept(text):
    assert ast.literal_eval(literal(text)) == text


def test_a_plain_text_is_one_readable_block():
    assert literal("import torch\n\tx = 'a'\n") == "r'''import torch\n\tx = 'a'\n'''"
