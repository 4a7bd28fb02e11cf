"""What a hosted kernel on an NVIDIA GPU needs of its box.

The device's nodes, the driver's libraries and ``/sys`` are what the driver asks for; without ``/sys`` it does not
start, and it writes thread names under ``/proc/self`` (see the notes on GPUs in boxes in docs/evaluation.md).
"""

from __future__ import annotations

from pathlib import Path

from evaluator_svc.hosted.box import Profile, as_mount
from shared.boxes import GPU_MOUNTS, gpu

TRITON_DRIVER = "evaluator_svc.hosted.triton_driver"
"""As ``candidate`` names it, which only runs where torch is."""

DRIVER = ("/usr/local/nvidia", "/opt/nvidia")
NVML = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Whether there is a device is asked without starting the driver."""
LIBRARIES = ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib", "/usr/lib")
"""Where ``libcuda.so.1`` is looked for: Triton would ask ldconfig, which lies among the machine's administration."""
TOOLS = ("/usr/local/cuda", "/usr/bin", "/usr/include", "/etc/alternatives", "/usr/libexec")
"""What compiles a Triton kernel's launcher on first use."""
DRIVER_THREADS = 6
"""Driver 580 keeps two in a process that has a context, and more once it has streams of other priorities."""


def profile() -> Profile:
    """Triton and extension kernels on the one device there is."""
    return Profile(
        name="gpu",
        device="cuda",
        # Not torch.utils.cpp_extension: importing it starts the driver, and a driver that runs survives no fork.
        modules=("torch", "triton", TRITON_DRIVER),
        mounts=(*GPU_MOUNTS, *(as_mount(Path(path)) for path in (*DRIVER, *TOOLS) if Path(path).exists())),
        environment={
            "PATH": "/usr/local/cuda/bin:/usr/bin",
            "CC": "gcc",
            "CUDA_VISIBLE_DEVICES": "0",
            "CUDA_CACHE_DISABLE": "1",
            **NVML,
            **_libcuda(),
        },
        processes=True,
        hide_proc=False,
        # The driver names its threads in /proc by the numbers they have in their namespace: it must be that of /proc.
        own_processes=False,
        address_space=False,
        devices=tuple(node for node in gpu(0) if node.exists()),
        driver_threads=DRIVER_THREADS,
    )


def _libcuda() -> dict[str, str]:
    found = next((path for path in LIBRARIES if Path(path, "libcuda.so.1").exists()), None)
    return {"TRITON_LIBCUDA_PATH": found} if found else {}
