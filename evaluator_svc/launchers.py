"""Which runner runs what was built: the C ABI's boxed program, or a forked child with torch in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluator_svc import gpu_arrays
from evaluator_svc.cases import Suite
from evaluator_svc.emulated.process import EmulatedRunner
from evaluator_svc.external.process import ExternalRunner
from evaluator_svc.hosted import on_gpu
from evaluator_svc.hosted.box import INTERPRETED, PYTHON, Profile, offline
from evaluator_svc.hosted.keeping import Keeping
from evaluator_svc.hosted.kept import KeptRunner
from evaluator_svc.hosted.process import HostedRunner, Hosts
from evaluator_svc.runner.layout import Spacing
from evaluator_svc.runner.process import Runner, RunnerLimits
from evaluator_svc.signature import Signature
from evaluator_svc.target import Kind, Target
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built

NATIVE, EMULATED, EXTERNAL = "native", "emulated", "external"
LOAD_S = 120.0
"""For loading a hosted module and warming it up: kernels may be compiled on first use."""

Launched = Runner | HostedRunner | EmulatedRunner | ExternalRunner


class Launchers:
    """Opens runners on ``target``; a fork server starts with the first hosted kernel. ``close`` ends them."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._hosts = Hosts()
        self._keeping: Keeping | None = None

    def close(self) -> None:
        self._hosts.close()

    def unkept(self) -> str:
        """Why the controller does not hold a kernel's arrays on this target's GPU itself; empty where it does, and
        where there is none. Blocking: the first time it starts the driver.
        """
        if not self._target.on_gpu:
            return ""
        if self._keeping is None:
            self._keeping = Keeping(gpu_arrays)
        return self._keeping.ask()

    def open(
        self,
        built: Built,
        suite: Suite,
        *,
        where: str,
        sets: int,
        memory_bytes: int,
        threads: int,
        cpus: tuple[int, ...],
        stained: bool = False,
        specs: tuple[Sequence[TensorSpec], Sequence[TensorSpec]] | None = None,
        alone: bool = False,
        spacing: Spacing = Spacing.GUARDED,
        compile_only: bool = False,
    ) -> Launched:
        """A runner for ``built`` on the tensors of ``suite``, or on ``specs`` (inputs, outputs), to be entered as an
        asynchronous context. ``memory_bytes``: what the kernel may allocate. A hosted kernel is warmed up on the
        suite's first case, whose values it is given again and again anyway. ``alone``: nobody else uses its GPU
        meanwhile, by the device's lease. ``spacing``: what lies between buffers. ``compile_only``: a hosted kernel
        is compiled for the target's missing GPU, and what that needs of it is what its audit tells; it must not be run.

        Raises:
            OperatorError: a hosted kernel cannot be given what the operator takes; ``where`` names the operator.
        """
        inputs, outputs = specs or (suite.inputs, suite.outputs)
        if built.host == EMULATED:
            assert self._target.vector is not None, built.language
            return EmulatedRunner(built.path, inputs, outputs, unit=self._target.vector, sets=sets)
        if built.host == EXTERNAL:
            assert self._target.external is not None, built.language
            return ExternalRunner(
                built.path,
                inputs,
                outputs,
                tools=self._target.external,
                chip=self._target.chip,
                language=built.language,
                sets=sets,
            )
        if built.host == NATIVE:
            return Runner.open(
                built.path,
                inputs,
                outputs,
                sets=sets,
                limits=RunnerLimits(memory_bytes=memory_bytes),
                threads=threads,
                cpus=cpus,
                stained=stained,
                persistent=len(suite.signature.state) if suite.contract.persistent_weights else 0,
                spacing=spacing,
            )
        options: dict[str, Any] = {
            "signature": suite.signature,
            "sets": sets,
            "limits": RunnerLimits(memory_bytes=memory_bytes, load_s=LOAD_S),
            "threads": threads,
            "cpus": cpus,
            "stained": stained,
            "mutates": suite.contract.mutates,
            "persistent_weights": suite.contract.persistent_weights,
            "primer": None if specs or suite.contract.persistent_weights else suite.public[0].inputs,
            "profile": self._profile(compile_only=compile_only),
            "spacing": spacing,
            "where": where,
        }
        if self._keeping is not None and not self._keeping.refused:
            return KeptRunner.keep(self._keeping, self._hosts, built, inputs, outputs, alone=alone, **options)
        return HostedRunner.open(self._hosts, built, inputs, outputs, **options)

    def kept(
        self,
        built: Built,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        signature: Signature,
        *,
        sets: int,
        threads: int,
        cpus: tuple[int, ...],
    ) -> KeptRunner:
        """A hosted kernel of no operator's, alone on the GPU. Only where arrays are kept there: see ``unkept``."""
        assert self._keeping is not None, "ask unkept first"
        return KeptRunner.keep(
            self._keeping,
            self._hosts,
            built,
            inputs,
            outputs,
            alone=True,
            signature=signature,
            sets=sets,
            threads=threads,
            cpus=cpus,
            profile=on_gpu.profile(),
        )

    def _profile(self, *, compile_only: bool) -> Profile:
        missing = self._target.missing
        if compile_only and missing is not None:
            return offline(self._target.backend, self._target.architecture, missing.warp)
        if self._target.on_gpu:
            return on_gpu.profile()
        return INTERPRETED if self._target.kind is Kind.INTERPRETED else PYTHON
