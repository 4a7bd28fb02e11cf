"""Builds share the cores; whoever times has them alone."""

from __future__ import annotations

import asyncio

from evaluator_svc.device import Gate
from tests.aio import on_loop


@on_loop
async def test_sharers_run_together_and_an_owner_alone():
    gate, trace, inside, leave = Gate(), [], asyncio.Event(), asyncio.Event()

    async def share(name):
        async with gate.shared():
            trace.append(f"{name} in")
            if trace == ["a in", "b in"]:
                inside.set()
            await leave.wait()
            trace.append(f"{name} out")

    async def own():
        async with gate.alone():
            trace.append("owner in")
            await asyncio.sleep(0)
            trace.append("owner out")

    sharers = [asyncio.create_task(share("a")), asyncio.create_task(share("b"))]
    await inside.wait()
    owner = asyncio.create_task(own())
    await asyncio.sleep(0)
    late = asyncio.create_task(share("c"))
    await asyncio.sleep(0)
    leave.set()
    await asyncio.gather(*sharers, owner, late)
    assert trace.index("owner in") > max(trace.index("a out"), trace.index("b out"))
    assert trace.index("owner out") == trace.index("owner in") + 1
    assert trace.index("c in") > trace.index("owner out")


@on_loop
async def test_a_cancelled_owner_lets_sharers_in_again():
    gate, leave = Gate(), asyncio.Event()

    async def share():
        async with gate.shared():
            await leave.wait()

    async def own():
        async with gate.alone():
            raise AssertionError("never reached")

    first = asyncio.create_task(share())
    await asyncio.sleep(0)
    owner = asyncio.create_task(own())
    await asyncio.sleep(0)
    owner.cancel()
    await asyncio.wait([owner])
    async with gate.shared():
        leave.set()
    await first
