"""What a local cluster costs: time until it is ready, memory, and the CPU it takes while nobody asks anything of it.

.venv/bin/python tests/bench/local_cluster.py --chips simulated --workers 2
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import psutil

from deploy.local import remains
from deploy.local.cluster import Cluster
from deploy.local.layout import Layout

SETTLE_S = 10
MIB = 1 << 20


def main() -> None:
    """Print a table of the processes and their sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chips", default="simulated")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        began = time.monotonic()
        cluster.up(Layout(chips=tuple(options.chips.split()), workers=options.workers))
        print(f"ready after {time.monotonic() - began:.1f} s; idle for {options.seconds:.0f} s:")
        try:
            time.sleep(SETTLE_S)
            measure(cluster, options.seconds)
        finally:
            began = time.monotonic()
            cluster.down()
            print(f"down after {time.monotonic() - began:.1f} s")


def measure(cluster: Cluster, seconds: float) -> None:
    """CPU as a share of one core, children included; memory that no other process shares (USS)."""
    named = {row.pid: row.name for row in cluster.status()}
    processes = remains.marked(cluster.folder)
    before = {process: _cpu_s(process) for process in processes}
    time.sleep(seconds)
    total_cpu = total_memory = 0.0
    for process in sorted(processes, key=lambda process: named.get(process.pid, "supervisord")):
        cpu, memory = (_cpu_s(process) - before[process]) / seconds, process.memory_full_info()
        total_cpu, total_memory = total_cpu + cpu, total_memory + memory.uss
        name = named.get(process.pid, "supervisord")
        print(f"{name:<28} {cpu:6.1%} {memory.rss / MIB:6.0f} MiB resident {memory.uss / MIB:6.0f} MiB own")
    print(f"{'together':<28} {total_cpu:6.1%} {'':>19} {total_memory / MIB:6.0f} MiB own")


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


if __name__ == "__main__":
    main()
