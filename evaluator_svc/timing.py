"""Timing: interleaved blocks of candidate, eager and compiled, every one on values the candidate has not seen before.

A round has two blocks of every contestant, in an order drawn for the round and then in its reverse (A B C C B A): see
``statistics``. One of the two has about twice the calls of the other, by a factor drawn for the round: see ``clocks``.

Before its block the candidate gets values new to its process; it is called once and verified (its *fresh* time). Then
follow, by lot, calls on other new values and on the same ones again, or one with an element flipped in place; then the
block, in the longer of which an element is flipped while it runs. Every answer is verified before the next values are
written (``audited``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from evaluator_svc.audited import Audited, Fill, Settle, worked_ns
from evaluator_svc.baselines import Baselines
from evaluator_svc.cases import Case
from evaluator_svc.correctness import Launcher, unequal
from evaluator_svc.flipping import Flipper
from evaluator_svc.freshness import Deck, Fresh, Values
from evaluator_svc.ledger import Call, Ledger, Stage
from evaluator_svc.oracle import new_seed
from evaluator_svc.poison import Poison
from evaluator_svc.samples import CANDIDATE, Again, Measured, Samples
from evaluator_svc.sequential import Stopping
from evaluator_svc.settings import TimingSettings
from shared.contract import Contract

__all__ = ["CANDIDATE", "Contest", "Measured", "Samples"]

CALLS_MAX = 4096
BASELINE_BLOCK_S = 120.0
"""For one block of a baseline; beyond it the baseline's process counts as lost."""
SHORTER = (0.5, 0.85)
"""The shorter block of a round has a share of the calls that fill one, drawn from here; the longer has twice that."""
AGAIN, AGAIN_ENOUGH, RARELY = 0.4, 12, 0.05
"""Chance that calls on the same values follow a call on new ones, until so many have, and after that."""
ENDURANCE_CALLS, ENDURANCE_NS = 100, 200_000_000
"""Calls after the last block, at most, and what they may take."""
EMPTY_COMMANDS = 5
"""At the beginning; one more in every round."""
UNMUTATED = Contract()


