"""The controller's side of the oracle: cases as arrays that only this process maps.

Seeds are secret: drawn here, sent to the trusted child, and to nobody else. Case files are unlinked once mapped.
"""

from __future__ import annotations

import mmap
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import Array
from evaluator_svc.cases import Case, Demand, Reference, Suite, elements, make_reference
from evaluator_svc.catalogue import (
    ALL_LOWER,
    ALWAYS,
    DEMANDS,
    HELD_OUT,
    NEAREST_LOWER,
    ONE_ELEMENT,
    OWN,
    SPECIAL,
    WITH_LOWER,
)
from evaluator_svc.freshness import Flip, Fresh, Values, borrow, shows
from evaluator_svc.properties import Kind, Relation
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.trusted_child import TrustedChild
from shared import contract
from shared.contract import Contract
from shared.dtypes import DType
from shared.events import OperatorRef

SEED_BITS = 48
PUBLIC_CASES = 3
RELATION_DRAWS = 3
WORTHLESS = 0.5
"""Error of the declared reference, as a share of the truth's size, from which on a held-out set says nothing."""


Block = tuple[str, TensorSpec, Array]
"""Role, spec and bytes."""


def _where_it_is(data: NDArray[np.uint8]) -> Array:
    return data


class Oracle:
    """Questions about one operator, answered by a ``TrustedChild`` in role ``oracle``.

    ``scratch`` is a private directory, best on tmpfs. ``placed`` moves a block of bytes to where it is judged, as a
    device; all arrays of cases come from it. Methods raise ``OperatorError`` and ``OracleLost``.
    """

    def __init__(
        self,
        child: TrustedChild,
        operator: OperatorRef,
        scratch: Path,
        *,
        timeout_s: float,
        placed: Callable[[NDArray[np.uint8]], Array] = _where_it_is,
    ) -> None:
        self._child, self._operator, self._scratch, self._timeout_s = child, operator, scratch, timeout_s
        self._placed = placed
        self._serial, self._contract = 0, Contract()
        self._measured: tuple[Relation, ...] | None = None

    async def open(self, source: str, threads: int, device: str) -> None:
        """Load the operator's text in the child, whose reference computes on ``device`` (as torch names it)."""
        with suppress(SyntaxError):  # the child says so, as of everything else in the text
            self._contract = contract.of(source, where=self._operator.name)
        await self._ask("open", role="oracle", source=source, name=self._operator.name, threads=threads, device=device)

    async def describe(self) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...], int | None, Signature]:
        """Specs of inputs and of outputs, the operations of its contractions (None: unknown), and its signature."""
        said = await self._ask("describe", seed=new_seed())
        return _specs(said["inputs"]), _specs(said["outputs"]), said["flops"], Signature.of(said["signature"])

    async def case(self, seed: int, transform: str = "") -> tuple[Case | None, str]:
        """A case, or None and the reason it is none. ``transform`` is empty for the operator's own distribution."""
        path, aside = self._path(), self._path()
        lower = ALL_LOWER if not transform else NEAREST_LOWER if transform in WITH_LOWER else ""
        said = await self._ask("case", seed=seed, transform=transform, path=str(path), aside=str(aside), lower=lower)
        if "skipped" in said:
            return None, f"{transform}: {said['skipped']}"
        # What is only measured lies in a file of its own, whose pages go as soon as it was.
        blocks = self._blocks(path, said["blocks"]) + self._blocks(aside, said["aside"])
        inputs = [(spec, data) for role, spec, data in blocks if role == "input"]
        demand = self._demand(transform)
        references = _references(blocks, held_out=bool(transform), demand=demand, terms=float(said["terms"]))
        if transform and any(_worthless(one) for one in references):
            # As where an intermediate overflows: what another implementation makes of it is its own affair.
            return None, f"{transform}: the declared reference itself is worth nothing there"
        case = Case(
            name=transform or OWN,
            public=not transform,
            specs=tuple(spec for spec, _ in inputs),
            inputs=tuple(data for _, data in inputs),
            references=references,
            in_place=self._contract.mutates,
            special=transform == SPECIAL,
            seed=seed,
        )
        return case, ""

    async def suite(
        self, *, public: int = PUBLIC_CASES, held_out: Sequence[str] = HELD_OUT, room: int = 0, seconds: float = 0.0
    ) -> Suite:
        """Cases under new secret seeds; held-out ones while they fit into ``room`` bytes and, but for those that no
        operator goes without, into ``seconds`` (0: no limit).
        """
        until = time.monotonic() + seconds
        inputs, outputs, flops, signature = await self.describe()
        relations = await self.relations()
        cases: list[Case] = []
        skipped: list[str] = []
        for transform in ("",) * public + tuple(held_out):
            held = sum(case.nbytes for case in cases)
            if transform and room and held + max(case.nbytes for case in cases) > room:
                skipped.append(f"{transform}: no room for it")
                continue
            if transform and seconds and transform not in ALWAYS and time.monotonic() > until:
                skipped.append(f"{transform}: no time for it")
                continue
            # The set with one element changed is a change of the first case.
            case, reason = await self.case(cases[0].seed if transform == ONE_ELEMENT else new_seed(), transform)
            if case is not None:
                cases.append(case)
            else:
                skipped.append(reason)
        shape_case, reason = await self.case(new_seed(), "shape")
        return Suite(
            inputs=inputs,
            outputs=outputs,
            cases=tuple(cases),
            shape_case=shape_case,
            flops=flops,
            skipped=tuple(skipped) + ((reason,) if reason else ()),
            signature=signature,
            relations=relations,
            contract=self._contract,
        )

    async def wrong_names(self) -> tuple[str, ...]:
        """Names of the operator's own mutants (``oracle_child/wrong.py``)."""
        return tuple((await self._ask("wrong_names", seed=new_seed()))["names"])

    async def wrong(self, case: Case, mutant: str) -> tuple[Array, ...] | None:
        """What ``mutant`` makes of ``case``, flat and stored; None where it cannot run there."""
        path, transform = self._path(), "" if case.public else case.name
        said = await self._ask("wrong", seed=case.seed, transform=transform, mutant=mutant, path=str(path))
        if "skipped" in said:
            return None
        return tuple(elements(data, spec.dtype) for _, spec, data in self._blocks(path, said["blocks"]))

    def _demand(self, transform: str) -> Demand:
        if self._contract.bitwise:
            return Demand.BITS
        if transform == SPECIAL and self._contract.special_values:
            return Demand.LIMITS
        return DEMANDS.get(transform, Demand.LIMITS)

    async def relations(self) -> tuple[Relation, ...]:
        """What the reference keeps to; asked before cases, it gives those of a sum of products their ``|A||B|``."""
        if self._measured is None:
            said = await self._ask("relations", seeds=[new_seed() for _ in range(RELATION_DRAWS)])
            self._measured = tuple(
                Relation(**{**one, "kind": Kind(one["kind"]), "where": tuple(map(tuple, one["where"]))})
                for one in said["relations"]
            )
        return self._measured

    async def fresh(self, name: str, models: Sequence[Case], *, flips: int, state_seed: int | None = None) -> Fresh:
        """Values for timed calls under a new secret seed, with the limits of ``models``, the operator's own cases.

        ``flips``: changes of one element to look for; kept are those that show. ``state_seed``: parameters are those of
        that seed, and not flipped.
        """
        path, seed = self._path(), new_seed()
        fields = {"flips": flips, "state_seed": state_seed, "flip_state": state_seed is None}
        said = await self._ask("fresh", seed=seed, path=str(path), **fields)
        blocks = self._blocks(path, said["blocks"])
        by_role: dict[str, list[tuple[TensorSpec, Array]]] = {}
        for role, spec, data in blocks:
            by_role.setdefault(role, []).append((spec, data))
        inputs = by_role["input"]
        case = Case(
            name=name,
            public=True,
            specs=tuple(spec for spec, _ in inputs),
            inputs=tuple(data for _, data in inputs),
            references=tuple(
                borrow(spec, elements(data, spec.dtype), [model.references[output] for model in models])
                for output, (spec, data) in enumerate(by_role["declared"])
            ),
            in_place=self._contract.mutates,
            seed=seed,
        )
        found = []
        for number, flip in enumerate(said["flips"]):
            arrays = [elements(data, spec.dtype) for spec, data in by_role[f"flip:{number}"]]
            changed = tuple(zip(arrays[::2], arrays[1::2], strict=True))
            found.append(Flip(input=flip["input"], to=flip["to"], source=flip["source"], changed=changed))
        shown = tuple(flip for flip in found if shows(flip, case.references))
        return Fresh(case=case, seed=seed, state_seed=state_seed, flips=shown)

    async def settled(self, values: Values) -> Case:
        """The case of ``values`` with its answer in fp64, for a judge who must be sure."""
        path, flip = self._path(), values.flip
        said = await self._ask(
            "settled",
            path=str(path),
            seed=values.fresh.seed,
            state_seed=values.fresh.state_seed,
            flip=None if flip is None else {"input": flip.input, "to": flip.to, "source": flip.source},
        )
        blocks = self._blocks(path, said["blocks"])
        inputs = tuple(data for role, _, data in blocks if role == "input")
        references = _references(blocks, held_out=False, demand=self._demand(""), terms=float(said["terms"]))
        return replace(values.fresh.case, name=values.name, inputs=inputs, references=references)

    async def perturbed(self, seed: int, other_seed: int, index: int) -> tuple[Array, ...] | None:
        """Declared outputs, flat and stored, with input ``index`` changed; None when the reference refuses that."""
        path = self._path()
        said = await self._ask("perturbed", seed=seed, other_seed=other_seed, index=index, path=str(path))
        if "skipped" in said:
            return None
        return tuple(elements(data, spec.dtype) for _, spec, data in self._blocks(path, said["blocks"]))

    async def repeats(self, seed: int) -> tuple[bool, tuple[int, ...]]:
        """Whether the reference gives equal bytes on equal inputs, and which of its arguments it changes."""
        said = await self._ask("repeat", seed=seed)
        return bool(said["same"]), tuple(said["changed"])

    async def _ask(self, action: str, **fields: object) -> dict[str, Any]:
        return await self._child.ask(action, timeout_s=self._timeout_s, **fields)

    def _blocks(self, path: Path, layout: Sequence[Mapping[str, Any]]) -> list[Block]:
        return [(role, spec, self._placed(data)) for role, spec, data in _map_blocks(path, layout)]

    def _path(self) -> Path:
        self._serial += 1
        return self._scratch / f"case-{self._serial}"


