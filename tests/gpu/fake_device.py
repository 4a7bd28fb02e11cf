"""A controller and its candidates on a device that is a file: see ``fake_cuda/fake_cuda.cpp``."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evaluator_svc.hosted.box import Profile
from evaluator_svc.hosted.keeping import Keeping
from evaluator_svc.runner.program import compiler
from evaluator_svc.sandbox import Mount
from tests.fakes.device_arrays import NAMESPACE, DeviceArray, device

SOURCE = Path(__file__).parent / "fake_cuda" / "fake_cuda.cpp"
BYTES = 256 << 20
VARIABLE = "KE_FAKE_CUDA"
BUSY_AT, REFUSES_AT, USED_AT, PAGE = 0, 8, 16, 4096
FOREIGN, FOREIGN_END = 1 << 46, (1 << 46) + (1 << 44)
"""Addresses of other processes' memory: ``kForeign``."""


class FakeArrays:
    """In the place of ``gpu_arrays``: doubles over the file; of a candidate's memory, over a copy as it is now."""

    def __init__(self, library: Path) -> None:
        self._driver = ctypes.CDLL(str(library))

    def available(self) -> str:
        return ""

    def placed(self, data: Any) -> Any:
        return device(data)

    def wrap(self, address: int, nbytes: int, owner: object) -> Any:
        del owner
        if not FOREIGN <= address < FOREIGN_END:
            return DeviceArray(np.frombuffer((ctypes.c_char * nbytes).from_address(address), dtype=np.uint8))
        copy = np.empty(nbytes, dtype=np.uint8)
        code = self._driver.cuMemcpyDtoH_v2(
            copy.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(address), ctypes.c_size_t(nbytes)
        )
        assert code == 0, f"cuMemcpyDtoH failed with error {code}"
        return DeviceArray(copy)

    def strided(self, flat: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        return NAMESPACE.lib.stride_tricks.as_strided(flat, shape=shape, strides=strides)

    def release(self) -> None:
        """What is not used is gone."""

    def synchronise(self) -> None:
        """Everything is done at once here."""


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
        self._set(USED_AT, PAGE)

    def profile(self) -> Profile:
        """A fork server whose candidates have tensors on the processor and this device's driver."""
        return Profile(
            name="fake-gpu",
            device="cuda",
            mounts=(Mount(source=self.library, target=str(self.library)),),
            environment={VARIABLE: str(self.memory)},
            own_processes=False,  # handles name processes
            devices=(self.memory,),
        )

    def keeping(self) -> Keeping:
        """What holds arrays on this device; ``ask`` has found out whether that can be."""
        made = Keeping(FakeArrays(self.library), library=str(self.library), tensors="cpu")
        made.ask()
        return made

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
