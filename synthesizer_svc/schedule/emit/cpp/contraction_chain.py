"""Two contractions over the same batches as one loop: each batch's intermediate result stays in a cache (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from shared.chips import Isa
from shared.events import Bound
from synthesizer_svc.schedule.emit.cpp import contract
from synthesizer_svc.schedule.emit.cpp.contract import Matched
from synthesizer_svc.schedule.emit.cpp.contraction import emit_contraction
from synthesizer_svc.schedule.emit.cpp.contraction_spec import Access
from synthesizer_svc.schedule.emit.cpp.text import Lines
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Decision, Value

INTERMEDIATE_BYTES_MAX = 1 << 18
"""One batch's intermediate result: a part of a second-level cache that leaves room for the operands."""
BATCHES_MIN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A contraction that only stores its sums, and where to."""

    group: Group
    matched: Matched
    target: tuple[str, int]
    c: Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """``second`` reads, batch by batch, what ``first`` stores into ``between``, and nobody else does."""

    first: Product
    second: Product
    between: Buffer

    @property
    def name(self) -> str:
        return f"{self.first.group.name}_{self.second.group.name}"

    @property
    def batch(self) -> tuple[int, ...]:
        return self.first.matched.spec.batch

    @property
    def items(self) -> int:
        """Elements of ``between`` that one batch needs."""
        return prod(self.between.shape) // prod(self.batch)


def find(plan: Plan, place: int) -> Chain | None:
    """The chain of groups ``place`` and ``place + 1``, if they are one."""
    if place + 1 >= len(plan.groups):
        return None
    first, second = (_product(plan, group) for group in plan.groups[place : place + 2])
    if first is None or second is None or prod(first.matched.spec.batch) < BATCHES_MIN:
        return None
    between = plan.buffer(first.target[0])
    readers = [g for g in plan.groups if any(load.attr[0] == between.name for load in g.loads())]
    if between.kind != "temp" or readers != [second.group] or first.matched.spec.batch != second.matched.spec.batch:
        return None
    chain = Chain(first=first, second=second, between=between)
    slices = _slices(chain.batch, chain.items)
    reads = [access.batch for (buffer, _), access in _operands(second.matched) if buffer == between.name]
    sliced = reads == [slices] and first.c.batch == slices
    small = chain.items * between.dtype.itemsize <= INTERMEDIATE_BYTES_MAX
    return chain if sliced and small else None


def _product(plan: Plan, group: Group) -> Product | None:
    matched = contract.match(plan, group)
    stored = contract.plain_store(plan, matched) if matched is not None else None
    if matched is None or stored is None:
        return None
    return Product(group=group, matched=matched, target=stored[0], c=stored[1])


def _operands(matched: Matched) -> tuple[tuple[tuple[str, int], Access], tuple[tuple[str, int], Access]]:
    return (matched.a, matched.spec.a), (matched.b, matched.spec.b)


def _slices(batch: tuple[int, ...], items: int) -> tuple[int, ...]:
    """Strides of batches that lie one after the other, ``items`` elements each."""
    strides: list[int] = []
    for extent in reversed(batch):
        strides.insert(0, items)
        items *= extent
    return tuple(strides)


def decision(chain: Chain) -> Decision:
    return Decision(
        group=chain.first.group.name,
        name="chain",
        values=("fused", "separate"),
        default="fused",
        pays_when=(Bound.MEMORY,),
        why="a batch goes through both products while its intermediate is in the cache; apart, each runs over all",
    )


def emit(
    chain: Chain, first: Mapping[str, Value], second: Mapping[str, Value], isa: Isa, threads: int, scratch: int
) -> str:
    """Function ``chain.name`` of the inputs' pointers and the result's; ``scratch`` is an unused scratch number."""
    kind = chain.between.dtype.c_type
    products = [
        _emit_product(product, choices, isa) for product, choices in ((chain.first, first), (chain.second, second))
    ]
    out = Lines()
    reads, target = parameters(chain)
    declared = [f"const {kind}* {name}" for name in reads] + [f"{kind}* {target}"]
    out.add(f"// {chain.name}: both products of one batch after the other")
    with out.block(f"static void {chain.name}({', '.join(declared)})"):
        if threads > 1:
            out.add(f"#pragma omp parallel for schedule(static) num_threads({min(threads, prod(chain.batch))})")
        with out.block(f"for (int64_t batch = 0; batch < {prod(chain.batch)}; ++batch)"):
            size = chain.items * chain.between.dtype.itemsize
            out.add(f"{kind}* const {chain.between.name} = ({kind}*)ke_scratch<{scratch}>({size});")
            for product in (chain.first, chain.second):
                out.add(_call(chain, product))
    return "\n\n".join([*products, out.text()])


def parameters(chain: Chain) -> tuple[list[str], str]:
    """Buffers the function reads, in order of first use, and the one it writes."""
    operands = [o[0] for p in (chain.first, chain.second) for o, _ in _operands(p.matched)]
    return [name for name in dict.fromkeys(operands) if name != chain.between.name], chain.second.target[0]


def _emit_product(product: Product, choices: Mapping[str, Value], isa: Isa) -> str:
    """One batch of a product, on one thread."""
    spec = product.matched.spec
    single = replace(
        spec, batch=(), a=replace(spec.a, batch=()), b=replace(spec.b, batch=()), c=replace(product.c, batch=())
    )
    extents = f"m={spec.m} n={spec.n} k={spec.k} of each batch of {list(spec.batch)}"
    chosen = ", ".join(f"{k}={v}" for k, v in sorted(choices.items()))
    text = emit_contraction(single, choices, isa, 1, name=f"{product.group.name}_product")
    return f"// {product.group.name}: contraction {extents}; {chosen}\n{text}"


def _call(chain: Chain, product: Product) -> str:
    places = [
        _place(chain, operand, access) for operand, access in (*_operands(product.matched), (product.target, product.c))
    ]
    return f"{product.group.name}_product({', '.join(places)});"


def _place(chain: Chain, operand: tuple[str, int], access: Access) -> str:
    """Where the operand's part of this batch begins; of the intermediate there is only this batch's."""
    buffer, first = operand
    parts, below = [buffer, *([str(first)] if first else [])], prod(chain.batch)
    if buffer == chain.between.name:
        return " + ".join(parts)
    for extent, stride in zip(chain.batch, access.batch, strict=True):
        below //= extent
        if stride:
            index = "batch" if len(chain.batch) == 1 else f"batch / {below} % {extent}"
            parts.append(f"{index} * {stride}")
    return " + ".join(parts)
