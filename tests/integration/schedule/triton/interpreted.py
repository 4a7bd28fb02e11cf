"""Child program: emitted Triton modules in the interpreter, every access checked against the tensors that there are.

Arguments: tables, separated by commas; how many random schedules each of their cases gets; names of cases (all when
there are none), numbers of parts that long sums go into, and choices for every group, as in ``finish=2``. Prints JSON:
what is wrong, as (case, problem, schedule).
"""

import json
import sys
import time
import warnings
from dataclasses import replace
from itertools import product

from evaluator_svc.hosted import interpreter

interpreter.install()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from triton.runtime.interpreter import InterpreterBuilder  # noqa: E402

from evaluator_svc.hosted.model import executed  # noqa: E402
from shared import chips  # noqa: E402
from synthesizer_svc.schedule import emit  # noqa: E402
from synthesizer_svc.schedule.emit.triton import module  # noqa: E402
from synthesizer_svc.schedule.graph import Unsupported  # noqa: E402
from tests.integration.schedule import compiled, judging, table  # noqa: E402
from tests.integration.schedule.triton import cases  # noqa: E402

GPU = replace(chips.load("nvidia-sm_90").gpu, multiprocessors=3)
"""So small that few tiles are many: persistent programs and parts of sums are offered."""
POISON = 0xA5
_known = []


class OutOfBounds(Exception):
    pass


def _check(pointers, mask, what):
    places = np.asarray(pointers.data)[np.broadcast_to(np.asarray(mask.data), np.shape(pointers.data))].astype(np.int64)
    inside = np.zeros(places.shape, bool)
    for low, high in _known:
        inside |= (places >= low) & (places < high)
    if not inside.all():
        raise OutOfBounds(f"{what}: {int((~inside).sum())} elements outside of every tensor")


def watch():
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store

    def checked_load(self, pointers, mask, *rest, **named):
        _check(pointers, mask, "load")
        return load(self, pointers, mask, *rest, **named)

    def checked_store(self, pointers, value, mask, *rest):
        _check(pointers, mask, "store")
        return store(self, pointers, value, mask, *rest)

    InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store = checked_load, checked_store


def known(tensor):
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    _known.append((tensor.data_ptr(), tensor.data_ptr() + span * tensor.element_size()))
    return tensor


class Torch:
    """``torch`` as an emitted module sees it: what it allocates is poisoned and known."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def empty(self, shape, *, dtype, device):
        made = torch.empty(shape, dtype=dtype, device=device)
        made.untyped_storage().fill_(POISON)
        return known(made)


def run(text, tensors):
    """The module's results on ``tensors``."""
    made = executed(text)
    made.torch = Torch()
    _known.clear()
    before = [known(t).clone() for t in tensors]
    with torch.no_grad():
        results = judging.listed(made.ModelNew()(*tensors))
    for old, new in zip(before, tensors, strict=True):
        assert torch.equal(old.nan_to_num(), new.nan_to_num()) if old.is_floating_point() else torch.equal(old, new)
    return results


def rendered(built, schedule, parts):
    """The module's text; sums go into so many ``parts`` whether the space offers that or not."""
    if parts is None:
        return emit.render("triton", built, schedule, GPU, 1).source
    for group in built.groups:
        schedule = schedule.with_choice(f"{group.name}.split", parts)
    return module.emit_module(built, schedule, GPU)


def problems(name, source, count, parts, choices):
    found = []
    built, model, inputs = compiled.planned(source)
    declared, exact = judging.references(model, inputs)
    tensors = compiled.kernel_inputs(model, inputs)
    for schedule, split in [(s, p) for s in cases.schedules(built, name, count, GPU) for p in parts]:
        for group, (decision, value) in product(built.groups, choices):
            schedule = schedule.with_choice(f"{group.name}.{decision}", value)  # noqa: PLW2901
        try:
            text = rendered(built, schedule, split)
        except Unsupported as refusal:
            return [(name, f"refused: {refusal}", [])]
        try:
            problem = judging.agrees(run(text, tensors), declared, exact)
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is what is wrong with it
            problem = f"{type(error).__name__}: {error}"
        if problem:
            found.append((name, problem, [split, *(f"{k}={v}" for k, v in schedule.choices)]))
    return found


def main():
    families, count, *rest = sys.argv[1:]
    names = [one for one in rest if not one.isdecimal() and "=" not in one]
    choices = cases.choices(rest)
    parts = [int(one) for one in rest if one.isdecimal()] or [None]
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    watch()
    found = []
    for name, case in cases.of(families):
        if not names or name in names:
            began = time.process_time()
            found += problems(name, table.source(case), int(count), parts, choices)
            print(f"{name} {time.process_time() - began:.1f} s", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
