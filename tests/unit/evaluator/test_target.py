"""What a chip's kernels run on here, with and without the device."""

from __future__ import annotations

import pytest

from evaluator_svc import nvidia
from evaluator_svc.target import Kind, target_of
from shared.errors import ChipError

GPU = "nvidia-sm_90"


def test_a_processors_kernels_run_and_are_timed_on_the_cores():
    target = target_of("cpu-x86_64")
    assert (target.kind, target.device, target.torch_device) == (Kind.CPU, "cpu", "cpu")
    assert target.timed
    assert not target.on_gpu


def test_without_the_device_a_gpus_kernels_are_interpreted_and_never_timed(monkeypatch):
    monkeypatch.setattr(nvidia, "present", lambda: False)
    target = target_of(GPU)
    assert (target.kind, target.device, target.torch_device) == (Kind.INTERPRETED, "cpu", "cpu")
    assert not target.timed
    assert not target.on_gpu


def test_with_it_they_are_timed_on_it_and_it_is_leased_by_its_own_identity(monkeypatch):
    monkeypatch.setattr(nvidia, "present", lambda: True)
    monkeypatch.setattr(nvidia, "uuid", lambda: "GPU-1b2c")
    target = target_of(GPU)
    assert (target.kind, target.device, target.torch_device) == (Kind.GPU, "GPU-1b2c", "cuda")
    assert target.timed
    assert target.on_gpu


def test_a_chip_without_a_sheet_is_an_error_and_not_a_guess():
    with pytest.raises(ChipError):
        target_of("nvidia-sm_999")
