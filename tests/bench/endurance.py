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
import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import click

from evaluator_svc.evaluate import Evaluator
from evaluator_svc.settings import Limits
from evaluator_svc.toolchains.by_language import ToolchainByLanguage
from evaluator_svc.toolchains.cpu import CpuToolchain
from evaluator_svc.toolchains.hosted import HostedToolchain
from shared.events import Evaluation
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from shared.submissions.kernel import ENTRIES
from tests.bench.census import Census
from tests.bench.endurance_report import Done, Endurance, page
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
SAMPLE_EVERY = 20
CHECKED = 0
"""The number of the process in which the correctness stage makes its calls; timed ones are counted from 1."""
TO_MS = 1e-6
STORE_CACHE_BYTES = 3 << 20
"""More than SQLite keeps of a database in memory (2 MB): read and written before the first sample."""


def plan(evaluations: int, seed: int) -> list[tuple[str, bool, str]]:
    """Kernel, whether it is hostile, and what makes its text new (empty: the same text as before)."""
    draw = random.Random(seed)
    made = []
    for number in range(evaluations):
        hostile = draw.random() < HOSTILE_SHARE
        kernel = draw.choice(HOSTILE if hostile else HONEST)
        made.append((kernel, hostile, f"\n// {seed}.{number}\n" if draw.random() < UNSEEN_SHARE else ""))
    return made


async def endure(
    evaluations: int,
    seed: int,
    tell: Callable[[str], None] = lambda _: None,
    *,
    seconds: float = math.inf,
    found: Endurance | None = None,
) -> Endurance:
    """Run ``plan`` on a fresh worker with a store of its own, for ``seconds`` at the longest. ``found`` grows."""
    settings = replace(SETTINGS, limits=Limits(call_s=CALL_S, kernel_memory_bytes=1 << 30))
    found, planned = found or Endurance(), plan(evaluations, seed)
    found.planned = evaluations
    with _place() as (place, temporary):
        async with open_ports(PortSettings(store_url=f"sqlite:{place}/store.db")) as ports:
            builds = place / "builds"
            cpp, python = CpuToolchain(directory=builds), HostedToolchain(directory=place / "modules")
            evaluator = Evaluator(ports, settings, ToolchainByLanguage(toolchains={"cpp": cpp, "python": python}))
            until = time.monotonic() + seconds
            try:
                for kernel in dict.fromkeys(
                    name for name, _, _ in planned
                ):  # the operator is admitted, texts are known
                    await _one(ports, evaluator, kernel, "", hostile=False)
                for _ in range(STORE_CACHE_BYTES >> 16):
                    await ports.store.blobs.put(os.urandom(1 << 16))
                census, begin = Census(temporary), time.monotonic()
                tell(f"{len({name for name, _, _ in planned})} kernels known")
                found.samples.append(census.sample(0))
                for number, (kernel, hostile, new) in enumerate(planned, 1):
                    found.done.append(await _one(ports, evaluator, kernel, new, hostile=hostile))
                    found.seconds = time.monotonic() - begin
                    late = time.monotonic() > until
                    if number % SAMPLE_EVERY == 0 or number == evaluations or late:
                        found.samples.append(census.sample(number))
                        median = statistics.median(found.overheads())
                        tell(f"{number}/{evaluations} {found.seconds:.0f} s, median overhead {median:.0f} ms")
                    if late:
                        break
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
        checking=sum(c["controller_ns"] for c in calls if c["process"] == CHECKED) * TO_MS,
        measuring=sum(c["controller_ns"] for c in calls if c["process"] != CHECKED) * TO_MS,
    )


@click.command()
@click.option("--evaluations", type=int, default=1000, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option(
    "--seconds", type=float, default=1500.0, show_default=True, help="Fewer evaluations when it is too short."
)
@click.option("--write/--no-write", default=True, help="Write docs/results/endurance.md.")
def main(*, evaluations: int, seed: int, seconds: float, write: bool) -> None:
    """Evaluate many kernels in a row and say what was left behind. On Ctrl-C the page is of those that were made."""
    found = Endurance()
    with suppress(KeyboardInterrupt):
        asyncio.run(endure(evaluations, seed, click.echo, seconds=seconds, found=found))
    if not found.done:
        raise SystemExit(1)
    text = page(found, f"python -m tests.bench.endurance --evaluations {evaluations} --seed {seed}", UNSEEN_SHARE)
    if write:
        REPORT.write_text(text)
    click.echo(text)


if __name__ == "__main__":
    main()
