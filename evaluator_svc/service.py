"""evaluator_svc: answers every evaluation request of its chip with one verdict. See ``pool`` and ``slot``."""

from __future__ import annotations

from typing import Any

from evaluator_svc.evaluators import Evaluates, evaluator_of
from evaluator_svc.on_demand import OnDemand
from evaluator_svc.pool import Worker
from evaluator_svc.settings import Settings
from evaluator_svc.trials import Trials
from shared.ports import Ports
from shared.service import Service, Servicer

NAME = "evaluator"
SERVICER = "protos.evaluator.v1.EvaluatorService"


def build(
    ports: Ports, settings: Settings, *, evaluator: Evaluates | None = None, leaves_when_out: bool = False
) -> Service:
    """The service over open ports. ``evaluator`` stands in for the one it would make; for the rest see ``Worker``.

    Raises:
        ChipError: the chip cannot be served on this machine.
    """
    evaluator = evaluator or evaluator_of(ports, settings)
    return serve(ports, Worker(ports, evaluator, leaves_when_out=leaves_when_out), evaluator)


def serve(ports: Ports, worker: Worker, evaluator: Evaluates) -> Service:
    """The service of a worker that is made already."""

    def add(server: Any) -> None:
        from evaluator_svc import grpc_api  # needs the extra `grpc`, which embedded programs may lack

        grpc_api.add(OnDemand(ports.store, evaluator, worker), Trials(evaluator, worker.slots), server)

    return Service(
        name=NAME,
        background=(worker.run,),
        servicers=(Servicer(name=SERVICER, add=add),),
        recover=evaluator.ready,
        hindered=worker.hindered,
        close=evaluator.close,
    )
