"""Many evaluations in a row on one worker, a third of them hostile: what leaks, and what an evaluation costs beside
its build and its measuring. Writes ``docs/results/endurance.md``.

    python -m tests.bench.endurance --evaluations 1000 --seed 1

The kernels are those of ``tests/kernels``, and some modules in Python, for the row softmax of f32[64, 1000]: a small
operator, so that what is weighed is the evaluator. Three of ten texts were never seen before and are built, the others
come from the cache of artefacts, as repeats and re-measurements of a search do. Kind and order are drawn with the seed.
"""

from __future__ import annotations

import asyncio
import json
import platform
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from evaluator_svc.evaluate import Evaluator
from evaluator_svc.settings import Limits
from evaluator_svc.toolchains.by_language import ToolchainByLanguage
from evaluator_svc.toolchains.cpu import CpuToolchain
from evaluator_svc.toolchains.hosted import HostedToolchain
from shared.events import Evaluation, Status
from shared.machine import processor
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from shared.submissions.kernel import ENTRIES
from tests.bench.census import Census, Sample, slope
from tests.integration.evaluator.pipeline import SETTINGS, kernel_source, request_for
from tests.integration.hosted.softmax_module import forward

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "docs" / "results" / "endurance.md"
HONEST = ("right",) * 4 + ("slow_but_right", "zeros", "wrong_tail", "returns_error_code", "module composes")
"""A search's own: most right, some slow, some wrong without meaning it; one in Python, of library operators alone."""
HOSTILE = (
    "abort", "allocates_64_gb", "closes_channel", "crash", "division_by_zero", "endless_loop", "exits_in_a_constructor",
    "floods_channel", "forges_reply", "fork_bomb", "includes_host_file", "kills_parent", "maps_over_input",
    "mutates_input", "network_call", "prints_forever", "prints_passed_and_exits", "reads_project_files",
    "runs_a_command", "spawns_thread_that_outlives", "stack_overflow", "throws", "undefined_symbol", "writes_files",
    "writes_past_end", "module forks", "module exits", "module reads files", "module keeps a thread",
)  # fmt: skip
MODULES = {
    "module composes": forward("e = torch.exp(x - x.amax(-1, keepdim=True))", "return e / e.sum(-1, keepdim=True)"),
    "module forks": forward("os.fork()", "return torch.softmax(x, -1)", before="import os\n"),
    "module exits": forward("os._exit(0)", before="import os\n"),
    "module reads files": forward("open('/etc/passwd').read()", "return torch.softmax(x, -1)"),
    "module keeps a thread": forward(
        "threading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
        "return torch.softmax(x, -1)",
        before="import threading, time\n",
    ),
}
"""Python-hosted kernels, by name; the others are C++."""
HOSTILE_SHARE, UNSEEN_SHARE = 1 / 3, 0.3
CALL_S = 0.5
"""A kernel without end costs this much."""
OVERHEAD_MS = 60.0
"""Aimed at, for the median."""
SAMPLE_EVERY = 20
TO_MS = 1e-6
LEFT = f"""Counted after a warm-up of every kernel once, and after the last evaluation. The slope is a least-squares fit
over the samples of the second half, per 1 000 evaluations; samples are taken every {SAMPLE_EVERY}."""
COSTS = """Overhead is the wall time less the build, less waiting for a turn, less the time inside calls of the kernel
and of the baselines by the controller's clock (the ledger's calls). It holds starting and ending boxes, fresh values
and their answers, filling and poisoning buffers, judging, statistics, diagnosis and the store. A call that never came
back is not in the ledger: its limit counts as overhead."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """One evaluation, times in ms. ``inside``: in calls of the kernel and of baselines, by the controller's clock."""

    kernel: str
    hostile: bool
    status: Status
    wall: float
    build: float
    wait: float
    profile: float
    correctness: float
    timing: float
    framework: float
    checking: float
    """Inside calls of the correctness stage."""
    measuring: float
    """Inside calls of the timing stage."""

    @property
    def overhead(self) -> float:
        """All that is neither building, nor waiting for a turn, nor time spent inside the kernel and its baselines."""
        return self.wall - self.build - self.wait - self.checking - self.measuring


