"""Candidate's side: what a forward returned, described for the controller, which believes none of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from evaluator_svc.hosted.wire import DIMENSIONS_MAX, Claim, Result

_NOTHING = Result(claim=Claim.MISSING, dtype=-1, ndim=0, address=0, shape=(), strides=())


def outputs_of(result: Any) -> list[Any]:
    """One output, or those in a list or tuple."""
    return list(result) if type(result) in (list, tuple) else [result]


def settled(result: Any) -> Any:
    """``result`` with what is only marked as negated negated (``z.conj().imag``): memory holds the values then. It is
    part of the call.
    """
    outputs = outputs_of(result)
    if any(_is_marked(one) for one in outputs):
        return [one.resolve_neg() if _is_marked(one) else one for one in outputs]
    return result


def _is_marked(one: Any) -> bool:
    return type(one) is torch.Tensor and one.is_neg() and one.layout is torch.strided and not one.is_nested


def described(outputs: Sequence[Any], expected: int, codes: dict[torch.dtype, int], device: Any) -> list[Result]:
    """One entry for each of the ``expected`` outputs of the operator. ``codes`` numbers the element types."""
    if len(outputs) != expected:
        return [_NOTHING] * expected
    return [_described(one, codes, device) for one in outputs]


def remark(outputs: Sequence[Any], expected: int) -> str:
    """What the outputs are, in words, for evidence."""
    kinds = ", ".join(_kind(one) for one in outputs)
    return f"{len(outputs)} results ({kinds}), {expected} expected" if len(outputs) != expected else kinds


def _kind(one: Any) -> str:
    name = type(one).__name__
    if isinstance(one, torch.Tensor):
        layout = str(one.layout).removeprefix("torch.")
        return f"{name} {str(one.dtype).removeprefix('torch.')}{list(one.shape)} {layout} {one.device}"
    return name


def _described(one: Any, codes: dict[torch.dtype, int], device: Any) -> Result:
    if not isinstance(one, torch.Tensor):
        return _NOTHING
    claim = _claim(one, codes, device)
    if claim not in (Claim.TENSOR, Claim.DTYPE):
        return Result(claim=claim, dtype=-1, ndim=0, address=0, shape=(), strides=())
    return Result(
        claim=claim,
        dtype=codes.get(one.dtype, -1),
        ndim=one.dim(),
        address=device.address(one) if claim is Claim.TENSOR else 0,
        shape=tuple(one.shape)[:DIMENSIONS_MAX],
        strides=tuple(one.stride())[:DIMENSIONS_MAX] if claim is Claim.TENSOR else (),
    )


def _claim(one: torch.Tensor, codes: dict[torch.dtype, int], device: Any) -> Claim:
    if isinstance(one, torch.nn.Parameter):
        return Claim.PARAMETER
    if type(one) is not torch.Tensor:
        return Claim.SUBCLASS
    if one.layout is not torch.strided or one.is_nested or one.is_meta:
        return Claim.LAYOUT
    if one.device.type != device.NAME:
        return Claim.DEVICE
    if one.dtype not in codes or one.is_quantized or one.is_conj() or one.is_neg():
        return Claim.DTYPE
    return Claim.TENSOR
