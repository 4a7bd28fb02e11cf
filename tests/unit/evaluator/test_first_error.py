"""A failed build says why, whichever of its programs failed."""

from __future__ import annotations

import pytest

from evaluator_svc.toolchains.first_error import first_error

ASSEMBLER = """\
/tmp/cc1.s: Assembler messages:
/tmp/cc1.s:8: Error: file not found: /etc/passwd
"""
LINKER = """\
/usr/bin/ld: /tmp/cc2.o: relocation R_X86_64_32 against `.data' can not be used when making a shared object
"""
COMPILER = """\
kernel.cpp: In function 'int ke_launch()':
kernel.cpp:3:1: warning: no return statement
kernel.cpp:4:1: error: 'x' was not declared in this scope
kernel.cpp:5:1: error: another
"""


@pytest.mark.parametrize(
    ("log", "says"),
    [(ASSEMBLER, "file not found: /etc/passwd"), (LINKER, "relocation"), (COMPILER, "was not declared")],
)
def test_the_line_that_says_why_is_shown(log, says):
    assert says in first_error(log, "g++ ended with status 1")


def test_without_a_word_the_status_is_shown():
    assert first_error("\n \n", "g++ ended with status 1") == "g++ ended with status 1"
