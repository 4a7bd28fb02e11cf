"""How the system behaves under load, on a local cluster with a simulated chip: ``docs/results/load.md``.

python tests/bench/load.py                       # everything, in about nine minutes
python tests/bench/load.py --only scaling --repetitions 1 --no-write
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import load_crowd
import load_fairness
import load_hops
import load_report
import load_scaling
from load_report import Results
from load_searches import loaded
from load_system import system

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results" / "load.md"
PARTS = ("scaling", "fairness", "hops", "crowd")
Tell = Callable[[str], None]


@click.command()
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="Parts to run; default all.")
@click.option("--repetitions", default=3, show_default=True, help="Of what is compared.")
@click.option("--seconds", default=15.0, show_default=True, help="Length of one measurement, about.")
@click.option("--searches", default=load_crowd.SEARCHES, show_default=True, help="At the same time, in `crowd`.")
@click.option("--write/--no-write", default=True, help=f"Write {PAGE.name}.")
def main(only: tuple[str, ...], repetitions: int, seconds: float, searches: int, write: bool) -> None:
    """Measure, print the table and write the page. Exits with 1 when a promise was not kept."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the cluster is stopped
    began = time.monotonic()

    def tell(line: str) -> None:
        click.echo(f"{time.monotonic() - began:6.0f} s  {line}", err=True)

    wanted = only or PARTS
    busy = os.getloadavg()[0]
    results = Results(
        busy=busy, **_one_slot_each(wanted, repetitions, seconds, tell), **_many_slots(wanted, seconds, searches, tell)
    )
    page = load_report.text(results)
    click.echo(page)
    if write:
        PAGE.write_text(page, encoding="utf-8")
    broken = [each.what for each in load_report.promises(results) if not each.kept]
    if broken:
        raise click.ClickException("not kept: " + "; ".join(broken))


def _one_slot_each(wanted: tuple[str, ...], repetitions: int, seconds: float, tell: Tell) -> dict[str, object]:
    if not {"scaling", "fairness"} & set(wanted):
        return {}
    found: dict[str, object] = {}
    tell(f"a cluster of {load_scaling.MANY} workers with one slot each")
    with system(workers=load_scaling.MANY, slots=1, durations=load_scaling.DURATIONS) as cluster:
        load = loaded(cluster)
        if "scaling" in wanted:
            found["scaling"] = [load_scaling.repeat(cluster, load, seconds, tell) for _ in range(repetitions)]
        if "fairness" in wanted:
            found["fairness"] = load_fairness.measure(load, repetitions, load_scaling.MANY, load_scaling.MEAN_S, tell)
    return found


def _many_slots(wanted: tuple[str, ...], seconds: float, searches: int, tell: Tell) -> dict[str, object]:
    if not {"hops", "crowd"} & set(wanted):
        return {}
    found: dict[str, object] = {}
    tell(f"a cluster of {load_crowd.PROCESSES} workers with {load_crowd.SLOTS} slots each")
    with system(
        workers=load_crowd.PROCESSES,
        slots=load_crowd.SLOTS,
        durations=load_crowd.DURATIONS,
        session_s=load_crowd.SESSION_S,
    ) as cluster:
        load = loaded(cluster)
        if "hops" in wanted:
            found["hops"] = load_hops.measure(cluster, load, 4 * seconds, tell)
        if "crowd" in wanted:
            found["crowd"] = load_crowd.measure(cluster, load, searches, tell)
    return found


if __name__ == "__main__":
    main()
