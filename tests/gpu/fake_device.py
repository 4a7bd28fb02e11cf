"""A keeper and its candidates on a device that is a file: see ``fake_cuda/fake_cuda.cpp``."""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluator_svc.hosted.box import Profile
from evaluator_svc.runner.program import compiler
from evaluator_svc.sandbox import Mount

SOURCE = Path(__file__).parent / "fake_cuda" / "fake_cuda.cpp"
BYTES = 256 << 20
VARIABLE = "KE_FAKE_CUDA"
BUSY_AT, REFUSES_AT = 0, 8


@dataclass(frozen=True)
class FakeDevice:
    """``library`` takes the place of libcuda.so.1, ``memory`` that of the device."""

    library: Path
    memory: Path

    def busy(self, seconds: float) -> None:
        """Somebody else's work has the device by turns for so long."""
        self._set(BUSY_AT, time.monotonic_ns() + int(seconds * 1e9))

    def refuses(self, *, handles: bool) -> None:
        self._set(REFUSES_AT, int(handles))

    def renew(self) -> None:
        """Another device, with all memory free and at rest."""
        with self.memory.open("r+b") as file:
            file.truncate(0)
            file.truncate(BYTES)

    def profile(self) -> Profile:
        """A fork server whose candidates have tensors on the processor and this device's driver."""
        return Profile(
            name="fake-gpu",
            device="cuda",
            mounts=(Mount(source=self.library, target=str(self.library)),),
            environment={VARIABLE: str(self.memory)},
            own_processes=False,  # handles name processes
            devices=(self.memory,),
            keeper=str(self.library),
            tensors="cpu",
        )

    def _set(self, at: int, value: int) -> None:
        with self.memory.open("r+b") as file:
            file.seek(at)
            file.write(struct.pack("<Q", value))


@contextmanager
def fake_device() -> Iterator[FakeDevice]:
    with tempfile.TemporaryDirectory() as directory, tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="ke-") as file:
        library = Path(directory, "libcuda.so.1")
        command = [str(compiler()), "-std=c++17", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
        subprocess.run(command, check=True)
        device = FakeDevice(library, Path(file.name))
        device.renew()
        os.environ[VARIABLE] = file.name
        try:
            yield device
        finally:
            del os.environ[VARIABLE]
