"""Printing how a search ended: the final JSON object on stdout, or a few lines for a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli import estimates
from cli.legible import legible
from cli.phases import PAUSED
from cli.rundir import RunDirectory
from shared.events import PPM
from shared.usage import in_words

if TYPE_CHECKING:
    from cli.outcome import Finished

EXIT_CODES = {"improved": 0, "estimated": 0, "no_improvement": 0, "cancelled": 1, "failed": 1, PAUSED: 75}
"""No kernel beating the baseline is a valid, well-reported result; only a search that could not be done fails. 75 is
"try again later" (``EX_TEMPFAIL`` of sysexits.h): the search waits to be resumed.
"""


def announce(finished: Finished, *, as_json: bool) -> int:
    """Print the outcome and return the process' exit code."""
    result = finished.result
    if as_json:
        click.echo(json.dumps(result))
    else:
        click.echo(legible("\n".join(lines(finished))))
    return EXIT_CODES[result["outcome"]]


def lines(finished: Finished) -> list[str]:
    """The outcome in words."""
    result = finished.result
    best = result["best"]
    statuses = ", ".join(f"{count} {status}" for status, count in result["statuses"].items()) or "none"
    text = [
        f"outcome   {result['outcome']} ({result['reason']})" + (f": {result['detail']}" if result["detail"] else "")
    ]
    if best:
        text += _estimated(finished, best) or [_measured(best["speedup"])]
        text.append(f"trust     {best['trust']}")
        if best["sol_fraction"] is not None:
            text.append(f"roofline  {100 * best['sol_fraction']:.0f} % of the speed of light")
        if best["artefact"]:
            text.append(f"artefact  {best['artefact']}")
    elif result["outcome"] == "no_improvement":
        text.append(_no_improvement(finished))
    text.append(f"tried     {result['evaluations']} evaluations: {statuses}")
    if spent := result["model"]:
        text.append(f"models    {in_words(finished.tree.spent)}")
        if spent["stood_in"]:
            text.append(f"without   {spent['stood_in']} candidates came from schedules instead: {spent['because']}")
    if result["run_dir"]:
        text.append(f"run       {result['run_dir']} (report.html, search.kelog)")
    else:
        text.append(f"kept      by the server; `kernelevolve watch {result['search_id']} --out DIR` writes it here")
    if result["outcome"] == PAUSED:
        text.append(f"go on     {go_on(result)}")
    return text


def _measured(speed: dict[str, Any]) -> str:
    over = ", ".join(f"{speed[b]:.2f}x over {b}" for b in ("eager", "compiled") if speed[b] is not None)
    return f"speedup   {over}; 99.4 % interval {speed['ci_low']:.2f} to {speed['ci_high']:.2f}, re-measured"


def _estimated(finished: Finished, best: dict[str, Any]) -> list[str]:
    """Of a winner that was not timed; empty for one that was."""
    winner = finished.tree.nodes[best["candidate_id"]]
    found = winner.final.estimate if winner.final else None
    if found is None:
        return []
    ppm = round(PPM * best["estimate"]["times_less"])
    ratio = estimates.against(ppm, found.basis.value)
    if ppm == PPM:
        ratio += f": nothing else was {found.basis.value} to cost less"
    text = [f"cost      {estimates.cost(found)}: {ratio}", f"          {estimates.MEANING[found.basis]}"]
    return [*text, f"counts    {estimates.counts(found.counts)}"] if found.counts else text


def _no_improvement(finished: Finished) -> str:
    reference = finished.tree.reference
    if reference is not None:
        return f"No kernel was {reference.basis.value} to cost less than the first draft, and held when tried again."
    if not any(node.score_ppm for node in finished.tree.passed()):
        return "No kernel that passed could be compared with anything: nothing was timed."
    return "No kernel beat the baseline: every gain seen vanished when it was measured again, or there was none."


def go_on(result: dict[str, Any]) -> str:
    """The command that goes on with a paused search: in its own run directory, or where the server has it."""
    here = result["run_dir"]
    own = here and RunDirectory(path=Path(here)).database.is_file()
    more = " --model-budget AMOUNT (or --model-tokens N)" if result["reason"] == "budget" else ""
    return f"kernelevolve resume {here if own else result['search_id']}{more}"
