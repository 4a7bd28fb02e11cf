"""Positions of axes within a flattened dimension (pure)."""

from __future__ import annotations

from math import prod

from synthesizer_svc.schedule.emit.triton.values import Frame, Spot, Values
from synthesizer_svc.schedule.index import Axis


def placed(values: Values, frame: Frame, axes: tuple[Axis, ...], flat: str, dim: str) -> None:
    """Give every axis its position, from the row-major number ``flat`` over all of them."""
    if len(axes) == 1:
        values.spots[axes[0]] = Spot(flat, dim)
        return
    for place, axis in enumerate(axes):
        below = prod(a.extent for a in axes[place + 1 :])
        text = f"{flat} // {below}" if below > 1 else flat
        if place > 0:
            text = f"({text}) % {axis.extent}" if below > 1 else f"{text} % {axis.extent}"
        name = f"{flat}_{axis.name}"
        frame.lines.add(f"{name} = {text}")
        values.spots[axis] = Spot(name, dim)
