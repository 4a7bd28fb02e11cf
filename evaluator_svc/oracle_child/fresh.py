"""Fresh values for timed calls: a draw of the operator's own inputs, and *flips*, the smallest changes of them.

A flip copies one element of one input over another of the same tensor: the value is one of the operator's own, the
place is secret, and the answer changes where the reference says. A kernel that does not read the whole input again
cannot follow it.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from evaluator_svc.oracle_child.model import Operator, OperatorFault, Sample, run

TRIES = 64
"""Draws of a pair of unequal elements before a tensor counts as having none."""
CHANGES_BYTES_MAX = 16 << 20
"""What a flip may change of the answer, stored as positions and values."""
SAMPLE, DISTINCT = 4096, 16
"""Elements looked at, and values among them, before a parameter counts as one of many values."""
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def drawn(operator: Operator, request: dict[str, Any]) -> Sample:
    """The sample of ``seed``; with ``state_seed``, on the parameters of that seed; with ``flip``, changed there."""
    sample = operator.sample(int(request["seed"]))
    if request.get("state_seed") is not None:
        sample = sample.with_state(operator.sample(int(request["state_seed"])).state())
    flip = request.get("flip")
    return sample if flip is None else _flipped(sample, flip)


def answers(
    sample: Sample, request: dict[str, Any]
) -> tuple[list[tuple[str, torch.Tensor]], list[dict[str, int]], list[tuple[torch.Tensor, ...]]]:
    """Blocks of the case (inputs, declared outputs), its flips, and per flip the declared outputs it leads to."""
    declared = run(sample)
    blocks = [("input", t) for t in sample.inputs] + [("declared", t) for t in declared]
    flips, changes = [], []
    count = len(sample.inputs) if request["flip_state"] else len(sample.tensor_arguments())
    draw = random.Random(int(request["seed"]))  # noqa: S311 - the seed is secret
    arguments = len(sample.tensor_arguments())
    places = [i for i in range(count) if _flippable(sample.inputs[i], state=i >= arguments)]
    draw.shuffle(places)
    for number in range(int(request["flips"]) if places else 0):
        index = places[number % len(places)]
        flip = _pair(index, sample.inputs[index], draw)
        if flip is None:
            continue
        try:
            outputs = run(_flipped(sample, flip))
        except OperatorFault:
            continue  # the reference refuses this change, so it is none
        if all(bool(torch.isfinite(t).all()) for t in outputs if t.is_floating_point()):
            changed = _changes(declared, outputs)
            if sum(t.nbytes for t in changed) <= CHANGES_BYTES_MAX:
                flips.append(flip)
                changes.append(changed)
    return blocks, flips, changes


def _pair(index: int, tensor: torch.Tensor, draw: random.Random) -> dict[str, int] | None:
    """Which element is copied over which; their values differ."""
    flat = tensor.reshape(-1)
    for _ in range(TRIES):
        to, source = draw.randrange(flat.numel()), draw.randrange(flat.numel())
        if not torch.equal(flat[to], flat[source]):
            return {"input": index, "to": to, "source": source}
    return None


def _flippable(tensor: torch.Tensor, *, state: bool) -> bool:
    """Integers in order may be offsets, whose order is part of what the operator takes: they stay. So do buffers of
    few values, such as masks, which an operator makes in its constructor and a kernel may have built in.
    """
    if tensor.numel() < 2:
        return False
    if state:
        few = len(set(tensor.reshape(-1)[:SAMPLE].tolist())) < DISTINCT
        return tensor.is_floating_point() and not few
    if tensor.is_floating_point() or tensor.dtype == torch.bool:
        return True
    flat = tensor.reshape(-1)
    return not bool((flat[1:] >= flat[:-1]).all())


def _flipped(sample: Sample, flip: dict[str, int]) -> Sample:
    arguments, state = sample.tensor_arguments(), sample.state()
    index = int(flip["input"])
    changed = (arguments + state)[index].clone()
    flat = changed.reshape(-1)
    flat[int(flip["to"])] = flat[int(flip["source"])]
    if index < len(arguments):
        arguments[index] = changed
        return sample.with_arguments(arguments)
    state[index - len(arguments)] = changed
    return sample.with_state(state)


def _changes(before: tuple[torch.Tensor, ...], after: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Per output two tensors: flat positions (int64) whose bits changed, and their new values."""
    found: list[torch.Tensor] = []
    for old, new in zip(before, after, strict=True):
        bits = _BITS[old.element_size()]
        at = (old.reshape(-1).view(bits) != new.reshape(-1).view(bits)).nonzero().reshape(-1)
        found += [at, new.reshape(-1)[at]]
    return tuple(found)
