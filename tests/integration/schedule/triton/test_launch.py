"""Launches of emitted Triton modules: what was compiled for aligned tensors is kept, and used for nothing else."""

from dataclasses import dataclass, field

import pytest
import torch

from evaluator_svc import nvidia
from evaluator_svc.hosted.model import executed
from shared import chips
from synthesizer_svc.schedule import emit
from tests.integration.schedule import compiled, table

ALIGNED, ASIDE = 4096, 4098


@dataclass(frozen=True)
class OnACard:
    """What a launch asks of a tensor."""

    place: int
    is_cuda: bool = True

    def data_ptr(self):
        return self.place


@dataclass
class Kernel:
    """A ``@triton.jit`` function, or what it was compiled to: ``kernel[grid](*tensors)`` tells which one was taken."""

    told: list
    name: str = "triton"
    made: list = field(default_factory=list)

    def __getitem__(self, grid):
        def launched(*tensors, **options):
            self.told.append((self.name, grid, [one.place for one in tensors]))
            if self.name != "triton":
                assert not options  # they were compiled in
                return None
            self.made.append(options)
            return Kernel(self.told, f"compiled {len(self.made)}")

        return launched


def module(chip="nvidia-sm_90"):
    built, _, _ = compiled.planned(table.source(("x.sum(-1)", ["torch.randn(64, 128).half()"])))
    gpu = chips.load(chip).gpu
    return emit.render("triton", built, emit.space("triton", built, gpu, 1).default(), gpu, 1).source


@pytest.fixture
def launching(monkeypatch):
    """A launch of a kernel on one device, which the second result changes, and what was launched."""
    told = []
    launch = executed(module()).Launch(Kernel(told), (64, 1, 1), num_warps=1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    return launch, lambda n: monkeypatch.setattr(torch.cuda, "current_device", lambda: n), told


def test_aligned_tensors_on_a_card_are_launched_with_what_was_compiled_for_the_first(launching):
    launch, _, told = launching
    for _ in range(3):
        launch(OnACard(ALIGNED), OnACard(ALIGNED + 16))
    assert [name for name, _, _ in told] == ["triton", "compiled 1", "compiled 1"]
    assert {(grid, *places) for _, grid, places in told} == {((64, 1, 1), ALIGNED, ALIGNED + 16)}


@pytest.mark.parametrize("tensors", [(ASIDE, ALIGNED), (ALIGNED, ASIDE)])
def test_a_tensor_that_begins_elsewhere_goes_through_triton_before_and_after(launching, tensors):
    launch, _, told = launching
    launch(*map(OnACard, tensors))
    launch(OnACard(ALIGNED), OnACard(ALIGNED))
    launch(OnACard(ALIGNED), OnACard(ALIGNED))
    launch(*map(OnACard, tensors))
    assert [name for name, _, _ in told] == ["triton", "triton", "compiled 2", "triton"]


def test_every_device_has_what_was_compiled_for_it(launching):
    launch, on, told = launching
    for device in (0, 1, 0, 1):
        on(device)
        launch(OnACard(ALIGNED))
    assert [name for name, _, _ in told] == ["triton", "triton", "compiled 1", "compiled 2"]


def test_tensors_of_the_processor_always_go_through_triton(launching):
    launch, _, told = launching
    for _ in range(2):
        launch(OnACard(ALIGNED, is_cuda=False))
    assert [name for name, _, _ in told] == ["triton", "triton"]


def test_nothing_is_kept_where_kernels_are_compiled_for_more_than_alignment():
    assert "Launch" not in module("amd-gfx942")  # a storage's size tells which addresses they may use there
    assert "launch_g0(in0, out0)" in module()


@pytest.mark.gpu
@pytest.mark.skipif(not nvidia.present(), reason="needs an NVIDIA GPU")
def test_a_view_that_begins_aside_is_summed_right_after_aligned_ones():
    model, room = executed(module()).ModelNew(), torch.randn(64 * 128 + 1, device="cuda", dtype=torch.half)
    for start in (0, 0, 1, 0):
        x = room[start : start + 64 * 128].view(64, 128)
        torch.testing.assert_close(model(x), x.sum(-1))
