"""What a right kernel costs where no clock tells it: on a chip that is not here, an emulator, or a vendor's tools."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from evaluator_svc import gpu_model, kernel_policy, resources
from evaluator_svc.cases import Suite
from evaluator_svc.correctness import Checked
from evaluator_svc.emulated import counting
from evaluator_svc.emulated.counts import Seen
from evaluator_svc.emulated.process import EmulatedRunner
from evaluator_svc.external import costs
from evaluator_svc.external.process import ExternalRunner
from evaluator_svc.hosted.process import HostedRunner
from evaluator_svc.launchers import Launched
from evaluator_svc.poison import Poison
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Runner
from evaluator_svc.sandbox import lowered
from evaluator_svc.simt import judging
from evaluator_svc.stages import Stopwatch
from evaluator_svc.target import Kind, Target
from evaluator_svc.toolchains import Built
from shared.events import Basis, Entry, Evaluation, Status, Trust

TRITON = "triton"
INTERPRETED = "ran on this machine's cores by the language's interpreter; not timed"
NOT_MODELLED = "not_modelled"
"""Evidence of why a kernel that was interpreted has no estimate."""
COUNTS = 2
"""Times that an emulated kernel is counted: all must agree."""


class Opened(Protocol):
    """A runner for one more look at the kernel, or at another build of it, on one set of buffers."""

    def __call__(self, built: Built, /, *, compile_only: bool = False) -> Launched: ...


@dataclass(frozen=True, kw_only=True)
class Untimed:
    """One kernel on ``target``. A call may take ``call_s`` seconds, one that is counted meanwhile ``audited_s``. On a
    target that is timed, ``compiled`` and ``moved`` have nothing to tell.
    """

    target: Target
    built: Built
    suite: Suite
    poison: Poison
    chip: str
    call_s: float
    audited_s: float
    opened: Opened

    async def compiled(self) -> resources.Report | Evaluation | None:
        """What the kernel needs of a GPU that is not here, or the verdict on one that cannot run there. None where no
        compiler tells.
        """
        gpu, built = self.target.missing, self.built
        if gpu is None:
            return None
        level = built.sandbox
        report: resources.Report | None
        if built.device is not None:
            report = judging.report(built, gpu)
        elif built.language == TRITON:
            async with self.opened(built, compile_only=True) as runner:
                assert isinstance(runner, HostedRunner), built.host
                said, level = await runner.audit(), runner.sandbox
            if isinstance(said, RunFailure):
                return Evaluation(status=said.status, evidence=said.evidence, sandbox=level)
            report = resources.parse(said)
        else:
            return None
        beyond = None if report is None else resources.beyond(report, gpu)
        return report if beyond is None else Evaluation(status=beyond[0], evidence=beyond[1], sandbox=level)

    async def moved(self, checked: Checked) -> judging.Moved | None:
        """What a call of an emulated kernel of a GPU moves: None for others, and for one that is wrong."""
        gpu = self.target.missing
        if self.built.counting is None or gpu is None or not checked.verdict.passed:
            return None
        async with self.opened(replace(self.built, path=self.built.counting)) as runner:
            assert isinstance(runner, Runner), self.built.host
            self._write(runner)
            ran = await runner.run(1, timeout_s=self.audited_s)
            return judging.moved(ran, runner.printed(judging.LINE_MAX), self.built, checked.verdict, gpu.warp)

    async def verdict(
        self,
        level: str,
        checked: Checked,
        needed: resources.Report | None,
        moved: judging.Moved | None,
        *,
        final: bool,
        watch: Stopwatch,
    ) -> Evaluation:
        """The kernel is right, in boxes of ``level``; ``needed`` and ``moved`` are what was told before."""
        if self.target.kind is Kind.EMULATED:
            with watch.span("timing"):
                return await self._counted(level, checked)
        if self.target.kind is Kind.EXTERNAL:
            with watch.span("profile"):
                return await self._profiled(level, checked, final=final)
        if moved is not None and needed is not None and self.target.missing is not None:
            needed = moved.launched(needed, self.target.missing.warp)
        return self._interpreted(level, checked, needed, moved)

    def _interpreted(
        self, level: str, checked: Checked, report: resources.Report | None, moved: judging.Moved | None
    ) -> Evaluation:
        """By an interpreter, on a machine without the chip: what it costs is modelled, if anything is known."""
        gpu, board = self.target.missing, self.target.board
        evidence = list(checked.verdict.evidence)
        evidence += resources.entries(report, gpu) if report and gpu else ()
        evidence.append(Entry(name="interpreted", value=INTERPRETED if moved is None else judging.EMULATED))
        made = None
        if report is None or gpu is None or board is None:
            evidence.append(Entry(name=NOT_MODELLED, value="what it takes of the chip is not known"))
        else:
            seen = kernel_policy.parse(checked.audit)
            counted = gpu_model.parse(checked.audit) if moved is None else moved.traffic
            written = sum(spec.nbytes for spec in self.suite.outputs)
            try:
                made = gpu_model.model(counted, report, seen, written, gpu, board)
                said = f"for {board.name} from its data sheet; nothing was measured"
                evidence.append(Entry(name="modelled", value=said))
            except gpu_model.NotModelled as why:
                evidence.append(Entry(name=NOT_MODELLED, value=str(why)))
        passed = Evaluation(status=Status.PASSED, trust=Trust.L1, evidence=tuple(evidence), sandbox=level)
        return replace(passed, estimate=made.estimate, diagnosis=made.diagnosis) if made else passed

    async def _counted(self, level: str, checked: Checked) -> Evaluation:
        """On an emulator: what a call executes, counted in processes of their own, each the same."""
        seen: list[Seen] = []
        for _ in range(COUNTS):
            async with self.opened(self.built) as runner:
                assert isinstance(runner, EmulatedRunner), self.built.host
                self._write(runner)
                for index in range(len(self.suite.outputs)):
                    self.poison.apply(runner.output_bytes(0, index))
                ran = await runner.run(1, timeout_s=self.call_s)
            if isinstance(ran, RunFailure):
                return Evaluation(status=ran.status, evidence=ran.evidence, sandbox=level)
            assert runner.seen is not None
            seen.append(runner.seen)
        assert self.target.vector is not None
        return counting.verdict(seen, self.target.vector.cycles, checked.verdict, level, self.built.sandbox)

    async def _profiled(self, level: str, checked: Checked, *, final: bool) -> Evaluation:
        """By a vendor's tool: what a call costs by its profiler, asked repeatedly."""
        tools = self.target.external
        assert tools is not None
        async with self.opened(self.built) as runner:
            assert isinstance(runner, ExternalRunner), self.built.host
            made = await costs.cost(runner, self.suite.cases[0], checked.answers, self.poison, tools, self.chip)
        if not made.verdict.passed:
            return Evaluation(status=made.verdict.status, evidence=made.verdict.evidence, sandbox=level)
        box = Entry(name="build_sandbox", value=self.built.sandbox)
        sure = final and tools.basis == Basis.COUNTED
        return Evaluation(
            status=Status.PASSED,
            trust=lowered(Trust.L3 if sure else Trust.L2, level, self.built.sandbox),
            evidence=(*checked.verdict.evidence, *made.verdict.evidence, box),
            sandbox=level,
            estimate=made.estimate,
            diagnosis=made.diagnosis,
        )

    def _write(self, runner: Runner | EmulatedRunner) -> None:
        """Its first set holds the first public case."""
        for index, data in enumerate(self.suite.public[0].inputs):
            runner.write_input(0, index, data)
