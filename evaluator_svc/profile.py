"""The profile stage: assembly, its innermost loops, their modelled throughput, and the diagnosis from all of it."""

from __future__ import annotations

from evaluator_svc.diagnosis import Profile, diagnose
from evaluator_svc.loops import innermost
from evaluator_svc.mca import throughputs
from evaluator_svc.roofline import Floors
from evaluator_svc.toolchains import Built
from shared.events import Diagnosis


async def profile(built: Built, floors: Floors, measured_ns: float) -> Diagnosis:
    """What bounds the kernel. A tool that gives nothing is evidence ("unavailable: reason"), not a failure."""
    if built.assembly is None:
        reason = "the build left no assembly"
        return diagnose(floors, measured_ns, Profile(loops_reason=reason, throughputs_reason=reason))
    loops = innermost(built.assembly.read_text(encoding="utf-8", errors="replace"))
    figures, reason = await throughputs(loops)
    return diagnose(floors, measured_ns, Profile(loops=loops, throughputs=figures, throughputs_reason=reason))
