"""From what an emulated kernel printed and what its compilers said to a verdict and to the model's counts.

Counts come from the emulator, which shares its process with the candidate: they rank kernels and prove nothing. How
much arithmetic there is to an access comes from the chip's compiler, whose text counts every loop once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from evaluator_svc.gpu_model import Traffic
from evaluator_svc.judge import Verdict
from evaluator_svc.layers import Layer, caught
from evaluator_svc.resources import Report, Resources
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Ran
from evaluator_svc.simt.assembly import KERNELS_MAX, Device
from evaluator_svc.toolchains import Built
from evaluator_svc.toolchains.gpu import devices_of
from shared.chips import Gpu
from shared.events import Entry, Status

EMULATED = (
    "blocks ran on one of this machine's cores, thread by thread; traffic counted there, arithmetic by the mix of the "
    "compiled text; not timed"
)
NUMBERS = ("launches", "blocks", "threads", "asked", "memory", "accesses", "lanes")
COUNT_MAX = 1 << 55
LINE_MAX = 1 << 16
"""Bytes in which the emulator's line lies: names are as long as the text has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """``verdict`` is that of the checks before, unless the call shows that it is no kernel. ``grids``: by kernel,
    blocks and threads of its launches, which are taken to be alike.
    """

    verdict: Verdict
    traffic: tuple[Traffic, ...] = ()
    grids: tuple[tuple[str, int, int], ...] = ()

    def launched(self, report: Report, warp: int) -> Report:
        """``report`` with the launches as they were; ``warp`` threads run together."""
        grids = {name: (blocks, -(-threads // warp)) for name, blocks, threads in self.grids}
        kernels = (
            replace(one, blocks=grids[one.name][0], warps=grids[one.name][1])
            for one in report.kernels
            if one.name in grids
        )
        return Report(kernels=tuple(kernels), error=report.error)


def report(built: Built, gpu: Gpu) -> Report:
    """What the kernels take of a multiprocessor, before any of them is launched."""
    assert built.device is not None, built.language
    kernels = tuple(
        Resources(
            name=one.name,
            blocks=0,
            warps=max(1, -(-one.threads // gpu.warp)),
            shared=one.shared,
            registers=one.registers,
            stack=one.stack,
        )
        for one in devices_of(built.device)
    )
    return Report(kernels=kernels)


def moved(ran: Ran | RunFailure, printed: str, built: Built, before: Verdict, warp: int) -> Moved:
    """The finding of the call that was counted."""
    if isinstance(ran, RunFailure):
        return Moved(verdict=Verdict(status=ran.status, evidence=ran.evidence))
    said = _said(printed)
    if said is None:
        return Moved(verdict=before)
    host, complete, kernels = said
    if host:
        return Moved(verdict=_refused(Status.LAUNCH_FAILED, Layer.LAUNCH, "host code touches tensors of the chip"))
    if not kernels:
        return Moved(verdict=_refused(Status.NO_CUSTOM_KERNEL, Layer.KERNELS, "launches no kernel"))
    assert built.device is not None, built.language
    devices = {one.name: one for one in devices_of(built.device)}
    for name, each in kernels.items():
        if name in devices and each["threads"] > devices[name].threads:
            why = (
                f"{name} is launched with {each['threads']} threads a block, it is compiled for {devices[name].threads}"
            )
            return Moved(verdict=_refused(Status.LAUNCH_FAILED, Layer.LAUNCH, why))
    grids = tuple((name, each["blocks"] // each["launches"], each["threads"]) for name, each in kernels.items())
    known = complete and all(name in devices for name in kernels)
    traffic = tuple(_traffic(name, each, devices[name], warp) for name, each in kernels.items()) if known else ()
    return Moved(verdict=before, traffic=traffic, grids=grids)


def _traffic(name: str, counts: dict[str, int], device: Device, warp: int) -> Traffic:
    """Counts of warps as the model takes them, which counts accesses of whole blocks with all that is in flight."""
    warps = max(1, -(-counts["threads"] // warp))
    each = counts["lanes"] / max(1, device.accesses)
    return Traffic(
        name=name,
        launches=counts["launches"],
        programs=counts["blocks"],
        asked=counts["asked"],
        memory=counts["memory"],
        accesses=max(1, round(counts["accesses"] / (warps * device.burst))),
        operations=round(each * device.plain),
        special=round(each * device.special),
    )


def _said(printed: str) -> tuple[bool, bool, dict[str, dict[str, int]]] | None:
    """Whether host code touched tensors, whether all was counted, and counts by kernel; None for another form."""
    line = next((line for line in printed.splitlines() if line.startswith('{"simt":')), "")
    try:
        said = json.loads(line)["simt"]
        kernels = {str(one["name"]): {n: _count(one[n]) for n in NUMBERS} for one in said["kernels"][:KERNELS_MAX]}
        if any(not each["launches"] for each in kernels.values()):
            return None
        return said["host"] is True, said["complete"] is True, kernels
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _count(said: Any) -> int:
    if type(said) is not int or not 0 <= said < COUNT_MAX:
        raise ValueError("no count")
    return said


def _refused(status: Status, layer: Layer, why: str) -> Verdict:
    return Verdict(status=status, evidence=(caught(layer), Entry(name="reason", value=why)))
