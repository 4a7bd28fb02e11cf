"""The decisions of a plan in C++ on a CPU: what is open, what each choice trades, and when to try it first (pure)."""

from __future__ import annotations

from shared.chips import Isa
from shared.dtypes import DType
from shared.events import Bound
from synthesizer_svc.schedule.emit.along import INNER, OUTER, modes
from synthesizer_svc.schedule.emit.cpp import contract, contraction_chain, prefetch
from synthesizer_svc.schedule.emit.cpp.shape import Shape, lanes_of, shape_of
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.schedule import Decision, Space
from synthesizer_svc.schedule.stages import expanded, passes, staging_candidates

UNROLLS = (1, 2, 4, 8)
STREAM_BYTES_MIN = 1 << 20
"""Streaming stores are offered for outputs that a second-level cache would not keep anyway."""


def space(plan: Plan, isa: Isa, threads: int) -> Space:
    """All decisions of ``plan``."""
    decisions = list(_unit(isa))
    for place, group in enumerate(plan.groups):
        matched = contract.match(plan, group)
        if matched is not None:
            decisions.extend(contract.contraction_decisions(matched, isa, threads, group.name))
            chain = contraction_chain.find(plan, place)
            decisions.extend([contraction_chain.decision(chain)] if chain is not None else [])
        else:
            decisions.extend(_group(plan, group, isa))
    return Space(decisions=tuple(decisions))


def _unit(isa: Isa) -> list[Decision]:
    if isa.vector_bits <= 256:
        return []
    return [
        Decision(
            group="unit",
            name="vector_bits",
            values=(256, isa.vector_bits),
            default=isa.vector_bits,
            pays_when=(Bound.COMPUTE,),
            why="wide vectors do more per instruction; narrow ones leave shorter tails",
        )
    ]


def _group(plan: Plan, group: Group, isa: Isa) -> list[Decision]:
    possible = modes(group)
    lanes = lanes_of(group, isa.vector_bits)
    shape = shape_of(group, {"unroll": UNROLLS[-1], "rows": 8}, isa.vector_bits)
    found: list[Decision] = []
    if len(possible) > 1:
        found.append(
            Decision(
                group=group.name,
                name="lanes",
                values=(INNER, OUTER),
                default=possible[0],
                pays_when=(Bound.COMPUTE, Bound.MEMORY),
                why="lanes along the row fold at its end; lanes across rows need neighbouring rows in memory",
            )
        )
    found.extend(_loop_decisions(group, shape.unroll, shape.rows, possible))
    found.extend(_algorithm_decisions(group))
    found.extend(_rewriting_decisions(group))
    found.extend(_memory_decisions(plan, group, lanes.count, shape))
    return found


def _loop_decisions(group: Group, unroll_max: int, rows_max: int, possible: tuple[str, ...]) -> list[Decision]:
    found: list[Decision] = []
    reduces = any(s.kind in ("reduce", "scan") for s in group.stages)
    unrolls = tuple(u for u in UNROLLS if u <= max(unroll_max, 4 if OUTER in possible and INNER in possible else 1))
    if len(unrolls) > 1:
        found.append(
            Decision(
                group=group.name,
                name="unroll",
                values=unrolls,
                default=min(2, unrolls[-1]),
                pays_when=(Bound.LATENCY, Bound.COMPUTE),
                why="more independent vectors in flight hide latency until registers spill",
            )
        )
        if any(s.kind == "reduce" for s in group.stages) and INNER in possible:
            found.append(
                Decision(
                    group=group.name,
                    name="accumulators",
                    values=unrolls,
                    default=min(2, unrolls[-1]),
                    pays_when=(Bound.LATENCY, Bound.COMPUTE),
                    why="each accumulator is a chain of dependent additions; more of them round less",
                )
            )
    if reduces and rows_max > 1:
        values = tuple(r for r in (1, 2, 4, 6, 8) if r <= rows_max)
        default = min(4, values[-1]) if any(s.contraction for s in group.stages) else 1
        found.append(
            Decision(
                group=group.name,
                name="rows",
                values=values,
                default=default if default in values else 1,
                pays_when=(Bound.LATENCY, Bound.COMPUTE),
                why="several rows at once share loads and overlap their dependency chains, at the price of registers",
            )
        )
    if reduces and OUTER in possible:
        found.append(
            Decision(
                group=group.name,
                name="inner_unroll",
                values=(1, 2, 4, 8),
                default=1,
                pays_when=(Bound.COMPUTE, Bound.LATENCY),
                why="unrolls the serial loop of lanes-across-rows nests: fewer branches, more loads in flight",
            )
        )
    return found


