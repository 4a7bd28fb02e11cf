"""The oracle role: cases as raw bytes in a file that the controller names, maps and unlinks."""

from __future__ import annotations

import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from evaluator_svc.catalogue import INTEGERS, SPECIAL
from evaluator_svc.oracle_child import catalogue, fresh, relations, wrong
from evaluator_svc.oracle_child.model import CPU, KE_DTYPES, Operator, OperatorFault, Sample, run
from evaluator_svc.oracle_child.precisions import precisions
from evaluator_svc.oracle_child.signature import signature
from evaluator_svc.oracle_child.values import Unsuitable, perturbed, reshaped
from evaluator_svc.properties import Kind

ALIGNMENT = 64


class Oracle:
    """Answers the controller's questions about one operator."""

    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(int(request["threads"]))
        self._operator = Operator(str(request["source"]), str(request["name"]), str(request.get("device", CPU)))
        self._sums, self._terms = False, 0.0
        self._mutants: dict[str, wrong.Mutant] = {}
        self._last: tuple[tuple[int, str], Sample] | None = None

    def describe(self, request: dict[str, Any]) -> dict[str, Any]:
        """Specs of inputs and outputs, floating-point operations of contractions (None: unknown), and signature."""
        sample = self._operator.sample(int(request["seed"]))
        outputs = run(sample)
        return {
            "inputs": [_spec(t) for t in sample.inputs],
            "arguments": len(sample.tensor_arguments()),
            "outputs": [_spec(t) for t in outputs],
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
            "blocks": _write(Path(request["path"]), [("input", t) for t in sample.inputs] + kept),
            "aside": _write(Path(request["aside"]), measured),
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
        return {"blocks": _write(Path(request["path"]), [("wrong", t) for t in outputs])}

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
        return {"blocks": _write(Path(request["path"]), [("declared", t) for t in outputs])}

    def fresh(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write fresh values, their declared answer, and for each flip the elements of the answer that it changes."""
        blocks, flips, changes = fresh.answers(fresh.drawn(self._operator, request), request)
        blocks += [(f"flip:{number}", t) for number, tensors in enumerate(changes) for t in tensors]
        return {"blocks": _write(Path(request["path"]), blocks), "flips": flips}

    def settled(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write the whole case of values that ``fresh`` has drawn, for a judge who must be sure."""
        sample = fresh.drawn(self._operator, request)
        blocks = [("input", t) for t in sample.inputs]
        blocks += precisions(sample, run(sample), lower="all", sums=self._sums, nudge=True)
        return {"blocks": _write(Path(request["path"]), blocks), "terms": self._terms}

    def repeat(self, request: dict[str, Any]) -> dict[str, Any]:
        """Whether two runs of fresh copies on equal inputs give equal bytes, and which arguments a run changes."""
        sample = self._operator.sample(int(request["seed"]))
        before = [_bytes(t).tobytes() for t in sample.tensor_arguments()]
        first, second = (run(replace(sample, model=copy.deepcopy(sample.model))) for _ in range(2))
        same = all(_bytes(a).tobytes() == _bytes(b).tobytes() for a, b in zip(first, second, strict=True))
        after = [_bytes(t).tobytes() for t in sample.tensor_arguments()]
        changed = [index for index, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
        return {"same": same, "changed": changed}


def _flops(sample: Sample) -> int | None:
    """Contractions only: what torch's counter knows. Nothing counted means unknown, not zero."""
    with FlopCounterMode(display=False) as counter:
        run(sample)
    total = int(counter.get_total_flops())
    return total or None


def _spec(tensor: torch.Tensor) -> dict[str, Any]:
    return {"shape": list(tensor.shape), "dtype": KE_DTYPES[tensor.dtype].value}


def _bytes(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    flat = tensor.detach().contiguous().reshape(-1)
    array: np.ndarray[Any, np.dtype[np.uint8]] = flat.view(torch.uint8).numpy()
    return array


def _write(path: Path, blocks: list[tuple[str, torch.Tensor]]) -> list[dict[str, Any]]:
    layout, offset = [], 0
    with path.open("wb") as file:
        for role, tensor in blocks:
            data = _bytes(tensor)
            file.seek(offset)
            file.write(data.tobytes())
            layout.append({"role": role, "offset": offset} | _spec(tensor))
            offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    return layout
