"""``prometheus.json``: where Prometheus finds the metrics of a cluster, in the form of its file-based discovery."""

from __future__ import annotations

import json
from pathlib import Path

from deploy.local.servers import HOST
from deploy.local.state import State

FILE = "prometheus.json"


def write(folder: Path, found: State) -> None:
    """One target for each process that has metrics, named as ``status`` names it."""
    targets = [
        {"targets": [f"{HOST}:{member.ports['metrics']}"], "labels": {"component": member.name}}
        for member in found.members
        if "metrics" in member.ports
    ]
    (folder / FILE).write_text(json.dumps(targets, indent=1) + "\n", encoding="utf-8")


def forget(folder: Path) -> None:
    (folder / FILE).unlink(missing_ok=True)
