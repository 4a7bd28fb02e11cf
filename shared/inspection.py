"""Whether other processes of the same user may look into this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.confining import refuse_inspection
from shared.settings import from_env


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionSettings:
    """Read from the environment without a prefix."""

    allow_inspection: bool = False
    """``ALLOW_INSPECTION``: let debuggers and profilers of the same user attach, and the kernel write core dumps."""


def keep_out(environment: Mapping[str, str]) -> None:
    """Close this process to the processes it starts, unless ``environment`` asks otherwise: they run operators' texts,
    and this one holds a model's key and the servers' passwords.

    Raises:
        UserError: ``ALLOW_INSPECTION`` is neither true nor false.
    """
    if not from_env(InspectionSettings, environment).allow_inspection:
        refuse_inspection()
