"""Settings come from named variables, and a bad one is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from shared.errors import UserError
from shared.settings import PortSettings, from_env


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    name: str
    workers: int = 2
    wait_s: float = 0.5
    verbose: bool = False
    folder: Path = Path("data")

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError("workers must be at least 1")
        if self.workers * self.wait_s > 10:
            raise ValueError("workers together wait for more than 10 s")


def test_variables_carry_the_prefix_and_the_fields_name() -> None:
    environment = {"X_NAME": "n", "X_WORKERS": "7", "X_WAIT_S": "1e-3", "X_VERBOSE": "Yes", "X_FOLDER": "/a b"}
    assert from_env(Example, environment, "X_") == Example(
        name="n", workers=7, wait_s=0.001, verbose=True, folder=Path("/a b")
    )


def test_an_absent_or_empty_variable_leaves_the_default() -> None:
    assert from_env(Example, {"NAME": "n", "WORKERS": " "}) == Example(name="n")
    assert from_env(PortSettings, {}) == PortSettings()


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({}, "X_NAME: is not set"),
        ({"X_NAME": "n", "X_WORKERS": "two"}, "X_WORKERS: is 'two', expected an integer"),
        ({"X_NAME": "n", "X_WAIT_S": "soon"}, "X_WAIT_S: is 'soon', expected a number"),
        ({"X_NAME": "n", "X_WAIT_S": "nan"}, "X_WAIT_S: is 'nan', expected a number"),
        ({"X_NAME": "n", "X_WAIT_S": "-inf"}, "X_WAIT_S: is '-inf', expected a number"),
        ({"X_NAME": "n", "X_VERBOSE": "maybe"}, "X_VERBOSE: is 'maybe', expected one of true, false"),
        ({"X_NAME": "n", "X_WORKERS": "0"}, "X_WORKERS: workers must be at least 1"),
        ({"X_NAME": "n", "X_WAIT_S": "1", "X_WORKERS": "-1"}, "X_WORKERS: workers must be at least 1"),
        ({"X_NAME": "n", "X_WAIT_S": "4", "X_WORKERS": "3"}, "X_*: workers together wait for more than 10 s"),
    ],
)
def test_a_bad_variable_is_one_line_that_names_it(environment: dict[str, str], line: str) -> None:
    with pytest.raises(UserError) as caught:
        from_env(Example, environment, "X_")
    assert str(caught.value) == line
