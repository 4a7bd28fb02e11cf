"""Held-out values and shapes: transforms of one tensor of an operator's own inputs that stay in its domain.

Floating inputs keep their sign pattern where the operator may care (positive stays positive); integer and boolean
inputs keep their dtype and the range seen. Constant values are multiples of 1/16, so that their sums are exact and a
right kernel is not blamed for the rounding of an ill-conditioned case.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from evaluator_svc.oracle_child.model import OperatorFault, Sample, run

GRID = 16.0
ULP = 2.0**-23
DENORMAL = {torch.float32: 2.0**-130, torch.bfloat16: 2.0**-130, torch.float64: 2.0**-1030, torch.float16: 2.0**-20}
"""Brings values around 1 under the smallest normal number of their type."""
MIXED_DECADES = 3.0
ROOM = 8.0
"""The largest value of ``near_max`` is the type's largest over this: a right kernel may add a few, or multiply by
log2(e), before it subtracts the maximum."""

FAR_OUT = 100.0
"""Of an outlier, in times of what is usual: the exponential of it overflows in float32."""


class Unsuitable(Exception):
    """The transform has no meaning for this operator; the message says why."""


def _like(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """``y`` in the type of ``x``; without signs where ``x`` has none."""
    return (y.abs() if bool((x >= 0).all()) else y).to(x.dtype)


def _size(x: torch.Tensor) -> float:
    """Root mean square as a power of two; 1 for zeros."""
    rms = x.double().square().mean().sqrt().item()
    return 2.0 ** round(math.log2(rms)) if rms > 0 and math.isfinite(rms) else 1.0


def _rows(x: torch.Tensor) -> torch.Tensor:
    """Two-dimensional, rows of the last axis."""
    return x.reshape(-1, x.shape[-1]) if x.dim() else x.reshape(1, 1)


def _times(factor: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x * factor


def _shifted(x: torch.Tensor) -> torch.Tensor:
    """Moderate: two deviations, where even a serial one-pass variance keeps its digits."""
    spread = x.double().std().item() if x.numel() > 1 else 0.0
    return x + 2.0 * (spread or 1.0)


def _constant_rows(x: torch.Tensor) -> torch.Tensor:
    first = torch.round(x[..., :1].clamp(-8, 8) * GRID) / GRID if x.dim() else x
    return first.expand_as(x).contiguous()


def _heavy_tails(x: torch.Tensor) -> torch.Tensor:
    return x * torch.exp(torch.randn_like(x, dtype=torch.float32).clamp(-4, 4)).to(x.dtype)


def _all_equal(x: torch.Tensor) -> torch.Tensor:
    middle = 0.5 if x.double().mean().item() >= 0 else -0.5
    return torch.full_like(x, middle)


def _uniform(x: torch.Tensor) -> torch.Tensor:
    return _like(x, (2 * torch.rand_like(x, dtype=torch.float64) - 1) * _size(x))


def _near_max(x: torch.Tensor) -> torch.Tensor:
    top = x.double().abs().max().item()
    return (x.double() * (torch.finfo(x.dtype).max / ROOM / top)).to(x.dtype) if top > 0 else x


def _denormals(x: torch.Tensor) -> torch.Tensor:
    return (x.double() * (DENORMAL[x.dtype] / _size(x))).to(x.dtype)


def _alternating(x: torch.Tensor) -> torch.Tensor:
    """Neighbours that cancel but for a sixty-fourth of what the operator is usually given."""
    if bool((x >= 0).all()) or not x.dim():
        raise Unsuitable("its inputs have one sign")
    signs = 1.0 - 2.0 * (torch.arange(x.shape[-1]) % 2)
    return (signs.to(torch.float64) * _size(x) + x.double() / 64).to(x.dtype)


def _sorted(x: torch.Tensor) -> torch.Tensor:
    return x.sort(dim=-1).values if x.dim() else x


def _spikes(x: torch.Tensor) -> torch.Tensor:
    """One value a row, the rest zero: first, last, then anywhere. A sum of one term has no rounding to hide behind."""
    if not x.dim():
        raise Unsuitable("a scalar has no rows")
    rows = torch.zeros_like(_rows(x))
    at = torch.randint(0, rows.shape[1], (rows.shape[0],))
    at[0::3], at[1::3] = 0, rows.shape[1] - 1
    signs = torch.where(torch.rand(rows.shape[0]) < 0.5, -1.0, 1.0)
    mantissa = 1.0 + torch.randint(0, 64, (rows.shape[0],)) / 64.0
    # Odd in the last bit that the type keeps of it: no lower precision holds the value.
    precise = 4.0 * _size(x) * signs * mantissa * (1.0 + 3 * torch.finfo(x.dtype).eps)
    rows[torch.arange(rows.shape[0]), at] = _like(x, precise.to(torch.float64))
    return rows.reshape(x.shape)


def _outliers(x: torch.Tensor) -> torch.Tensor:
    """Usual values, one of them far out: who looks at some of them, and takes a short cut for all, does not meet it."""
    flat = x.clone().reshape(-1)
    flat[int(torch.randint(0, flat.numel(), (1,)))] = FAR_OUT * _size(x)
    return flat.reshape(x.shape)


def _ties(x: torch.Tensor) -> torch.Tensor:
    """Few distinct values: two bits of mantissa are kept."""
    mantissa, exponent = torch.frexp(x.double())
    return torch.ldexp(torch.round(mantissa * 4) / 4, exponent).to(x.dtype)


def _clustered(x: torch.Tensor) -> torch.Tensor:
    """The largest element of a row has equals, and neighbours that are nearly as large."""
    if not x.dim() or x.shape[-1] < 4:
        raise Unsuitable("its rows are too short")
    rows = _rows(x).clone()
    top, at = rows.max(dim=-1)
    index = torch.arange(rows.shape[0])
    for step in (1, 2, 3):
        rows[index, (at + step) % rows.shape[1]] = top if step == 2 else (top * (1 - step * 2.0**-8)).to(x.dtype)
    return rows.reshape(x.shape)


def _mixed(x: torch.Tensor) -> torch.Tensor:
    """Rows of the leading axis on scales that are decades apart; the last is the largest."""
    if not x.dim():
        return x
    decades = min(MIXED_DECADES, math.log10(torch.finfo(x.dtype).max) / 3)
    scales = 10.0 ** ((2 * torch.rand(x.shape[0], dtype=torch.float64) - 1) * decades)
    scales[-1] = 10.0**decades
    return (x.double() * scales.reshape(-1, *[1] * (x.dim() - 1))).to(x.dtype)


def _lowest(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, x.min().item())


def _highest(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, x.max().item())


def _repeated(x: torch.Tensor) -> torch.Tensor:
    """Two values of it, at random places."""
    flat = x.reshape(-1)
    pair = flat[torch.randint(0, flat.numel(), (2,))]
    return pair[torch.randint(0, 2, x.shape)]


def _descending(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1).sort(descending=True).values.reshape(x.shape) if x.dim() else x


TRANSFORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "scaled_down": _times(1e-2),
    "scaled_up": _times(30.0),
    "shifted": _shifted,
    "constant_rows": _constant_rows,
    "heavy_tails": _heavy_tails,
    "all_equal": _all_equal,
    "spikes": _spikes,
    "outliers": _outliers,
    "mixed_conditioning": _mixed,
    "uniform": _uniform,
    "large": _times(1e4),
    "small": _times(1e-4),
    "near_max": _near_max,
    "denormals": _denormals,
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "alternating": _alternating,
    "sorted": _sorted,
    "ties": _ties,
    "clustered_maxima": _clustered,
}
"""Of floating arguments."""
INTEGER_TRANSFORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "lowest_integers": _lowest,
    "highest_integers": _highest,
    "repeated_integers": _repeated,
    "descending_integers": _descending,
}
"""Of integer and boolean arguments, on floating ones of the operator's own distribution."""


