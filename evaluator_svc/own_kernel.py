"""The kernel audit as a stage: one audited call of a hosted kernel that is right, and the finding on it."""

from __future__ import annotations

from typing import Protocol

from evaluator_svc.judge import Verdict
from evaluator_svc.kernel_policy import LibraryKernels, decide, parse
from evaluator_svc.layers import Layer
from evaluator_svc.ledger import Ledger
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.toolchains import Built
from shared.events import Entry


class Audited(Protocol):
    """What the stage needs of a runner; ``hosted.process.HostedRunner`` is one."""

    async def audit(self) -> str | RunFailure:
        """One more call, with what computes in it counted: the report of the candidate's side."""
        ...


async def own_kernel(runner: Audited, built: Built, library: LibraryKernels, ledger: Ledger) -> Verdict:
    """Whether ``built`` computes by a kernel of its own: NO_CUSTOM_KERNEL, or what its process failed of.

    To be asked last of what is asked about a kernel's results: that a module is wrong says more than how it is made.
    """
    report = await runner.audit()
    if isinstance(report, RunFailure):
        return Verdict(status=report.status, evidence=report.evidence)
    finding = decide(built.static, parse(report), library=library)
    ledger.check(Layer.KERNELS.value, "audited call", finding.status.value)
    features = tuple(Entry(name=one.name, value=one.value) for one in built.static if one.name == "features")
    return Verdict(status=finding.status, evidence=(*finding.evidence, *features))
