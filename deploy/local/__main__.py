"""``python -m deploy.local up|down|status``: what the Makefile's targets of the same names run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from deploy.local.cluster import Cluster, Status
from deploy.local.layout import Layout
from shared import exit_codes
from shared.errors import KernelEvolveError, UserError

NEXT = "kernelevolve submit examples/operators/softmax.py --chip {chip} --watch"
OFFERED = "cpu-x86_64"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--folder", type=click.Path(path_type=Path), default=Path(".cluster"), show_default=True)
@click.pass_context
def cli(context: click.Context, folder: Path) -> None:
    """The whole system on this machine: broker, MongoDB, Redis and the services, one process each."""
    context.obj = Cluster(folder)


@cli.command()
@click.option("--chips", default=OFFERED, show_default=True, help="Chips to evaluate for, separated by spaces.")
@click.option("--workers", default=2, show_default=True, help="Evaluator processes per chip.")
@click.pass_obj
def up(cluster: Cluster, chips: str, workers: int) -> None:
    """Start it and wait until it is ready; when it runs already, say what runs."""
    found = cluster.running()
    if found is None:
        found = cluster.up(Layout(chips=tuple(chips.split()), workers=workers), click.echo)
        click.echo(f"ready at {found.server}; logs in {os.path.relpath(cluster.folder)}/logs")
    else:
        click.echo(f"runs already at {found.server}: {found.workers} workers each for {', '.join(found.chips)}")
    click.echo(f"next: {NEXT.format(chip=found.chips[0])}")


@cli.command()
@click.option("--data", type=click.Choice(["keep", "drop"]), default="keep", show_default=True)
@click.pass_obj
def down(cluster: Cluster, data: str) -> None:
    """Stop services, then servers. MongoDB's and Redis' data are kept, the broker's are not: searches go on at `up`."""
    ran = cluster.down(click.echo, drop=data == "drop")
    click.echo("down: no process and no port is left" if ran else "nothing runs here")


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per process.")
@click.pass_obj
def status(cluster: Cluster, as_json: bool) -> None:
    """Every process: state, readiness, pid, uptime, restarts, ports, log. Exit code 1 unless all are ready."""
    rows = cluster.status()
    if as_json:
        for row in rows:
            click.echo(json.dumps(asdict(row)))
    else:
        click.echo("\n".join(_table(rows)) if rows else "nothing runs here; make up")
    sys.exit(exit_codes.DONE if rows and all(row.ready for row in rows) else exit_codes.FAILED)


def _table(rows: tuple[Status, ...]) -> list[str]:
    lines = [("process", "state", "ready", "pid", "up", "restarts", "ports", "log")]
    for row in rows:
        ready = "yes" if row.ready else "NO"
        numbers = (str(row.pid or "-"), f"{row.uptime_s:.0f} s", str(row.restarts))
        lines.append((row.name, row.state.lower(), ready, *numbers, _ports(row.ports), os.path.relpath(row.log)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _ports(ports: Mapping[str, int]) -> str:
    return " ".join(f"{name}:{port}" for name, port in ports.items())


def main() -> int:
    """The exit code."""
    try:
        cli.main(prog_name="python -m deploy.local", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("interrupted", err=True)
        return exit_codes.INTERRUPTED
    except UserError as error:
        click.echo(f"error: {error}", err=True)
        return exit_codes.BAD_INPUT
    except KernelEvolveError as error:
        click.echo(f"failed: {error}", err=True)
        return exit_codes.FAILED
    return exit_codes.DONE


if __name__ == "__main__":
    sys.exit(main())
