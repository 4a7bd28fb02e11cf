"""``kernelevolve evaluate``: the evaluator's verdict on a kernel of one's own, or of another system's."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from cli import audit, estimates, traces
from cli.chip_option import HELP, chip_id
from cli.commands.explain import measurements
from cli.outcome import NS_PER_US, speedup
from cli.progress import ratio
from cli.requirements import require_chip, require_threads
from cli.submitted import Problem, read_kernel, read_problems
from cli.verdicts import Answered, Asked, flags_of, verdicts
from shared import timestamps
from shared.clock import SystemClock
from shared.events import PPM, Evaluation, Purpose, Status
from shared.machine import processor
from shared.submissions import aggregate, trace
from shared.submissions.kernel import EMULATED, GPU_NATIVE, HOSTED, NATIVE


@click.command("evaluate")
@click.argument("operator", type=click.Path(path_type=Path))
@click.argument("kernel", type=click.Path(path_type=Path))
@click.option("--chip", callback=chip_id, default="cpu-x86_64", show_default=True, help=HELP)
@click.option(
    "--language", type=click.Choice((NATIVE, EMULATED, *HOSTED, *GPU_NATIVE)), help="Instead of what the file tells."
)
@click.option("--entry", default="", metavar="NAME", help="Function to call, of a module that defines no ModelNew.")
@click.option("--flag", "flags", multiple=True, help="Compiler flag; given once or more, they replace the defaults.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1), help="Threads it may use.")
@click.option("--final", is_flag=True, help="Measure as a winner is: fresh processes, fresh inputs, more rounds.")
@click.option("--workload", "uuid", default="all", show_default=True, metavar="UUID", help="Of a definition's.")
@click.option("--workloads", type=click.Path(path_type=Path), help="Their file, when it is not beside the definition.")
@click.option("--trace", "traces_file", type=click.Path(path_type=Path), help="Append flashinfer-bench traces to it.")
@click.option("--audit", "audited", is_flag=True, help="Print the ledger: every call, clock, seed, check and hash.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the verdict (with --audit, the ledger) as one JSON object."
)
def command(
    operator: Path,
    kernel: Path,
    chip: str,
    language: str | None,
    entry: str,
    flags: tuple[str, ...],
    threads: int,
    final: bool,
    uuid: str,
    workloads: Path | None,
    traces_file: Path | None,
    audited: bool,
    as_json: bool,
) -> None:
    """Build KERNEL, prove it against OPERATOR, time it and say what limits it. Exit code 0 only for PASSED.

    OPERATOR is a KernelBench module, or a definition of flashinfer-bench or SOL-ExecBench (its directory or JSON).
    KERNEL is C++ with `ke_launch`, a module with `ModelNew`, a module of functions (Triton), or a solution's JSON.

    \b
    Examples:
      kernelevolve evaluate examples/operators/softmax.py my_softmax.cpp
      kernelevolve evaluate rmsnorm/ solution.json --trace traces.jsonl
    """
    sheet = require_chip(chip)
    require_threads(threads)
    if traces_file is not None:
        traces.check(traces_file)
    problems = read_problems(operator, uuid, workloads)
    submitted = read_kernel(kernel, problems, sheet, language=language or "", entry=entry)
    asked = [
        Asked(problem=problem, kernel=one, flags=flags_of(one, flags, sheet))
        for problem, one in zip(problems, submitted.kernels, strict=True)
    ]
    purpose = Purpose.FINAL if final else Purpose.SEARCH
    made = asyncio.run(_judged(asked, submitted.name, chip, threads, purpose, traces_file))
    if as_json and audited:
        click.echo(json.dumps(_one_or_all(made, [audit.ledger_object(one) for one in made], "ledgers")))
    elif as_json:
        click.echo(json.dumps(plain(made, kernel, chip)))
    else:
        _show(made, kernel, audited=audited)
    sys.exit(0 if all(one.evaluation.status is Status.PASSED for one in made) else 1)


async def _judged(
    asked: Sequence[Asked], name: str, chip: str, threads: int, purpose: Purpose, traces_file: Path | None
) -> list[Answered]:
    """All verdicts; each is in the file of traces before the next one is begun."""
    made = []
    console = Console(stderr=True)
    with console.status("") as status:

        def tell(operator: str) -> None:
            status.update(f"evaluating {name} against {operator} on {chip}")

        async for one in verdicts(asked, chip, threads, purpose, tell):
            made.append(one)
            if traces_file is not None:
                _trace(one, name, traces_file)
    return made


def _trace(one: Answered, solution: str, file: Path) -> None:
    """Append the verdict to ``file``, or say on stderr why it makes no trace."""
    problem = one.asked.problem
    try:
        record = trace.record(
            one.evaluation,
            definition=problem.name,
            solution=solution,
            workload=_workload(problem),
            hardware=hardware(one.evaluation),
            timestamp=timestamps.to_text(SystemClock().now_ns()),
        )
    except trace.NoTrace as why:
        click.echo(f"no trace of {problem.spec.ref.name}: {why}", err=True)
        return
    traces.append(file, trace.line(record))


def _workload(problem: Problem) -> dict[str, Any]:
    """A KernelBench module is its own only workload, known by its hash."""
    if problem.workload is None:
        return {"uuid": problem.spec.ref.source_hash, "axes": {}, "inputs": {}}
    return dict(problem.workload.raw)


def hardware(evaluation: Evaluation) -> str:
    """What the kernel ran on: the device that the verdict names, else this machine's processor."""
    named = {entry.name: entry.value for entry in evaluation.environment}
    return named.get("gpu") or named.get("processor") or processor().model or "unknown processor"


