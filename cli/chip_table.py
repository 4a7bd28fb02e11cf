"""One operator on several chips, as one table and as one JSON object (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cli import priors
from cli.outcome import EXIT_CODES, Finished
from cli.phases import PAUSED
from shared import exit_codes

REFUSED = "refused"
"""The outcome of a search that never began: chip or evaluator refused the operator."""
BETTER_FIRST = (exit_codes.DONE, exit_codes.PAUSED, exit_codes.FAILED, exit_codes.BAD_INPUT)
"""Exit codes of searches; of several, the last of these is that of all."""
COLUMNS = ("operator", "chip", "outcome", "language", "result", "interval", "trust", "evaluations", "artefact")
NOTHING = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one chip's search ended: ``finished``, or ``refused`` and why. ``seeds`` as ``priors.seeds`` tells them."""

    chip: str
    finished: Finished | None = None
    refused: str = ""
    seeds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.finished.result["outcome"]] if self.finished else exit_codes.BAD_INPUT


def exit_code(ended: Sequence[Ended]) -> int:
    """The worst of them."""
    return max((one.exit_code for one in ended), key=BETTER_FIRST.index)


def final_object(operator: str, run_dir: str, ended: Sequence[Ended]) -> dict[str, Any]:
    """What ``--json`` prints: under ``chips`` each search's final object with its ``seeds``; of one that was refused
    chip, outcome and why.
    """
    return {"operator": operator, "run_dir": run_dir, "chips": [_plain(operator, one) for one in ended]}


def _plain(operator: str, one: Ended) -> dict[str, Any]:
    if one.finished:
        return {**one.finished.result, "seeds": one.seeds}
    refused = {"operator": operator, "chip": one.chip, "outcome": REFUSED, "reason": REFUSED, "detail": one.refused}
    return refused | {"best": None, "evaluations": 0, "run_dir": None, "seeds": []}


def lines(operator: str, run_dir: str, ended: Sequence[Ended]) -> list[str]:
    """The table, what became of the schedules that went from chip to chip, and where everything is."""
    rows = [COLUMNS, *(_row(operator, one) for one in ended)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    for one in ended:
        text += [f"seed      {_seed(one.chip, told)}" for told in one.seeds]
        if one.refused:
            text.append(f"refused   {one.chip}: {one.refused}")
    waiting = any(one.exit_code == EXIT_CODES[PAUSED] for one in ended)
    text.append(f"runs      {run_dir} (a run directory for each chip)")
    return [*text, f"go on     kernelevolve resume {run_dir}"] if waiting else text


def _seed(chip: str, told: dict[str, Any]) -> str:
    detail = f": {told['detail']}" if told["detail"] else ""
    return f"{chip} was {told['origin']}: {told['status']}{detail}"


def _row(operator: str, one: Ended) -> tuple[str, ...]:
    if one.finished is None:
        return (operator, one.chip, REFUSED, *[NOTHING] * (len(COLUMNS) - 3))
    result = one.finished.result
    best = result["best"]
    found = _best(one.finished) if best else (NOTHING,) * 4
    artefact = best["artefact"] if best and best["artefact"] else NOTHING
    return (operator, one.chip, result["outcome"], *found, str(result["evaluations"]), artefact)


def _best(finished: Finished) -> tuple[str, str, str, str]:
    """Language, result with its label, interval and trust of the winner."""
    best, tree = finished.result["best"], finished.tree
    speed = best["speedup"]
    measured = speed["ci_low"] is not None
    interval = f"{speed['ci_low']:.2f} to {speed['ci_high']:.2f}" if measured else NOTHING
    said = priors.standing(tree, tree.nodes[best["candidate_id"]])
    return best["language"], said, interval, best["trust"]
