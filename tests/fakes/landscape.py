"""A search space with a known best, standing in for synthesizer and evaluator.

A kernel is a point with a handful of small coordinates, like a schedule: its source hash *is* the point's text. Time
grows with the weighted distance from the best point, two coordinates interact, and a corner of the space does not
compile. Everything is a pure function of the request, so searches over it replay.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from shared import ids
from shared.events import (
    PPM,
    Basis,
    Evaluation,
    EvaluationCompleted,
    EvaluationRequested,
    Event,
    ExpansionRequested,
    Purpose,
    Status,
    Usage,
)
from tests.builders import a_failure, a_kernel, a_pass, an_estimate, expansion_failed, measured, produced, rejected

Point = tuple[int, ...]


def text_of(point: Point) -> str:
    return "-".join(str(coordinate) for coordinate in point)


def point_of(text: str) -> Point:
    return tuple(int(part) for part in text.split("-"))


@dataclass(frozen=True)
class Landscape:
    """``best`` is the fastest point, ``peak_ppm`` its speedup; coordinates run from 0 to ``levels`` - 1."""

    best: Point = (5, 2, 6, 3, 1)
    levels: int = 8
    peak_ppm: int = 4_000_000
    unsupported: bool = False

    def speedup_ppm(self, point: Point) -> int:
        """Speedup of a point: falls off as a Gaussian around the best, with a ridge between the first two axes."""
        distance = sum((a - b) ** 2 for a, b in zip(point, self.best, strict=True))
        ridge = ((point[0] - self.best[0]) - (point[1] - self.best[1])) ** 2
        return round(self.peak_ppm * math.exp(-(distance + 0.5 * ridge) / 30))

    def breaks(self, point: Point) -> bool:
        """The corner that does not compile."""
        return point[0] + point[-1] >= self.levels

    def synthesize(self, request: ExpansionRequested) -> list[Event]:
        """One answer per index: a new point, or a rejection when the neighbourhood is known already."""
        known = dict.fromkeys(request.known_kernel_ids)
        answers: list[Event] = []
        for index in range(request.count):
            point = self._propose(request, index, known)
            if point is None:
                answers.append(rejected(request, index))
                continue
            kernel = a_kernel(text_of(point))
            known[kernel.kernel_id] = None
            answers.append(produced(request, index, kernel))
        return answers

    def evaluate(self, request: EvaluationRequested) -> EvaluationCompleted:
        return measured(request, self.verdict(point_of(request.kernel.source_hash), request.purpose))

    def verdict(self, point: Point, purpose: Purpose) -> Evaluation:
        if self.breaks(point):
            return a_failure(Status.COMPILE_ERROR)
        shift = 0 if purpose is Purpose.SEARCH else -5_000
        return a_pass(max(self.speedup_ppm(point) + shift, 1), spread_ppm=20_000)

    def _propose(self, request: ExpansionRequested, index: int, known: dict[str, None]) -> Point | None:
        rng = ids.stream(request.seed, index, "propose")
        options = [point for point in self._options(request, rng) if a_kernel(text_of(point)).kernel_id not in known]
        return options[rng.randrange(len(options))] if options else None

    def _options(self, request: ExpansionRequested, rng: random.Random) -> list[Point]:
        if not request.parents:  # a draft: the slow end of the space
            return [tuple(rng.randrange(3) for _ in self.best) for _ in range(4)]
        first = point_of(request.parents[0].source_hash)
        if len(request.parents) == 2:
            second = point_of(request.parents[1].source_hash)
            return [tuple(rng.choice(pair) for pair in zip(first, second, strict=True)) for _ in range(8)]
        return [
            (*first[:axis], first[axis] + step, *first[axis + 1 :])
            for axis in range(len(first))
            for step in (-1, 1)
            if 0 <= first[axis] + step < self.levels
        ]


@dataclass(frozen=True)
class Clockless(Landscape):
    """On a chip that nothing can be timed on: kernels have costs instead, in inverse proportion to their speedups."""

    basis: Basis = Basis.COUNTED
    draft_cost: int = 1_000_000_000
    """Of a kernel as fast as the baseline."""

    def verdict(self, point: Point, purpose: Purpose) -> Evaluation:
        del purpose
        if self.breaks(point):
            return a_failure(Status.COMPILE_ERROR)
        return an_estimate(self.draft_cost * PPM // max(1, self.speedup_ppm(point)), self.basis)


@dataclass(frozen=True)
class Moody(Landscape):
    """Whoever writes cannot go on, now and then, until somebody acts; ``share`` of the requests meet that."""

    share: float = 0.3

    def synthesize(self, request: ExpansionRequested) -> list[Event]:
        if ids.stream(0, request.expansion_id, "mood").random() < self.share:
            spent = Usage(input_tokens=100, requests=1, cost_micro=7)
            return [expansion_failed(request, "endpoint", "does not answer", pauses=True, usage=spent)]
        return super().synthesize(request)
