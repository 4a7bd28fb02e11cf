"""What measuring an operator's kernel takes, and no more: a suite of its own cases, and the pool of fresh values.

A worker's bench admits the operator besides (mutants, held-out sets, relations) and compiles baselines: most of a
minute that says nothing about the times of a kernel that is right. One oracle process serves all operators in turn.
"""

from __future__ import annotations

from evaluator_svc.admission import Admission
from evaluator_svc.cases import Suite
from evaluator_svc.mutation import Score
from evaluator_svc.oracle import Oracle, new_seed
from evaluator_svc.settings import Settings
from evaluator_svc.target import Target
from evaluator_svc.trusted_child import TrustedChild
from evaluator_svc.workbench import Workbench
from shared import contract
from shared.operators import OperatorSpec

CASES = 2
"""With answers in fp64: the limits of all fresh values are borrowed from them."""


class Bench(Workbench):
    """A workbench of ``spec`` for one thread whose operator was not admitted: for kernels that are known to be right.

    ``child``: the oracle's process, which must not serve another operator until this bench is closed.
    """

    def __init__(
        self, child: TrustedChild, spec: OperatorSpec, cpus: tuple[int, ...], settings: Settings, target: Target
    ) -> None:
        super().__init__(spec.ref, spec.source, 1, cpus, settings, target)
        self._child, self._spec = child, spec

    async def _open_oracle(self) -> Oracle:
        oracle = Oracle(self._child, self.operator, self._scratch, timeout_s=self._settings.limits.oracle_s)
        await oracle.open(self._spec.source, self.threads, self.target.torch_device)
        return oracle

    async def _admit(self) -> tuple[Suite, Admission]:
        suite = await self.fresh_suite()
        return suite, Admission(score=Score(outcomes=()), suite=suite, cases=len(suite.cases))

    async def fresh_suite(self) -> Suite:
        """The operator's own distribution alone, under new secret seeds."""
        oracle = await self._oracle.get()
        inputs, outputs, flops, signature = await oracle.describe()
        drawn = [(await oracle.case(new_seed()))[0] for _ in range(CASES)]
        return Suite(
            inputs=inputs,
            outputs=outputs,
            cases=tuple(case for case in drawn if case is not None),
            flops=flops,
            signature=signature,
            contract=contract.of(self._spec.source, where=self._spec.ref.name),
        )
