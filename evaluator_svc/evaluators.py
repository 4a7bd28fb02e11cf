"""What the pool needs of whoever evaluates, and the two that there are: this machine's, and the simulated chip's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from evaluator_svc import nvidia
from evaluator_svc.canary import Finding
from evaluator_svc.evaluate import Evaluator
from evaluator_svc.external.toolchain import ExternalToolchain
from evaluator_svc.settings import Settings
from evaluator_svc.simulated import TOOLCHAIN, SimulatedEvaluator
from evaluator_svc.stages import Stopwatch
from evaluator_svc.toolchains import BuildFailed, Built, Toolchain, gpu_commands
from evaluator_svc.toolchains.by_language import ToolchainByLanguage
from evaluator_svc.toolchains.cpu import CpuToolchain
from evaluator_svc.toolchains.gpu import GpuToolchain
from evaluator_svc.toolchains.hosted import LANGUAGES, HostedToolchain
from evaluator_svc.toolchains.riscv import LANGUAGE as RVV
from evaluator_svc.toolchains.riscv import RiscvToolchain
from shared import chips
from shared.chips import ChipSheet
from shared.errors import ChipError
from shared.events import Entry, Evaluation, EvaluationRequested, OperatorRef
from shared.ports import Ports

CAPABILITIES = {"sm_80": "8.0", "sm_90": "9.0a", "sm_100": "10.0a"}
"""What device code of extensions is for: a generation's own instructions too, which plain 9.0 leaves out."""


def _cpu(_: ChipSheet) -> Toolchain:
    return ToolchainByLanguage(toolchains={"cpp": CpuToolchain(), "python": HostedToolchain()})


def _nvidia(sheet: ChipSheet) -> Toolchain:
    hosted = HostedToolchain(architecture=CAPABILITIES[sheet.architecture] if nvidia.present() else "")
    native = {} if nvidia.present() else _native(sheet, gpu_commands.CUDA)
    return ToolchainByLanguage(toolchains=dict.fromkeys(LANGUAGES, hosted) | native, optional=frozenset(native))


def _amd(sheet: ChipSheet) -> Toolchain:
    native = _native(sheet, gpu_commands.HIP)
    hosted = dict.fromkeys(LANGUAGES, HostedToolchain())
    return ToolchainByLanguage(toolchains=hosted | native, optional=frozenset(native))


def _native(sheet: ChipSheet, language: str) -> dict[str, Toolchain]:
    """What compiles the C++ of a GPU that is not here."""
    if language not in sheet.languages or sheet.gpu is None:
        return {}
    return {language: GpuToolchain(gpu=sheet.gpu, language=language)}


def _riscv(_: ChipSheet) -> Toolchain:
    return ToolchainByLanguage(toolchains={RVV: RiscvToolchain()})


TOOLCHAINS: dict[str, Callable[[ChipSheet], Toolchain]] = {"cpu": _cpu, "nvidia": _nvidia, "amd": _amd, "riscv": _riscv}
"""By the name a chip sheet gives."""


class Evaluates(Protocol):
    """Turns a request into a verdict. Concurrent calls are allowed; a cancelled one ends soon."""

    settings: Settings

    async def admit(self, operator: OperatorRef, threads: int) -> None:
        """Raises ``OperatorError`` when nothing of ``operator`` could be evaluated."""
        ...

    async def evaluate(self, request: EvaluationRequested, watch: Stopwatch | None = None) -> Evaluation:
        """Raises ``Unavailable`` while the store or the cache is gone; nothing about a kernel raises."""
        ...

    async def build(self, source: str, flags: Sequence[str], language: str) -> Built | BuildFailed:
        """Build a kernel and do nothing with it. Raises ``ChipError`` or ``Fatal`` when nothing can be built here."""
        ...

    async def ready(self) -> None:
        """Raises ``ChipError`` when a real kernel cannot be built and run here: then it takes no work."""
        ...

    async def probe(self, *, thorough: bool) -> Finding:
        """Try itself on kernels whose verdicts are known; ``thorough`` times some, too. Nothing raises."""
        ...

    def environment(self) -> tuple[Entry, ...]:
        """What results are obtained with, whatever the request."""
        ...

    async def close(self) -> None: ...


def evaluator_of(ports: Ports, settings: Settings) -> Evaluates:
    """The evaluator of ``settings.chip``; whoever asks for it closes it.

    Raises:
        ChipError: the chip cannot be served on this machine.
    """
    if chips.load(settings.chip).toolchain == TOOLCHAIN:
        return SimulatedEvaluator(ports.store.blobs, settings)
    return Evaluator(ports, settings, toolchain_of(settings.chip))


def toolchain_of(chip: str) -> Toolchain:
    """The toolchain of ``chip``, usable on this machine.

    Raises:
        ChipError: unknown chip, no adapter for it, or its compiler is missing (the message says how to install it).
    """
    sheet = chips.load(chip)
    if sheet.toolchain == chips.EXTERNAL:
        toolchain: Toolchain = ExternalToolchain(sheet=sheet)
    elif sheet.toolchain in TOOLCHAINS:
        toolchain = TOOLCHAINS[sheet.toolchain](sheet)
    else:
        raise ChipError(f"chip `{chip}` needs toolchain `{sheet.toolchain}`, which this worker has not")
    problem = toolchain.check()
    if problem is not None:
        raise problem
    return toolchain
