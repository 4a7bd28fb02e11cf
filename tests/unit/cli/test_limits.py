"""A limit that is given holds: none becomes 0, which means that there is no limit."""

from __future__ import annotations

import pytest

from cli.options import budget_of_models, whole
from shared.errors import UserError
from shared.events import PPM, ModelBudget


def test_a_budget_is_in_millionths_and_0_is_no_limit():
    assert budget_of_models(2.5, 1000) == ModelBudget(tokens=1000, cost_micro=2_500_000)
    assert budget_of_models(0.000001, 0) == ModelBudget(cost_micro=1)
    assert budget_of_models(0.0, 0) == ModelBudget()


@pytest.mark.parametrize(
    ("amount", "says"),
    [
        (1e-7, "--model-budget: 1e-07 is too small: the least is 1e-06"),
        (-1e-9, "--model-budget: -1e-09 is too small"),
        (-1.0, "--model-budget: is negative"),
        (float("nan"), "--model-budget: is nan"),
        (1e300, "--model-budget: 1e+300 is out of range"),
    ],
)
def test_an_amount_that_cannot_be_a_limit_is_one_line(amount, says):
    with pytest.raises(UserError) as caught:
        budget_of_models(amount, 0)
    assert str(caught.value).startswith(says)


def test_no_other_limit_becomes_none_either():
    with pytest.raises(UserError, match="--target-speedup: 1e-09 is too small"):
        whole("--target-speedup", 1e-9, PPM)
    assert whole("--seconds", 1e-9, 1_000_000_000) == 1
