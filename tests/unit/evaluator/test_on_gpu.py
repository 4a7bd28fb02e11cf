"""What a hosted kernel on a GPU is given."""

from __future__ import annotations

from evaluator_svc.hosted.on_gpu import profile
from shared.boxes import gpu


def test_its_box_holds_one_device_and_no_limit_that_a_driver_would_break():
    found = profile()
    assert set(found.devices) <= set(gpu(0))
    assert not found.address_space
    assert not found.hide_proc
    assert not found.own_processes
    assert "/sys" in {mount.target for mount in found.mounts}
    assert not any(mount.writable for mount in found.mounts)


def test_its_fork_server_imports_nothing_that_starts_the_driver():
    assert "torch.utils.cpp_extension" not in profile().modules
