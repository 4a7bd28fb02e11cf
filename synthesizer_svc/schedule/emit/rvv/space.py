"""The decisions of a plan in C for the vector extension: what each choice trades, and when to try it first (pure)."""

from __future__ import annotations

from shared.events import Bound
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.along import INNER, OUTER
from synthesizer_svc.schedule.emit.rvv.shape import fits_whole, lmul_enough, longest, usable_modes
from synthesizer_svc.schedule.emit.rvv.types import LMULS, RegisterGroup
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.schedule import Decision, Space, Value
from synthesizer_svc.schedule.stages import expanded, passes, staging_candidates

_COMPUTE = (Bound.COMPUTE, Bound.LATENCY)
_MEMORY = (Bound.MEMORY,)


def space(plan: Plan, vlen: int) -> Space:
    """All decisions of ``plan`` where vector registers have ``vlen`` bits.

    Raises:
        Unsupported: a group cannot be written with vectors.
    """
    return Space(decisions=tuple(d for group in plan.groups for d in _group(group, vlen)))


def _decide(
    group: Group, name: str, values: tuple[Value, ...], default: Value, pays: tuple[Bound, ...], why: str
) -> list[Decision]:
    if len(values) < 2:
        return []
    chosen = default if default in values else values[0]
    return [Decision(group=group.name, name=name, values=values, default=chosen, pays_when=pays, why=why)]


def _group(group: Group, vlen: int) -> list[Decision]:
    possible = usable_modes(group)
    why = "lanes along the row fold at its end; lanes across rows need neighbouring rows in memory"
    found = _decide(group, "lanes", tuple(m for m in (INNER, OUTER) if m in possible), possible[0], (), why)
    return [*found, *_widths(group, vlen, possible), *_loops(group, vlen, possible), *_algorithms(group, possible)]


def _widths(group: Group, vlen: int, possible: tuple[str, ...]) -> list[Decision]:
    extent = max(longest(group, mode) for mode in possible)
    product = any(s.contraction for s in group.stages)
    costly = any(ex.is_costly(e) for s in expanded(group, {}) for e in s.exprs)
    # Mathematics keeps half a dozen values at once, a tile of sums several: eight registers each would spill.
    default = lmul_enough(longest(group, possible[0]), vlen, 4 if product or costly else 8)
    enough = lmul_enough(extent, vlen, LMULS[-1])
    why = "wider register groups need fewer instructions; narrow ones leave more groups, so that nothing spills"
    found = _decide(group, "lmul", tuple(m for m in LMULS if m <= enough), default, _COMPUTE, why)
    whole = any(fits_whole(axis.extent, RegisterGroup(1).elements(vlen)) for axis in _lane_axes(group, possible))
    why = "a length set once leaves less to do in every turn; it needs a loop of whole register groups"
    return found + (_decide(group, "length", ("each", "once"), "once", _COMPUTE, why) if whole else [])


def _lane_axes(group: Group, possible: tuple[str, ...]) -> list[Axis]:
    inner = [s.inner[-1] for s in group.stages if s.inner] if INNER in possible else []
    return inner + (list(group.outer) if OUTER in possible else [])


def _loops(group: Group, vlen: int, possible: tuple[str, ...]) -> list[Decision]:
    strips = max(-(-longest(group, mode) // RegisterGroup(1).elements(vlen)) for mode in possible)
    unrolls = tuple(u for u in (1, 2, 4) if u <= strips)
    reduces = any(s.kind == "reduce" for s in group.stages)
    product = any(s.contraction for s in group.stages)
    why = "more strips in one turn of a loop: fewer branches and more independent work, until registers spill"
    found = _decide(group, "unroll", unrolls, 1, _COMPUTE, why)
    if reduces and INNER in possible:
        why = "each accumulator is a chain of dependent operations; more of them round less and fold later"
        found += _decide(group, "accumulators", unrolls, unrolls[-1], (Bound.LATENCY,), why)
    if not reduces:
        return found
    most = group.rows if group.outer else 1
    rows = tuple(r for r in (1, 2, 3, 4, 6, 7, 8, 12) if r <= most)
    why = "several rows at once share what they read, at the price of registers"
    found += _decide(group, "rows", rows, 4 if product else 1, (*_COMPUTE, *_MEMORY), why)
    if OUTER in possible and any(s.inner for s in group.stages):
        why = "unrolls the loop along a row: fewer branches, addresses as constants"
        found += _decide(group, "inner_unroll", (1, 2, 4, 8), 4, _COMPUTE, why)
    return found


def _algorithms(group: Group, possible: tuple[str, ...]) -> list[Decision]:
    """Choices about composite statistics, divisions, and values that several passes need."""
    found: list[Decision] = []
    ops = {s.op for s in group.stages}
    single = all(len(s.inner) == 1 for s in group.stages if s.op == "softstats")
    if "softstats" in ops and single and INNER in possible:
        why = "online statistics read the row once; two passes compute one exponential less for each element"
        found += _decide(group, "softmax_stats", ("two_pass", "online"), "two_pass", _MEMORY, why)
    if "moments" in ops:
        why = "shifted sums read the row once less; two passes are exact for any data"
        found += _decide(group, "variance", ("two_pass", "shifted"), "two_pass", _MEMORY, why)
    pairs = zip(expanded(group, {}), expanded(group, {"division": "reciprocal"}), strict=True)
    if any(r is not e for s, t in pairs for e, r in zip(s.exprs, t.exprs, strict=True)):
        why = "one division per row and a multiplication per element; rounds once more"
        # A softmax's sum is at least 1; the reciprocal of an arbitrary tiny one would overflow.
        default = "reciprocal" if "softstats" in ops else "exact"
        found += _decide(group, "division", ("exact", "reciprocal"), default, _COMPUTE, why)
    if INNER in possible and staging_candidates(passes(expanded(group, {}))):
        why = "a row buffer keeps what a later pass needs again; recomputing leaves memory alone"
        found += _decide(group, "staging", ("recompute", "buffer"), "buffer", _COMPUTE, why)
    return found
