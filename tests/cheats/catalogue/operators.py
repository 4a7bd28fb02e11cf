"""Operators on which anything would pass: refused before any kernel."""

from __future__ import annotations

from tests.cheats.manifest import Refused

REFUSED = (
    Refused(mechanism="H31", operator="zero_weights", says="constant"),
    Refused(mechanism="H31", operator="mean_of_softmax", says="mean_of_softmax"),
    Refused(mechanism="H44", operator="dropout", says="not deterministic"),
)
