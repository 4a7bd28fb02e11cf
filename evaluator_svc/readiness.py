"""A worker says that it is ready once a real kernel was built in its build box and gave its sum in its runner box.

A compiler that answers ``--version`` or a driver's own tool proves nothing: both work where a kernel does not
(NVIDIA/OpenShell issue 1486). What is missing is named by layer, with the reason that the machine gave.
"""

from __future__ import annotations

import logging
import secrets
import time
from array import array
from dataclasses import dataclass

from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Runner, RunnerLimits
from evaluator_svc.runner.program import machine_sandbox
from evaluator_svc.sandbox import SAME_USER
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import BuildFailed, Toolchain
from evaluator_svc.toolchains.flags import DEFAULT_FLAGS
from shared.dtypes import DType
from shared.errors import ChipError, Fatal
from shared.events import Entry
from shared.events.evaluation import CAUGHT_BY

log = logging.getLogger(__name__)

LANGUAGE = "cpp"
LAYERS = ("namespaces", "mounts", "user", "seccomp", "landlock", "rlimits")
"""Of a worker that is root; "user" is missing where the worker is no root, and then nothing worth telling."""
ALLOW = {
    "namespaces": "allow unprivileged user namespaces (sysctl, the container's seccomp profile)",
    "mounts": "comes with user namespaces",
    "user": "let root's boxes become another user: CAP_SETUID and CAP_SETGID, and everybody may read the toolchain",
    "seccomp": "allow seccomp(2) in the container's profile; the kernel needs CONFIG_SECCOMP_FILTER",
    "landlock": "use a kernel of at least 5.13 with `landlock` in its list of security modules",
    "rlimits": "let the worker lower its own limits",
}
ELEMENTS = 1 << 12
SPEC = TensorSpec(shape=(ELEMENTS,), dtype=DType.F32)
SOURCE = """
#include "ke_abi.h"
extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* a = static_cast<const float*>(in[0].data);
  const auto* b = static_cast<const float*>(in[1].data);
  auto* c = static_cast<float*>(out[0].data);
  for (int64_t i = 0; i < in[0].shape[0]; ++i) c[i] = a[i] + b[i];
  return KE_OK;
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What was proved: the levels of both boxes, and how long it took (s)."""

    runner: str
    build: str
    seconds: float

    @property
    def missing(self) -> tuple[str, ...]:
        """Layers that one of the boxes lacks and could have."""
        wanted = [layer for layer in LAYERS if layer != "user" or machine_sandbox().user != SAME_USER]
        return tuple(
            layer for layer in wanted if not all(layer in level.split("+") for level in (self.runner, self.build))
        )

    def __str__(self) -> str:
        told = f"sandbox {self.runner}, builds {self.build}"
        why = machine_sandbox().refused
        lacking = "; ".join(f"without {layer}: {ALLOW[layer]}" for layer in self.missing)
        return "; ".join(part for part in (told, lacking, f"bubblewrap says: {why}" if why and lacking else "") if part)


async def prove(toolchain: Toolchain, cpus: tuple[int, ...] = ()) -> Readiness:
    """Build and run a vector sum that no cache has seen, on values that nobody has.

    Raises:
        ChipError: it cannot be built or run here, or its sum is wrong; the message names the layer that said no.
    """
    begin = time.monotonic()
    built = await toolchain.build(f"{SOURCE}// {secrets.token_hex(8)}\n", DEFAULT_FLAGS, language=LANGUAGE)
    if isinstance(built, BuildFailed):
        raise ChipError(f"cannot build a vector sum: {_said(built.evidence)}", where="readiness")
    a, b = (array("f", [secrets.randbits(12) for _ in range(ELEMENTS)]) for _ in range(2))
    limits = RunnerLimits(memory_bytes=64 << 20, cpu_s=10)
    try:
        async with Runner.open(
            built.path, (SPEC, SPEC), (SPEC,), sets=1, limits=limits, threads=1, cpus=cpus
        ) as runner:
            runner.write_input(0, 0, a)
            runner.write_input(0, 1, b)
            ran = await runner.run(1)
            got = list(runner.output_bytes(0, 0).cast("f"))
            level = runner.sandbox
    except Fatal as error:
        raise ChipError(f"cannot run a vector sum: {error}", where="readiness") from error
    if isinstance(ran, RunFailure):
        raise ChipError(f"a vector sum does not run: {_said(ran.evidence)}", where="readiness")
    if got != [x + y for x, y in zip(a, b, strict=True)]:
        raise ChipError("a vector sum came out wrong", where="readiness")
    found = Readiness(runner=level, build=built.sandbox, seconds=time.monotonic() - begin)
    log.log(logging.WARNING if found.missing else logging.INFO, "ready after %.1f s: %s", found.seconds, found)
    return found


def _said(evidence: tuple[Entry, ...]) -> str:
    return ", ".join(f"{'layer' if e.name == CAUGHT_BY else e.name} {e.value}" for e in evidence)
