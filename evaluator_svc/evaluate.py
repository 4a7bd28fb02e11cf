"""The pipeline: one request in, one verdict out. Build, correctness, timing, diagnosis, cheapest first."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version

from evaluator_svc import kernel_policy, readiness
from evaluator_svc.baselines import Baselines
from evaluator_svc.canary import Canary, Finding
from evaluator_svc.cases import Suite
from evaluator_svc.catalogue import RELATIONS_DRAWN, RELATIONS_FINAL, chosen
from evaluator_svc.claims import Claim
from evaluator_svc.correctness import SETS, Checked, check, check_shape
from evaluator_svc.device import Device
from evaluator_svc.emulated import counting
from evaluator_svc.external import conformance
from evaluator_svc.hosted.kept import KeptRunner
from evaluator_svc.hosted.process import HostedRunner
from evaluator_svc.judge import Verdict
from evaluator_svc.kernel_policy import LibraryKernels
from evaluator_svc.launchers import NATIVE, Launched, Launchers
from evaluator_svc.layers import Layer, caught, caught_by
from evaluator_svc.ledger import Ledger
from evaluator_svc.measuring import Measurer, Subject
from evaluator_svc.poison import Poison
from evaluator_svc.profile import profile
from evaluator_svc.profilers.stage import CounterStage
from evaluator_svc.roofline import UNKNOWN, roofline
from evaluator_svc.runner.ending import ACCUSATIONS_CONFIRMED, RunFailure, accuses_by_times
from evaluator_svc.sandbox import lowered
from evaluator_svc.sanitizers.stage import Sanitized, SanitizerStage
from evaluator_svc.settings import HARNESS_VERSION, Settings
from evaluator_svc.stages import Stopwatch
from evaluator_svc.target import Kind, target_of
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import BuildFailed, Built, Toolchain
from evaluator_svc.trusted_child import OracleLost
from evaluator_svc.untimed import Untimed
from evaluator_svc.workbench import Workbench, Workbenches
from shared import chips
from shared.errors import ChipError, Fatal, OperatorError, Retryable, Unavailable
from shared.events import Entry, Evaluation, EvaluationRequested, OperatorRef, Purpose, Status, Trust
from shared.ports import Ports
from shared.submissions.kernel import ENTRIES

SHAPE_GUARD = b"\0ke_shape_guard\0"
"""The symbol's name in the library's string table."""
ENTRY = "ke_launch"
INTERPRETED_SLOWER = 30
"""The limit of a call in an interpreter, in times of that of one on the chip: a softmax of two million elements takes
four seconds there on an idle core."""
AUDIT_S, AUDIT_SLOWER = 60.0, 2
"""The limit of an audited call, and at least so many times that of another: what it does is counted meanwhile."""
EXPORTED = "results"
"""Evidence that the controller has not read the results itself."""
PRINTED_SHOWN = 200
"""Bytes of what a failed kernel printed that go into its evidence."""


@dataclass(frozen=True, kw_only=True)
class _Job:
    """One evaluation under way."""

    request: EvaluationRequested
    source: str
    bench: Workbench
    watch: Stopwatch
    ledger: Ledger = field(default_factory=Ledger)


class Evaluator:
    """Evaluates kernels on this machine; concurrent calls take turns at timing. ``close`` ends its processes."""

    def __init__(self, ports: Ports, settings: Settings, toolchain: Toolchain) -> None:
        self._ports, self.settings, self._toolchain = ports, settings, toolchain
        self._target = target_of(settings.chip)
        self._launchers = Launchers(self._target)
        self._benches = Workbenches(settings, self._target, lambda: not self._launchers.unkept())
        self._poison = Poison()
        self._device = Device(
            ports.cache.leases,
            settings.cache / f"device-{self._target.device}.lock",
            name=self._target.device,
            owner=f"{os.getpid()}-{secrets.token_hex(4)}",
            lease_s=settings.limits.lease_s,
            wait_s=settings.limits.device_wait_s,
        )
        self._canary = Canary(toolchain, self._device, self._poison, settings)
        self._threads = 1
        """Of the latest evaluation: probes time as many."""
        self._measurer = Measurer(self._device, self._poison, settings, self._launchers)
        self._counters = CounterStage(device=self._device, settings=settings.profiling)
        self._sanitizers = SanitizerStage(device=self._device, settings=settings.sanitizing)
        self._cpus = tuple(sorted(os.sched_getaffinity(0)))

    async def close(self) -> None:
        await self._benches.close()
        self._launchers.close()

    async def admit(self, operator: OperatorRef, threads: int) -> None:
        """Admit ``operator`` now, so that a bad one is refused before any search.

        Raises:
            OperatorError: why it is refused.
        """
        try:
            async with self._benches.use(*await self._place(operator, threads)) as bench, self._device.gate.shared():
                await bench.suite()
        except OracleLost as lost:
            raise OperatorError(f"cannot be run: {lost}", where=operator.name) from lost

    async def build(self, source: str, flags: Sequence[str], language: str) -> Built | BuildFailed:
        """Build a kernel and do nothing with it; nothing is timed meanwhile.

        Raises:
            ChipError: no compiler.
            Fatal: no box could be started.
        """
        async with self._device.gate.shared():
            return await self._toolchain.build(source, flags, language=language)

    async def ready(self) -> None:
        """Prove that a kernel can be built and run here: see ``readiness``. Hosted kernels prove it when they start.

        Raises:
            ChipError: it cannot.
        """
        if readiness.LANGUAGE in chips.load(self.settings.chip).languages:
            await readiness.prove(self._toolchain, self._cpus[-1:])

    async def probe(self, *, thorough: bool) -> Finding:
        """Whether this worker still tells right from wrong: see ``canary``. ``thorough`` has the device alone."""
        if self._target.kind is Kind.EMULATED:
            return await counting.probe(self._toolchain, self._target)
        if self._target.kind is Kind.EXTERNAL:
            async with self._device.gate.shared():
                return await conformance.probe(chips.load(self.settings.chip))
        cpus = self._cpus[-self._threads :]
        found = await self._canary.judge(cpus, cheats=self.settings.canary.cheats if thorough else 1)
        if not found.healthy or not thorough or self._target.kind is not Kind.CPU:
            return found
        return found + await self._canary.clock(cpus)

    async def evaluate(self, request: EvaluationRequested, watch: Stopwatch | None = None) -> Evaluation:
        """The verdict on the request's kernel. Failures of ours are INFRASTRUCTURE; nothing about a kernel raises.

        ``watch`` tells whoever passes it which stage the evaluation is in.

        Raises:
            Unavailable: the store or the cache is gone.
        """
        watch, ledger = watch or Stopwatch(), Ledger()
        try:
            async with self._benches.use(*await self._place(request.operator, request.threads)) as bench:
                source = await self._text(request.kernel.source_hash)
                job = _Job(request=request, source=source, bench=bench, watch=watch, ledger=ledger)
                if request.purpose is Purpose.SEARCH and self._target.timed and not self._target.on_gpu:
                    bench.start_baselines()  # a GPU is at rest but for whoever is timed on it
                evaluation = await self._stages(job)
        except Unavailable:
            raise
        except (Retryable, Fatal, OSError, OperatorError, ChipError) as error:
            evidence = (_entry("reason", f"{type(error).__name__}: {error}"),)
            evaluation = Evaluation(status=Status.INFRASTRUCTURE, evidence=evidence)
        evaluation = replace(evaluation, stages=watch.stages(), environment=self._environment(request))
        return replace(evaluation, ledger_hash=await self._ledger(request, evaluation, ledger))

    async def _stages(self, job: _Job) -> Evaluation:
        kernel = job.request.kernel
        entry = ENTRIES.get(kernel.language, ENTRY)
        if kernel.entry not in (ENTRY, entry):
            said = _entry("reason", f"entry `{kernel.entry}`: that of language `{kernel.language}` is `{entry}`")
            return Evaluation(status=Status.LAUNCH_FAILED, evidence=(caught(Layer.LAUNCH), said))
        async with AsyncExitStack() as stack:
            async with AsyncExitStack() as sharing:
                with job.watch.span("wait"):
                    await sharing.enter_async_context(self._device.gate.shared())
                with job.watch.span("build"):
                    built = await self._toolchain.build(
                        job.source, job.request.kernel.flags, language=job.request.kernel.language
                    )
                job.ledger.facts["artefact"] = "" if isinstance(built, BuildFailed) else built.digest
                if isinstance(built, BuildFailed):
                    log = await self._log(built.log)
                    return Evaluation(status=built.status, evidence=built.evidence, sandbox=built.sandbox, log_hash=log)
                with job.watch.span("correctness"):
                    suite = await self._suite(job)
                    untimed = self._untimed(job, built, suite)
                    needed = await untimed.compiled()
                    if isinstance(needed, Evaluation):
                        return needed
                    level, checked = await self._check(job, built, suite)
                    moved = await untimed.moved(checked)
                    verdict = checked.verdict if moved is None else moved.verdict
                    job.watch.note("cases", len(suite.cases))
                if not verdict.passed:
                    return Evaluation(status=verdict.status, evidence=verdict.evidence, sandbox=level)
                if not self._target.timed:
                    final = job.request.purpose is Purpose.FINAL
                    done = await untimed.verdict(level, checked, needed, moved, final=final, watch=job.watch)
                    return replace(done, log_hash=await self._log(built.log))
                with job.watch.span("timing"):
                    baselines = await self._baselines(job, stack)
                    subject = self._subject(job, built, suite, checked, baselines)
                    started = await self._measurer.start(subject) if self._target.on_gpu else None
                    if started is not None:
                        stack.push_async_callback(started.close)
            made = await self._measurer.measure(subject, job.watch, started)
            job.watch.note("blocks", max((len(timing.block_ns) for timing in made.timings), default=0))
            with job.watch.span("timing"):
                await stack.aclose()
        if made.status is not Status.PASSED:
            return Evaluation(status=made.status, evidence=made.evidence, timings=made.timings, sandbox=level)
        trust = _capped(lowered(made.trust, level, built.sandbox), verdict)
        sanitized = await self._sanitized(job, suite, built, trust)
        if sanitized.fault:
            return Evaluation(
                status=Status.RUNTIME_ERROR, evidence=sanitized.fault, timings=made.timings, sandbox=level
            )
        done = await self._passed(job, suite, made, built)
        beside = (*_missing(baselines), _entry("build_sandbox", built.sandbox), *sanitized.said)
        return replace(
            done,
            evidence=(*verdict.evidence, *made.evidence, *beside),
            trust=Trust.L4 if sanitized.clean else trust,
            sandbox=level,
            log_hash=await self._log(built.log),
        )

    def _subject(self, job: _Job, built: Built, suite: Suite, checked: Checked, baselines: Baselines) -> Subject:
        """What is timed: a call is expected to take what the quickest of those that were checked took."""
        single = (call.runner_ns for call in job.ledger.calls if call.calls == 1 and call.runner_ns)
        return Subject(
            built=built,
            suite=suite,
            bench=job.bench,
            baselines=baselines,
            answers=checked.answers,
            final=job.request.purpose is Purpose.FINAL,
            ledger=job.ledger,
            expected_ns=min(single, default=0),
        )

    async def _baselines(self, job: _Job, stack: AsyncExitStack) -> Baselines:
        if job.request.purpose is Purpose.FINAL:
            return await job.bench.fresh_baselines(stack)
        if self._target.on_gpu:
            # Now, while the device is shared: what is made there beside a kernel that is timed is taken for its work.
            await job.bench.pool()
        return await job.bench.baselines()

    async def _suite(self, job: _Job) -> Suite:
        """The cases of this evaluation: all, under new seeds, or those drawn for it."""
        suite, admission = await job.bench.suite()
        job.ledger.facts["mutation_score"] = admission.summary
        draw, final = secrets.SystemRandom().sample, job.request.purpose is Purpose.FINAL
        if final:
            suite = await job.bench.fresh_suite()
        cases = chosen(suite.cases, draw, final=final)
        job.ledger.seeds |= {f"{number} {case.name}": case.seed for number, case in enumerate(cases)}
        most = RELATIONS_FINAL if final else RELATIONS_DRAWN
        relations = draw(suite.relations, min(most, len(suite.relations)))
        return replace(suite, cases=cases, relations=tuple(relations))

    def _untimed(self, job: _Job, built: Built, suite: Suite) -> Untimed:
        def opened(some: Built, *, compile_only: bool = False) -> Launched:
            return self._runner(job, some, suite, 1, compile_only=compile_only)

        return Untimed(
            target=self._target,
            built=built,
            suite=suite,
            poison=self._poison,
            chip=self.settings.chip,
            call_s=self._call_s,
            audited_s=self._audited_s,
            opened=opened,
        )

    async def _check(self, job: _Job, built: Built, suite: Suite) -> tuple[str, Checked]:
        """The correctness stage; returns the sandbox level too. Accused by a time, a kernel is checked again."""
        level, checked = await self._checked(job, built, suite)
        for _ in range(ACCUSATIONS_CONFIRMED):
            verdict = checked.verdict
            if not accuses_by_times(verdict.status, verdict.evidence):
                break
            said = "; ".join(f"{entry.name}={entry.value}" for entry in verdict.evidence)
            layer = caught_by(verdict.evidence) or Layer.CLOCKS
            job.ledger.check(layer.value, "an accusation by a time: checked again", said)
            level, checked = await self._checked(job, built, suite)
        return level, checked

    async def _checked(self, job: _Job, built: Built, suite: Suite) -> tuple[str, Checked]:
        """Once, in a process of its own."""
        limits = self.settings.limits
        call_s = self._call_s
        unkept = await asyncio.to_thread(self._launchers.unkept)
        runner = self._runner(job, built, suite, SETS)
        async with runner:
            checked = await check(
                runner,
                suite.cases,
                self._poison,
                call_s=call_s,
                ledger=job.ledger,
                contract=suite.contract,
                relations=suite.relations,
            )
            if checked.verdict.passed and isinstance(runner, HostedRunner):
                checked = await self._audit(job, built, runner, checked)
            level, printed = runner.sandbox, runner.printed(PRINTED_SHOWN)
            said = _read_how(runner, unkept)
            if said is not None:
                checked = replace(checked, verdict=replace(checked.verdict, evidence=(*checked.verdict.evidence, said)))
        verdict, case = checked.verdict, suite.shape_case
        if not verdict.passed and printed and not checked.saw_held_out:
            text = "".join(c if c.isprintable() else " " for c in printed).strip()
            verdict = replace(verdict, evidence=(*verdict.evidence, _entry("printed", f"{text!r} (not believed)")))
            return level, replace(checked, verdict=verdict)
        guards = built.host == NATIVE and SHAPE_GUARD in built.path.read_bytes()
        if not verdict.passed or case is None or not guards:
            return level, checked
        outputs = tuple(reference.spec for reference in case.references)
        async with self._runner(job, built, suite, 1, (case.specs, outputs)) as runner:
            shaped = await check_shape(
                runner, case, self._poison, call_s=limits.call_s, ledger=job.ledger, contract=suite.contract
            )
        if shaped.passed:
            shaped = Verdict(evidence=(*verdict.evidence, *shaped.evidence))
        return level, replace(checked, verdict=shaped)

    @property
    def _call_s(self) -> float:
        """The limit of one call, in seconds."""
        call_s = self.settings.limits.call_s
        return call_s if self._target.timed else call_s * INTERPRETED_SLOWER

    @property
    def _audited_s(self) -> float:
        """The same of a call that is counted meanwhile."""
        return max(AUDIT_S, AUDIT_SLOWER * self._call_s)

    async def _audit(self, job: _Job, built: Built, runner: HostedRunner, checked: Checked) -> Checked:
        """Whether a hosted kernel computes by a kernel of its own."""
        said = await runner.audit(timeout_s=self._audited_s)
        if isinstance(said, RunFailure):
            return replace(checked, verdict=Verdict(status=said.status, evidence=said.evidence))
        checked = replace(checked, audit=said)
        allowed = LibraryKernels(self.settings.policy.library_kernels)
        found = kernel_policy.decide(built.static, kernel_policy.parse(said), library=allowed)
        job.ledger.check(Layer.KERNELS.value, "one call after the checks", found.status.value)
        before = checked.verdict.evidence if found.status is Status.PASSED else ()
        return replace(checked, verdict=Verdict(status=found.status, evidence=(*before, *found.evidence)))

    async def _sanitized(self, job: _Job, suite: Suite, built: Built, trust: Trust) -> Sanitized:
        """What sanitizers find in a winner whose trust leaves only them to ask; nothing where they are not asked."""
        if not self._target.on_gpu or trust is not Trust.L3 or not self._sanitizers.wanted(job.request.purpose):
            return Sanitized()
        with job.watch.span("profile"):
            found = await self._sanitizers.look(built, suite, job.bench.threads)
        said = "; ".join(entry.value for entry in (*found.fault, *found.said))
        job.ledger.check(Layer.SANITIZERS.value, "calls of one public case", said)
        return found

    async def _passed(self, job: _Job, suite: Suite, made: Claim, built: Built) -> Evaluation:
        """Roofline and diagnosis of a kernel that passed everything."""
        bounds = made.floors or UNKNOWN
        with job.watch.span("profile"):
            found = await profile(built, bounds, made.median_ns)
            if self._target.on_gpu and self._counters.wanted(job.request.purpose):
                found = await self._counters.diagnosis(
                    built,
                    suite,
                    threads=job.bench.threads,
                    floors=bounds,
                    measured_ns=made.median_ns,
                    otherwise=found,
                )
        line = roofline(bounds, bytes_min=suite.bytes_min, flops_min=suite.flops, measured_ns=made.median_ns)
        return Evaluation(
            status=Status.PASSED,
            trust=made.trust,
            timings=made.timings,
            speedups=made.speedups,
            roofline=line,
            diagnosis=found,
        )

    def _runner(
        self,
        job: _Job,
        built: Built,
        suite: Suite,
        sets: int,
        specs: tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]] | None = None,
        *,
        compile_only: bool = False,
    ) -> Launched:
        """A runner for checking."""
        return self._launchers.open(
            built,
            suite,
            where=job.request.operator.name,
            sets=sets,
            memory_bytes=self.settings.limits.kernel_memory_bytes,
            threads=job.bench.threads,
            cpus=job.bench.cpus,
            stained=not compile_only,
            specs=specs,
            compile_only=compile_only,
        )

    async def _place(self, operator: OperatorRef, threads: int) -> tuple[OperatorRef, str, int, tuple[int, ...]]:
        """Operator, its text, threads and cores. The last cores, because interrupts and this process favour the first.

        Raises:
            Fatal: more threads are asked for than this worker has cores, or the operator's text is not in the store.
        """
        if threads > len(self._cpus):
            raise Fatal(f"{threads} threads asked for, this worker has {len(self._cpus)} cores")
        self._threads = threads
        source = await self._text(operator.source_hash)
        return operator, source, threads, self._cpus[-threads:]

    async def _text(self, digest: str) -> str:
        """A stored text. Bytes that are no UTF-8 become replacement characters, which the compiler refuses."""
        try:
            return (await self._ports.store.blobs.get(digest)).decode("utf-8", "replace")
        except KeyError as error:
            raise Fatal(f"the store has no blob {digest}") from error

    async def _ledger(self, request: EvaluationRequested, evaluation: Evaluation, ledger: Ledger) -> str:
        """Complete the ledger with what the whole evaluation was, and store it."""
        ledger.facts |= {
            "operator": request.operator.source_hash,
            "kernel": request.kernel.source_hash,
            "kernel_id": request.kernel.kernel_id,
            "language": request.kernel.language,
            "flags": " ".join(request.kernel.flags),
            "purpose": request.purpose.value,
            "status": evaluation.status.value,
            "trust": evaluation.trust.value,
            "sandbox": evaluation.sandbox,
            **{entry.name: entry.value for entry in evaluation.environment},
        }
        return await self._ports.store.blobs.put(ledger.encoded())

    async def _log(self, text: str) -> str:
        return await self._ports.store.blobs.put(text.encode()) if text else ""

    def environment(self) -> tuple[Entry, ...]:
        """What results are obtained with, whatever the request."""
        return (
            *self._toolchain.versions(),
            _entry("harness", HARNESS_VERSION),
            _entry("torch", _installed("torch")),
            _entry("system", f"{platform.system()} {platform.release()}"),
        )

    def _environment(self, request: EvaluationRequested) -> tuple[Entry, ...]:
        """What the result was obtained with."""
        return (
            *self.environment(),
            _entry("threads", request.threads),
            _entry("cpus", ",".join(map(str, self._cpus[-request.threads :]))),
        )


@cache
def _installed(package: str) -> str:
    """Its version, read once: the file it stands in is long."""
    return version(package)


def _read_how(runner: Launched, unkept: str) -> Entry | None:
    """Who read the results, where that is not as usual. ``unkept``: why it was not this process, on a GPU."""
    if isinstance(runner, KeptRunner):
        return _entry("arrays", "held on the GPU, and results read there, by the evaluator itself")
    if isinstance(runner, HostedRunner) and runner.exporting:
        why = unkept or "its memory cannot be read from outside here"
        return _entry(EXPORTED, f"copied by the candidate's process: {why}")
    return None


def _capped(trust: Trust, verdict: Verdict) -> Trust:
    """L2 at most where results were copied by the candidate's process: its code ran after the clock had stopped."""
    exported = any(entry.name == EXPORTED for entry in verdict.evidence)
    return Trust.L2 if exported and trust in (Trust.L3, Trust.L4) else trust


def _missing(baselines: Baselines) -> tuple[Entry, ...]:
    """Why there is no compiled baseline, where there is none."""
    return (_entry("no_compiled_baseline", baselines.unavailable),) if baselines.unavailable else ()


def _entry(name: str, value: object) -> Entry:
    return Entry(name=name, value=str(value))
