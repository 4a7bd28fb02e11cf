"""The option ``--chip``: an id, or the file of a sheet, which every process of the command then knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shared.chips import places
from shared.errors import ChipError


class ChipType(click.ParamType):
    """The id of a chip."""

    name = "chip"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.endswith(places.SUFFIX):
            return text
        try:
            return places.name(Path(text))
        except ChipError as error:
            self.fail(str(error), param, ctx)


CHIP = ChipType()
HELP = "Target chip: an id of `kernelevolve chips`, or the file of a sheet."
