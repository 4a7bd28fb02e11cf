"""The form of an operator's text."""

from __future__ import annotations

import pytest

from shared import operators
from shared.errors import OperatorError


@pytest.mark.parametrize(
    "text", ["-" * 100_000 + "1", "a" + ".b" * 100_000, "(" * 5000, "x = 1\0", "if 1:\n\tx\n        y"]
)
def test_text_that_the_parser_cannot_take_is_one_clear_line(text):
    with pytest.raises(OperatorError) as refused:
        operators.parse(text, name="toy")
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 100
