"""A contest without processes: kernels are Python functions with a simulated cost, and time is what they say it is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evaluator_svc.arrays import Array, on_host
from evaluator_svc.cases import Case
from evaluator_svc.freshness import Flip, Fresh, Values, borrow
from evaluator_svc.ledger import Ledger
from evaluator_svc.poison import Poison
from evaluator_svc.runner.host_outputs import HostOutputs
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
    process: Process
    """All sets: they lie in its memory."""


def softmax(x: Array, y: Array) -> None:
    y[:] = references.softmax(x)


def honest(x: Array, y: Array, moment: Moment) -> float:
    softmax(x, y)
    return WORK_NS


@dataclass
class Process(HostOutputs):
    """A launcher (``audited.Timed``) whose kernel runs here."""

    kernel: Kernel
    sets: int = 24
    runner_share: float = 0.98
    cpu_share: float = 0.97
    jitter: float = 0.01
    settle_ns: int = ROUND_TRIP_NS
    cools_outputs: bool = True
    pipelined: bool = False
    first_calls_dearer: bool = False
    owns_results: bool = False
    device_waits_ns: int = 0
    late: Callable[[Array], None] | None = None
    """Gets an output once the controller has read it: a helper that is not done when the call returns."""

    def __post_init__(self) -> None:
        self._draw = random.Random(7)
        self.inputs = np.zeros((self.sets, ROWS, COLUMNS), np.float32)
        self.outputs = np.zeros((self.sets, ROWS, COLUMNS), np.float32)
        self._count, self._reads = 0, 0

    def write_input(self, set_: int, index: int, data: Array) -> None:
        self.write_sets([set_], index, data)

    def write_sets(self, sets: Sequence[int], index: int, data: Array) -> None:
        self.inputs[list(sets)] = np.asarray(data).view(np.float32).reshape(ROWS, COLUMNS)

    def input_bytes(self, set_: int, index: int) -> memoryview:
        return memoryview(self.inputs[set_].reshape(-1).view(np.uint8))

    def output_bytes(self, set_: int, index: int) -> memoryview:
        return memoryview(self.outputs[set_].reshape(-1).view(np.uint8))

    def output_rows(self, index: int) -> Array:
        self._reads += 1
        if self.late is not None and self._reads > 1:  # since the last call: to verify, then to write what is next
            self.late(self.outputs)
        return self.outputs.reshape(self.sets, -1).view(np.uint8)

    def cool(self, first_set: int, calls: int) -> None:
        del first_set, calls

    async def waited_ns(self) -> int:
        return self.device_waits_ns

    def slack_intact(self) -> str | None:
        return None

    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran:
        spent, pause = 0.0, 1e7
        for i in range(calls):
            set_ = (first_set + i) % self.sets
            self._count += 1
            moment = Moment(address=set_, pause_ns=pause, count=self._count, process=self)
            cost = self.kernel(self.inputs[set_], self.outputs[set_], moment)
            spent += cost * (1.0 + self.jitter * self._draw.gauss(0, 1))
            pause = 100.0
        elapsed = round(spent + ROUND_TRIP_NS)
        self._reads = 0
        return Ran(
            elapsed_ns=elapsed,
            runner_ns=round(elapsed * self.runner_share),
            cpu_ns=round(elapsed * self.cpu_share),
            return_code=0,
            settle_ns=self.settle_ns,
        )


class Baselines:
    """Both trusted contestants, ten times as slow."""

    names = ("eager", "compiled")
    own_ns = 0
    device_ns: int | None = None
    sets = 24

    def __init__(self) -> None:
        self.runs: list[tuple[str, int, int, int]] = []
        """Which, and the sets: how many calls, the first, of how many."""
        self.cooled: list[tuple[int, int, int]] = []
        self.filled = 0

    def fill(self, pool: Sequence[Fresh], span: int, *, again: bool = False) -> None:
        self.filled = max(self.filled, span)

    async def cool(self, first: int, calls: int, span: int, *, outputs: bool) -> None:
        self.cooled.append((calls, first, span))

    async def run(self, which: str, calls: int, *, first: int, span: int, timeout_s: float) -> int:
        self.runs.append((which, calls, first, span))
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


def held_out(name: str, change: Callable[[Array], Array]) -> Case:
    """A case of the check: values unlike the operator's own, with an answer in fp64."""
    x = change(references.inputs(seed=77, rows=ROWS, columns=COLUMNS)).astype(np.float32)
    return Case(
        name=name,
        public=False,
        specs=(SPEC,),
        inputs=(np.ascontiguousarray(x).reshape(-1).view(np.uint8),),
        references=(references.reference(references.softmax, x),),
    )


async def settle(values: Values) -> Case:
    """With an answer in fp64."""
    if values.settled:
        return values.fresh.case
    x = np.frombuffer(on_host(values.fresh.case.inputs[0]).tobytes(), np.float32).copy()
    if values.flip is not None:
        x[values.flip.to] = x[values.flip.source]
    reference = references.reference(references.softmax, x.reshape(ROWS, COLUMNS))
    return Case(
        name=values.name, public=True, specs=(SPEC,), inputs=(x.view(np.uint8),), references=(reference,)
    )  # fmt: skip


def contest(
    kernel: Kernel,
    *,
    rounds: int = 11,
    cases: int = 24,
    contract: Contract | None = None,
    baselines: Baselines | None = None,
    off_calls_ns: float | None = None,
    checked: Sequence[Case] = (),
    **process: object,
) -> tuple[Measured, Ledger]:
    """What measuring ``kernel`` gives. The first answer is not compared with another process'."""
    ledger, runner = Ledger(), Process(kernel, **process)  # type: ignore[arg-type]
    pool = [fresh(number) for number in range(cases)]
    one = Contest(
        runner,
        baselines or Baselines(),  # type: ignore[arg-type]
        fresh(cases).case,  # none of the pool's, as in a worker
        pool,
        Poison(),
        TimingSettings(),
        call_s=1.0,
        answers=(),
        settle=settle,
        ledger=ledger,
        process=1,
        contract=contract or Contract(),
        off_calls_ns=off_calls_ns,
        checked=checked,
    )
    return asyncio.run(one.measure(Rounds(rounds))), ledger  # type: ignore[arg-type]
