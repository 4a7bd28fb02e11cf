"""What a Python-hosted kernel is called with besides tensors (pure): the reference's arguments, state and constructor.

A kernel of the C ABI has all this built in. A ``ModelNew`` is constructed with the reference's constructor arguments
and called as the reference is, so plain values pass from the oracle's process, which alone runs the operator's text,
to the candidate's as JSON (``hosted/plain.py`` writes and reads it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import OperatorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """``arguments`` of forward in order: None stands for the next tensor, ``{"plain": value}`` for a value built in.

    The tensors of an operator are its tensor arguments, then ``state``: names of parameters and buffers in state-dict
    order. ``init`` and ``init_kwargs`` are the constructor's arguments. ``refused`` says why they cannot be passed.
    """

    arguments: tuple[Mapping[str, Any] | None, ...] = ()
    state: tuple[str, ...] = ()
    init: tuple[Any, ...] = ()
    init_kwargs: Mapping[str, Any] | None = None
    refused: str = ""

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Signature:
        """From the oracle's ``describe``."""
        return cls(
            arguments=tuple(said["arguments"]),
            state=tuple(said["state"]),
            init=tuple(said["init"]),
            init_kwargs=dict(said["init_kwargs"]),
            refused=str(said["refused"]),
        )

    def plain(self) -> dict[str, Any]:
        """As the candidate's process is told."""
        return {
            "arguments": list(self.arguments),
            "state": list(self.state),
            "init": list(self.init),
            "init_kwargs": dict(self.init_kwargs or {}),
        }

    def check(self, *, where: str) -> None:
        """Raises:
        OperatorError: the operator has arguments that no hosted kernel can be given.
        """
        if self.refused:
            raise OperatorError(
                f"{self.refused}: kernels hosted by Python cannot be given that",
                where=where,
                hint="let get_init_inputs() and get_inputs() return tensors at top level, and else plain values",
            )
