"""Held-out sets that need the operator itself: where its constants show, integers it sums exactly, values not finite.

The others are transforms of single tensors, in ``values.py``.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace

import torch

from evaluator_svc.catalogue import INTEGERS, ONE_ELEMENT, SMALL_CONSTANTS, SPECIAL
from evaluator_svc.oracle_child.model import KE_DTYPES, OperatorFault, Sample, run
from evaluator_svc.oracle_child.values import Unsuitable, is_free, transformed
from shared.dtypes import DType

SUM_MAX = {DType.F64: 2.0**40, DType.F32: 2.0**16, DType.F16: 2.0**11, DType.BF16: 2.0**8}
"""Largest sum of absolute products on integers: exact in any order. float32 would hold 2**24; a fast Fourier or
Winograd transform rounds to the right integer only with some bits to spare."""
INTEGER_RANGES = (8, 4, 2, 1)
DENSITIES = (1.0, 0.25, 1 / 16, 1 / 64, 1 / 256)
"""Shares of integers that are not zero, tried until the sums stay below their largest."""
STEPS = 48
"""Halvings of the arguments that a small constant is looked for in."""
DEGREES = 0.25
"""Change of the local degree of homogeneity over the search that counts as a constant showing."""
SITES_MAX, FEW_ROWS = 8, 4
SECONDS = 10.0
"""For a set that takes many runs to find."""


def drawn(sample: Sample, name: str) -> Sample:
    """The sample of a held-out set.

    Raises:
        Unsuitable: it has no meaning for this operator.
        OperatorFault: the reference refuses it.
    """
    if name == SMALL_CONSTANTS:
        return _small_constants(sample)
    if name == INTEGERS:
        return _integers(sample)
    if name == ONE_ELEMENT:
        return _one_element_changed(sample)
    if name == SPECIAL:
        return _not_finite(sample)
    return transformed(sample, name)


def absolute(sample: Sample) -> Sample:
    """Every floating argument and parameter without its sign: ``|A||B|`` is what a sum of products makes of it."""
    return sample.with_arguments([_abs(a) for a in sample.tensor_arguments()]).with_state(
        [_abs(p) for p in sample.state()]
    )


def _abs(x: torch.Tensor) -> torch.Tensor:
    return x.abs() if x.is_floating_point() else x


def _scaled(sample: Sample, factor: float) -> Sample:
    return sample.with_arguments([(a * factor) if a.is_floating_point() else a for a in sample.tensor_arguments()])


def _small_constants(sample: Sample) -> Sample:
    """Arguments so small that an epsilon decides, found by scaling them down in fp64.

    A normalisation without its epsilon is homogeneous: ``f(x / 2) = f(x)``. The local degree of homogeneity,
    ``log2(|f(x)| / |f(x / 2)|)``, changes where a constant begins to count; taken is the scale at which most of the
    last such change is over: below it the output is as sensitive to the constant as it gets.
    """
    floating = [a for a in sample.tensor_arguments() if a.is_floating_point()]
    if not floating:
        raise Unsuitable("it takes no floating arguments")
    least = 2 * max(torch.finfo(a.dtype).smallest_normal for a in floating)
    few, sizes, scale = _few_rows(sample), list[float](), 1.0
    until = time.monotonic() + SECONDS
    for _ in range(STEPS):
        if time.monotonic() > until:
            raise Unsuitable("it takes too long to look for a constant")
        norms = [t.double().norm().item() for t in run(_scaled(few, scale), DType.F64) if t.is_floating_point()]
        total = math.hypot(*norms)
        if not math.isfinite(total) or total <= 0 or scale < least:
            break
        sizes.append(math.log2(total))
        scale /= 2
    degrees = [a - b for a, b in itertools.pairwise(sizes)]
    changes = [i for i, (a, b) in enumerate(itertools.pairwise(degrees)) if abs(b - a) > DEGREES / 8]
    if not changes or max(degrees) - min(degrees) < DEGREES:
        raise Unsuitable("no small constant shows in its results")
    # The last change: a bias counts from 1 on, an epsilon only far below.
    return _scaled(sample, 2.0 ** -(changes[-1] + 1))


def _few_rows(sample: Sample) -> Sample:
    """Arguments with a few rows only, where the operator runs on those: to find a scale takes many runs."""
    arguments = sample.tensor_arguments()
    leading = arguments[0].shape[0] if arguments[0].dim() else 0
    if leading <= FEW_ROWS:
        return sample
    few = sample.with_arguments([a[:FEW_ROWS] if a.dim() and a.shape[0] == leading else a for a in arguments])
    try:
        run(few, DType.F64)
    except OperatorFault:
        return sample
    return few


def _integers(sample: Sample) -> Sample:
    """Small integers whose sums of products every order of summation gives exactly.

    Raises:
        Unsuitable: the operator is no sum of products, or none of the ranges is small enough.
    """
    until = time.monotonic() + SECONDS
    for top in INTEGER_RANGES:
        for density in DENSITIES:
            if time.monotonic() > until:
                raise Unsuitable("it takes too long to find integers that are small enough")
            trial = sample.with_arguments([_integer(a, top, density) for a in sample.tensor_arguments()])
            trial = trial.with_state([_integer(p, top, 1.0) for p in sample.state()])
            declared, exact, sums = run(trial), run(trial, DType.F64), run(absolute(trial), DType.F64)
            triples = [t for t in zip(declared, exact, sums, strict=True) if t[0].is_floating_point()]
            if not triples:
                raise Unsuitable("it has no floating output")
            if any(e.shape != s.shape or d.shape != e.shape for d, e, s in triples):
                raise Unsuitable("the shape of its output depends on values")
            if not all(bool((e == e.round()).all()) and bool((e.abs() <= s).all()) for _, e, s in triples):
                raise Unsuitable("it is no sum of products")
            limits = [SUM_MAX[KE_DTYPES[d.dtype]] for d, _, _ in triples]
            if any(s.max().item() > limit for (_, _, s), limit in zip(triples, limits, strict=True)):
                continue
            if any(not torch.equal(d.double(), e.double()) for d, e, _ in triples):
                raise Unsuitable("the declared reference itself is not exact on integers")
            return trial
    raise Unsuitable("its sums have too many terms")


def _integer(x: torch.Tensor, top: int, density: float) -> torch.Tensor:
    if not x.is_floating_point():
        return x
    low = 0 if bool((x >= 0).all()) else -top
    values = torch.randint(low, top + 1, x.shape)
    if density < 1.0:
        values = values * (torch.rand(x.shape) < density)
    return values.to(x.dtype)


def _not_finite(sample: Sample) -> Sample:
    """NaN and infinities at random sites, and one row masked with minus infinity."""
    if not any(a.is_floating_point() and a.numel() > 1 for a in sample.tensor_arguments()):
        raise Unsuitable("it takes no floating arguments")
    return sample.with_arguments([_with_special(a) for a in sample.tensor_arguments()])


def _with_special(x: torch.Tensor) -> torch.Tensor:
    if not x.is_floating_point() or x.numel() < 2:
        return x
    x = x.clone()
    flat = x.reshape(-1)
    sites = max(1, min(SITES_MAX, flat.numel() // 4096))
    for value in (math.nan, math.inf, -math.inf):
        flat[torch.randint(0, flat.numel(), (sites,))] = value
    if x.dim() > 1:
        rows = x.reshape(-1, x.shape[-1])
        rows[int(torch.randint(0, rows.shape[0], (1,)))] = -math.inf
    return x


def _one_element_changed(sample: Sample) -> Sample:
    """One argument has, somewhere, the one of its own values that is farthest from what was there."""
    arguments = sample.tensor_arguments()
    free = [i for i, a in enumerate(arguments) if a.numel() > 1 and (a.is_floating_point() or is_free(a))]
    if not free:
        raise Unsuitable("it takes no values of which one could change")
    index = free[int(torch.randint(0, len(free), (1,)))]
    changed = arguments[index].clone()
    flat = changed.reshape(-1)
    at = int(torch.randint(0, flat.numel(), (1,)))
    flat[at] = flat[(flat.double() - flat[at].double()).abs().argmax()]
    arguments[index] = changed
    return sample.with_arguments(arguments)


def sums_products(sample: Sample, homogeneous: bool) -> bool:
    """Whether ``|A||B|`` is what ``absolute`` gives: no sign of an input can make a result larger than that.

    ``homogeneous``: it was measured to be affine, or homogeneous of a positive degree, in every floating input.
    """
    if not homogeneous:
        return False
    try:
        bounds = run(absolute(sample), DType.F64)
        for _ in range(2):
            flipped = replace(sample).with_arguments([_signs(a) for a in sample.tensor_arguments()])
            outputs = run(flipped, DType.F64)
            for output, bound in zip(outputs, bounds, strict=True):
                slack = 1e-9 * bound.double().abs().max().item()
                if output.is_floating_point() and not bool((output.abs() <= bound + slack).all()):
                    return False
    except OperatorFault:
        return False
    return True


def _signs(x: torch.Tensor) -> torch.Tensor:
    if not x.is_floating_point():
        return x
    return torch.where(torch.rand_like(x, dtype=torch.float32) < 0.5, -x, x)


def terms(sample: Sample, flops: int | None) -> float:
    """Products in one sum, at most: what ones add up to, operations per output, or inputs per output."""
    ones = sample.with_arguments([_one(a) for a in sample.tensor_arguments()])
    ones = ones.with_state([_one(p) for p in sample.state()])
    outputs = [t for t in run(ones, DType.F64) if t.is_floating_point()]
    smallest = min(t.numel() for t in outputs)
    counted = max(float(t.abs().max().item()) for t in outputs)
    inputs = max(a.numel() for a in sample.inputs)
    return max(counted, (flops or 0) / 2 / smallest, inputs / smallest, 1.0)


def _one(x: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(x) if x.is_floating_point() else x
