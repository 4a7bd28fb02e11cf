"""A whole recorded search over the toy landscape, with the evidence a real evaluator gives."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from search_svc import chain
from search_svc.decide import decide
from search_svc.tree import Tree
from shared import wire
from shared.events import (
    Bound,
    CandidateProduced,
    Diagnosis,
    Entry,
    Evaluation,
    EvaluationCompleted,
    EvaluationRequested,
    Event,
    ExpansionRequested,
    Move,
    Roofline,
    SearchStarted,
    Status,
    Timing,
)
from shared.store import JournalEntry
from tests.builders import SECOND_NS, a_search, enveloped
from tests.fakes.landscape import Landscape

HOSTILE = "vector<width> & </script><b>16"
Floors = tuple[tuple[str, str], ...]
FLOORS = (("memory_floor_ns", "400000 (54%, reaches L3)"), ("compute_floor_ns", "320000 (43%)"))
UNKNOWN = (
    ("memory_floor_ns", "unavailable: bandwidth not measured"),
    ("compute_floor_ns", "unavailable: the operator's operations are not counted"),
)


@dataclass(frozen=True)
class Recorded:
    tree: Tree
    entries: tuple[JournalEntry, ...]
    blobs: dict[str, bytes]


def record(search: SearchStarted | None = None, *, flops: int = 40_000_000, floors: Floors = FLOORS) -> Recorded:
    """Play ``search`` to its end; every source is a blob, every fact is a second after the last."""
    landscape, waiting = (
        Landscape(best=(5, 2, 4, 3, 4)),
        deque[Event]([search or a_search(evaluations=60, candidates_per_expansion=3)]),
    )
    tree, entries, blobs = None, [], {}
    while waiting:
        event = waiting.popleft()
        if isinstance(event, CandidateProduced | EvaluationCompleted):
            event = replace(event, at_ns=(len(entries) + 1) * SECOND_NS)
        envelope = enveloped(event)
        tree, commands = decide(tree, envelope)
        last = entries[-1].digest if entries else ""
        packed = tuple(wire.pack(command) for command in commands)
        entries.append(chain.link(last, len(entries), envelope.id, wire.pack(envelope), packed))
        for command in commands:
            for answer in _answers(landscape, command.event, flops=flops, floors=floors):
                waiting.append(answer)
                if isinstance(answer, CandidateProduced):
                    blobs[answer.kernel.source_hash] = _source(answer.kernel.source_hash)
    assert tree is not None
    assert tree.finished
    return Recorded(tree=tree, entries=tuple(entries), blobs=blobs)


def _answers(landscape: Landscape, command: Event, *, flops: int, floors: Floors) -> list[Event]:
    if isinstance(command, ExpansionRequested):
        answers = landscape.synthesize(command)
        return [_moved(a) if isinstance(a, CandidateProduced) else a for a in answers]
    if isinstance(command, EvaluationRequested):
        done = landscape.evaluate(command)
        return [replace(done, evaluation=_detailed(done.evaluation, flops=flops, floors=floors))]
    return []


def _moved(candidate: CandidateProduced) -> CandidateProduced:
    name = HOSTILE if candidate.parent_ids else "draft:default"
    return replace(candidate, move=Move(name=name, rationale="wider vectors <i>pay</i> when compute-bound"))


def _detailed(found: Evaluation, *, flops: int, floors: Floors) -> Evaluation:
    environment = (Entry(name="compiler", value="g++ 12"), Entry(name="processor", value="a processor"))
    if found.status is not Status.PASSED:
        return replace(found, environment=environment)
    eager = 3_000_000
    own = eager * 1_000_000 // next(s.ratio_ppm for s in found.speedups if s.baseline == "eager")
    timings = tuple(
        Timing(name=name, median_ns=ns, block_ns=(ns,) * 5, calls_per_block=3, cold_ns=2 * ns)
        for name, ns in (("candidate", own), ("eager", eager), ("compiled", eager * 4 // 5))
    )
    return replace(
        found,
        timings=timings,
        environment=environment,
        sandbox="namespaces+rlimits",
        roofline=Roofline(
            bytes_min=8_000_000, flops_min=flops, floor_ns=400_000, fraction_ppm=400_000 * 1_000_000 // own
        ),
        diagnosis=Diagnosis(
            bound=Bound.MEMORY,
            summary="waits for memory",
            evidence=tuple(Entry(name=name, value=value) for name, value in floors),
        ),
    )


def _source(point: str) -> bytes:
    lines = [f"// point {point}", '#include "ke_abi.h"', *(f"int c{n} = {p};" for n, p in enumerate(point.split("-")))]
    return "\n".join([*lines, "bool less(int a, int b) { return a < b && b > 0; }"]).encode()
