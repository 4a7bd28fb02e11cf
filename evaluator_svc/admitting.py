"""Admitting one operator on its own, without a kernel: its mutation score, or why no kernel could be judged on it."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator_svc.admission import Admission
from evaluator_svc.launchers import Launchers
from evaluator_svc.settings import from_env
from evaluator_svc.target import target_of
from evaluator_svc.trusted_child import OracleLost
from evaluator_svc.workbench import Workbench
from shared.errors import OperatorError
from shared.operators import OperatorSpec


async def admitted(spec: OperatorSpec, chip: str, environment: Mapping[str, str]) -> Admission:
    """What the operator is admitted on.

    Raises:
        OperatorError: it is refused, or cannot be run.
        UserError: unknown chip, or a setting that does not parse.
    """
    settings = from_env({**environment, "EVALUATOR_CHIP": chip})
    target = target_of(chip)
    bench = Workbench(spec.ref, spec.source, 1, (), settings, target, lambda: not Launchers(target).unkept())
    try:
        _, admission = await bench.suite()
    except OracleLost as lost:
        raise OperatorError(f"cannot be run: {lost}", where=spec.ref.name) from lost
    else:
        return admission
    finally:
        await bench.close()
