"""Emitted CUDA on a card: as right as torch's, on the stream that it is given, and never waiting for it."""

from __future__ import annotations

import ctypes

import pytest
import torch

from evaluator_svc import nvidia
from evaluator_svc.correctness import KE_LAUNCH_FAILED
from synthesizer_svc.schedule import emit
from tests.integration.schedule import compiled, judging, table
from tests.integration.schedule.cuda import cases, machine, toolkit
from tests.integration.schedule.cuda.test_cuda import drawn
from tests.integration.simt.kernels import DOUBLED, unit

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not nvidia.present() or toolkit.MISSING, reason="needs an NVIDIA GPU and nvcc"),
]


@pytest.mark.parametrize(("name", "case"), cases.written())
def test_it_agrees_with_torch(name, case, tmp_path):
    plan, model, inputs = compiled.planned(table.source(case))
    declared, exact = judging.references(model, inputs)
    gpu = machine.gpu("cuda")
    for schedule in drawn(emit.space("cuda", plan, gpu, 1), name):
        launch = toolkit.build(emit.render("cuda", plan, schedule, gpu, 1).source, tmp_path)
        got = compiled.launch(launch, compiled.kernel_inputs(model, inputs), declared, device="cuda")
        assert judging.agrees(got, declared, exact) is None, schedule.to_json()


def arrays(*tensors):
    described = [compiled.describe(one, one.data_ptr()) for one in tensors]
    return [ctypes.byref(one) for one in described]


def test_launches_are_on_the_given_stream_and_wait_for_nothing(tmp_path):
    launch = toolkit.build(unit(DOUBLED), tmp_path)
    x, y = torch.ones(4096, device="cuda"), torch.zeros(4096, device="cuda")
    given, result = arrays(x, y)
    launch(given, 1, result, 1, None)
    torch.cuda.synchronize()
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):  # a wait, or a launch on another stream, breaks a capture
        code = launch(given, 1, result, 1, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    x.fill_(3)
    y.zero_()
    assert (code, y.sum().item()) == (0, 0)
    graph.replay()
    assert y.eq(6).all()


@pytest.mark.parametrize("threads", [512, 2048])
def test_a_launch_that_the_card_does_not_take_is_told_once(threads, tmp_path):
    launch = toolkit.build(unit(DOUBLED).replace("(k, 16, 256,", f"(k, {4096 // threads}, {threads},"), tmp_path)
    given, result = arrays(torch.ones(4096, device="cuda"), torch.zeros(4096, device="cuda"))
    assert launch(given, 1, result, 1, None) == KE_LAUNCH_FAILED
    torch.cuda.synchronize()
    assert torch.ones(4, device="cuda").sum().item() == 4
