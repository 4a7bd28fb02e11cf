"""Searching for one operator on several chips, one after the other: what a search found seeds those after it.

One after the other, because whatever runs beside a timed kernel is in its measurement: builds, emulators and
interpreters of another chip's search would take the caches, the memory and the cores that are being timed.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import click

from cli import chip_table, conversations, history, priors, rundir
from cli.beginning import begin
from cli.campaign import Campaign
from cli.chip_table import Ended
from cli.interrupted import Interrupted, InterruptedOnChips
from cli.interruptible import see_through as see_one_through
from cli.legible import legible
from cli.outcome import Finished
from cli.phases import PAUSED
from cli.rundir import RunDirectory
from search_svc.service import NO_BUDGET
from shared import ids
from shared.clock import SystemClock
from shared.errors import ChipError, OperatorError
from shared.events import ModelBudget, Prior, SearchStarted


def see_through(asked: Campaign, model: ModelBudget = NO_BUDGET, *, as_json: bool) -> int:
    """Begin, resume or take as it is each chip's search, print one table, and return the worst exit code. With
    ``model``, those that go on or begin now may spend that much.

    Raises:
        InterruptedOnChips: a signal came first.
        UserError: another process is at it.
    """
    try:
        with rundir.exclusive(asked.directory):
            ended = _each(asked, model, as_json=as_json)
    except Interrupted as error:
        raise InterruptedOnChips(asked.directory.path, error.number, _standing(asked)) from None
    except KeyboardInterrupt:
        raise InterruptedOnChips(asked.directory.path, signal.SIGINT, _standing(asked)) from None
    return _announce(asked, ended, as_json=as_json)


def _each(asked: Campaign, model: ModelBudget, *, as_json: bool) -> list[Ended]:
    ended: list[Ended] = []
    pasts: list[history.Past] = []
    for position, started in enumerate(asked.searches, start=1):
        run = asked.run(started.chip)
        place = f" ({position} of {len(asked.searches)})"
        try:
            finished = _one(asked, started, pasts, model, place, as_json=as_json)
        except (ChipError, OperatorError) as error:
            ended.append(Ended(chip=started.chip, refused=str(error)))
            click.echo(f"{started.chip}: refused: {error}", err=True)
            continue
        finally:
            if run.manifest.is_file():
                rundir.point_latest_at(asked.directory)
        past = asyncio.run(history.load(run))
        pasts.append(past)
        seeds = priors.seeds(past.tree, conversations.facts(past.entries))
        ended.append(Ended(chip=started.chip, finished=finished, seeds=seeds))
    return ended


def _one(
    asked: Campaign,
    started: SearchStarted,
    before: list[history.Past],
    model: ModelBudget,
    place: str,
    *,
    as_json: bool,
) -> Finished:
    """The search for one chip, from wherever it stands to its end; ``before`` are those of the chips before it."""
    begin_ns = time.monotonic_ns()
    run = asked.run(started.chip)
    if run.manifest.is_file():
        if done := _done(run):
            return done
        from cli.going_on import finish  # all four services: only when something is left to do

        return see_one_through(run, finish(run, model, as_json=as_json, begin_ns=begin_ns))
    if run.path.exists() and not run.database.exists():
        shutil.rmtree(run.path)  # of a process that ended before it had written what is asked
    offers = [(past, prior) for past in before if (prior := priors.best_schedule(past.tree)) is not None]
    return begin(
        asked.spec,
        _now(started, model, tuple(prior for _, prior in offers)),
        asked.operator_path,
        run.path,
        as_json=as_json,
        begin_ns=begin_ns,
        schedules=tuple(past.blobs[prior.schedule_hash].decode() for past, prior in offers),
        place=place,
    )


def _done(run: RunDirectory) -> Finished | None:
    """What the run came to, if its search has finished and everything it leaves is there."""
    if not run.result.is_file() or not run.database.is_file():
        return None
    tree = asyncio.run(history.load(run)).tree
    if not tree.finished:
        return None
    result = json.loads(run.result.read_text(encoding="utf-8"))
    artefact = result["best"]["artefact"] if result["best"] else None
    return Finished(tree=tree, result=result, artefact=Path(artefact) if artefact else None)


def _now(started: SearchStarted, model: ModelBudget, found: tuple[Prior, ...]) -> SearchStarted:
    """``started`` as a search that begins now: its wall clock does not run while others search."""
    now_ns = SystemClock().now_ns()
    old = started.budget.model
    allowed = ModelBudget(tokens=model.tokens or old.tokens, cost_micro=model.cost_micro or old.cost_micro)
    return replace(
        started,
        search_id=ids.derive("search", started.operator.source_hash, started.chip, started.seed, now_ns),
        at_ns=now_ns,
        budget=replace(started.budget, model=allowed),
        priors=found,
    )


def _standing(asked: Campaign) -> tuple[str, ...]:
    """A line for each chip: finished, the command that goes on with it alone, or not begun."""
    return tuple(f"{started.chip}: {_stands(asked.run(started.chip))}" for started in asked.searches)


def _stands(run: RunDirectory) -> str:
    if run.result.is_file() and json.loads(run.result.read_text(encoding="utf-8"))["outcome"] != PAUSED:
        return f"done, in {run.path}"
    return f"`kernelevolve resume {run.path}`" if run.manifest.is_file() else "not begun"


def _announce(asked: Campaign, ended: list[Ended], *, as_json: bool) -> int:
    name, path = asked.spec.ref.name, str(asked.directory.path)
    result = chip_table.final_object(name, path, ended)
    begun = any(asked.run(started.chip).manifest.is_file() for started in asked.searches)
    if not begun and all(one.finished is None for one in ended):
        rundir.discard(asked.directory)
    else:
        rundir.write_whole(asked.directory.result, json.dumps(result, indent=1))
    click.echo(json.dumps(result) if as_json else legible("\n".join(chip_table.lines(name, path, ended))))
    return chip_table.exit_code(ended)