@dataclass(kw_only=True)
class Endurance:
    """What a run found."""

    done: list[Done] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    """The first is taken after the warm-up, the last after the last evaluation."""
    seconds: float = 0.0

    def overheads(self, where: Callable[[Done], bool] = lambda _: True) -> list[float]:
        return sorted(one.overhead for one in self.done if where(one))

    def grown(self) -> dict[str, int]:
        """By what the last sample exceeds the first, where it does."""
        first, last = self.samples[0].counts, self.samples[-1].counts
        return {name: last[name] - first[name] for name in first if last[name] > first[name]}


def plan(evaluations: int, seed: int) -> list[tuple[str, bool, str]]:
    """Kernel, whether it is hostile, and what makes its text new (empty: the same text as before)."""
    draw = random.Random(seed)
    made = []
    for number in range(evaluations):
        hostile = draw.random() < HOSTILE_SHARE
        kernel = draw.choice(HOSTILE if hostile else HONEST)
        made.append((kernel, hostile, f"\n// {seed}.{number}\n" if draw.random() < UNSEEN_SHARE else ""))
    return made


async def endure(evaluations: int, seed: int, tell: Callable[[str], None] = lambda _: None) -> Endurance:
    """Run ``plan`` on a fresh worker with a store of its own."""
    settings = replace(SETTINGS, limits=Limits(call_s=CALL_S, kernel_memory_bytes=1 << 30))
    found, planned = Endurance(), plan(evaluations, seed)
    with _place() as (place, temporary):
        async with open_ports(PortSettings(store_url=f"sqlite:{place}/store.db")) as ports:
            builds = place / "builds"
            cpp, python = CpuToolchain(directory=builds), HostedToolchain(directory=place / "modules")
            evaluator = Evaluator(ports, settings, ToolchainByLanguage(toolchains={"cpp": cpp, "python": python}))
            try:
                for kernel in dict.fromkeys(
                    name for name, _, _ in planned
                ):  # the operator is admitted, texts are known
                    await _one(ports, evaluator, kernel, "", hostile=False)
                census, begin = Census(temporary), time.monotonic()
                found.samples.append(census.sample(0))
                for number, (kernel, hostile, new) in enumerate(planned, 1):
                    found.done.append(await _one(ports, evaluator, kernel, new, hostile=hostile))
                    if number % SAMPLE_EVERY == 0 or number == evaluations:
                        found.samples.append(census.sample(number))
                        tell(f"{number}/{evaluations} {time.monotonic() - begin:.0f} s")
                found.seconds = time.monotonic() - begin
            finally:
                await evaluator.close()
    return found


@contextmanager
def _place() -> Iterator[tuple[Path, Path]]:
    """A directory for what is meant to grow, store and artefacts, and one for all temporary files meanwhile."""
    with tempfile.TemporaryDirectory(prefix="endurance-") as place, tempfile.TemporaryDirectory() as temporary:
        for directory in (place, temporary):  # boxes are another user where this one is root
            Path(directory).chmod(0o755)
        usual, tempfile.tempdir = tempfile.tempdir, temporary
        try:
            yield Path(place), Path(temporary)
        finally:
            tempfile.tempdir = usual


async def _one(ports: Ports, evaluator: Evaluator, kernel: str, new: str, *, hostile: bool) -> Done:
    if kernel in MODULES:
        request = await request_for(ports, MODULES[kernel] + new.replace("//", "#"), flags=())
        request = replace(request, kernel=replace(request.kernel, language="python", entry=ENTRIES["python"]))
    else:
        request = await request_for(ports, kernel_source(kernel) + new)
    begin = time.monotonic_ns()
    evaluation: Evaluation = await evaluator.evaluate(request)
    wall = time.monotonic_ns() - begin
    calls = json.loads(await ports.store.blobs.get(evaluation.ledger_hash))["calls"]
    checks = ("check", "held-out shape")
    stages = evaluation.stages
    return Done(
        kernel=kernel,
        hostile=hostile,
        status=evaluation.status,
        wall=wall * TO_MS,
        build=stages.build_ns * TO_MS,
        wait=stages.wait_ns * TO_MS,
        profile=stages.profile_ns * TO_MS,
        correctness=stages.correctness_ns * TO_MS,
        timing=stages.timing_ns * TO_MS,
        framework=stages.framework_ns * TO_MS,
        checking=sum(c["controller_ns"] for c in calls if c["stage"] in checks) * TO_MS,
        measuring=sum(c["controller_ns"] for c in calls if c["stage"] not in checks) * TO_MS,
    )