class Contest:
    """One candidate against the baselines in one pair of processes."""

    def __init__(
        self,
        runner: Launcher,
        baselines: Baselines,
        first: Case,
        pool: Sequence[Fresh],
        poison: Poison,
        settings: TimingSettings,
        *,
        call_s: float,
        answers: Sequence[bytes],
        settle: Settle,
        flipper: Flipper | None,
        ledger: Ledger,
        process: int,
        contract: Contract = UNMUTATED,
    ) -> None:
        """``answers``: what the kernel gave for ``first`` in another process, empty where that need not repeat. This is
        number ``process``. ``pool``: values that no process is given for checking.
        """
        self._baselines, self._settings, self._ledger, self._process = baselines, settings, ledger, process
        self._runner, self._first, self._answers, self._contract = runner, first, answers, contract
        self._draw = random.Random(new_seed())  # noqa: S311 - seeded from the operating system
        self._names = (CANDIDATE, *baselines.names)
        self._measured = Measured(samples={name: Samples() for name in self._names})
        self._deck = Deck(pool, self._draw)
        self._candidate = Audited(
            runner,
            poison,
            self._draw,
            call_s=call_s,
            measured=self._measured,
            ledger=ledger,
            process=process,
            settle=settle,
            flipper=flipper,
            contract=contract,
        )

    async def measure(self, stopping: Stopping) -> Measured:
        """Measure rounds until ``stopping`` has decided, or an output is wrong, or the runner dead."""
        if not await self._warm_up():
            return self._measured
        while self._measured.decision is None:
            if not await self._round():
                return self._measured
            self._measured.decision = stopping.look(self._measured.logs())
        if await self._endures():
            self._candidate.unchanged()
        return self._measured

    async def cold(self, times: int, evict: Callable[[], None]) -> bool:
        """Single calls after the caches were evicted, of every contestant."""
        for _ in range(times):
            for name in self._names:
                values = self._give(name)
                if values is None:
                    return False
                evict()
                elapsed = await self._one(name, values, Stage.COLD)
                if elapsed is None or (name == CANDIDATE and not await self._candidate.verify()):
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
                calls = self._length(name, share) * (2 if long and not self._contract.mutates else 1)
                if name != CANDIDATE:
                    await self._baseline_turn(name, calls)
                elif not await self._turn(calls, long=long):
                    return False
        return await self._candidate.call(0, Stage.WARM_UP) is not None

    async def _endures(self) -> bool:
        """A secret number of calls more, and then one that is verified: no count of calls is one after the last."""
        mine = self._measured.samples[CANDIDATE]
        most = max(1, min(ENDURANCE_CALLS, round(ENDURANCE_NS / max(mine.median_ns, 1.0))))
        if not self._candidate.load(self._deck.next()):
            return False
        if not self._contract.mutates:
            if await self._candidate.call(self._draw.randint(most // 2 or 1, most), Stage.CHECK) is None:
                return False
            self._candidate.fill(Fill.POISON)
        return await self._candidate.call(1, Stage.CHECK) is not None and await self._candidate.verify()

    def _length(self, name: str, share: float) -> int:
        """Calls of the shorter block. An input that is changed in place is good for one call."""
        return 1 if self._contract.mutates else max(1, round(self._measured.samples[name].calls * share))

    async def _turn(self, calls: int, *, long: bool) -> bool:
        """The candidate's: fresh values, a question about memory, a block."""
        mine, samples, values = self._candidate, self._measured.samples[CANDIDATE], self._deck.next()
        if not mine.load(values):
            return False
        fresh = await mine.call(1, Stage.FRESH)
        if fresh is None or not await mine.verify():
            return False
        chance = AGAIN if len(self._measured.again) < AGAIN_ENOUGH else RARELY
        if not (await self._again() if self._draw.random() < chance else await self._flipped()):
            return False
        if self._contract.mutates:
            return mine.load(self._deck.next()) and await self._block(calls, None)
        mine.fill(Fill.POISON)
        if not await self._block(calls, self._toggled() if long else None):
            return False
        if values.first_use and values.flip is None:  # who keeps answers can mend one for a flip
            samples.fresh_ns.append(fresh.elapsed_ns)
            samples.own_fresh_ns.append(worked_ns(fresh))
        return True

    async def _block(self, calls: int, to: Values | None) -> bool:
        samples = self._measured.samples[CANDIDATE]
        expected = samples.block_ns[-1] if samples.block_ns else self._settings.block_ns / samples.calls
        ran = await self._candidate.block(calls, expected, to)
        if ran is None:
            return False
        samples.block_ns.append(ran.elapsed_ns / calls)
        samples.own_block_ns.append(worked_ns(ran) / calls)
        samples.lengths.append(calls)
        return True

    async def _again(self) -> bool:
        """New values, and the same ones written again: with new poison, and with the answer given back.

        After a call on others, so that the processor knows the pages. New values are written twice, so that what is
        copied is as warm as it will be.
        """
        values = self._deck.unseen()
        if values is None or self._contract.mutates:
            return True
        if not self._candidate.load(values):
            return False
        new = await self._rewritten(Fill.POISON, Stage.FRESH)
        for held in self._draw.sample((False, True), 2):
            same = await self._rewritten(Fill.ANSWER if held else Fill.POISON, Stage.CHECK)
            if new is None or same is None:
                return False
            self._measured.again.append(Again(new_ns=new, again_ns=same, held=held))
        return True

    async def _rewritten(self, fill: Fill, stage: Stage) -> float | None:
        """A verified call on the values in use, written again; None after a failure."""
        if not self._candidate.load(self._candidate.values, fill):
            return None
        ran = await self._candidate.call(1, stage)
        return worked_ns(ran) if ran is not None and await self._candidate.verify() else None

    async def _flipped(self) -> bool:
        """One element of the values in use flipped; the output still holds the answer to those before."""
        to = self._toggled()
        if to is None or self._contract.mutates:
            return True
        if not self._candidate.flip(to):
            return False
        return await self._candidate.call(1, Stage.FRESH) is not None and await self._candidate.verify()

    def _toggled(self) -> Values | None:
        """The values in use with one element flipped, or flipped back."""
        now = self._candidate.values
        return self._deck.flipped(now) if now.flip is None else self._deck.used(now.unflipped)

    def _give(self, name: str) -> Values | None:
        """Values for a contestant, written for it; None: outputs of the candidate had changed."""
        if name == CANDIDATE:
            values = self._deck.next()
            return values if self._candidate.load(values) else None
        values = Values(fresh=self._draw.choice(self._deck.all))
        self._baselines.write_inputs(values.fresh.case.inputs)
        return values

    async def _baseline_turn(self, name: str, calls: int) -> None:
        samples, values = self._measured.samples[name], self._give(name)
        assert values is not None, "only a candidate's outputs can have changed"
        samples.fresh_ns.append(await self._run(name, values, 1, Stage.FRESH))
        samples.own_fresh_ns.append(self._baselines.own_ns)
        if self._contract.mutates:
            self._baselines.write_inputs(values.fresh.case.inputs)
        samples.block_ns.append(await self._run(name, values, calls, Stage.BLOCK) / calls)
        samples.own_block_ns.append(self._baselines.own_ns / calls)
        samples.lengths.append(calls)

    async def _warm_up(self) -> bool:
        """Touch everything once, compare with the process that was checked, and size the blocks."""
        if not await self._repeats():
            return False
        for _ in range(EMPTY_COMMANDS):
            if await self._candidate.call(0, Stage.WARM_UP) is None:
                return False
        for name in self._names:
            samples = self._measured.samples[name]
            values = self._give(name)
            if values is None:
                return False
            elapsed = None
            # A secret number of calls, so that a count tells nothing of what comes next.
            for _ in range(1 if self._contract.mutates else self._draw.randint(2, 4)):
                elapsed = await self._one(name, values, Stage.WARM_UP)
                if elapsed is None:
                    return False
            if name == CANDIDATE and not await self._candidate.verify():
                return False
            samples.calls = max(1, min(CALLS_MAX, round(self._settings.block_ns / max(elapsed or 1, 1))))
            if samples.calls > 1 and not self._contract.mutates:
                # A short call is mostly overhead of the round trip: size it again from a block.
                elapsed = await self._one(name, values, Stage.WARM_UP, samples.calls)
                if elapsed is None:
                    return False
                samples.calls = max(1, min(CALLS_MAX, round(self._settings.block_ns * samples.calls / max(elapsed, 1))))
        return True

    async def _repeats(self) -> bool:
        """Whether this process gives the bytes that the checked one gave."""
        values = Values(fresh=Fresh(case=self._first, seed=None, state_seed=None))
        if self._contract.persistent_weights:
            return True  # these are other weights than the pool's, and a process has the right to one set of them
        if not self._candidate.load(values) or await self._candidate.call(1, Stage.WARM_UP) is None:
            return False
        if self._answers:
            differs = unequal(
                self._first,
                self._answers,
                self._candidate.outputs(),
                "two processes give different results on equal inputs",
            )
            if differs is not None:
                return self._candidate.fail(differs)
        return await self._candidate.verify()

    async def _one(self, name: str, values: Values, stage: Stage, calls: int = 1) -> float | None:
        """Elapsed ns of ``calls`` calls on what is loaded; None after the candidate failed."""
        if name != CANDIDATE:
            return await self._run(name, values, calls, stage)
        ran = await self._candidate.call(calls, stage)
        return None if ran is None else ran.elapsed_ns

    async def _run(self, name: str, values: Values, calls: int, stage: Stage) -> float:
        """A baseline."""
        elapsed = await self._baselines.run(name, calls, timeout_s=BASELINE_BLOCK_S)
        self._ledger.call(
            Call(
                stage=stage,
                process=self._process,
                contestant=name,
                case=values.name,
                calls=calls,
                controller_ns=round(elapsed),
                runner_ns=self._baselines.own_ns,
            )
        )
        return elapsed
