"""The part of ``vector_math.h`` that a kernel uses, for the register groups it uses (pure)."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from synthesizer_svc.schedule.emit.rvv.types import RegisterGroup

_FUNCTION = re.compile(r"\bke_(\w+?)_(LM|HM|m1)\(")
_SCALARS = 0
"""Stands for the register group of functions of one float, which go through lane 0 of a vector: both round alike."""
_BY_COMPARISON = {"max": ">=", "min": "<="}


def text(used: set[tuple[str, int]]) -> str:
    """Definitions of functions by (name, LMUL; 0: of floats) with everything they need, in the order of the header."""
    scalars = sorted(name for name, lmul in used if lmul == _SCALARS)
    wanted = {(name, lmul) for name, lmul in used if lmul != _SCALARS}
    wanted |= {(name, 1) for name in scalars if name not in _BY_COMPARISON}
    parts = [_instance(name, lmul) for name, lmul in _in_order(_closed(wanted))]
    return "\n".join([*parts, *(_scalar(name) for name in scalars)])


@cache
def _blocks() -> dict[str, str]:
    """Functions by name; one that is written for single registers only has their suffix."""
    whole = files(__package__).joinpath("vector_math.h").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for block in whole.split("\n\n"):
        name = _FUNCTION.search(block)
        if name is not None:
            found[name[1] if name[2] == "LM" else f"{name[1]}_m1"] = block.strip("\n") + "\n"
    return found


def _key(name: str, lmul: int) -> str:
    return f"{name}_m1" if lmul == 1 and f"{name}_m1" in _blocks() else name


def _closed(wanted: set[tuple[str, int]]) -> set[tuple[str, int]]:
    found, waiting = set(wanted), list(wanted)
    while waiting:
        name, lmul = waiting.pop()
        calls = _FUNCTION.findall(_blocks()[_key(name, lmul)])
        needed = {(called, lmul // 2 if size == "HM" else lmul) for called, size in calls} - found
        found |= needed
        waiting += needed
    return found


def _in_order(functions: set[tuple[str, int]]) -> list[tuple[str, int]]:
    """Narrow register groups first: wide ones may call them."""
    places = {key: place for place, key in enumerate(_blocks())}
    return sorted(functions, key=lambda f: (f[1], places[_key(*f)]))


def _instance(name: str, lmul: int) -> str:
    group, block = RegisterGroup(lmul), _blocks()[_key(name, lmul)]
    for word, real in (("VF", group.floats), ("VI", group.integers), ("VB", group.masks)):
        block = re.sub(rf"\b{word}\b", real, block)
    return block.replace("LM", group.name).replace("HM", f"m{lmul // 2}")


def _scalar(name: str) -> str:
    if name in _BY_COMPARISON:
        picked = f"a {_BY_COMPARISON[name]} b || a != a ? a : b"
        return f"KE_INLINE float ke_{name}_s(float a, float b) {{ return {picked}; }}\n"
    spread = "__riscv_vfmv_v_f_f32m1(x, 1)"
    return f"KE_INLINE float ke_{name}_s(float x) {{ return __riscv_vfmv_f(ke_{name}_m1({spread}, 1)); }}\n"
