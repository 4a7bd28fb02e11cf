"""The suite's outcome as a table: mechanism x language, and what caught it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from tests.cheats.manifest import Cheat, LookAlike
from tests.cheats.mechanisms import MECHANISMS
from tests.cheats.outcome import Outcome


def cheats(outcomes: Sequence[Outcome], naive: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Rows: mechanism, candidate, language, status, caught by, what the naive harness said, problem."""
    rows = []
    for one in outcomes:
        if isinstance(one.entry, LookAlike):
            continue
        number = one.entry.mechanism
        is_cheat = isinstance(one.entry, Cheat)
        rows.append(
            (
                f"{number} {MECHANISMS[number]}",
                one.entry.name[4:].replace("_", " ") if is_cheat else one.entry.operator.replace("_", " "),
                one.entry.language.value if is_cheat else "operator",
                one.status,
                one.layer.value if one.layer else "",
                naive.get(one.entry.id, ""),
                one.problem,
            )
        )
    return sorted(rows)


def look_alikes(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Rows: candidate, language, the mechanism it looks like, status, problem."""
    return sorted(
        (
            one.entry.name.replace("_", " "),
            one.entry.language.value,
            f"{one.entry.like} {MECHANISMS[one.entry.like]}",
            one.status,
            one.problem and f"{one.problem}: {one.evidence}",
        )
        for one in outcomes
        if isinstance(one.entry, LookAlike)
    )


CHEAT_COLUMNS = ("mechanism", "candidate", "language", "status", "caught by", "naive harness", "problem")
LOOK_ALIKE_COLUMNS = ("look-alike", "language", "looks like", "status", "problem")


def totals(outcomes: Sequence[Outcome]) -> str:
    """``caught a/b, look-alikes passed c/d``."""
    honest = [one for one in outcomes if isinstance(one.entry, LookAlike)]
    hostile = [one for one in outcomes if not isinstance(one.entry, LookAlike)]
    caught = sum(not one.problem for one in hostile)
    passed = sum(not one.problem for one in honest)
    return f"caught {caught}/{len(hostile)}, look-alikes passed {passed}/{len(honest)}"


def rich_table(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """For a terminal; a row with a problem is red."""
    table = Table(title=title)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*row, style="red" if row[-1] else None)
    return table


def markdown(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    """For a document."""
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def plain(one: Outcome, naive: Mapping[str, str]) -> dict[str, Any]:
    """One row for ``--json``."""
    return {
        "id": one.entry.id,
        "kind": type(one.entry).__name__,
        "mechanism": one.entry.like if isinstance(one.entry, LookAlike) else one.entry.mechanism,
        "operator": one.entry.operator,
        "status": one.status,
        "caught_by": one.layer.value if one.layer else None,
        "evidence": one.evidence,
        "naive_harness": naive.get(one.entry.id),
        "problem": one.problem,
        "seconds": round(one.seconds, 2),
    }
