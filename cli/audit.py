"""The ledger of an evaluation, for people: everything that the verdict rests on, in tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from cli.verdicts import Answered
from shared.submissions.kernel import NATIVE

CLOCKS = ("controller", "runner", "cpu", "device", "profiler")
"""Of each call, as ``evaluator_svc/ledger.py`` tells them apart."""
TITLE_WIDTH = 60
"""Titles stay on one line."""
NO_LEDGER = "this evaluation kept no ledger"


def ledger_object(answered: Answered) -> dict[str, Any]:
    """The ledger as it was stored, and beside it what only the front door knows: what was handed in, as which text."""
    return {**(answered.ledger or {}), "submission": submission(answered), "texts": texts(answered)}


def submission(answered: Answered) -> dict[str, str]:
    """What was handed in and what it became, with the hashes of both texts."""
    asked = answered.asked
    found = {
        "operator": asked.problem.spec.ref.name,
        "operator_hash": asked.problem.spec.ref.source_hash,
        "kernel": asked.kernel.form,
        "language": asked.kernel.language,
        "kernel_hash": asked.source_hash,
        "entry": asked.kernel.entry,
        "flags": " ".join(asked.flags),
        "ledger_hash": answered.evaluation.ledger_hash,
    }
    workload = asked.problem.workload
    if workload is not None:
        found["workload"] = workload.uuid
        if workload.tolerance:
            limits = ", ".join(f"{name} {value}" for name, value in workload.tolerance.items())
            found["tolerance of the workload"] = f"{limits} (recorded; this evaluator's judge decides)"
        if workload.unchecked:
            found["constraints not checked"] = "; ".join(workload.unchecked)
    return {name: value for name, value in found.items() if value}


def texts(answered: Answered) -> dict[str, str]:
    """What was hashed, to the character."""
    return {"operator": answered.asked.problem.spec.source, "kernel": answered.asked.kernel.source}


def tables(answered: Answered) -> Group:
    """The whole audit: submission, facts, seeds, checks, calls, and the text that was measured."""
    ledger = answered.ledger or {}
    parts: list[RenderableType] = [_pairs("submission", submission(answered))]
    if not ledger:
        parts.append(Text(NO_LEDGER))
    else:
        parts += [
            _pairs("facts", ledger.get("facts", {})),
            _pairs("secret seeds, by case", ledger.get("seeds", {})),
            _checks(ledger.get("checks", ())),
            _calls(ledger.get("calls", ())),
        ]
    lexer = "cpp" if answered.asked.kernel.language == NATIVE else "python"
    parts.append(Text(f"\nthe kernel's text, SHA-256 {answered.asked.source_hash}", style="italic"))
    parts.append(Syntax(answered.asked.kernel.source, lexer, word_wrap=True))
    return Group(*parts)


def _pairs(title: str, values: Mapping[str, Any]) -> Table:
    table = Table(title=title, title_justify="left", box=None, show_header=False, min_width=TITLE_WIDTH)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(Text(name), Text(str(value)))
    if not values:
        table.add_row(Text("none"), "")
    return table


def _checks(checks: Iterable[Mapping[str, Any]]) -> Table:
    table = Table(title="checks made, in order", title_justify="left", box=None)
    for column in ("layer", "on", "outcome"):
        table.add_column(column, overflow="fold")
    for check in checks:
        table.add_row(*(Text(str(check.get(name, ""))) for name in ("layer", "subject", "outcome")))
    return table


def _calls(calls: Iterable[Mapping[str, Any]]) -> Table:
    """Every call; clocks that were there for none of them have no column."""
    kept = list(calls)
    clocks = [clock for clock in CLOCKS if any(call.get(f"{clock}_ns") is not None for call in kept)]
    table = Table(title="every call, in order; ns for all calls of a row", title_justify="left", box=None)
    for column in ("stage", "process", "contestant", "case"):
        table.add_column(column, overflow="fold")
    for column in ("calls", *clocks):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("")
    for call in kept:
        table.add_row(*(Text(cell) for cell in _cells(call, clocks)))
    return table


def _cells(call: Mapping[str, Any], clocks: Iterable[str]) -> Iterator[str]:
    yield from (str(call.get(name, "")) for name in ("stage", "process", "contestant", "case"))
    yield str(call.get("calls", ""))
    for clock in clocks:
        value = call.get(f"{clock}_ns")
        yield "" if value is None else f"{value:,}"
    marks = [name.replace("_", " ") for name in ("verified", "first_use") if call.get(name)]
    yield ", ".join(marks)
