"""Schedules alone, a model that chooses moves, a model that writes whole kernels, and the mixture: what each finds.

At equal evaluations and at equal cost, over operators and seeds, each a search of its own through the product's
command line. Without further settings the packaged model answers, on this machine; any other endpoint is named as the
product names it, by ``MODEL_URL`` and what goes with it. ``--record FILE`` keeps the answers, and ``--recorded FILE``
plays them back later without any endpoint.

    python -m tests.bench.synth
    MODEL_URL=https://… python -m tests.bench.synth --evaluations 100 --seeds 1,2,3,4,5 --record answers.jsonl
    python -m tests.bench.synth --recorded answers.jsonl --no-write
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import click

from shared.machine import processor
from tests import model_server
from tests.bench import synth_tape
from tests.bench.synth_plan import Cell, Plan, Way
from tests.bench.synth_report import Outcome, Source, page
from tests.bench.synth_search import ROOT, SearchFailedError, operator_path, run
from tests.bench.synth_tape import Tape

RESULT = ROOT / "docs" / "results" / "synth.md"
PACKAGED = "SmolLM2-135M-Instruct (Q4_1) from its package, behind llama.cpp's server with one thread on this machine"
PACKAGED_NOTE = (
    "135 million parameters are too few to write a kernel, and hardly better than chance at choosing moves: with this "
    "model the page shows that the loop works with real answers, and what bad ones cost; not what a capable model adds."
)
PACKAGED_SETTINGS = {
    "MODEL_OUTPUT_TOKENS_MAX": "300",
    "MODEL_QUOTED_KERNELS_MAX": "0",
    "SYNTHESIZER_DOCUMENTS_MAX": "1",
}
"""A prompt costs this model milliseconds a token, and its context holds 8192."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Who answers. ``url`` is what is put in front of a search's ``MODEL_URL`` with ``{cell}`` for its name."""

    url: str
    told: str
    settings: Mapping[str, str]
    tape: Tape | None = None
    note: str = ""

    def of(self, cell: Cell) -> dict[str, str]:
        return {**self.settings, "MODEL_URL": self.url.replace("{cell}", cell.name)}

    @property
    def source(self) -> Source:
        if self.tape is None or self.tape.upstream:
            return Source(live=True, endpoint=self.told, note=self.note)
        return Source(live=False, endpoint=self.told, note=self.note, played=self.tape.played, other=self.tape.other)


@contextmanager
def endpoint(plan: Plan, recorded: Tape | None, record: Path | None) -> Iterator[Endpoint]:
    """What answers the searches; a recording is written when they are done, or were interrupted."""
    with ExitStack() as stack:
        if recorded is not None:
            address = stack.enter_context(synth_tape.running(recorded))
            header = recorded.header
            yield Endpoint(
                url=f"{address}/{{cell}}/v1",
                told=f"{header['endpoint']} ({header['date']})",
                settings=header["settings"],
                tape=recorded,
                note=header["note"],
            )
            return
        live = _live()
        if record is None:
            yield live
            return
        tape = Tape(
            upstream=live.url.removesuffix("/v1"),
            header={
                "endpoint": live.told,
                "note": live.note,
                "settings": dict(live.settings),
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "plan": plan.to_plain(),
            },
        )
        stack.callback(tape.save, record)
        address = stack.enter_context(synth_tape.running(tape))
        yield Endpoint(url=f"{address}/{{cell}}/v1", told=live.told, settings=live.settings, tape=tape, note=live.note)


def _live() -> Endpoint:
    url = os.environ.get("MODEL_URL", "")
    if url:
        return Endpoint(url=url, told=urlsplit(url).hostname or url, settings={})
    return Endpoint(url=model_server.url(), told=PACKAGED, settings=PACKAGED_SETTINGS, note=PACKAGED_NOTE)


def searches(plan: Plan, endpoint: Endpoint, folder: Path) -> list[Outcome]:
    """Run every search of ``plan``, one after the other."""
    outcomes = []
    for cell in plan.cells():
        outcomes.append(run(cell, plan, folder, endpoint.of(cell)))
        _tell(outcomes[-1])
    return outcomes


def _tell(outcome: Outcome) -> None:
    click.echo(
        f"{datetime.now(UTC):%H:%M:%S} {outcome.cell.name}: gain {outcome.gain:.3f}, {outcome.evaluations} evaluations "
        f"in {outcome.seconds:.0f} s, {outcome.requests} requests {dict(outcome.rejected) or ''}",
        err=True,
    )


def _plan(operators: str, seeds: str, ways: str, evaluations: int, seconds: float) -> Plan:
    try:
        plan = Plan(
            operators=tuple(operators.split(",")),
            seeds=tuple(map(int, seeds.split(","))),
            evaluations=evaluations,
            seconds=seconds,
            ways=tuple(map(Way, ways.split(","))),
        )
        for name in plan.operators:
            operator_path(name)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except FileNotFoundError as error:
        raise click.UsageError(f"no example operator named {error}") from error
    return plan


def _recorded(path: Path) -> tuple[Plan, Tape]:
    try:
        tape = synth_tape.load(path)
        return Plan.from_plain(tape.header["plan"]), tape
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{path} is no recording: {error!r}") from error
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from error


@click.command()
@click.option("--operators", default="softmax,gelu_bias_residual", show_default=True, help="Names of examples.")
@click.option("--seeds", default="1,2", show_default=True)
@click.option("--ways", default=",".join(Way), show_default=True)
@click.option("--evaluations", default=12, show_default=True, help="Of each search at equal evaluations; 0: none.")
@click.option("--seconds", default=45.0, show_default=True, help="For each search at equal cost; 0: none.")
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), help="Keep the answers in this file.")
@click.option(
    "--recorded", type=click.Path(path_type=Path, dir_okay=False), help="Play the answers and the plan of this file."
)
@click.option("--write/--no-write", default=True, help="Write docs/results/synth.md.")
def main(
    operators: str,
    seeds: str,
    ways: str,
    evaluations: int,
    seconds: float,
    record: Path | None,
    recorded: Path | None,
    write: bool,
) -> None:
    """Run the comparison and print its page."""
    if record and recorded:
        raise click.UsageError("--record needs an endpoint, --recorded replaces it: give one of them")
    plan, tape = _recorded(recorded) if recorded else (_plan(operators, seeds, ways, evaluations, seconds), None)
    with tempfile.TemporaryDirectory(prefix="ke-synth-") as folder, endpoint(plan, tape, record) as answering:
        try:
            outcomes = searches(plan, answering, Path(folder))
        except SearchFailedError as error:
            raise click.ClickException(str(error)) from error
        source = answering.source
    cpu = processor()
    text = page(
        outcomes,
        plan,
        source,
        command=" ".join(["python -m tests.bench.synth", *sys.argv[1:]]),
        machine=f"{cpu.model}, {cpu.cores} logical processors",
        date=f"{datetime.now(UTC):%Y-%m-%d}",
    )
    click.echo(text)
    if write:
        RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