def transformed(sample: Sample, name: str) -> Sample:
    """``sample`` with floating arguments transformed and parameters redrawn near their values.

    Raises:
        Unsuitable: the transform has no meaning for these arguments.
    """
    if name in INTEGER_TRANSFORMS:
        change = INTEGER_TRANSFORMS[name]
        if not any(is_free(a) for a in sample.tensor_arguments()):
            raise Unsuitable("it takes no integers whose order is free")
        arguments = [change(a).contiguous() if is_free(a) else a for a in sample.tensor_arguments()]
        return sample.with_arguments(arguments)
    change = TRANSFORMS[name]
    arguments = [change(a) if a.is_floating_point() else _spread(a) for a in sample.tensor_arguments()]
    return sample.with_arguments(arguments).with_state([_redrawn(p) for p in sample.state()])


def is_free(x: torch.Tensor) -> bool:
    """Integers or booleans that are no offsets: integers in order may be, and stay as they are."""
    if x.is_floating_point():
        return False
    flat = x.reshape(-1)
    return x.dtype == torch.bool or x.numel() < 2 or not bool((flat[1:] >= flat[:-1]).all())


def nudged(sample: Sample) -> Sample:
    """``sample`` with every floating value moved by at most one unit in the last place: its conditioning shows."""
    return sample.with_arguments([_nudge(a) for a in sample.tensor_arguments()]).with_state(
        [_nudge(p) for p in sample.state()]
    )


