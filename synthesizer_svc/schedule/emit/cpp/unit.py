"""The translation unit: headers, group functions, the guard and the entry (pure)."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

from shared.chips import Isa
from synthesizer_svc.schedule.emit.cpp import contraction_chain, vecmath
from synthesizer_svc.schedule.emit.cpp.contraction_chain import Chain
from synthesizer_svc.schedule.emit.cpp.group import buffers_of, emit_group, memory_type
from synthesizer_svc.schedule.emit.cpp.shape import vector_bits
from synthesizer_svc.schedule.emit.cpp.shape_guard import shape_guard
from synthesizer_svc.schedule.emit.cpp.text import Lines
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Schedule, choices_of

GROUPS_BEGIN = "// ---------------------------------------------------------------- the kernel"
FLAGS = ("-O3", "-std=c++17", "-fno-math-errno", "-ffp-contract=fast", "-fno-trapping-math", "-Wno-psabi")


def emit_unit(plan: Plan, schedule: Schedule, isa: Isa, threads: int) -> str:
    """C++17 text of the whole kernel."""
    bits = vector_bits(isa, choices_of(schedule, "unit"))
    out = Lines()
    out.add(f"// Written by a schedule: {plan.operator_class}, {len(plan.groups)} group(s), {isa.name}.")
    for include in ('"ke_abi.h"', "<cstdlib>", "<limits>", "<type_traits>", "<utility>"):
        out.add(f"#include {include}")
    parts = [out.text(), vecmath.header(bits), files(__package__).joinpath("rows.hpp").read_text(encoding="utf-8")]
    parts.append(GROUPS_BEGIN)
    chains = _chains(plan, schedule)
    parts += _functions(plan, schedule, replace(isa, vector_bits=bits), threads, chains)
    parts += [shape_guard(plan), _entry(plan, chains)]
    return "\n".join(parts)


def _chains(plan: Plan, schedule: Schedule) -> dict[str, Chain]:
    """Chains that the schedule fuses, by the name of their first group; no group is in two."""
    found: dict[str, Chain] = {}
    taken = ""
    for place, group in enumerate(plan.groups):
        chain = contraction_chain.find(plan, place)
        if chain is not None and group.name != taken and choices_of(schedule, group.name).get("chain") == "fused":
            found[group.name], taken = chain, chain.second.group.name
    return found


def _functions(plan: Plan, schedule: Schedule, isa: Isa, threads: int, chains: dict[str, Chain]) -> list[str]:
    texts = []
    inside = {chain.second.group.name for chain in chains.values()}
    for group in plan.groups:
        choices = choices_of(schedule, group.name)
        if group.name in chains:
            chain = chains[group.name]
            second, scratch = choices_of(schedule, chain.second.group.name), plan.temps.index(chain.between)
            texts.append(contraction_chain.emit(chain, choices, second, isa, threads, scratch))
        elif group.name not in inside:
            texts.append(emit_group(plan, group, choices, isa, threads))
    return texts


def _entry(plan: Plan, chains: dict[str, Chain]) -> str:
    out = Lines()
    kept = {chain.between.name for chain in chains.values()}
    inside = {chain.second.group.name for chain in chains.values()}
    with out.block('extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void*)'):
        out.add("if (!ke_accepts(in, n_in, out, n_out)) return KE_DECLINED;")
        for number, buffer in enumerate(plan.temps):
            kind = memory_type(buffer)
            if buffer.name in kept:
                continue
            out.add(f"{kind}* {buffer.name} = ({kind}*)ke_scratch<{number}>({buffer.nbytes});  // {buffer.shape}")
        for group in plan.groups:
            if group.name in inside:
                continue
            if group.name in chains:
                out.add(_chain_call(plan, chains[group.name]))
                continue
            reads, writes = buffers_of(plan, group)
            arguments = [_argument(plan, b, const=True) for b in reads] + [
                _argument(plan, b, const=False) for b in writes
            ]
            out.add(f"{group.name}({', '.join(arguments)});")
        out.add("return KE_OK;")
    return out.text()


def _chain_call(plan: Plan, chain: Chain) -> str:
    reads, target = contraction_chain.parameters(chain)
    arguments = [_argument(plan, plan.buffer(name), const=True) for name in reads]
    return f"{chain.name}({', '.join([*arguments, _argument(plan, plan.buffer(target), const=False)])});"


def _argument(plan: Plan, buffer: Buffer, *, const: bool) -> str:
    if buffer.kind == "temp":
        return buffer.name
    array, place = ("in", plan.inputs.index(buffer)) if buffer.kind == "input" else ("out", plan.outputs.index(buffer))
    return f"({'const ' if const else ''}{memory_type(buffer)}*){array}[{place}].data"


def flags(isa: Isa, threads: int) -> tuple[str, ...]:
    return (*FLAGS, *isa.flags, *(("-fopenmp",) if threads > 1 else ()))
