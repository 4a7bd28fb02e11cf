"""What NVIDIA's own compiler makes of emitted CUDA, and what a launch returns where there is no device to take it."""

import ctypes

import pytest
import torch

from evaluator_svc.correctness import KE_DECLINED, KE_LAUNCH_FAILED
from synthesizer_svc.schedule import emit
from tests.integration.schedule import compiled, table
from tests.integration.schedule.cuda import cases, machine, toolkit

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(toolkit.MISSING, reason="needs nvcc: NVIDIA's CUDA toolkit"),
]


def written(case):
    plan, _, _ = compiled.planned(table.source(case))
    gpu = machine.gpu("cuda")
    return emit.render("cuda", plan, emit.space("cuda", plan, gpu, 1).default(), gpu, 1).source


def tensor(*shape):
    return compiled.describe(torch.empty(shape, dtype=torch.half), 1 << 20)


@pytest.mark.parametrize("case", [table.FAMILIES["losses"]["cross_entropy"], cases.WHOLE["bytes"]])
def test_it_compiles_with_the_toolkit(case, tmp_path):
    toolkit.build(written(case), tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_a_launch_that_no_device_takes_is_told_by_the_call(tmp_path):
    launch = toolkit.build(written(cases.WHOLE["half_softmax"]), tmp_path)
    mine, other, out = tensor(9, 512), tensor(8, 512), tensor(9, 512)
    assert launch(ctypes.byref(mine), 1, ctypes.byref(out), 1, None) == KE_LAUNCH_FAILED
    assert launch(ctypes.byref(other), 1, ctypes.byref(out), 1, None) == KE_DECLINED
