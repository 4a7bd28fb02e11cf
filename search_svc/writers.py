"""What each way of writing kernels has brought: the record that the next writer is chosen by (pure).

Attempts are settled in the order of the journal and fade by integer arithmetic, so the record is the same in every
replay. It fades because the gains of a search do: what paid for drafts says little about the last percent.
"""

from __future__ import annotations

from dataclasses import replace

from search_svc import scoring
from search_svc.tree import Node, Tree, put
from shared.events import PPM, CandidateProduced, CandidateRejected, StageTimes, Usage, WriterRecord
from shared.usage import UNKNOWN, by_a_model
from shared.writers import SCHEDULE, filled_in, writer_of

ATTEMPT = 1000
"""Thousandths in an attempt."""
FADE = (15, 16)
"""What a record keeps when another attempt is added: the last sixteen or so count."""
GAIN_MICRO_MAX = 1_000_000
"""One lucky draft, e.g. 20x over a bad baseline, must not outweigh everything after it."""


def shown(tree: Tree) -> tuple[WriterRecord, ...]:
    """What a request carries: nothing until a model has been asked, so that searches without one need no record."""
    if all(writer == SCHEDULE for writer in tree.writers):
        return ()
    return tuple(tree.writers[writer] for writer in sorted(tree.writers))


def judged(tree: Tree, node: Node) -> Tree:
    """``tree`` after the verdict on ``node``."""
    assert node.evaluation is not None
    time_ns, gain = _total(node.evaluation.stages), gain_micro(tree, node)
    if filled_in(node.move):
        own = node.usage
        if by_a_model(node.usage):  # otherwise nobody was asked, and nothing was tried but the schedule
            tree, own = _settle(tree, writer_of(node.context), node.usage), Usage()
        return _settle(tree, SCHEDULE, own, time_ns=time_ns, gain_micro=gain)
    return _settle(tree, writer_of(node.context), node.usage, time_ns=time_ns, gain_micro=gain)


def fruitless(tree: Tree, event: CandidateRejected | CandidateProduced) -> Tree:
    """``tree`` after an answer that brought nothing to evaluate."""
    return _settle(tree, writer_of(event.context), event.usage)


def _settle(tree: Tree, writer: str, usage: Usage, *, time_ns: int = 0, gain_micro: int = 0) -> Tree:
    old = tree.writers.get(writer) or WriterRecord(
        writer=writer, attempts_milli=0, gains_milli=0, gain_micro=0, time_ns=0, cost_micro=0
    )
    unknown = UNKNOWN in (old.cost_micro, usage.cost_micro)  # does not fade: it would look cheap
    new = replace(
        old,
        attempts_milli=_faded(old.attempts_milli) + ATTEMPT,
        gains_milli=_faded(old.gains_milli) + (ATTEMPT if gain_micro else 0),
        gain_micro=_faded(old.gain_micro) + gain_micro,
        time_ns=_faded(old.time_ns) + max(0, usage.latency_ns) + time_ns,
        cost_micro=UNKNOWN if unknown else _faded(old.cost_micro) + usage.cost_micro,
    )
    return replace(tree, writers=put(tree.writers, writer, new))


def _faded(value: int) -> int:
    keep, of = FADE
    return value * keep // of


def gain_micro(tree: Tree, node: Node) -> int:
    """ln(speedup over what ``node`` started from), in millionths; 0 unless its whole interval is beyond that.

    An estimate has no interval: it says who is asked next, and no more. A draft started from nothing, so it is held
    against the baseline (the first draft, where costs are estimated) and the best of the search.
    """
    if not node.passed or not node.score_ppm:
        return 0
    parents = [tree.nodes[name].score_ppm for name in node.parent_ids]
    held_against = parents or [PPM, *(other.score_ppm for other in tree.passed() if other is not node)]
    before = max(held_against) or PPM  # a repair started from what had no time
    if _surely_ppm(tree, node) <= before:
        return 0
    return min(GAIN_MICRO_MAX, max(0, scoring.log_micro(node.score_ppm) - scoring.log_micro(before)))


def _surely_ppm(tree: Tree, node: Node) -> int:
    """The least that ``node``'s score may be in truth, as far as it was measured."""
    speedup = node.evaluation.speedup(tree.search.baseline) if node.evaluation else None
    return speedup.low_ppm if speedup else node.score_ppm


def _total(stages: StageTimes) -> int:
    """The evaluation's own time; waiting for a device says nothing about a kernel."""
    return stages.build_ns + stages.correctness_ns + stages.timing_ns + stages.profile_ns + stages.framework_ns
