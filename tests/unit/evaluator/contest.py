"""A contest without processes: kernels are Python functions with a simulated cost, and time is what they say it is."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from evaluator_svc.cases import Array, Case
from evaluator_svc.freshness import Flip, Fresh, Values, borrow
from evaluator_svc.ledger import Ledger
from evaluator_svc.poison import Poison
from evaluator_svc.runner.process import Ran
from evaluator_svc.samples import Measured
from evaluator_svc.sequential import Decision
from evaluator_svc.settings import TimingSettings
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.timing import Contest
from shared.contract import Contract
from shared.dtypes import DType
from tests.unit.evaluator import references

ROWS, COLUMNS = 8, 32
WORK_NS = 200_000.0
"""Of one honest call."""
ROUND_TRIP_NS = 20_000
SPEC = TensorSpec(shape=(ROWS, COLUMNS), dtype=DType.F32)

Kernel = Callable[[Array, Array, "Moment"], float]
"""Input and output (both live memory, 2-d), and the moment; returns what the call costs, in ns."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What a real kernel could find out: where its buffers are, how long ago its last call ended (ns)."""

    address: int
    pause_ns: float
    count: int


def softmax(x: Array, y: Array) -> None:
    y[:] = references.softmax(x)


def honest(x: Array, y: Array, moment: Moment) -> float:
    softmax(x, y)
    return WORK_NS


@dataclass
class Process:
    """A launcher (``correctness.Launcher``) whose kernel runs here."""

    kernel: Kernel
    sets: int = 1
    runner_share: float = 0.98
    cpu_share: float = 0.97
    jitter: float = 0.01
    late: Callable[[Array], None] | None = None
    """Gets the output once the controller has read it: a helper that is not done when the call returns."""
    pending: list[Armed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._draw = random.Random(7)
        self._inputs = [np.zeros((ROWS, COLUMNS), np.float32) for _ in range(self.sets)]
        self._outputs = [np.zeros((ROWS, COLUMNS), np.float32) for _ in range(self.sets)]
        self._count, self._unread = 0, False

    def write_input(self, set_: int, index: int, data: Array) -> None:
        self._inputs[set_][:] = np.asarray(data).view(np.float32).reshape(ROWS, COLUMNS)

    def input_bytes(self, set_: int, index: int) -> memoryview:
        return memoryview(self._inputs[set_].reshape(-1).view(np.uint8))

    def output_bytes(self, set_: int, index: int) -> memoryview:
        if self.late is not None and not self._unread:
            self.late(self._outputs[set_])
        self._unread = False
        return memoryview(self._outputs[set_].reshape(-1).view(np.uint8))

    def slack_intact(self) -> str | None:
        return None

    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran:
        set_, spent, pause = first_set % self.sets, 0.0, 1e7
        for _ in range(calls):
            for armed in self.pending:
                armed.make_at(spent)
            self._count += 1
            moment = Moment(address=set_, pause_ns=pause, count=self._count)
            cost = self.kernel(self._inputs[set_], self._outputs[set_], moment)
            spent += cost * (1.0 + self.jitter * self._draw.gauss(0, 1))
            pause = 100.0
        elapsed = round(spent + ROUND_TRIP_NS)
        self._unread = calls > 0
        return Ran(
            elapsed_ns=elapsed,
            runner_ns=round(elapsed * self.runner_share),
            cpu_ns=round(elapsed * self.cpu_share),
            return_code=0,
        )


@dataclass
class Armed:
    """A flip on its way, in simulated time."""

    delay_ns: float
    target: memoryview
    data: bytes
    begun: int = field(default_factory=time.monotonic_ns)
    made: bool = False

    def make_at(self, spent_ns: float) -> None:
        if not self.made and spent_ns >= self.delay_ns:
            self.target[:] = self.data
            self.made = True

    def disarm(self) -> int | None:
        return self.begun + round(self.delay_ns) if self.made else None


class Flipper:
    def __init__(self, process: Process) -> None:
        self._process = process

    def arm(self, delay_ns: float, target: memoryview, data: bytes) -> Armed:
        armed = Armed(delay_ns, target, data)
        self._process.pending = [armed]
        return armed


class Baselines:
    """Both trusted contestants, ten times as slow."""

    names = ("eager", "compiled")
    own_ns = 0

    def write_inputs(self, inputs: object) -> None:
        del inputs

    async def run(self, which: str, calls: int, *, timeout_s: float) -> int:
        self.own_ns = round(10 * WORK_NS * calls)
        return self.own_ns + 5 * ROUND_TRIP_NS


class Rounds:
    """A stopping rule that is tired after some rounds (``sequential.Stopping``)."""

    def __init__(self, most: int) -> None:
        self._left = most

    def look(self, logs: object) -> Decision | None:
        self._left -= 1
        return None if self._left else Decision.EXHAUSTED


def fresh(number: int) -> Fresh:
    """A case with two flips."""
    x = references.inputs(seed=100 + number, rows=ROWS, columns=COLUMNS)
    model = references.reference(references.softmax, x)
    declared = references.softmax(x)
    flips = []
    for to, source in ((number, 100 + number), (200 - number, number)):
        changed = x.copy().reshape(-1)
        changed[to] = changed[source]
        after = references.softmax(changed.reshape(x.shape)).reshape(-1)
        at = np.flatnonzero(after != declared.reshape(-1))
        flips.append(Flip(input=0, to=to, source=source, changed=((at, after[at]),)))
    case = Case(
        name=f"fresh {number}",
        public=True,
        specs=(SPEC,),
        inputs=(np.ascontiguousarray(x).reshape(-1).view(np.uint8),),
        references=(borrow(SPEC, declared.reshape(-1), [model]),),
    )
    return Fresh(case=case, seed=number, state_seed=None, flips=tuple(flips))


async def settle(values: Values) -> Case:
    """With an answer in fp64."""
    x = np.frombuffer(values.fresh.case.inputs[0].tobytes(), np.float32).copy()
    if values.flip is not None:
        x[values.flip.to] = x[values.flip.source]
    reference = references.reference(references.softmax, x.reshape(ROWS, COLUMNS))
    return Case(
        name=values.name, public=True, specs=(SPEC,), inputs=(x.view(np.uint8),), references=(reference,)
    )  # fmt: skip


def contest(
    kernel: Kernel, *, rounds: int = 11, cases: int = 12, contract: Contract | None = None, **process: object
) -> tuple[Measured, Ledger]:
    """What measuring ``kernel`` gives. The first answer is not compared with another process'."""
    ledger, runner = Ledger(), Process(kernel, **process)  # type: ignore[arg-type]
    pool = [fresh(number) for number in range(cases)]
    one = Contest(
        runner,
        Baselines(),  # type: ignore[arg-type]
        pool[0].case,
        pool,
        Poison(),
        TimingSettings(),
        call_s=1.0,
        answers=(),
        settle=settle,
        flipper=Flipper(runner),  # type: ignore[arg-type]
        ledger=ledger,
        process=1,
        contract=contract or Contract(),
    )
    return asyncio.run(one.measure(Rounds(rounds))), ledger  # type: ignore[arg-type]
