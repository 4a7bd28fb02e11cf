"""A process that holds a secret and has an oracle read an operator's text; prints what the text found."""

from __future__ import annotations

import asyncio
import os

from evaluator_svc.trusted_child import TrustedChild
from shared import inspection
from shared.errors import OperatorError
from tests.integration.confinement.spy import PARENT, text


async def main() -> None:
    inspection.keep_out(os.environ)
    async with TrustedChild("oracle", cpus=(), environment={}, where="spy") as child:
        source = text(parent=os.getpid(), actions=(*PARENT, "own"), tells=True)
        try:
            fields = {"role": "oracle", "name": "spy", "threads": 1, "device": "cpu", "shared": False}
            await child.ask("open", timeout_s=100, source=source, **fields)
        except OperatorError as error:
            print(error)


asyncio.run(main())
