"""What a process finds in its box, and how bubblewrap is asked for it (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

UNLIMITED = (1 << 64) - 1
INSIDE = 65533
"""User and group of a box with ``Box.own_user`` as itself sees it."""
TEMPORARY = "/ke/tmp"
"""A box's own, at no path of the host's: a project, or its Python, may lie below the host's /tmp. Named by
``hosted.cpp``, too."""
CUSTOMARY = "/tmp"  # noqa: S108 - leads to the box's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings of one process in a box. Sizes in bytes.

    ``address_space`` is ``UNLIMITED`` for a process that uses a GPU: its driver reserves far more addresses than there
    is memory. A build of many processes is counted from outside as a whole (``toolchains/build_box.py``).
    """

    address_space: int
    cpu_s: int
    file_bytes: int = 1 << 20
    processes: int = 64
    open_files: int = 64
    stack_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """``source`` of the host appears at ``target`` in the box."""

    source: Path
    target: str
    writable: bool = False
    device: bool = False
    """A device node, e.g. ``/dev/null``: a box has none of its own."""
    opened_before: bool = False
    """The runner program opens it before it becomes another user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """``temporary_bytes`` > 0 gives it a private ``TEMPORARY`` of that size, which /tmp leads to, too."""

    mounts: tuple[Mount, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()
    temporary_bytes: int = 0
    devices: tuple[Path, ...] = ()
    """Device nodes, at their own places. The driver of a GPU also needs ``processes`` and ``/sys``."""
    processes: bool = False
    """A /proc of its own, of which a process may write its own part (threads name themselves there)."""
    own_user: bool = False
    """Where the controller is root, the box is to run as ``sandbox.USER``, if everybody may read what it mounts."""

    @property
    def writable(self) -> tuple[str, ...]:
        """Paths in the box below which anything may be written; a device is written to by its driver's calls."""
        paths = [mount.target for mount in self.mounts if mount.writable or mount.device]
        paths += [str(device) for device in self.devices]
        paths += [TEMPORARY] if self.temporary_bytes else []
        return (*paths, "/proc") if self.processes else tuple(paths)


def gpu(index: int) -> tuple[Path, ...]:
    """The device nodes of the NVIDIA GPU of that minor number, and of no other.

    ``nvidia-uvm-tools`` is opened by drivers since 570; ``/dev/nvidia-caps`` is for MIG and is left out.
    """
    return tuple(Path("/dev") / name for name in (f"nvidia{index}", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"))


GPU_MOUNTS = (Mount(source=Path("/sys"), target="/sys"),)
"""Read-only; CUDA fails with error 304 without it (truefoundry/trueforge issue 466)."""


def options(box: Box, copied: Mapping[Path, int]) -> list[str]:
    """What to tell bubblewrap. ``copied``: descriptors of files whose content is put into the box, because the box's
    user may not walk to where they lie.
    """
    said = ["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    said += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    # Root of a namespace may make none below it: whoever it is outside, it is nobody special inside.
    if box.own_user:
        said += ["--uid", str(INSIDE), "--gid", str(INSIDE)]
    for name, value in box.environment.items():
        said += ["--setenv", name, value]
    if box.processes:
        said += ["--proc", "/proc"]
    for mount in box.mounts:
        if mount.source in copied:
            said += ["--perms", "0555", "--ro-bind-data", str(copied[mount.source]), mount.target]
        else:
            how = "--dev-bind" if mount.device else "--bind" if mount.writable else "--ro-bind-try"
            said += [how, str(mount.source), mount.target]
    for device in box.devices:
        said += ["--dev-bind", str(device), str(device)]
    for source, target in box.links:
        said += ["--symlink", source, target]
    if box.temporary_bytes:
        said += ["--size", str(box.temporary_bytes), "--tmpfs", TEMPORARY]
        if not any(mount.target.startswith(f"{CUSTOMARY}/") for mount in box.mounts):
            said += ["--symlink", TEMPORARY, CUSTOMARY]
    return [*said, "--remount-ro", "/", "--chdir", "/"]
