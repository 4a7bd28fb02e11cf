"""The test's own judge: outputs against float64, as far from it as torch's own result is, at most twice."""

import copy

import torch

ONE_ROUNDING, FEW_ROUNDINGS = 0.6, 8.0
FEW_ELEMENTS = 16
"""With so few elements (or in float64, which is compared with itself) torch may be exact by luck: units of epsilon."""


def references(model, inputs):
    """Outputs of the declared precision, and of float64 (the declared one again where float64 cannot run)."""
    with torch.no_grad():
        declared = listed(model(*inputs))
        widened = [i.double() if isinstance(i, torch.Tensor) and i.is_floating_point() else i for i in inputs]
        try:
            exact = listed(copy.deepcopy(model).double()(*widened))
        except RuntimeError:  # the operator casts on its own, so the two precisions do not mix
            exact = declared
    return declared, exact


def listed(outputs):
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def agrees(got, declared, exact):
    """An explanation of the first disagreement, or None."""
    for place, (ours, torchs, truth) in enumerate(zip(got, declared, exact, strict=True)):
        if not torchs.is_floating_point():
            if not torch.equal(ours, torchs):
                return f"output {place}: {int((ours != torchs).sum())} elements differ"
            continue
        if not torch.equal(torch.isnan(ours), torch.isnan(torchs)):
            return f"output {place}: NaN elsewhere than torch has it"
        finite = torch.isfinite(torchs)
        infinite = ~finite & ~torch.isnan(torchs)
        if not torch.equal(ours[infinite], torchs[infinite]):
            return f"output {place}: infinities differ"
        if finite.any():
            error, allowed = rms(ours, truth, finite), tolerance(torchs, truth, finite)
            if not error <= allowed:
                return f"output {place}: error {error:.3e} is above {allowed:.3e}"
    return None


def rms(x, truth, where):
    return ((x.double() - truth.double())[where] ** 2).mean().sqrt().item()


def tolerance(torchs, truth, where):
    size = (truth.double()[where] ** 2).mean().sqrt().item()
    lucky = torchs.dtype is torch.float64 or torchs.numel() < FEW_ELEMENTS
    rounding = torch.finfo(torchs.dtype).eps * size * (FEW_ROUNDINGS if lucky else ONE_ROUNDING)
    return 2 * rms(torchs, truth, where) + rounding
