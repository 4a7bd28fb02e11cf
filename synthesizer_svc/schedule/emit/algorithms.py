"""Decisions about how rows are computed, whatever the language of a GPU: statistics and divisions (pure)."""

from __future__ import annotations

from shared.events import Bound
from synthesizer_svc.schedule.ir import Group
from synthesizer_svc.schedule.schedule import Decision, Value
from synthesizer_svc.schedule.stages import expanded


def _decision(
    group: Group, name: str, values: tuple[Value, ...], default: Value, pays: tuple[Bound, ...], why: str
) -> Decision:
    return Decision(group=group.name, name=name, values=values, default=default, pays_when=pays, why=why)


def algorithms(group: Group) -> list[Decision]:
    """Choices about statistics and divisions."""
    found: list[Decision] = []
    operations = {s.op for s in group.stages}
    if "softstats" in operations:
        found.append(
            _decision(
                group,
                "softmax_stats",
                ("online", "two_pass"),
                "online",
                (Bound.MEMORY, Bound.COMPUTE),
                "online statistics read a row once, with a few more operations an element; held rows need neither",
            )
        )
    if "moments" in operations:
        found.append(
            _decision(
                group,
                "variance",
                ("shifted", "two_pass"),
                "shifted",
                (Bound.MEMORY, Bound.LATENCY),
                "shifted sums read a row once less; held rows always take two passes",
            )
        )
    if any(
        r is not e
        for s, t in zip(expanded(group, {}), expanded(group, {"division": "reciprocal"}), strict=True)
        for e, r in zip(s.exprs, t.exprs, strict=True)
    ):
        found.append(
            _decision(
                group,
                "division",
                ("exact", "reciprocal"),
                # A softmax's sum is at least 1; the reciprocal of an arbitrary tiny one would overflow.
                "reciprocal" if "softstats" in operations else "exact",
                (Bound.COMPUTE, Bound.LATENCY),
                "one division per row and a multiplication per element; rounds once more",
            )
        )
    return found
