"""``make cheats``: every known cheat and every honest look-alike through the evaluator, as a table.

    python -m tests.cheats.run --chip cpu-x86_64
    python -m tests.cheats.run --only h03,h24 --no-write

Exit status 1 when a cheat passes or is caught by another layer than its kind's, when a look-alike does not pass, or
when the machine was too busy to tell.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from evaluator_svc.target import target_of
from shared.machine import processor
from tests.cheats import table
from tests.cheats.catalogue import CPU, ENTRIES, entries
from tests.cheats.manifest import Cheat
from tests.cheats.mechanisms import ELSEWHERE, MECHANISMS
from tests.cheats.naive import opinions
from tests.cheats.outcome import Outcome, tried
from tests.cheats.workplace import workplace

TRIES = 3
"""While others use the cores."""
ROOT = Path(__file__).resolve().parents[2]
INTRODUCTION = """\
Each candidate is a file under `tests/cheats/`; its first lines say what it hopes for and where it was seen. The naive
harness is one process that checks once with a tolerance of 1e-2 and then times: what it says shows that a cheat is one,
and not merely a broken kernel. Its ratios are those of a disturbed clock and prove nothing else."""


@click.command(help="Every known cheat and honest look-alike through the evaluator.")
@click.option("--chip", default=CPU, type=click.Choice(sorted(ENTRIES)), show_default=True)
@click.option("--only", default="", help="Comma-separated parts of names, e.g. h03,python-h24.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of tables.")
@click.option("--no-write", is_flag=True, help="Do not write docs/results/cheats-<chip>.md.")
def main(chip: str, only: str, as_json: bool, no_write: bool) -> None:
    parts = [part for part in only.split(",") if part]
    chosen = [
        entry for entry in entries(chip, target_of(chip).kind) if not parts or any(part in entry.id for part in parts)
    ]
    if not chosen:
        raise click.BadParameter(f"no entry has `{only}` in its name", param_hint="--only")
    naive = opinions([entry for entry in chosen if isinstance(entry, Cheat)])
    outcomes: list[Outcome] = []
    console, begin = Console(width=200 if not sys.stdout.isatty() else None), time.monotonic()

    def done(outcome: Outcome) -> None:
        outcomes.append(outcome)
        print(f"\r{len(outcomes)}/{len(chosen)} {outcome.entry.id:60}", end="", file=sys.stderr, flush=True)
        if as_json:
            print(json.dumps(table.plain(outcome, naive)), flush=True)

    with workplace(chip) as place:
        tried(place, chosen, times=TRIES, done=done)
    print(file=sys.stderr)
    took = time.monotonic() - begin
    if not as_json:
        console.print(table.rich_table("Cheats", table.CHEAT_COLUMNS, table.cheats(outcomes, naive)))
        console.print(table.rich_table("Honest look-alikes", table.LOOK_ALIKE_COLUMNS, table.look_alikes(outcomes)))
        console.print(f"{table.totals(outcomes)} in {took:.0f} s")
    if not parts and not no_write:
        page(chip).write_text(_document(chip, outcomes, naive, took))
    sys.exit(any(one.problem for one in outcomes))


def page(chip: str) -> Path:
    return ROOT / "docs" / "results" / f"cheats-{chip}.md"


def _document(chip: str, outcomes: Sequence[Outcome], naive: dict[str, str], took: float) -> str:
    machine = processor()
    where = (
        f"`make cheats CHIP={chip}` on {machine.model or 'an unknown processor'}, {machine.cores} cores, "
        f"{datetime.now(UTC):%Y-%m-%d}, in {took:.0f} s: **{table.totals(outcomes)}**."
    )
    lines = [
        f"# Cheats and look-alikes on {chip}",
        "",
        where,
        "",
        INTRODUCTION,
        "",
        table.markdown(table.CHEAT_COLUMNS[:-1], [row[:-1] for row in table.cheats(outcomes, naive)]),
        "",
        "## Honest look-alikes",
        "",
        table.markdown(table.LOOK_ALIKE_COLUMNS[:-1], [row[:-1] for row in table.look_alikes(outcomes)]),
        "",
        "## Without a candidate",
        "",
        *(f"- {number} {MECHANISMS[number]}: {why}." for number, why in ELSEWHERE.items()),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
