"""The build box of a hosted kernel's extensions: Python, torch and a compiler; nothing of the host is writable.

The module's text is run in it, which is hostile code: no network, no inputs, no secrets, limits on time, memory and
processes of the box as a whole. Libraries come out through one descriptor of bounded size, so there are no links to
follow and no files to clean up.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evaluator_svc.runner.program import compiler, machine_sandbox
from evaluator_svc.sandbox import Mount
from evaluator_svc.toolchains import extension_archive
from evaluator_svc.toolchains.build_box import BuildBox, BuildLimits, Finished
from shared import python_home
from shared.boxes import TEMPORARY
from shared.errors import Fatal

CODE = Path(__file__).parents[2]
PROGRAM = Path("evaluator_svc/hosted/extension_builder.py")
HEADER = Path("evaluator_svc/hosted/headers/torch/extension.h")
PROGRAM_FILES = tuple(
    CODE / path
    for path in (
        PROGRAM,
        HEADER,
        Path("evaluator_svc/__init__.py"),
        Path("evaluator_svc/hosted/__init__.py"),
        Path("evaluator_svc/hosted/extension_calls.py"),
        Path("evaluator_svc/hosted/extensions.py"),
    )
)
"""All that a box sees of the project."""
IN_BOX = "/ke/builder"
CUDA = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
JOBS = 2
"""Translation units compiled at once: usually there are one or two."""
ERROR_CHARS = 300
_DIRECTORY = re.compile(r"\S*/(?=[^/\s]+:\d+)")
"""Of a place in a source: the box's own, of no use to anybody."""
_ERROR = re.compile(r"(fatal )?error\b.*: |error: |undefined (reference|symbol)|ld returned|\w*Error: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """What a build left: ``libraries`` by file name, or in ``refused`` why there are none."""

    finished: Finished
    libraries: Mapping[str, bytes] = field(default_factory=dict)
    refused: str = ""


@dataclass(slots=True, kw_only=True)
class ExtensionBox:
    """Runs one build. ``work`` is an empty directory, written by this class alone where there are namespaces.

    ``architecture`` is the CUDA architecture that device code is compiled for, empty for none.
    """

    work: Path
    limits: BuildLimits
    architecture: str = ""
    _box: BuildBox | None = field(default=None, init=False)

    def run(self, source: str) -> Extensions:
        """Build the extensions of the module ``source``.

        Raises:
            ChipError: there is no compiler.
            Fatal: the box did not start.
        """
        isolated = machine_sandbox().isolated
        (self.work / "kernel.py").write_text(source, encoding="utf-8", errors="replace")
        scratch = TEMPORARY if isolated else "{work}"
        builder = Path(IN_BOX) / PROGRAM if isolated else CODE / PROGRAM
        archive = os.memfd_create("ke-extensions", os.MFD_ALLOW_SEALING)
        told, tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(archive, "rb") as file, os.fdopen(told, "rb") as began, os.fdopen(tell, "wb"):
            os.ftruncate(archive, extension_archive.ARCHIVE_BYTES_MAX)
            fcntl.fcntl(archive, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
            self._box = BuildBox(
                work=self.work,
                limits=self.limits,
                program=python_home.program(),
                mounts=self._mounts(),
                environment=self._environment(scratch),
                hands=(archive, tell),
                read_only=isolated,
                watched=True,
            )
            finished = self._box.run(["-I", "-B", str(builder), "{work}/kernel.py", scratch, str(archive), str(tell)])
            if finished.status is not None and not began.read(1):  # a byte that no candidate can take back
                raise Fatal(f"the extension builder did not start: {_first_error(finished)}")
            if finished.status != 0:
                return Extensions(finished=finished, refused=_first_error(finished))
            try:
                file.seek(0)
                return Extensions(finished=finished, libraries=extension_archive.read(file))
            except extension_archive.RefusedArchive as error:
                return Extensions(finished=finished, refused=str(error))

    def interrupt(self) -> None:
        """End a build that nobody waits for any more."""
        if self._box is not None:
            self._box.interrupt()

    def _mounts(self) -> tuple[Mount, ...]:
        own = (Mount(source=path, target=f"{IN_BOX}/{path.relative_to(CODE)}") for path in PROGRAM_FILES)
        null, random = (
            Mount(source=Path(f"/dev/{name}"), target=f"/dev/{name}", writable=name == "null", device=True)
            for name in ("null", "urandom")
        )
        return (*python_home.mounts(), *own, null, random, *self._cuda())

    def _cuda(self) -> tuple[Mount, ...]:
        """The CUDA toolkit under the name that it is known by, and where its links lead."""
        if not self.architecture or not CUDA.is_dir():
            return ()
        return tuple(Mount(source=path, target=str(path)) for path in dict.fromkeys((CUDA.resolve(), CUDA)))

    def _environment(self, scratch: str) -> dict[str, str]:
        """Caches are private to the build: no candidate finds what another left."""
        path = [str(python_home.program().parent), str(compiler().parent), "/usr/bin"]
        made = {
            "HOME": scratch,
            "TMPDIR": scratch,
            "TRITON_CACHE_DIR": f"{scratch}/triton",
            "TORCH_EXTENSIONS_DIR": f"{scratch}/extensions",
            "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
            "CXX": str(compiler()),
            "MAX_JOBS": str(JOBS),
            "OMP_NUM_THREADS": "1",
        }
        if self._cuda():
            made |= {"CUDA_HOME": str(CUDA), "TORCH_CUDA_ARCH_LIST": self.architecture}
            path.append(str(CUDA / "bin"))
        return {**made, "PATH": ":".join(dict.fromkeys(path))}


def _first_error(finished: Finished) -> str:
    """The line that says what is wrong; the last one when none looks like it."""
    lines = [line.strip() for line in finished.log.splitlines() if line.strip()]
    found = next((line for line in lines if _ERROR.search(line)), lines[-1] if lines else "")
    return _DIRECTORY.sub("", found)[:ERROR_CHARS] or f"the build ended with status {finished.status}"
