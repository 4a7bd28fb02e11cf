"""Working on a run until it is done or told to stop. Ctrl-C, SIGTERM and a closed terminal all stop it cleanly."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from cli import rundir
from cli.interrupted import Interrupted
from cli.messages import messages_to
from cli.rundir import RunDirectory

T = TypeVar("T")

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Besides SIGINT, which asyncio takes care of."""


def see_through(run: RunDirectory, work: Coroutine[Any, Any, T]) -> T:
    """Do ``work`` as the only process in ``run``, with the services' messages in the run's log.

    Raises:
        Interrupted: a signal came first. A second one does not wait for children to be cleaned up.
        UserError: another process is at the run.
    """
    received: list[signal.Signals] = []

    async def attended() -> T:
        task = asyncio.current_task()
        assert task is not None

        def stop(number: signal.Signals) -> None:
            received.append(number)
            task.cancel()

        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        return await work

    try:
        with rundir.exclusive(run), messages_to(run.messages):
            return asyncio.run(attended())
    except KeyboardInterrupt:
        raise Interrupted(run.path, signal.SIGINT) from None
    except asyncio.CancelledError:
        raise Interrupted(run.path, received[0]) from None
    finally:
        work.close()
