"""One search of the comparison: through the product's command line, and read back from what it leaves."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli import history
from cli.announce import EXIT_CODES
from cli.phases import PAUSED
from search_svc import projection
from search_svc.tree import Node, Tree
from shared import wire
from shared.errors import KernelEvolveError
from shared.events import (
    NOT_THE_KERNELS_FAULT,
    CandidateProduced,
    CandidateRejected,
    Envelope,
    EvaluationCompleted,
    Event,
    ExpansionFailed,
    Purpose,
    SearchFinished,
    Usage,
)
from shared.writers import INSTEAD_OF, filled_in, writer_of
from synthesizer_svc.settings import budget
from tests.bench.synth_endpoints import OF_ONE_ENDPOINT
from tests.bench.synth_plan import Cell, Equal, Plan
from tests.bench.synth_report import Outcome

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = (ROOT / "examples" / "operators", ROOT / "tests" / "operators")
DRAIN_S = 60.0
"""For a search that is ended to put its workers away."""
EVALUATIONS_MAX = 40_000
"""Of a search that its time limits: the most that one may ask for."""
INSTEAD = "schedules, in its place"
SAID_CHARS = 1000
LIMITS = frozenset({"evaluations", "wall_clock"})
MONEY = "synthesis_budget"
OWN_BUDGET = "the search's budget"
"""How the detail begins of a search that its own money ended, and not that of a day or a price that nobody knows."""
MICRO = 1_000_000
NS_PER_S = 1_000_000_000


class SearchFailedError(Exception):
    """The command ended with an error, or before its search did; carries what it said."""


def operator_path(name: str) -> Path:
    """The file of an example or test operator.

    Raises:
        FileNotFoundError: there is none of that name.
    """
    for folder in OPERATORS:
        if (folder / f"{name}.py").is_file():
            return folder / f"{name}.py"
    raise FileNotFoundError(name)


def run(cell: Cell, plan: Plan, folder: Path, model: Mapping[str, str], *, within_s: float) -> Outcome:
    """Search. ``model``: the settings that name the model, for ways that ask one.

    Raises:
        SearchFailedError: the command failed, or its search paused; a search that finds nothing has not.
    """
    out = folder / cell.name
    by_evaluations = cell.equal is Equal.EVALUATIONS
    limit = ("--evaluations", plan.evaluations) if by_evaluations else ("--seconds", plan.seconds)
    more: tuple[object, ...] = () if by_evaluations else ("--evaluations", EVALUATIONS_MAX)
    more += ("--chip", plan.chip) if plan.chip else ()
    environment = (dict(model) if cell.way.asks else {}) | _environment(folder / f"{cell.name}.home")
    if plan.money and cell.way.asks and not by_evaluations:
        more += ("--model-budget", plan.money)
        environment |= {"MODEL_BUDGET_WHEN_SPENT": "end"}
    arguments = ("optimize", operator_path(cell.operator), *limit, *more, "--seed", cell.seed, "--out", out, "--json")
    command = [sys.executable, "-m", "cli.main", *map(str, arguments)]
    try:
        done = called(command, environment | cell.way.settings, folder / f"{cell.name}.said", within_s)
    except subprocess.TimeoutExpired as error:
        raise SearchFailedError(f"{cell.name}: no end within {error.timeout:.0f} s") from error
    if done.returncode not in (0, 1, EXIT_CODES[PAUSED]) or not done.stdout.strip():
        said = " ".join(done.stderr[-SAID_CHARS:].split())
        raise SearchFailedError(f"{cell.name}: exit status {done.returncode}: {said}")
    try:
        result = json.loads(done.stdout.splitlines()[-1])
        if result["outcome"] == PAUSED:
            raise SearchFailedError(f"{cell.name}: paused: {result['reason']} {result['detail']}")
        return asyncio.run(read(cell, out, result))
    except (KernelEvolveError, OSError, ValueError, KeyError, TypeError) as error:  # one search is not the comparison
        raise SearchFailedError(f"{cell.name}: what it left cannot be read: {error!r}") from error


def called(
    command: Sequence[str], environment: Mapping[str, str], said: Path, within_s: float
) -> subprocess.CompletedProcess[str]:
    """What ``command`` said and ended with. It writes to files beside ``said``, because processes that outlive it would
    hold a pipe open.

    Raises:
        subprocess.TimeoutExpired: it was ended after ``within_s``.
    """
    out, err = said.with_suffix(".out"), said.with_suffix(".err")
    with out.open("wb") as to_out, err.open("wb") as to_err:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=to_out, stderr=to_err)
        try:
            status = process.wait(within_s)
        except BaseException:
            process.terminate()
            try:
                process.wait(DRAIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            raise
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in (out, err)]
    return subprocess.CompletedProcess(command, status, *texts)


def _environment(home: Path) -> dict[str, str]:
    """Without what names a model, and without skills of other searches: each must find everything itself. What a day
    may cost is one account all the same.
    """
    left_out = ("SKILLS_URL", *OF_ONE_ENDPOINT, "MODEL_ENDPOINTS")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    return environment | {
        "MODEL_BUDGET_DAYS_URL": budget(os.environ).days_url,
        "XDG_DATA_HOME": str(home),
        "COLUMNS": "120",
    }


async def read(cell: Cell, out: Path, result: Mapping[str, Any]) -> Outcome:
    """The outcome of a finished search, from its run directory and final object."""
    past = await history.open_past(out)
    envelopes = [wire.unpack(entry.event) for entry in past.entries]
    events = [envelope.event for envelope in envelopes]
    usages = [one.usage for one in events if isinstance(one, CandidateProduced | CandidateRejected | ExpansionFailed)]
    asked = [one for one in usages if _called(one)]
    winner = projection.winner(past.tree)
    speedup = (result["best"] or {}).get("speedup", {})
    known = [value for value in (speedup.get("eager"), speedup.get("compiled")) if value is not None]
    produced = [one for one in events if isinstance(one, CandidateProduced | CandidateRejected)]
    return Outcome(
        cell=cell,
        gain=min(known) if winner and known else 1.0,
        improved=result["outcome"] == "improved",
        evaluations=result["evaluations"],
        seconds=_seconds(envelopes),
        winner=_writer(winner) if winner else "",
        by_writer=evaluated(past.tree),
        unmeasured=unmeasured(past.tree),
        rejected=_rejected(events),
        models=frozenset(one.context.model for one in produced if one.context.model),
        requests=sum(one.requests for one in asked),
        input_tokens=sum(one.input_tokens for one in asked),
        cached_tokens=sum(one.cached_tokens for one in asked),
        output_tokens=sum(one.output_tokens for one in asked),
        reasoning_tokens=sum(one.reasoning_tokens for one in asked),
        estimated=any(one.estimated for one in asked),
        cost=_cost(asked),
        model_s=sum(one.latency_ns for one in asked) / NS_PER_S,
        money_spent=out_of_money(past.tree),
        ended=ended_early(result),
    )


def evaluated(tree: Tree) -> Counter[str]:
    """Candidates that cost an evaluation, by who wrote them: one for each evaluation that the search counts."""
    verdicts = (node for node in tree.nodes.values() if node.evaluation and not _given_up(node))
    return Counter(map(_writer, verdicts))


def unmeasured(tree: Tree) -> int:
    """Candidates that no attempt could measure. The search takes their evaluations back and asks for others."""
    return sum(map(_given_up, tree.nodes.values()))


def _given_up(node: Node) -> bool:
    return node.evaluation is not None and node.evaluation.status in NOT_THE_KERNELS_FAULT


def out_of_money(tree: Tree) -> bool:
    """Whether the search's money did not allow another answer, be it that it ended then or that schedules stood in."""
    moves = (entry.value for node in tree.nodes.values() for entry in node.move.parameters if entry.name == INSTEAD_OF)
    reasons = (f"{MONEY}: {tree.synthesis_failure[1]}" if tree.limit == MONEY else "", *moves)
    return any(OWN_BUDGET in reason for reason in reasons)


