"""``kernelevolve evaluate``: the evaluator's verdict on a kernel of one's own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from cli.commands.explain import measurements
from cli.outcome import NS_PER_US, speedup
from cli.requirements import require_chip, require_threads
from evaluator_svc.toolchains.flags import DEFAULT_FLAGS
from shared import chips, ids, operators
from shared.errors import UserError
from shared.events import PPM, Evaluation, EvaluationRequested, KernelRef, Purpose, Status
from shared.machine import processor
from shared.operators import OperatorSpec

LANGUAGES = {".cpp": "cpp", ".cc": "cpp", ".cxx": "cpp"}
SOURCE_BYTES_MAX = 4 << 20


@click.command("evaluate")
@click.argument("operator", type=click.Path(path_type=Path))
@click.argument("kernel", type=click.Path(path_type=Path))
@click.option("--chip", default="cpu-x86_64", show_default=True, help="Target chip; see `kernelevolve chips`.")
@click.option("--flag", "flags", multiple=True, help="Compiler flag; given once or more, they replace the defaults.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1), help="Threads it may use.")
@click.option("--final", is_flag=True, help="Measure as a winner is: fresh processes, fresh inputs, more rounds.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON object.")
def command(
    operator: Path, kernel: Path, chip: str, flags: tuple[str, ...], threads: int, final: bool, as_json: bool
) -> None:
    """Build KERNEL, prove it against OPERATOR, time it and say what limits it. Exit code 0 only for PASSED.

    \b
    Example:
      kernelevolve evaluate examples/operators/softmax.py my_softmax.cpp
    """
    spec = operators.load(operator)
    sheet = require_chip(chip)
    require_threads(threads)
    source = read_kernel(kernel, sheet)
    flags = flags or (*DEFAULT_FLAGS, *chips.best_isa(sheet, processor().flags).flags)
    purpose = Purpose.FINAL if final else Purpose.SEARCH
    with Console(stderr=True).status(f"evaluating {kernel.name} against {spec.ref.name} on {chip}"):
        evaluation = asyncio.run(verdict(spec, source, LANGUAGES[kernel.suffix], chip, flags, threads, purpose))
    if as_json:
        click.echo(json.dumps(plain(spec, chip, evaluation)))
    else:
        Console().print(measurements(f"{kernel.name} against {spec.ref.name}", evaluation))
    sys.exit(0 if evaluation.status is Status.PASSED else 1)


def read_kernel(path: Path, sheet: chips.ChipSheet) -> str:
    """The kernel's text.

    Raises:
        UserError: missing, unreadable, too large, or in a language the chip does not take.
    """
    if not path.is_file():
        raise UserError("no such file", where=str(path), hint="give the path of a kernel's source")
    language = LANGUAGES.get(path.suffix)
    if language not in sheet.languages:
        raise UserError(
            f"chip `{sheet.id}` takes {', '.join(sheet.languages)}, told by the suffix",
            where=str(path),
            hint=f"one of {', '.join(LANGUAGES)}",
        )
    if path.stat().st_size > SOURCE_BYTES_MAX:
        raise UserError(f"is larger than {SOURCE_BYTES_MAX >> 20} MiB", where=str(path))
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", where=str(path)) from error


async def verdict(
    spec: OperatorSpec,
    source: str,
    language: str,
    chip: str,
    flags: tuple[str, ...],
    threads: int,
    purpose: Purpose,
) -> Evaluation:
    """Admit the operator and evaluate the kernel once; a noisy moment is tried again."""
    from deploy.embedded import evaluator_alone  # only once the input is known to be good

    async with evaluator_alone(chip, os.environ) as (ports, evaluator):
        source_hash = await ports.store.blobs.put(source.encode())
        await ports.store.blobs.put(spec.source.encode())
        await evaluator.admit(spec.ref, threads)
        kernel_id = ids.derive(language, source_hash, *flags, "ke_launch")
        for attempt in range(1, ATTEMPTS_MAX + 1):
            request = EvaluationRequested(
                search_id="",
                evaluation_id=ids.derive(kernel_id, attempt),
                candidate_id=kernel_id,
                kernel=KernelRef(kernel_id=kernel_id, language=language, source_hash=source_hash, flags=flags),
                operator=spec.ref,
                chip=chip,
                purpose=purpose,
                threads=threads,
                attempt=attempt,
            )
            evaluation = await evaluator.evaluate(request)
            if evaluation.status is not Status.NOISY:
                break
        return evaluation


def plain(spec: OperatorSpec, chip: str, evaluation: Evaluation) -> dict[str, Any]:
    """The verdict as one JSON-able object."""
    return {
        "operator": spec.ref.name,
        "chip": chip,
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
        "median_us": {timing.name: timing.median_ns / NS_PER_US for timing in evaluation.timings},
        "sol_fraction": evaluation.roofline.fraction_ppm / PPM if evaluation.roofline.floor_ns else None,
        "diagnosis": {"bound": evaluation.diagnosis.bound.value, "summary": evaluation.diagnosis.summary},
        "sandbox": evaluation.sandbox,
        "environment": {entry.name: entry.value for entry in evaluation.environment},
    }


ATTEMPTS_MAX = 3
"""Measurements when the machine is noisy; the search uses the same number."""
