"""Four services in one process over whatever ports the environment names: the smallest server there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import evaluator_svc.service
import evaluator_svc.settings
import knowledge_svc.service
import knowledge_svc.settings
import search_svc.settings
import synthesizer_svc.service
import synthesizer_svc.settings
from evaluator_svc.evaluators import evaluator_of
from evaluator_svc.trials import Trials
from search_svc import replica
from shared.ports import Ports
from shared.service import Service


def services(ports: Ports, environment: Mapping[str, str]) -> Sequence[Service]:
    """Search, synthesizer, knowledge, and one evaluator for ``EVALUATOR_CHIP``.

    Raises:
        UserError: a setting or the chip's toolchain is unusable.
    """
    search_settings, _ = search_svc.settings.from_env(environment)
    knowledge, library = knowledge_svc.service.build(ports, knowledge_svc.settings.from_env(environment))
    evaluator = evaluator_of(ports, evaluator_svc.settings.from_env(environment))
    return (
        knowledge,
        synthesizer_svc.service.build(
            ports, synthesizer_svc.settings.from_env(environment), library, trials=Trials(evaluator)
        ),
        evaluator_svc.service.build(ports, evaluator.settings, evaluator=evaluator),
        replica.build(ports, search_settings),
    )