def page(found: Endurance, command: str) -> str:
    """The whole Markdown page."""
    cpu = processor()
    hostile = sum(one.hostile for one in found.done)
    lines = [
        "# Endurance: evaluations in a row on one worker",
        "",
        (
            f"`{command}` on {cpu.model or platform.machine()}, {platform.system()} {platform.release()}: "
            f"{len(found.done)} evaluations in {found.seconds:.0f} s, {hostile} of them hostile; "
            f"{UNSEEN_SHARE:.0%} of the texts were built, the others came from the cache of artefacts."
        ),
        "",
        "## Left behind",
        "",
        LEFT,
        "",
        "| | before | after | most | per 1 000 |",
        "|---|---:|---:|---:|---:|",
    ]
    half = found.samples[len(found.samples) // 2 :]
    for name in found.samples[0].counts:
        values = [sample.counts[name] for sample in found.samples]
        lines.append(f"| {name} | {values[0]} | {values[-1]} | {max(values)} | {1000 * slope(half, name):+.2f} |")
    lines += [
        "",
        "## What an evaluation costs beside building and measuring",
        "",
        COSTS,
        "",
        "| ms | median | p95 |",
        "|---|---:|---:|",
    ]
    kinds: dict[str, Callable[[Done], bool]] = {
        "all": lambda _: True,
        "passed": lambda one: one.status is Status.PASSED,
        "failed, honest": lambda one: one.status is not Status.PASSED and not one.hostile,
        "hostile": lambda one: one.hostile,
    }
    for name, where in kinds.items():
        values = found.overheads(where)
        if values:
            lines.append(f"| {name} ({len(values)}) | {statistics.median(values):.1f} | {at(values, 0.95):.1f} |")
    passed = [one for one in found.done if one.status is Status.PASSED]
    lines += ["", "Of those that passed, the median of each part:", "", "| part | ms |", "|---|---:|"]
    parts: dict[str, Callable[[Done], float]] = {
        "correctness, less its calls": lambda one: one.correctness - one.checking,
        "timing, less its calls": lambda one: one.timing - one.measuring,
        "diagnosis": lambda one: one.profile,
        "the rest": lambda one: one.framework,
    }
    for name, part in parts.items():
        lines.append(
            f"| {name} | {statistics.median(part(one) for one in passed):.1f} |" if passed else f"| {name} | |"
        )
    statuses = Counter((one.kernel, one.status.value) for one in found.done)
    lines += ["", "## Verdicts", "", "| kernel | verdict | times |", "|---|---|---:|"]
    lines += [f"| {kernel} | {status} | {times} |" for (kernel, status), times in sorted(statuses.items())]
    return "\n".join(lines) + "\n"


def at(ordered: list[float], share: float) -> float:
    """The order statistic below which ``share`` of the values lie."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@click.command()
@click.option("--evaluations", type=int, default=1000, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--write/--no-write", default=True, help="Write docs/results/endurance.md.")
def main(*, evaluations: int, seed: int, write: bool) -> None:
    """Evaluate many kernels in a row and say what was left behind."""
    found = asyncio.run(endure(evaluations, seed, click.echo))
    text = page(found, f"python -m tests.bench.endurance --evaluations {evaluations} --seed {seed}")
    if write:
        REPORT.write_text(text)
    click.echo(text)
    median = statistics.median(found.overheads())
    click.echo(f"overhead: median {median:.1f} ms, aimed at {OVERHEAD_MS:.0f} ms; grown: {found.grown() or 'nothing'}")


if __name__ == "__main__":
    main()
