"""Held-out values and shapes: transforms of an operator's own inputs that stay in its domain.

Floating inputs keep their sign pattern where the operator may care (positive stays positive); integer and boolean
inputs keep their dtype and the range seen. Constant values are multiples of 1/16, so that their sums are exact and a
right kernel is not blamed for the rounding of an ill-conditioned case.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from evaluator_svc.oracle_child.model import OperatorFault, Sample, run

GRID = 16.0
ULP = 2.0**-23


def _scaled_down(x: torch.Tensor) -> torch.Tensor:
    return x * 1e-2


def _scaled_up(x: torch.Tensor) -> torch.Tensor:
    return x * 30.0


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


TRANSFORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "scaled_down": _scaled_down,
    "scaled_up": _scaled_up,
    "shifted": _shifted,
    "constant_rows": _constant_rows,
    "heavy_tails": _heavy_tails,
    "all_equal": _all_equal,
}


def transformed(sample: Sample, name: str) -> Sample:
    """``sample`` with floating arguments transformed and parameters redrawn near their values."""
    change = TRANSFORMS[name]
    arguments = [change(a) if a.is_floating_point() else _spread(a) for a in sample.tensor_arguments()]
    return sample.with_arguments(arguments).with_state([_redrawn(p) for p in sample.state()])


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
    return x[torch.randperm(x.shape[0])].contiguous() if x.dim() else x


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
