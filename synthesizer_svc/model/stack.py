"""The model that the rest of the synthesizer asks: endpoints, with a choice among them and a record in front."""

from __future__ import annotations

from collections.abc import Mapping

from shared.ports import Ports
from synthesizer_svc.model import Model
from synthesizer_svc.model.recorded import RecordedModel
from synthesizer_svc.model.routed import Arm, RoutedModel


def stacked(arms: Mapping[str, Arm], ports: Ports) -> Model:
    """``arms``, by the names of their endpoints, as one recorded model; each of them pays for itself."""
    first = next(iter(arms.values())).model
    return RecordedModel(
        RoutedModel(arms, ports.clock) if len(arms) > 1 else first,
        tuple(arms),
        documents=ports.store.documents,
        blobs=ports.store.blobs,
        leases=ports.cache.leases,
        clock=ports.clock,
    )
