"""What all runners share whose outputs lie in the controller's memory."""

from __future__ import annotations

from typing import Any

from evaluator_svc.arrays import on_host


class HostOutputs:
    """See the module."""

    poisons = True
    """Outputs may be given any content before a call, and what a call leaves of it was not written."""

    pipelined = False
    """Calls of a block are in flight together."""
    first_calls_dearer = False
    """A call of a short block costs more than one of a long block, whatever it is given."""
    owns_results = False
    """Results are copies that no candidate can reach."""

    async def waited_ns(self) -> int:
        """What an operation of the controller's on the kernels' device waits for: there is none."""
        return 0

    def placed(self, data: Any) -> Any:
        """An array where outputs can be compared with it: in memory."""
        return on_host(data)
