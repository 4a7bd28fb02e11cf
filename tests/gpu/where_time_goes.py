"""Where an evaluation's time goes: stacks of the controller, threads and awaiting tasks alike, sampled while it works.

    python -m tests.gpu.where_time_goes examples/operators/gpu/softmax.py KERNEL --chip nvidia-sm_90 --times 3

``KERNEL`` is a file as ``kernelevolve evaluate`` takes it. Each of ``--times`` evaluations is told apart, because the
first pays for what a worker does once. Printed are, of each: its stages, its blocks, and the shares of wall time in
which a function of the evaluator was on some stack, indented by its depth. A sample that lies in a call to a device
names who waited for it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

import click

from cli.chip_option import chip_id
from cli.submitted import read_kernel, read_problems
from cli.verdicts import Asked, flags_of, verdicts
from evaluator_svc.ledger import Stage
from shared import chips
from shared.events import Purpose

EVERY_S = 0.01
OURS = ("evaluator_svc", "shared")
SHARE_LEAST = 0.02


class Sampler:
    """Counts, per function of ours, the samples in which it was on a stack or awaited."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._stop = loop, threading.Event()
        self.seen: Counter[tuple[str, int]] = Counter()
        """By function and depth in its stack: depth orders them as they call each other."""
        self.samples = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            self.samples += 1
            found: dict[str, int] = {}
            for stack in self._stacks():
                for depth, name in enumerate(stack):
                    found.setdefault(name, depth)
            self.seen.update(found.items())

    def _stacks(self) -> Iterator[list[str]]:
        mine = threading.get_ident()
        for ident, frame in sys._current_frames().items():
            if ident != mine:
                yield [name for code in reversed(list(_codes(frame))) if (name := _named(code))]
        for task in _tasks(self._loop):
            yield [name for code in _awaited(task.get_coro()) if (name := _named(code))]


def _tasks(loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
    try:
        return list(asyncio.all_tasks(loop))
    except RuntimeError:  # it changed meanwhile: the next sample sees it
        return []


def _codes(frame: FrameType | None) -> Iterator[CodeType]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def _awaited(coroutine: Any) -> Iterator[CodeType]:
    """From a coroutine to what it waits for, and so on."""
    while coroutine is not None:
        code = getattr(coroutine, "cr_code", None) or getattr(coroutine, "ag_code", None)
        if code is not None:
            yield code
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)


def _named(code: CodeType) -> str:
    """``hosted/kept.py:write_sets``; empty for others' code."""
    path = Path(code.co_filename)
    at = next((number for number, part in enumerate(path.parts) if part in OURS), None)
    return "" if at is None else f"{'/'.join(path.parts[at + 1 :])}:{code.co_qualname}"


def _blocks(calls: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Per process and contestant what a block costs besides its calls, and what a call costs: a line through them."""
    blocks: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for call in calls:
        if call["stage"] == Stage.BLOCK:
            blocks.setdefault((call["process"], call["contestant"]), []).append((call["calls"], call["controller_ns"]))
    for (process, contestant), found in sorted(blocks.items()):
        lengths, times = zip(*found, strict=True)
        if len(set(lengths)) > 1:
            line = statistics.linear_regression(lengths, times)
            yield (
                f"process {process}, {contestant}: {len(found)} blocks of {min(lengths)} to {max(lengths)} calls, "
                f"{line.intercept / 1e3:.0f} us and {line.slope / 1e3:.1f} us a call"
            )


@click.command()
@click.argument("operator", type=click.Path(path_type=Path))
@click.argument("kernel", type=click.Path(path_type=Path))
@click.option("--chip", callback=chip_id, default="cpu-x86_64")
@click.option("--language", default="")
@click.option("--times", default=3, show_default=True)
@click.option("--final", is_flag=True)
@click.option("--rows", default=60, show_default=True)
def main(operator: Path, kernel: Path, chip: str, language: str, times: int, final: bool, rows: int) -> None:
    asyncio.run(_run(operator, kernel, chip, language, times, Purpose.FINAL if final else Purpose.SEARCH, rows))


async def _run(operator: Path, kernel: Path, chip: str, language: str, times: int, purpose: Purpose, rows: int) -> None:
    sheet, problems = chips.load(chip), read_problems(operator, "all", None)
    submitted = read_kernel(kernel, problems, sheet, language=language, entry="")
    one = Asked(problem=problems[0], kernel=submitted.kernels[0], flags=flags_of(submitted.kernels[0], (), sheet))
    found = verdicts([one] * times, chip, 1, purpose, lambda _: None)
    for number in range(times):
        begin = time.monotonic()
        with Sampler(asyncio.get_running_loop()) as sampler:
            made = await anext(found)
        seconds, evaluation = time.monotonic() - begin, made.evaluation
        spent = dataclasses.asdict(evaluation.stages) if evaluation.stages else {}
        stages = ", ".join(f"{name.removesuffix('_ns')} {ns / 1e9:.2f}" for name, ns in spent.items() if ns)
        click.echo(f"\n=== evaluation {number + 1}: {evaluation.status.value}, {seconds:.2f} s ({stages})")
        for entry in evaluation.evidence:
            click.echo(f"    {entry.name}: {entry.value[:160]}")
        for line in _blocks((made.ledger or {}).get("calls", [])):
            click.echo(f"  {line}")
        shares = Counter[str]()
        depths: dict[str, int] = {}
        for (name, depth), count in sampler.seen.items():
            shares[name] += count
            depths[name] = min(depth, depths.get(name, depth))
        for name, count in shares.most_common(rows):
            if count >= SHARE_LEAST * sampler.samples:
                took = seconds * count / max(1, sampler.samples)
                click.echo(f"  {took:7.2f} s {count / sampler.samples:5.0%}  {'. ' * min(depths[name], 20)}{name}")


if __name__ == "__main__":
    main()