def _show(made: Sequence[Answered], kernel: Path, *, audited: bool) -> None:
    console = Console()
    for one in made:
        console.print(measurements(f"{kernel.name} against {one.asked.problem.spec.ref.name}", one.evaluation))
        if audited:
            console.print(audit.tables(one))
    if len(made) > 1:
        console.print(summary(made))


def summary(made: Sequence[Answered]) -> Group:
    """A line per workload, and what they come to together."""
    table = Table(title="workloads", title_justify="left", box=None)
    for column in ("workload", "sizes", "status", "median or cost", "speedup", "interval"):
        table.add_column(column, overflow="fold", no_wrap=column not in ("workload", "sizes"))
    for one in made:
        workload, evaluation = one.asked.problem.workload, one.evaluation
        assert workload is not None  # only definitions have several
        best = evaluation.speedup("best")
        times = [timing.median_ns for timing in evaluation.timings if timing.name == trace.CANDIDATE]
        table.add_row(
            Text(workload.uuid),
            Text(workload.label),
            f"{evaluation.status.value} {evaluation.trust.value}",
            f"{times[0] / NS_PER_US:.1f} µs" if times else _cost(evaluation),
            ratio(best.ratio_ppm) if best else "",
            f"{ratio(best.low_ppm)} to {ratio(best.high_ppm)}" if best else "",
        )
    mean = _mean(made)
    shown = ratio(round(mean.speedup * PPM)) if mean.speedup is not None else f"none: {mean.reason}"
    return Group(table, Text(f"geometric mean of the speedups: {shown}"))


def _cost(evaluation: Evaluation) -> str:
    return estimates.cost(evaluation.estimate) if evaluation.estimate else ""


def _mean(made: Sequence[Answered]) -> aggregate.Aggregate:
    return aggregate.geometric_mean(dict(zip(_uuids(made), (one.evaluation for one in made), strict=True)))


def _uuids(made: Sequence[Answered]) -> list[str]:
    return [one.asked.problem.workload.uuid if one.asked.problem.workload else "" for one in made]


def _one_or_all(made: Sequence[Answered], objects: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """The object of the one evaluation, or all by workload."""
    if len(made) == 1:
        return objects[0]
    return {name: dict(zip(_uuids(made), objects, strict=True))}


def plain(made: Sequence[Answered], kernel: Path, chip: str) -> dict[str, Any]:
    """The verdicts as one JSON-able object."""
    objects = [verdict(one, chip) for one in made]
    if len(made) == 1:
        return objects[0]
    mean = _mean(made)
    return {
        "definition": made[0].asked.problem.name,
        "kernel": kernel.name,
        "chip": chip,
        "workloads": dict(zip(_uuids(made), objects, strict=True)),
        "geometric_mean_speedup": mean.speedup,
        "no_mean_because": mean.reason or None,
    }


def verdict(one: Answered, chip: str) -> dict[str, Any]:
    """One verdict as a JSON-able object."""
    evaluation, problem = one.evaluation, one.asked.problem
    return {
        "operator": problem.spec.ref.name,
        "workload": problem.workload.uuid if problem.workload else None,
        "chip": chip,
        "language": one.asked.kernel.language,
        "operator_hash": problem.spec.ref.source_hash,
        "kernel_hash": one.asked.source_hash,
        "status": evaluation.status.value,
        "trust": evaluation.trust.value,
        "evidence": {entry.name: entry.value for entry in evaluation.evidence},
        "speedup": {
            measured.baseline: {
                "ratio": measured.ratio_ppm / PPM,
                "ci_low": measured.low_ppm / PPM,
                "ci_high": measured.high_ppm / PPM,
            }
            for measured in evaluation.speedups
        },
        "best_speedup": speedup(evaluation, "best"),
        "estimate": estimates.plain(evaluation.estimate),
        "median_us": {timing.name: timing.median_ns / NS_PER_US for timing in evaluation.timings},
        "sol_fraction": evaluation.roofline.fraction_ppm / PPM if evaluation.roofline.floor_ns else None,
        "diagnosis": {"bound": evaluation.diagnosis.bound.value, "summary": evaluation.diagnosis.summary},
        "sandbox": evaluation.sandbox,
        "environment": {entry.name: entry.value for entry in evaluation.environment},
        "ledger_hash": evaluation.ledger_hash or None,
    }
