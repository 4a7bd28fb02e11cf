"""A request in any format is an operator, a kernel's one text, its language, its entry and its flags."""

from __future__ import annotations

import json

import pytest

from evaluator_svc.requested import Asked, Foreign, understand
from shared import chips
from shared.errors import UserError
from tests.unit.submissions.samples import DEFINITION, RIGHT, WORKLOAD, solved

CPU = chips.load("cpu-x86_64")
GPU = chips.load("nvidia-sm_90")
DEFINED = Foreign(definition=json.dumps(DEFINITION), workload=json.dumps(WORKLOAD))
SOFTMAX = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)
def get_inputs():
    return [torch.rand(8, 8)]
def get_init_inputs():
    return []
"""
WEIGHED = SOFTMAX.replace("    def forward", "    def __init__(self, n):\n        super().__init__()\n    def forward")
FUNCTION = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n"


def test_a_native_kernel_has_the_abis_entry_and_the_flags_of_this_machine():
    made = understand(
        Asked(operator_name="softmax", operator_source=SOFTMAX, language="cpp", kernel_source="int x;"),
        CPU,
        ("-mavx2",),
    )
    assert (made.kernel.source, made.entry, made.flags) == ("int x;", "ke_launch", ("-O3", "-fopenmp", "-mavx2"))


def test_a_solution_is_one_module_without_flags():
    made = understand(Asked(foreign=DEFINED, solution=solved()), CPU, ("-mavx2",))
    assert (made.kernel.language, made.entry, made.flags) == ("python", "ModelNew", ())
    assert made.kernel.source.startswith(RIGHT)
    assert "class ModelNew" in made.kernel.source


def test_a_triton_solution_needs_a_chip_that_takes_triton():
    triton = solved(spec={"language": "triton"})
    assert understand(Asked(foreign=DEFINED, solution=triton), GPU, ()).kernel.language == "triton"
    with pytest.raises(UserError, match="is in language `triton`"):
        understand(Asked(foreign=DEFINED, solution=triton), CPU, ())


CONSTRUCTED = """    def __init__(self):
        \"\"\"Nothing to keep.\"\"\"
        super(Model, self).__init__()

    def forward"""


def test_a_constructor_that_keeps_nothing_leaves_no_parameters():
    source = SOFTMAX.replace("    def forward", CONSTRUCTED)
    made = understand(Asked(operator_source=source, language="python", kernel_source=FUNCTION), CPU, ())
    assert made.kernel.form == "module of functions, called at `softmax`"


@pytest.mark.parametrize("entry", ["", "softmax"])
def test_a_module_of_functions_is_called_at_the_one_that_fits_or_is_named(entry):
    made = understand(Asked(operator_source=SOFTMAX, language="python", kernel_source=FUNCTION, entry=entry), CPU, ())
    assert made.kernel.source.startswith(FUNCTION)
    assert (made.kernel.form, made.entry) == ("module of functions, called at `softmax`", "ModelNew")


def test_a_module_with_modelnew_stays_as_it_is():
    text = "import torch\nclass ModelNew(torch.nn.Module): ...\n"
    asked = Asked(operator_source=WEIGHED, language="python", kernel_source=text, entry="ModelNew")
    assert understand(asked, CPU, ()).kernel.source == text


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (Asked(operator_source=WEIGHED, language="python", kernel_source=FUNCTION), "defines no class `ModelNew`"),
        (Asked(operator_source=SOFTMAX, language="python", kernel_source="def f(:"), "kernel_source:1: syntax error"),
        (Asked(operator_source=SOFTMAX, language="python", kernel_source=FUNCTION, flags=("-O3",)), "flags: are for"),
        (Asked(operator_source=SOFTMAX, kernel_source=FUNCTION), "language: is ``"),
        (Asked(operator_source=SOFTMAX, language="triton", kernel_source=FUNCTION), "language: is `triton`"),
    ],
)
def test_what_is_no_kernel_of_this_operator_is_refused_in_one_line(asked, line):
    with pytest.raises(UserError) as caught:
        understand(asked, CPU, ())
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