def perturbed(sample: Sample, other: Sample, index: int) -> Sample:
    """``sample`` with only input ``index`` changed: to ``other``'s value, or scaled and shifted when those agree."""
    arguments, state = sample.tensor_arguments(), sample.state()
    mine, theirs = (arguments + state)[index], other.inputs[index]
    changed = theirs if theirs.shape == mine.shape and not torch.equal(mine, theirs) else _different(mine)
    if index < len(arguments):
        arguments[index] = changed
        return sample.with_arguments(arguments)
    state[index - len(arguments)] = changed
    return sample.with_state(state)


def reshaped(sample: Sample) -> Sample | None:
    """``sample`` on a held-out shape (leading dimension shortened), or None when the reference runs on none."""
    arguments = sample.tensor_arguments()
    leading = arguments[0].shape[0] if arguments[0].dim() else 0
    length = leading // 2 + 1
    if length >= leading:
        return None
    alike = [i for i, a in enumerate(arguments) if a.dim() and a.shape[0] == leading]
    for chosen in (alike, alike[:1]):
        trial = [a[:length].contiguous() if i in chosen else a for i, a in enumerate(arguments)]
        candidate = sample.with_arguments(trial)
        try:
            run(candidate)
        except OperatorFault:
            continue  # the reference refuses this shape, so it is no case
        return candidate
    return None


def _spread(x: torch.Tensor) -> torch.Tensor:
    """A permutation of ``x`` over its leading dimension: dtype, range and multiplicities stay."""
    return x[torch.randperm(x.shape[0])].contiguous() if x.dim() and is_free(x) else x


def _redrawn(p: torch.Tensor) -> torch.Tensor:
    """Near ``p``, never degenerate: ones and zeros become distinct values, positive stays positive."""
    if not p.is_floating_point():
        return p
    noise = torch.rand_like(p, dtype=torch.float32)
    if p.numel() and bool((p == p.flatten()[0]).all()):
        return (p * (0.5 + noise) + 0.25 * torch.rand_like(noise)).to(p.dtype)
    return (p * (0.5 + noise)).to(p.dtype)


def _nudge(x: torch.Tensor) -> torch.Tensor:
    if not x.is_floating_point():
        return x
    step = ULP if x.dtype == torch.float32 else torch.finfo(x.dtype).eps
    return (x.double() * (1.0 + step * (2.0 * torch.rand_like(x, dtype=torch.float64) - 1.0))).to(x.dtype)


def _different(x: torch.Tensor) -> torch.Tensor:
    if x.is_floating_point():
        return (x * 1.25 + 0.125).to(x.dtype)
    if x.dtype == torch.bool:
        return ~x
    return x.flip(0) if x.dim() and not torch.equal(x, x.flip(0)) else x.roll(1) if x.numel() > 1 else x
