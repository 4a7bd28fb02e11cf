"""An exported artefact looked at from a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROBE = Path(__file__).with_name("probe.py")


def probe(directory: Path, cwd: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """What the probe printed, run in ``cwd`` with a cache of its own and without this project on the path."""
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "KERNELEVOLVE_CACHE": str(cwd / "cache")} | environment
    done = subprocess.run(
        [sys.executable, "-I", str(PROBE), str(directory), *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts
