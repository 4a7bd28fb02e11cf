"""What lies in the box of a fork server, and what its candidates get on top, by device and language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evaluator_svc.runner.box import KEPT_PAGES
from evaluator_svc.runner.program import hosted_library
from evaluator_svc.sandbox import Mount
from shared import python_home
from shared.boxes import TEMPORARY

HERE = Path(__file__).parent
CODE = "/ke/code"
LIBRARY = "/ke/hosted.so"
EXTENSIONS = f"{TEMPORARY}/extensions"
"""Where a candidate with namespaces of its own finds its extensions: a private file system, read-only."""
DEVICES = (Path("/dev/null"), Path("/dev/urandom"))
"""torch reads the second when it is imported."""
TEMPORARY_BYTES = 256 << 20
"""A candidate's private /tmp, and as much again for its extensions."""
ENVIRONMENT = {
    **KEPT_PAGES,
    # One thread while serving: a fork copies no other. Candidates are told how many they have.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_DYNAMIC": "false",
    "LC_ALL": "C.UTF-8",
    "HOME": TEMPORARY,
    "TMPDIR": TEMPORARY,
    "PATH": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One kind of fork server.

    ``modules`` are imported before any fork. ``mounts`` come on top of what Python needs. ``interpreted``: Triton's
    kernels run on the processor. ``offline``: they are compiled for a chip that is not there (``offline.Offline``)
    and not run at all. ``processes``: a compiler may be started while a kernel warms up. ``hide_proc``: a
    candidate sees no /proc. ``own_processes``: it has a process namespace of its own. ``address_space``: whether its
    size is limited (drivers of GPUs reserve much). ``devices``: nodes of the leased device.
    ``driver_threads``: how many a driver may keep besides those that a candidate is granted.
    """

    name: str = "python"
    device: str = "cpu"
    modules: tuple[str, ...] = ("torch", "torch.utils.cpp_extension")
    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    interpreted: bool = False
    offline: tuple[str | int, ...] = ()
    processes: bool = False
    hide_proc: bool = True
    own_processes: bool = True
    address_space: bool = True
    devices: tuple[Path, ...] = ()
    driver_threads: int = 0


PYTHON = Profile()
"""``ModelNew`` modules on the processor."""
INTERPRETED = Profile(
    name="interpreted",
    modules=("torch", "torch.utils.cpp_extension", "triton"),
    environment={"TRITON_INTERPRET": "1"},
    interpreted=True,
)
"""Triton kernels without a GPU, run by Triton's interpreter: right or wrong, never timed."""


def offline(backend: str, architecture: str | int, warp: int) -> Profile:
    """Triton kernels compiled for a chip that is not there: what they need of it, before any launch."""
    return Profile(
        name=f"offline-{backend}-{architecture}",
        modules=("torch", "triton"),
        offline=(backend, architecture, warp),
        processes=True,  # Triton runs NVIDIA's assembler
    )


def mounts(profile: Profile) -> tuple[Mount, ...]:
    """Python, its packages, the system's shared libraries, and the candidate's side of this package."""
    code = [
        Mount(source=HERE, target=f"{CODE}/evaluator_svc/hosted"),
        Mount(source=hosted_library(), target=LIBRARY),
    ]
    return (*python_home.system(), *python_home.mounts(), *code, *profile.mounts)


def as_mount(directory: Path) -> Mount:
    """``directory`` at its own place."""
    return Mount(source=directory, target=str(directory))