def _algorithm_decisions(group: Group) -> list[Decision]:
    """Choices about composite statistics: softmax's and the variance."""
    found: list[Decision] = []
    ops = {s.op for s in group.stages}
    single = all(len(s.inner) == 1 for s in group.stages if s.op == "softstats")
    if "softstats" in ops and single and modes(group) != (OUTER,):
        found.append(
            Decision(
                group=group.name,
                name="softmax_stats",
                values=("two_pass", "online"),
                default="two_pass",
                pays_when=(Bound.MEMORY,),
                why="online statistics read the row once, chunk by chunk; two passes need no rescaling",
            )
        )
        found.append(
            Decision(
                group=group.name,
                name="chunk",
                values=(512, 1024, 2048, 4096),
                default=1024,
                pays_when=(Bound.MEMORY,),
                why="chunk of online statistics: small ones stay in the first-level cache, large ones rescale less",
            )
        )
    if "moments" in ops:
        found.append(
            Decision(
                group=group.name,
                name="variance",
                values=("two_pass", "shifted"),
                default="two_pass",
                pays_when=(Bound.MEMORY, Bound.LATENCY),
                why="shifted sums read the row once less; two passes are exact for any data",
            )
        )
    return found


def _rewriting_decisions(group: Group) -> list[Decision]:
    """Choices about scans, divisions and values that several passes need."""
    found: list[Decision] = []
    ops = {s.op for s in group.stages}
    if "cumsum" in ops or "cumprod" in ops:
        found.append(
            Decision(
                group=group.name,
                name="prefix",
                values=("log_step", "serial"),
                default="log_step",
                pays_when=(Bound.LATENCY, Bound.COMPUTE),
                why="a prefix within the register does log2(lanes) steps at once; the serial one does fewer additions",
            )
        )
    if any(
        r is not e
        for s, t in zip(expanded(group, {}), expanded(group, {"division": "reciprocal"}), strict=True)
        for e, r in zip(s.exprs, t.exprs, strict=True)
    ):
        found.append(
            Decision(
                group=group.name,
                name="division",
                values=("exact", "reciprocal"),
                # A softmax's sum is at least 1; the reciprocal of an arbitrary tiny one would overflow.
                default="reciprocal" if "softstats" in ops else "exact",
                pays_when=(Bound.COMPUTE, Bound.LATENCY),
                why="one division per row and a multiplication per element; rounds once more",
            )
        )
    if staging_candidates(passes(expanded(group, {}))):
        found.append(
            Decision(
                group=group.name,
                name="staging",
                values=("recompute", "buffer"),
                default="buffer",
                pays_when=(Bound.COMPUTE,),
                why="a row buffer keeps what a later pass needs again; recomputing leaves the first-level cache alone",
            )
        )
    return found


def _memory_decisions(plan: Plan, group: Group, lanes: int, shape: Shape) -> list[Decision]:
    found: list[Decision] = []
    if _can_stream(plan, group, lanes):
        found.append(
            Decision(
                group=group.name,
                name="store",
                values=("normal", "stream"),
                default="normal",
                pays_when=(Bound.MEMORY,),
                why="streaming stores skip reading the line they overwrite, and leave the result outside the caches",
            )
        )
    if group.bytes_min >= STREAM_BYTES_MIN:
        found.append(
            Decision(
                group=group.name,
                name="prefetch",
                values=prefetch.choices(shape, group),
                default=prefetch.default(shape, group),
                pays_when=(Bound.MEMORY, Bound.LATENCY),
                why="bytes ahead, or the next row, fetched explicitly: the hardware prefetcher restarts at every row",
            )
        )
    return found


def _can_stream(plan: Plan, group: Group, lanes: int) -> bool:
    """Large float32 results whose vectors all start on a vector boundary (data pointers are aligned to 64 bytes)."""
    stores = [(s, w) for s in group.stages for w in s.writes if w is not None]
    if not stores or lanes_of(group, 512).doubles:
        return False
    for stage, write in stores:
        buffer = plan.buffer(write.buffer)
        if buffer.dtype is not DType.F32 or buffer.kind != "output" or buffer.nbytes < STREAM_BYTES_MIN:
            return False
        ones = [a for a in write.offset.axes() if write.offset.coefficient(a) == 1]
        others = [c for a in write.offset.axes() if (c := write.offset.coefficient(a)) != 1]
        if len(ones) != 1 or any(c is None or c % lanes for c in others) or write.offset.const % lanes:
            return False
        if stage.kind == "reduce" or (stage.kind == "value" and ones[0] not in group.outer):
            return False
    return True