def new_seed() -> int:
    """A seed nobody can guess."""
    return secrets.randbits(SEED_BITS)


def _worthless(reference: Reference) -> bool:
    """Whether the declared reference is off by as much as its answer, in the mean or anywhere."""
    off = reference.rmse > WORTHLESS * reference.scale_rms or reference.max_error > WORTHLESS * reference.scale_max
    return off and reference.scale_rms > 0


def _specs(said: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(shape=tuple(s["shape"]), dtype=DType(s["dtype"])) for s in said)


def _map_blocks(path: Path, layout: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Blocks as read-only views of the file, which is unlinked: its pages live as long as the views."""
    if not layout:
        path.unlink()
        return []
    with path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    path.unlink()
    blocks = []
    for block in layout:
        spec = TensorSpec(shape=tuple(block["shape"]), dtype=DType(block["dtype"]))
        start = int(block["offset"]) if spec.nbytes else 0  # an empty block may lie past the file's end
        data = np.frombuffer(memory, dtype=np.uint8, count=spec.nbytes, offset=start)
        blocks.append((str(block["role"]), spec, data))
    return blocks


def _references(
    blocks: Sequence[Block], *, held_out: bool, demand: Demand = Demand.LIMITS, terms: float = 0.0
) -> tuple[Reference, ...]:
    by_role: dict[str, list[tuple[TensorSpec, Array]]] = {}
    for role, spec, data in blocks:
        by_role.setdefault(role, []).append((spec, elements(data, spec.dtype)))
    lows = [role for role in by_role if role.startswith("low:")]
    references = []
    for index, (spec, declared) in enumerate(by_role["declared"]):
        references.append(
            make_reference(
                spec,
                by_role["exact"][index][1],
                declared,
                by_role["nudged"][index][1] if "nudged" in by_role else None,
                [(role.removeprefix("low:"), by_role[role][index][1]) for role in lows],
                held_out=held_out,
                demand=demand,
                magnitude=by_role["magnitude"][index][1] if "magnitude" in by_role else None,
                terms=terms,
            )
        )
    return tuple(references)
