"""The oracle role: cases as raw bytes in a file that the controller names, maps and unlinks."""

from __future__ import annotations

import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from evaluator_svc.catalogue import INTEGERS, SPECIAL
from evaluator_svc.oracle_child import catalogue, fresh, relations, wrong
from evaluator_svc.oracle_child.handing import Handing, described
from evaluator_svc.oracle_child.model import CPU, Operator, OperatorFault, Sample, run
from evaluator_svc.oracle_child.precisions import precisions
from evaluator_svc.oracle_child.signature import signature
from evaluator_svc.oracle_child.values import Unsuitable, perturbed, reshaped
from evaluator_svc.properties import Kind


class Oracle:
    """Answers the controller's questions about one operator."""

    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(int(request["threads"]))
        device = str(request.get("device", CPU))
        if device != CPU:
            torch.set_default_device(device)  # what transforms draw lies beside what they change
        self._operator = Operator(str(request["source"]), str(request["name"]), device)
        self._handing = Handing(device, shared=bool(request.get("shared")))
        self._hand = self._handing.hand
        self._sums, self._terms = False, 0.0
        self._mutants: dict[str, wrong.Mutant] = {}
        self._last: tuple[tuple[int, str], Sample] | None = None

    def describe(self, request: dict[str, Any]) -> dict[str, Any]:
        """Specs of inputs and outputs, floating-point operations of contractions (None: unknown), and signature."""
        sample = self._operator.sample(int(request["seed"]))
        outputs = run(sample)
        return {
            "inputs": [described(t) for t in sample.inputs],
            "arguments": len(sample.tensor_arguments()),
            "outputs": [described(t) for t in outputs],
            "flops": _flops(sample),
            "signature": signature(sample),
        }

    def case(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write a case to ``path``. A transform outside the operator's domain answers ``{"skipped": why}``."""
        seed, transform = int(request["seed"]), str(request.get("transform", ""))
        try:
            sample = self._drawn(seed, transform)
            declared = run(sample)
        except Unsuitable as why:
            return {"skipped": str(why)}
        except OperatorFault as fault:
            if not transform:
                raise
            return {"skipped": str(fault)}
        finite = [bool(torch.isfinite(t).all()) for t in declared if t.is_floating_point()]
        special = transform == SPECIAL
        if transform and not special and not all(finite):
            return {"skipped": "the reference is not finite there"}
        blocks = precisions(
            sample,
            declared,
            lower=str(request["lower"]),
            sums=self._sums and not special,
            nudge=transform not in (INTEGERS, SPECIAL),
        )
        measured = [(role, t) for role, t in blocks if role == "nudged" or role.startswith("low:")]
        kept = [(role, t) for role, t in blocks if not (role == "nudged" or role.startswith("low:"))]
        return {
            "blocks": self._hand(Path(request["path"]), [("input", t) for t in sample.inputs] + kept),
            "aside": self._hand(Path(request["aside"]), measured),
            "terms": self._terms,
        }

    def relations(self, request: dict[str, Any]) -> dict[str, Any]:
        """Relations the operator keeps to on every draw. From here on its cases have ``|A||B|`` if it sums products."""
        draws = [self._operator.sample(int(seed)) for seed in request["seeds"]]
        found = relations.measured(draws)
        floating = [index for index, t in enumerate(draws[0].inputs) if t.is_floating_point()]
        plain = [one for one in found if one.kind is Kind.AFFINE or (one.kind is Kind.HOMOGENEOUS and one.degree)]
        everywhere = {one.where[0][0] for one in plain} >= set(floating[: len(draws[0].tensor_arguments())])
        self._sums = catalogue.sums_products(draws[0], bool(floating) and bool(plain) and everywhere)
        if self._sums:
            self._terms = catalogue.terms(draws[0], _flops(draws[0]))
        return {"relations": [asdict(one) for one in found], "sums": self._sums, "terms": self._terms}

    def wrong_names(self, request: dict[str, Any]) -> dict[str, Any]:
        """Names of the operator's own mutants."""
        sample = self._drawn(int(request["seed"]), "")
        self._mutants = wrong.mutants(self._operator, sample, run(sample))
        return {"names": list(self._mutants)}

    def wrong(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write what one mutant of the operator makes of a case; ``{"skipped": ...}`` where it cannot run."""
        seed = int(request["seed"])
        sample = self._drawn(seed, str(request.get("transform", "")))
        outputs = wrong.applied(self._mutants[str(request["mutant"])], sample, seed)
        if outputs is None:
            return {"skipped": "it cannot run"}
        return {"blocks": self._hand(Path(request["path"]), [("wrong", t) for t in outputs])}

    def _drawn(self, seed: int, transform: str) -> Sample:
        """The sample of a case; the last one is kept, because mutants ask for it again and again."""
        if self._last is not None and self._last[0] == (seed, transform):
            return self._last[1]
        sample = self._operator.sample(seed)
        if transform == "shape":
            shorter = reshaped(sample)
            if shorter is None:
                raise Unsuitable("the reference runs on no other leading dimension")
            sample = shorter
        elif transform:
            sample = catalogue.drawn(sample, transform)
        self._last = ((seed, transform), sample)
        return sample

    def perturbed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write only the declared outputs with input ``index`` changed."""
        sample, other = (self._operator.sample(int(request[key])) for key in ("seed", "other_seed"))
        try:
            outputs = run(perturbed(sample, other, int(request["index"])))
        except OperatorFault as fault:
            return {"skipped": str(fault)}
        return {"blocks": self._hand(Path(request["path"]), [("declared", t) for t in outputs])}

    def fresh(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write fresh values, their declared answer, and for each flip the elements of the answer that it changes."""
        blocks, flips, changes = fresh.answers(fresh.drawn(self._operator, request), request)
        blocks += [(f"flip:{number}", t) for number, tensors in enumerate(changes) for t in tensors]
        return {"blocks": self._hand(Path(request["path"]), blocks), "flips": flips}

    def settled(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write the whole case of values that ``fresh`` has drawn, for a judge who must be sure."""
        sample = fresh.drawn(self._operator, request)
        blocks = [("input", t) for t in sample.inputs]
        blocks += precisions(sample, run(sample), lower="all", sums=self._sums, nudge=True)
        return {"blocks": self._hand(Path(request["path"]), blocks), "terms": self._terms}

    def repeat(self, request: dict[str, Any]) -> dict[str, Any]:
        """Whether two runs of fresh copies on equal inputs give equal bytes, and which arguments a run changes."""
        sample = self._operator.sample(int(request["seed"]))
        before = [t.clone() for t in sample.tensor_arguments()]
        first, second = (run(replace(sample, model=copy.deepcopy(sample.model))) for _ in range(2))
        same = all(_same(a, b) for a, b in zip(first, second, strict=True))
        pairs = zip(before, sample.tensor_arguments(), strict=True)
        return {"same": same, "changed": [index for index, pair in enumerate(pairs) if not _same(*pair)]}

    def release(self, request: dict[str, Any]) -> dict[str, Any]:
        """The controller has copied what it was handed under these paths."""
        for path in request["paths"]:
            self._handing.release(path)
        return {}


def _flops(sample: Sample) -> int | None:
    """Contractions only: what torch's counter knows. Nothing counted means unknown, not zero."""
    with FlopCounterMode(display=False) as counter:
        run(sample)
    total = int(counter.get_total_flops())
    return total or None


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit."""
    mine, theirs = (t.contiguous().reshape(-1).view(torch.uint8) for t in (one, other))
    return torch.equal(mine, theirs)
