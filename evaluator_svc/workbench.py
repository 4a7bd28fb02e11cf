"""What a worker keeps per operator: its oracle, its admitted suite of cases, and its baselines, all alive.

Importing torch costs 1.5-3 s a process, so the processes start when the operator is first seen and stay.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar

from evaluator_svc import device_blocks
from evaluator_svc.admission import Admission, admit
from evaluator_svc.baselines import Baselines
from evaluator_svc.block_sets import sets_for
from evaluator_svc.cases import Case, Suite
from evaluator_svc.catalogue import kept
from evaluator_svc.freshness import Fresh, Values
from evaluator_svc.oracle import Oracle, new_seed
from evaluator_svc.runner.program import hosted_library
from evaluator_svc.scratch import CASES, Scratch, sweep
from evaluator_svc.settings import Settings
from evaluator_svc.target import Target
from evaluator_svc.trusted_child import OracleLost, TrustedChild
from shared.errors import OperatorError
from shared.events import OperatorRef

T = TypeVar("T")
FINAL_PUBLIC_CASES = 4
FLIPS = 2
"""Of one element, looked for in every case of the pool."""
FRESH_MIN = 2
"""With one case alone there would be no other values to change to."""
FILL_S = 20.0
"""For drawing the pool; with a slow reference it holds fewer draws, but no fewer than that."""


class Workbench:
    """One operator at one thread count. Use ``close`` when done."""

    def __init__(
        self,
        operator: OperatorRef,
        source: str,
        threads: int,
        cpus: tuple[int, ...],
        settings: Settings,
        target: Target,
        kept: Callable[[], bool] = bool,
    ) -> None:
        """``kept``: whether the controller holds arrays on the target's GPU itself; blocking."""
        self._kept_there = kept
        self.operator, self.threads, self.cpus, self.target = operator, threads, cpus, target
        self._source, self._settings = source, settings
        self._stack = AsyncExitStack()
        self._kept = Scratch(CASES)
        self._scratch = self._kept.path
        self._oracle = _Once(self._open_oracle)
        self._admitted = _Once(self._admit)
        self._pool = _Once(self._fill_pool)
        self._baselines = _Once(self._open_baselines)
        self._children: list[TrustedChild] = []
        self.lost = False
        """Set when one of its processes died: it is of no more use."""

    @property
    def _on_device(self) -> bool:
        """Whether cases stay on the GPU."""
        return self.target.on_gpu and self._kept_there()

    @property
    def _room(self) -> int:
        limits = self._settings.limits
        return limits.gpu_case_bytes_max if self._on_device else limits.case_bytes_max

    @property
    def crippled(self) -> bool:
        """A cancelled evaluation has cost it a process."""
        return any(child.killed for child in self._children)

    async def suite(self) -> tuple[Suite, Admission]:
        """The admitted cases every search evaluation is judged on; secret seeds of this worker.

        Raises:
            OperatorError: the operator is refused.
            OracleLost: the oracle died.
        """
        return await self._admitted.get()

    async def fresh_suite(self) -> Suite:
        """Cases under new secret seeds, for a final measurement."""
        room = self._room
        return await (await self._oracle.get()).suite(
            public=FINAL_PUBLIC_CASES, room=room, seconds=self._settings.limits.catalogue_s
        )

    async def pool(self) -> tuple[Fresh, ...]:
        """Values for timed calls, which no process gets for checking; secret seeds of this worker."""
        return await self._pool.get()

    async def fresh_pool(self, suite: Suite) -> tuple[Fresh, ...]:
        """Values for the timed calls of a final measurement, under new secret seeds, with the limits of ``suite``."""
        return await self._fill(suite)

    async def settled(self, values: Values) -> Case:
        """The case of ``values`` with an answer in fp64."""
        if values.fresh.seed is None:
            return values.fresh.case
        return await (await self._oracle.get()).settled(values)

    async def baselines(self) -> Baselines:
        """Eager and compiled, ready to be timed. The first call compiles: keep the cores shared meanwhile."""
        return await self._baselines.get()

    def start_baselines(self) -> None:
        """Begin what ``baselines`` and ``pool`` wait for, so that it is ready when the first kernel is."""
        self._baselines.start()
        self._pool.start()

    async def fresh_baselines(self, stack: AsyncExitStack) -> Baselines:
        """Baselines in a new process that ends with ``stack``."""
        return await self._start_baselines(stack, "baseline-final")

    async def close(self) -> None:
        """End the processes and remove the scratch directory."""
        for once in (self._admitted, self._pool, self._baselines, self._oracle):
            await once.cancel()
        await self._stack.aclose()
        self._kept.close()

    def _environment(self) -> dict[str, str]:
        return {
            "OMP_NUM_THREADS": str(self.threads),
            "MKL_NUM_THREADS": str(self.threads),
            "TORCHINDUCTOR_CACHE_DIR": str(self._settings.cache / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no pool of compiler processes that outlives the compilation
        }

    async def _open_oracle(self) -> Oracle:
        child = TrustedChild("oracle", cpus=(), environment=self._environment(), where=self.operator.name)
        await self._stack.enter_async_context(child)
        self._children.append(child)
        copied = device_blocks.copied if self._on_device else None
        oracle = Oracle(child, self.operator, self._scratch, timeout_s=self._settings.limits.oracle_s, copied=copied)
        await oracle.open(self._source, self.threads, self.target.torch_device)
        return oracle

    async def _admit(self) -> tuple[Suite, Admission]:
        oracle = await self._oracle.get()
        room = self._room
        suite = await oracle.suite(room=room, seconds=self._settings.limits.catalogue_s)
        held = sum(case.nbytes for case in suite.cases)
        if held > room:
            raise OperatorError(
                f"its cases need {held >> 20} MiB, more than the limit of {room >> 20} MiB",
                where=self.operator.name,
                hint=f"raise EVALUATOR_{'GPU_' if self._on_device else ''}CASE_BYTES_MAX or use smaller inputs",
            )
        admission = await admit(oracle, suite, where=self.operator.name)
        few = kept(admission.suite.cases, secrets.SystemRandom().sample)
        suite = replace(admission.suite, cases=few)
        return suite, replace(admission, suite=suite)

    async def _fill_pool(self) -> tuple[Fresh, ...]:
        suite, _ = await self.suite()
        return await self._fill(suite)

    async def _fill(self, suite: Suite) -> tuple[Fresh, ...]:
        oracle, timing = await self._oracle.get(), self._settings.timing
        # Weights that persist for a process' life are those of one seed in all that a process is timed on.
        state_seed = new_seed() if suite.contract.persistent_weights else None
        most = timing.gpu_fresh_bytes_max if self._on_device else timing.fresh_bytes_max
        pool: list[Fresh] = []
        until = time.monotonic() + FILL_S
        while len(pool) < timing.fresh_cases:
            fresh = await oracle.fresh(f"fresh {len(pool)}", suite.public, flips=FLIPS, state_seed=state_seed)
            pool.append(fresh)
            held = sum(one.nbytes for one in pool) * (len(pool) + 1) // len(pool)
            if len(pool) >= FRESH_MIN and (held > most or time.monotonic() > until):
                break
        return tuple(pool)

    async def _open_baselines(self) -> Baselines:
        return await self._start_baselines(self._stack, "baseline")

    async def _start_baselines(self, stack: AsyncExitStack, name: str) -> Baselines:
        suite, _ = await self.suite()
        # The candidates' allocator: glibc's own faults in new pages at every call in one process, at none in the next.
        environment = {**self._environment(), "LD_PRELOAD": str(hosted_library())}
        child = TrustedChild("baseline", cpus=self.cpus, environment=environment, where=self.operator.name)
        await stack.enter_async_context(child)
        if stack is self._stack:
            self._children.append(child)
        private = self._scratch / name
        private.mkdir(exist_ok=True)
        baselines = Baselines(child, self.operator, private, target=self.target)
        await baselines.open(
            self._source,
            suite.inputs,
            sets=sets_for(
                suite, self._settings.timing, cache_bytes=self.target.cache_bytes, memory_bytes=self.target.memory_bytes
            ),
            draws=self._settings.timing.fresh_cases,
            contract=suite.contract,
            threads=self.threads,
            timeout_s=self._settings.limits.oracle_s,
        )
        baselines.write(range(1), suite.public[0].inputs)
        await baselines.compile(timeout_s=self._settings.limits.compile_s)
        return baselines


class Workbenches:
    """The workbenches of a worker; beyond the limit, the least recently used that nobody uses is closed."""

    def __init__(self, settings: Settings, target: Target, kept: Callable[[], bool] = bool) -> None:
        """``kept`` as of a ``Workbench``."""
        sweep()
        self._settings, self._target, self._kept = settings, target, kept
        self._open: OrderedDict[tuple[str, int], Workbench] = OrderedDict()
        self._users: Counter[Workbench] = Counter()

    @asynccontextmanager
    async def use(
        self, operator: OperatorRef, source: str, threads: int, cpus: tuple[int, ...]
    ) -> AsyncIterator[Workbench]:
        """The workbench of ``operator``. One whose process was lost is closed with its last user."""
        key = (operator.source_hash, threads)
        bench = self._open.get(key)
        if bench is None or bench.lost:
            bench = self._open[key] = Workbench(
                operator, source, threads, cpus, self._settings, self._target, self._kept
            )
        self._open.move_to_end(key)
        self._users[bench] += 1
        try:
            yield bench
        except OracleLost:
            bench.lost = True
            raise
        finally:
            bench.lost = bench.lost or bench.crippled
            if bench.lost and self._open.get(key) is bench:
                del self._open[key]
            self._users[bench] -= 1
            if bench.lost and not self._users[bench]:
                await bench.close()
            await self._shrink()

    async def close(self) -> None:
        while self._open:
            _, bench = self._open.popitem()
            await bench.close()

    async def _shrink(self) -> None:
        idle = [key for key, bench in self._open.items() if not self._users[bench]]
        for key in idle[: max(0, len(self._open) - self._settings.limits.operators_max)]:
            await self._open.pop(key).close()


class _Once(Generic[T]):
    """An awaitable computed once and shared by everyone who asks meanwhile; a failure is kept too."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._task: asyncio.Task[T] | None = None

    def start(self) -> asyncio.Task[T]:
        if self._task is None:
            self._task = asyncio.create_task(self._make())
        return self._task

    async def get(self) -> T:
        return await asyncio.shield(self.start())

    async def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # looked at: whoever awaited it has seen it too
