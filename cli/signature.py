"""What an operator takes and gives, found by running its reference once in a child process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from evaluator_svc.tensors import TensorSpec
from shared.child_environment import without_secrets
from shared.dtypes import DType
from shared.errors import OperatorError
from shared.operators import OperatorSpec

CHILD = "cli.signature_child"
DESCRIBE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One positional argument of ``Model.forward``. ``tensor`` is None for a plain value, given as ``literal``."""

    name: str
    tensor: TensorSpec | None = None
    literal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A parameter or buffer by its state-dict name."""

    name: str
    tensor: TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A kernel's inputs are the tensor arguments in order, then ``state``.

    ``container`` is what ``forward`` returns its outputs in: ``tensor`` (the one output itself), ``tuple`` or ``list``.
    """

    arguments: tuple[Argument, ...]
    state: tuple[Named, ...]
    outputs: tuple[TensorSpec, ...]
    container: str

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        given = (argument.tensor for argument in self.arguments if argument.tensor is not None)
        return (*given, *(named.tensor for named in self.state))


def describe_exit(code: int) -> str:
    """``signal SIGKILL`` or ``exit code 3``."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def describe(spec: OperatorSpec) -> Signature:
    """Run the operator's text once and read off its signature.

    Raises:
        OperatorError: it raises, takes too long, or has an argument that cannot be written down.
    """
    command = [sys.executable, "-m", CHILD]
    try:
        done = subprocess.run(
            command,
            input=spec.source,
            capture_output=True,
            text=True,
            timeout=DESCRIBE_S,
            check=False,
            env=without_secrets(os.environ),
            start_new_session=True,  # a terminal's Ctrl-C is ours to handle: it is no fault of the operator
        )
    except subprocess.TimeoutExpired as expired:
        raise OperatorError(f"took more than {DESCRIBE_S:.0f} s to run once", where=spec.ref.name) from expired
    if done.returncode != 0:
        ending = f"its process ended with {describe_exit(done.returncode)} and said nothing"
        last = (done.stderr.strip().splitlines() or [ending])[-1]
        raise OperatorError(f"cannot be described: {last}", where=spec.ref.name)
    return _signature(json.loads(done.stdout.splitlines()[-1]))


def _signature(raw: dict[str, Any]) -> Signature:
    return Signature(
        arguments=tuple(
            Argument(
                name=a["name"], tensor=_tensor(a["tensor"]) if "tensor" in a else None, literal=a.get("literal", "")
            )
            for a in raw["arguments"]
        ),
        state=tuple(Named(name=s["name"], tensor=_tensor(s["tensor"])) for s in raw["state"]),
        outputs=tuple(_tensor(o) for o in raw["outputs"]),
        container=raw["container"],
    )


def _tensor(raw: dict[str, Any]) -> TensorSpec:
    return TensorSpec(shape=tuple(raw["shape"]), dtype=DType(raw["dtype"]))
