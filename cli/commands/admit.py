"""``kernelevolve admit``: whether an operator can be judged, and how many wrong answers its check tells from right."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.chip_option import HELP, chip_id
from cli.requirements import require_chip
from cli.submitted import read_problems
from evaluator_svc.admission import Admission
from evaluator_svc.admitting import admitted
from evaluator_svc.mutation import Fate
from shared.operators import OperatorSpec


@click.command("admit")
@click.argument("operator", type=click.Path(path_type=Path))
@click.option("--chip", callback=chip_id, default="cpu-x86_64", show_default=True, help=HELP)
@click.option("--workload", "uuid", default="all", show_default=True, metavar="UUID", help="Of a definition's.")
@click.option("--workloads", type=click.Path(path_type=Path), help="Their file, when it is not beside the definition.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per operator.")
def command(operator: Path, chip: str, uuid: str, workloads: Path | None, as_json: bool) -> None:
    """Tell which wrong answers the check of OPERATOR rejects: zeros, a dropped tile, another epsilon, lower precision.

    A search admits its operator by itself; this shows the mutation score and each mutant. Exit code 0: admitted;
    2: refused, with the reason in one line.

    \b
    Example:
      kernelevolve admit examples/operators/rms_norm.py
    """
    require_chip(chip)
    for problem in read_problems(operator, uuid, workloads):
        spec = problem.spec
        with Console(stderr=True).status(f"admitting {spec.ref.name}"):
            admission = asyncio.run(admitted(spec, chip, os.environ))
        if as_json:
            click.echo(json.dumps(plain(spec, admission)))
        else:
            Console().print(shown(spec, admission))


def plain(spec: OperatorSpec, admission: Admission) -> dict[str, Any]:
    """The admission as one JSON-able object."""
    score, suite = admission.score, admission.suite
    return {
        "operator": spec.ref.name,
        "admitted": True,
        "killed": score.killed,
        "total": score.total,
        "equivalent": score.count(Fate.EQUIVALENT),
        "exempt": score.count(Fate.EXEMPT),
        "mutants": {one.mutant: {"fate": one.fate.value, "by": one.by} for one in score.outcomes},
        "sets": admission.cases,
        "core": [case.name for case in suite.cases if case.core and not case.public],
        "skipped": list(suite.skipped),
        "properties": [relation.name for relation in suite.relations],
    }


def shown(spec: OperatorSpec, admission: Admission) -> RenderableType:
    """The score as a table, most telling last."""
    table = Table(box=None, header_style="bold", title=f"{spec.ref.name}: {admission.summary}", title_justify="left")
    for column in ("mutant", "fate", "by"):
        table.add_column(column)
    for one in admission.score.outcomes:
        table.add_row(Text(one.mutant), one.fate.value, Text(one.by))
    suite, score = admission.suite, admission.score
    core = ", ".join(case.name for case in suite.cases if case.core and not case.public) or "none"
    lines = [
        f"held against every kernel besides the operator's own inputs: {core}",
        f"sets that kill every mutant of the outputs by themselves: {score.telling} of {score.sets} looked at",
        *(f"skipped {reason}" for reason in suite.skipped),
        *(f"property: {relation.name}" for relation in suite.relations),
    ]
    return Group(table, Text(), *(Text(line) for line in lines))
