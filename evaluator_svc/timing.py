"""Timing: interleaved blocks of candidate, eager and compiled, every call of a block on values and buffers of its own.

A round has two blocks of every contestant, in an order drawn for the round and then in its reverse (A B C C B A): see
``statistics``. One of the two has about twice the calls of the other, by a factor drawn for the round: see ``clocks``.

The candidate's blocks are audited: see ``audited``. In some turns, by lot, it gets one more block, on whole draws that
are new to its process: what those cost beside the draws that it has had is what it may have remembered: see ``recall``.
In others it gets one in which some values are unlike the operator's own, as in the check: see ``unannounced``.
The baselines' blocks run over as many sets of inputs, with as many outputs kept, and from equally empty caches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from evaluator_svc.arrays import Bytes
from evaluator_svc.audited import Audited, Settle, Timed, worked_ns
from evaluator_svc.baselines import Baselines
from evaluator_svc.cases import Case
from evaluator_svc.correctness import unequal
from evaluator_svc.freshness import Deck, Fresh, Values
from evaluator_svc.ledger import Call, Ledger, Stage
from evaluator_svc.oracle import new_seed
from evaluator_svc.placing import case_beside, fresh_beside
from evaluator_svc.poison import Poison
from evaluator_svc.recall import FEWEST
from evaluator_svc.runner.process import Ran
from evaluator_svc.samples import CANDIDATE, Block, Measured, Novelty, Samples
from evaluator_svc.sequential import Stopping
from evaluator_svc.settings import TimingSettings
from evaluator_svc.unannounced import Unannounced, among
from shared.contract import Contract

__all__ = ["CANDIDATE", "Contest", "Measured", "Samples"]

BASELINE_BLOCK_S = 120.0
"""For one block of a baseline; beyond it the baseline's process counts as lost."""
SHORTER = (0.5, 0.85)
"""The shorter block of a round has a share of the calls that fill one, drawn from here; the longer has twice that."""
LONGEST = 2 * SHORTER[1]
OPENED = 0.3
"""Share of the draws that are known from the beginning; the others are for blocks on new ones,"""
NOVEL_BLOCKS, NOVEL_CHANCE = 8, 0.5
"""of which there are as many, each by this chance in a turn, so that they lie all over a measurement."""
LATE_BLOCKS = 4
"""More of them, whose new draws come at the end of a block as long as those that are claimed, where blocks that are
compared are of one length: who works in the first calls of a block alone is not found by short ones."""
EMPTY_COMMANDS = 5
"""At the beginning; one more in every round."""
UNMUTATED = Contract()


