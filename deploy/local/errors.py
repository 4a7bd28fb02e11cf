"""What goes wrong with a cluster that is nobody's bad input."""

from __future__ import annotations

from shared.errors import KernelEvolveError


class ClusterError(KernelEvolveError):
    """It did not come up, or did not go down whole; the text says which process and why."""
