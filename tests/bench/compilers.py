"""Compilers that run beside a measurement, as on a machine that others use."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMPILED = "#include <algorithm>\n#include <map>\n#include <regex>\n#include <string>\nint main() { return 0; }\n"
STARTING_S = 0.5


@contextmanager
def compilers(count: int) -> Iterator[None]:
    """``count`` of them, one after the other for ever, for the length of the block."""
    with tempfile.TemporaryDirectory(prefix="ke-busy-", ignore_cleanup_errors=True) as folder:
        source = Path(folder) / "busy.cpp"
        source.write_text(COMPILED)
        # They end with this program, however that ends: orphans would disturb whatever is measured next.
        loop = f'while kill -0 {os.getpid()} 2>/dev/null; do g++ -O2 -std=c++17 -c "$0" -o /dev/null; done'
        command, environment = ["sh", "-c", loop, str(source)], {**os.environ, "TMPDIR": folder}
        running = [subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True) for _ in range(count)]
        try:
            time.sleep(STARTING_S)  # until they compile rather than start
            yield
        finally:
            for one in running:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()