def ended_early(result: Mapping[str, Any]) -> str:
    """Why a search ended, unless by a limit of the comparison."""
    reason, detail = result["reason"], result["detail"] or ""
    limit = reason in LIMITS or (reason == MONEY and detail.startswith(OWN_BUDGET))
    return "" if limit else f"{reason} {detail}".strip()


def _called(usage: Usage) -> bool:
    """Whether a model was asked: schedules cost time only."""
    return bool(usage.requests or usage.input_tokens or usage.output_tokens)


def _writer(node: Node) -> str:
    return INSTEAD if filled_in(node.move) else writer_of(node.context)


def _rejected(events: Iterable[Event]) -> Counter[str]:
    rejected = [one for one in events if isinstance(one, CandidateRejected | ExpansionFailed)]
    return Counter(one.code for one in rejected)


def _cost(asked: Iterable[Usage]) -> float | None:
    costs = [one.cost_micro for one in asked]
    return None if any(cost < 0 for cost in costs) else sum(costs) / MICRO


def _seconds(envelopes: Sequence[Envelope]) -> float:
    """From the start of a search until it had its last candidate's verdict, before anything was measured again."""
    times = [one.time_ns for one in envelopes if not _afterwards(one.event)]
    return (max(times) - min(times)) / NS_PER_S


def _afterwards(event: Event) -> bool:
    final = isinstance(event, EvaluationCompleted) and event.purpose is Purpose.FINAL
    return final or isinstance(event, SearchFinished)