class Contest:
    """One candidate against the baselines in one pair of processes."""

    def __init__(
        self,
        runner: Timed,
        baselines: Baselines,
        first: Case,
        pool: Sequence[Fresh],
        poison: Poison,
        settings: TimingSettings,
        *,
        call_s: float,
        answers: Sequence[Bytes],
        settle: Settle,
        ledger: Ledger,
        process: int,
        contract: Contract = UNMUTATED,
        off_calls_ns: float | None = None,
        checked: Sequence[Case] = (),
    ) -> None:
        """``answers``: what the kernel gave for ``first`` in another process, empty where that need not repeat. This is
        number ``process``. ``pool``: values that no process is given for checking. ``off_calls_ns``: what a block on a
        GPU takes besides its calls, which is then no part of them, and a baseline's are timed by the device.
        ``checked``: what another process was right on, held-out values among it.
        """
        self._off_calls_ns = off_calls_ns
        self._runner, self._baselines, self._settings = runner, baselines, settings
        self._ledger, self._process = ledger, process
        self._first, self._answers, self._contract = case_beside(first, runner.placed), answers, contract
        self._draw = random.Random(new_seed())  # noqa: S311 - seeded from the operating system
        self._names = (CANDIDATE, *baselines.names)
        self._measured = Measured(
            samples={name: Samples() for name in self._names},
            pipelined=runner.pipelined,
            alike=runner.first_calls_dearer,
            off_calls_ns=off_calls_ns or 0.0,
        )
        self._pool = pool
        self._deck = Deck([fresh_beside(fresh, runner.placed) for fresh in pool], self._draw)
        self._deck.open(max(1, round(OPENED * len(pool))))
        self._novel = max(1, self._deck.unused // (NOVEL_BLOCKS + LATE_BLOCKS * runner.first_calls_dearer))
        """Calls on new draws in a block, at most."""
        # Weights that persist are the pool's here; those cases have others.
        self._checked = () if contract.persistent_weights else tuple(checked)
        self._unannounced = Unannounced((), self._draw, calls=1)
        self._spans = dict.fromkeys(baselines.names, 1)
        """Of each baseline: the sets over which its blocks rotate."""
        self._candidate = Audited(
            runner,
            poison,
            self._draw,
            call_s=call_s,
            measured=self._measured,
            ledger=ledger,
            process=process,
            settle=settle,
            contract=contract,
        )

    async def measure(self, stopping: Stopping) -> Measured:
        """Measure rounds until ``stopping`` has decided, or an output is wrong, or the runner dead."""
        if not await self._warm_up():
            return self._measured
        fill = self._measured.samples[CANDIDATE].calls
        self._unannounced = Unannounced(self._checked, self._draw, calls=fill)
        while self._measured.decision is None:
            if not await self._round():
                return self._measured
            self._measured.decision = stopping.look(self._measured.logs())
        while self._unannounced.left:
            if not await self._unlike(max(1, round(self._draw.uniform(*SHORTER) * fill))):
                return self._measured
        if await self._compared():
            await self._endures()
        return self._measured

    async def cold(self, times: int, evict: Callable[[], None]) -> bool:
        """Single calls after the caches were evicted, of every contestant."""
        for _ in range(times):
            for name in self._names:
                if name == CANDIDATE and not self._candidate.load(self._deck.known(1)):
                    return False
                evict()
                elapsed = await self._one(name, Stage.COLD, 1)
                if elapsed is None:
                    return False
                self._measured.samples[name].cold_ns.append(elapsed)
        return True

    async def _round(self) -> bool:
        """Two blocks of every contestant, mirrored; False after the candidate failed."""
        order = self._draw.sample(self._names, len(self._names))
        share = self._draw.uniform(*SHORTER)
        shorter_first = self._draw.random() < 0.5
        for half, names in enumerate((order, order[::-1])):
            long = shorter_first == bool(half)
            for name in names:
                calls = max(1, round(self._measured.samples[name].calls * share)) * (2 if long else 1)
                if name != CANDIDATE:
                    await self._baseline_turn(name, calls)
                elif not await self._turn(calls):
                    return False
        return await self._candidate.empty()

    async def _turn(self, calls: int) -> bool:
        """The candidate's: a claimed block, and by lot one with values unlike the operator's own beside it."""
        if self._unannounced.due() and not await self._unlike(calls):
            return False
        if not await self._claimed(calls):
            return False
        return not self._unannounced.due() or await self._unlike(calls)

    async def _unlike(self, calls: int) -> bool:
        """A block as any other, with some values that only the check has had so far; False after a failure."""
        known = self._deck.known(min(calls, self._runner.sets))
        cases = [case_beside(case, self._runner.placed) for case in self._unannounced.next(len(known))]
        unlike = [Values(fresh=Fresh(case=case, seed=None, state_seed=None)) for case in cases]
        return await self._ran(among(known, unlike, self._draw), Stage.CHECK) is not None

    async def _claimed(self, calls: int) -> bool:
        """A block, and by lot one on new draws, before it or after it."""
        samples, count = self._measured.samples[CANDIDATE], min(calls, self._novel)
        novel = self._deck.unused >= count and self._draw.random() < NOVEL_CHANCE
        if novel and self._measured.alike:
            if not await self._novelty(count, self._before(count) if self._late_is_due() else 0):
                return False
            novel = False
        new_first = self._draw.random() < 0.5
        new = await self._block(self._deck.new(count), Stage.FRESH) if novel and new_first else None
        if novel and new_first and new is None:
            return False
        # Compared with new draws, known ones are wholly known: in a block of two calls one flip is half of the work.
        known = self._deck.known(min(calls, self._runner.sets), flips=not novel)
        ran = await self._block(known, Stage.BLOCK)
        if ran is None:
            return False
        if novel and not new_first:
            new = await self._block(self._deck.new(count), Stage.FRESH)
            if new is None:
                return False
        if new is not None:
            self._measured.novelty.append(Novelty(new=new, known=ran))
        samples.block_ns.append(self._measured.of_calls(ran.wall_ns) / ran.calls)
        samples.own_block_ns.append(ran.own_ns / ran.calls)
        samples.lengths.append(ran.calls)
        return True

    def _late_is_due(self) -> bool:
        """Whether the next pair is one of long blocks: they are fewer, and as evenly spread."""
        return self._pairs(late=True) * NOVEL_BLOCKS < self._pairs(late=False) * LATE_BLOCKS

    async def _novelty(self, count: int, before: int = 0) -> bool:
        """New draws beside as many known ones, where a call of a short block costs more than one of a long block,
        whatever it is given; in either block after ``before`` known draws. False after a failure.
        """
        known = self._deck.known(before + count, flips=False)
        new = [*(self._deck.known(before, flips=False) if before else ()), *self._deck.new(count)]
        sides = [("known", known), ("new", new)]
        self._draw.shuffle(sides)
        blocks: dict[str, Block] = {}
        for name, values in sides:
            ran = await self._block(values, Stage.FRESH)
            if ran is None:
                return False
            blocks[name] = ran
        self._measured.novelty.append(Novelty(**blocks, late=count if before else 0))
        return True

    async def _block(self, values: Sequence[Values], stage: Stage) -> Block | None:
        """A block of the candidate, verified; None after it failed."""
        ran = await self._ran(values, stage)
        return None if ran is None else Block(calls=len(values), wall_ns=ran.elapsed_ns, own_ns=worked_ns(ran))

    async def _ran(self, values: Sequence[Values], stage: Stage) -> Ran | None:
        if not self._candidate.load(values):
            return None
        ran = await self._candidate.call(stage)
        return ran if ran is not None and await self._candidate.verify() else None

    async def _compared(self) -> bool:
        """Pairs of blocks that the lot left out, until there are enough to say anything. False after a failure."""
        for late in (False, True) if self._measured.alike and self._before(self._novel) else (False,):
            while self._deck.unused >= self._novel and self._pairs(late=late) < FEWEST:
                if not await self._novelty(self._novel, self._before(self._novel) if late else 0):
                    return False
        return True

    def _before(self, count: int) -> int:
        """Known draws before ``count`` new ones at the end of a long block, which nobody can count on."""
        fill = self._measured.samples[CANDIDATE].calls
        longest = min(self._runner.sets, round(LONGEST * fill))
        return max(0, self._draw.randint(min(fill, longest), longest) - count)

    def _pairs(self, *, late: bool) -> int:
        return sum((pair.late > 0) is late for pair in self._measured.novelty)

    async def _endures(self) -> bool:
        """A secret number of calls more, verified: no count of calls is one after the last."""
        calls = self._draw.randint(1, self._runner.sets)
        return await self._ran(self._deck.known(calls), Stage.CHECK) is not None and self._candidate.unchanged()

    async def _baseline_turn(self, name: str, calls: int) -> None:
        samples, calls = self._measured.samples[name], min(calls, self._baselines.sets)
        wall_ns, device_ns = await self._run(name, calls, Stage.BLOCK), self._baselines.device_ns
        taken_ns = wall_ns if self._off_calls_ns is None or device_ns is None else device_ns
        samples.block_ns.append(taken_ns / calls)
        samples.own_block_ns.append(self._baselines.own_ns / calls)
        samples.lengths.append(calls)

    async def _warm_up(self) -> bool:
        """Touch everything, compare with the process that was checked, and size the blocks."""
        if not await self._repeats():
            return False
        for _ in range(EMPTY_COMMANDS):
            if not await self._candidate.empty():
                return False
        for name in self._names:
            if not await self._sized(name):
                return False
        return True

    async def _sized(self, name: str) -> bool:
        """Warm a contestant up on all sets that it will be timed on, and find how many calls fill a block.

        A short call is mostly overhead of the round trip: it is sized again from a block.
        """
        samples = self._measured.samples[name]
        room = self._runner.sets if name == CANDIDATE else self._baselines.sets
        calls = room if name == CANDIDATE else 1
        for _ in range(self._draw.randint(2, 3)):
            if name == CANDIDATE and not self._candidate.load(self._deck.known(calls)):
                return False
            elapsed = await self._one(name, Stage.WARM_UP, calls)
            if elapsed is None:
                return False
            fill = self._settings.block_ns * calls / max(elapsed, 1.0)
            samples.calls = max(1, min(int(room / LONGEST), round(fill)))
            calls = min(room, max(1, round(LONGEST * samples.calls)))
            if name != CANDIDATE:
                self._spans[name] = calls
        return name == CANDIDATE or await self._one(name, Stage.WARM_UP, calls) is not None

    async def _repeats(self) -> bool:
        """Whether this process gives the bytes that the checked one gave."""
        if self._contract.persistent_weights:
            return True  # these are other weights than the pool's, and a process has the right to one set of them
        values = Values(fresh=Fresh(case=self._first, seed=None, state_seed=None))
        if not self._candidate.load([values]) or await self._candidate.call(Stage.WARM_UP) is None:
            return False
        if self._answers:
            said = "two processes give different results on equal inputs"
            differs = unequal(self._first, self._answers, self._candidate.outputs(), said)
            if differs is not None:
                return self._candidate.fail(differs)
        return await self._candidate.verify()

    async def _one(self, name: str, stage: Stage, calls: int) -> float | None:
        """Elapsed ns of ``calls`` calls, of the candidate's on what is loaded; None after it failed."""
        if name != CANDIDATE:
            return await self._run(name, calls, stage)
        ran = await self._candidate.call(stage)
        return ran.elapsed_ns if ran is not None and await self._candidate.verify() else None

    async def _run(self, name: str, calls: int, stage: Stage) -> float:
        """A block of a baseline."""
        span = max(self._spans[name], calls)
        first = self._draw.randrange(span)
        self._baselines.fill(self._pool, span, again=bool(self._contract.mutates))
        await self._baselines.cool(first, calls, span, outputs=self._runner.cools_outputs)
        # The candidate's process gets its device from this one, and is waited for by this one: so is a baseline's.
        await self._runner.waited_ns()
        elapsed = await self._baselines.run(name, calls, first=first, span=span, timeout_s=BASELINE_BLOCK_S)
        elapsed += await self._runner.waited_ns()
        self._ledger.call(
            Call(
                stage=stage,
                process=self._process,
                contestant=name,
                case=f"{calls} sets of values",
                calls=calls,
                controller_ns=round(elapsed),
                runner_ns=self._baselines.own_ns,
                device_ns=self._baselines.device_ns,
            )
        )
        return elapsed
