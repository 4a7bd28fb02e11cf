"""Which failures are the same failure."""

import pytest

from shared.error_signatures import CHARS_MAX, signature
from shared.events import Entry, Evaluation, Status, Trust
from shared.events.evaluation import CAUGHT_BY


def failure(why: str, status: Status = Status.COMPILE_ERROR) -> Evaluation:
    layer = Entry(name=CAUGHT_BY, value="build")
    return Evaluation(status=status, evidence=(layer, Entry(name="first_error", value=why)))


SAME = [
    ("k.cpp:7:3: error: 'a' was not declared", "/tmp/box-1/kernel.cpp:19: error: 'a' was not declared"),
    ("error 1.2e-3 at index 1008 of 1023", "error -4.7E+01 at index 3 of 64"),
    ("SIGSEGV at 0x7fffdeadbeef", "SIGSEGV at 0x10"),
    ("expected  ';'\n   7 | f()\n", "expected ';'"),
]
DIFFERENT = [
    ("error: 'a' was not declared", "error: 'b' was not declared"),
    ("'_mm256_add_ps' not found", "'_mm512_add_ps' not found"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_errors_that_differ_in_places_and_numbers_are_one(one, other):
    assert signature(failure(one)) == signature(failure(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_errors_that_differ_in_names_are_two(one, other):
    assert signature(failure(one)) != signature(failure(other))


def test_the_status_is_part_of_it_and_the_layer_that_saw_it_is_not():
    assert signature(failure("killed", Status.TIMEOUT)) == "TIMEOUT killed"
    assert signature(Evaluation(status=Status.TIMEOUT)) == "TIMEOUT"


def test_what_passed_has_none():
    assert signature(Evaluation(status=Status.PASSED, trust=Trust.L1)) == ""


def test_a_long_message_is_cut():
    assert len(signature(failure("x" * 10_000))) == CHARS_MAX
