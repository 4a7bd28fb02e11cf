"""Which terms of an index need 64 bits in a language whose positions have 32 (pure).

A term's text has 64 bits where its positions do, or where it is an int64 that was read from memory. Of the others every
product and every sum of some of them has to fit into 32: where one may not, all of them are made wide first.
"""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index, Term

NARROW = 1 << 31
"""Magnitudes below it fit."""


def widened(index: Index, *, wide: bool) -> frozenset[Term]:
    """Terms of ``index`` that have to be made wide before they are multiplied and summed.

    ``wide``: positions of axes have 64 bits.
    """
    narrow = [term for term in index.terms if not _has_64_bits(term, wide=wide)]
    reach = abs(index.const) + sum(abs(index.terms[term]) * _reach(term) for term in narrow)
    return frozenset(narrow) if reach >= NARROW else frozenset()


def _has_64_bits(term: Term, *, wide: bool) -> bool:
    if isinstance(term, Axis):
        return wide
    if isinstance(term, ix.Indirect):
        return isinstance(term.expr, Expr) and term.expr.dtype is DType.I64
    inside = term.inner
    return bool(widened(inside, wide=wide)) or any(_has_64_bits(t, wide=wide) for t in inside.terms)


def _reach(term: Term) -> float:
    """The greatest magnitude of a term of 32 bits."""
    if isinstance(term, ix.Indirect):
        return NARROW
    low, high = Index(0, {term: 1}).range()
    return max(abs(low), abs(high))
