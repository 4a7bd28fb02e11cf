"""Where a search can be in its life, as servers tell it and as its outcome while it has none (pure)."""

from __future__ import annotations

PAUSED = "paused"
"""It waits to be resumed, and nothing of it is running."""
PHASES = ("submitted", "searching", "confirming", PAUSED, "finished")
