"""Inclusive scans along one dimension (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule.lazy import Lazy
from synthesizer_svc.schedule.lower.reductions import to_type
from synthesizer_svc.schedule.lower.registry import CallContext, lowers
from synthesizer_svc.schedule.lower.views import dim_of


@lowers("cumsum.default", "cumprod.default")
def lower_scan(c: CallContext) -> Lazy:
    x = to_type(c.tensor("self"), c.out().dtype)
    dim = dim_of(c, x)
    if not x.shape or x.shape[dim] == 1:
        return x
    return c.builder.scan("cumsum" if "cumsum" in c.call.op else "cumprod", x, dim, c.out().dtype)
