"""Beginning a search in this process: what is submitted, and the run directory that is made for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from cli import messages, rundir
from cli.interruptible import see_through
from cli.live import LiveView
from cli.options import Options
from cli.requirements import require_language
from search_svc.service import SUBMITTER
from shared import chips, envelopes, ids, operators
from shared.clock import SystemClock
from shared.events import SearchStarted

if TYPE_CHECKING:
    from cli.outcome import Finished


def submission(spec: operators.OperatorSpec, wanted: Options, chip: str, language: str = "") -> SearchStarted:
    """The event that starts the search for ``chip``; its id is chosen here, from what is asked and when.

    Raises:
        UserError: the chip does not take ``language``.
        ChipError: a tool is missing for it.
    """
    now_ns = SystemClock().now_ns()
    return SearchStarted(
        search_id=ids.derive("search", spec.ref.source_hash, chip, wanted.seed, now_ns),
        operator=spec.ref,
        chip=chip,
        policy=wanted.policy,
        policy_parameters=wanted.parameters,
        seed=wanted.seed,
        budget=wanted.budget,
        languages=require_language(chips.load(chip), language),
        threads=wanted.threads,
        baseline=wanted.baseline,
        at_ns=now_ns,
    )


def begin(
    spec: operators.OperatorSpec,
    started: SearchStarted,
    operator: Path,
    out: Path | None,
    *,
    as_json: bool,
    begin_ns: int,
    schedules: tuple[str, ...] = (),
    place: str = "",
) -> Finished:
    """Make the run directory and search in it; a refusal before the search leaves nothing behind.

    ``schedules`` are the texts that the search's priors name, ``place`` says which of several searches it is.
    """
    from cli import session  # all four services: only once the input is known to be good

    messages.wanted()  # before there is a directory
    directory = rundir.create(out, spec.ref.name)
    envelope = envelopes.envelope(started, cause_id=started.search_id, source=SUBMITTER, clock=SystemClock())
    rundir.write_manifest(directory, envelope, operator, stream=started.search_id, schedules=schedules)
    title = f"{spec.ref.name} on {started.chip}{place}: {started.policy}, {started.budget.evaluations} evaluations"
    view = LiveView(Console(stderr=True), title=title, quiet=as_json and not sys.stderr.isatty())
    with view:
        for prior in started.priors:
            view.note(f"to be tried here: {prior.chip}'s schedule of kernel {prior.kernel_id}, {prior.found} there")
        work = session.search(directory, spec, started, view, begin_ns=begin_ns, schedules=schedules)
        return see_through(directory, work)
