"""The profile stage: assembly, its innermost loops, their modelled throughput, and the diagnosis from all of it."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator_svc.diagnosis import Profile, diagnose
from evaluator_svc.loops import innermost
from evaluator_svc.mca import throughputs
from evaluator_svc.roofline import Floors
from evaluator_svc.toolchains import BuildFailed, Toolchain
from shared.events import Diagnosis


class Profiler:
    """Looks at kernels that passed."""

    def __init__(self, toolchain: Toolchain) -> None:
        self._toolchain = toolchain

    async def diagnose(self, source: str, flags: Sequence[str], floors: Floors, measured_ns: float) -> Diagnosis:
        """What bounds the kernel. A tool that gives nothing is evidence ("unavailable: reason"), not a failure."""
        assembly = await self._toolchain.assembly(source, flags)
        if isinstance(assembly, BuildFailed):
            reason = f"no assembly ({assembly.status.value})"
            profile = Profile(loops_reason=reason, throughputs_reason=reason)
        else:
            loops = innermost(assembly)
            figures, reason = await throughputs(loops)
            profile = Profile(loops=loops, throughputs=figures, throughputs_reason=reason)
        return diagnose(floors, measured_ns, profile)
