"""A local cluster with a simulated chip, and what it tells about itself while it is under load."""

from __future__ import annotations

import json
import re
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from deploy.local import remains
from deploy.local.cluster import Cluster
from deploy.local.layout import HOST, SERVERS, Layout
from deploy.local.state import State
from evaluator_svc.settings import Settings, SimulatedLimits
from evaluator_svc.simulated import SimulatedEvaluator
from shared.events import EvaluationRequested
from shared.store.memory import MemoryStore

CHIP = "simulated"
MIB = 1 << 20
MS = 1000
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
TROUBLE = ("ERROR", "CRITICAL")


@dataclass(frozen=True, kw_only=True)
class Durations:
    """Of simulated evaluations: log-normal with ``sigma``, cut off at ``longest_s``."""

    median_s: float
    sigma: float = 1.0
    longest_s: float = 10.0

    def of(self, request: EvaluationRequested) -> float:
        """What ``request`` takes by the chip's rule, in seconds."""
        limits = SimulatedLimits(median_s=self.median_s, sigma=self.sigma, longest_s=self.longest_s)
        return SimulatedEvaluator(MemoryStore().blobs, Settings(simulated=limits)).seconds(request)

    @property
    def environment(self) -> dict[str, str]:
        """What evaluators are told."""
        return {
            "SIMULATED_MEDIAN_S": str(self.median_s),
            "SIMULATED_SIGMA": str(self.sigma),
            "SIMULATED_LONGEST_S": str(self.longest_s),
        }


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Counts at or below each bound (s), as Prometheus keeps them."""

    counts: Mapping[float, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return max(self.counts.values(), default=0.0)

    def minus(self, earlier: Histogram) -> Histogram:
        return Histogram(counts={bound: n - earlier.counts.get(bound, 0.0) for bound, n in self.counts.items()})

    def quantile(self, share: float) -> float:
        """Seconds, interpolated in its bucket; infinite beyond the last bound, NaN of nothing."""
        wanted, below_s, below = share * self.total, 0.0, 0.0
        if not self.total:
            return float("nan")
        for bound, count in sorted(self.counts.items()):
            if count >= wanted:
                return below_s + (bound - below_s) * (wanted - below) / (count - below)
            below_s, below = bound, count
        return float("inf")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """CPU seconds since the processes started, and memory that no other process shares, by kind of process."""

    cpu_s: Mapping[str, float]
    own_bytes: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class System:
    """A running cluster."""

    cluster: Cluster
    state: State
    durations: Durations

    @property
    def evaluators(self) -> list[str]:
        return [member.name for member in self.state.members if member.name.startswith("evaluator")]

    def histograms(self, name: str, *labels: str) -> dict[tuple[str, ...], Histogram]:
        """The histogram ``name`` summed over all processes, by the values of ``labels``."""
        found: dict[tuple[str, ...], Counter[float]] = {}
        for member in self.state.members:
            if "metrics" not in member.ports:
                continue
            for sample, about, value in _scraped(member.ports["metrics"]):
                if sample == f"kernelevolve_{name}_bucket":
                    key = tuple(about[label] for label in labels)
                    found.setdefault(key, Counter())[float(about["le"])] += value
        return {key: Histogram(counts=dict(counts)) for key, counts in found.items()}

    def usage(self) -> Usage:
        cpu_s: Counter[str] = Counter()
        own_bytes: Counter[str] = Counter()
        named = {row.pid: row.name for row in self.cluster.status()}
        for process in remains.marked(self.cluster.folder):
            kind = _kind(named.get(process.pid, ""))
            try:
                times = process.cpu_times()
                cpu_s[kind] += times.user + times.system
                own_bytes[kind] += process.memory_full_info().uss
            except psutil.NoSuchProcess:
                continue
        return Usage(cpu_s=dict(cpu_s), own_bytes=dict(own_bytes))

    def trouble(self) -> list[str]:
        """Lines of the services' logs that tell of an error, and restarts."""
        found = [f"{row.name} was started {row.restarts} times again" for row in self.cluster.status() if row.restarts]
        for member in self.state.members:
            if member.name in SERVERS:
                continue
            lines = Path(member.log).read_text(encoding="utf-8", errors="replace").splitlines()
            found.extend(f"{member.name}: {line[:300]}" for line in lines if _is_trouble(line))
        return found

    def use_workers(self, count: int) -> None:
        """Run the first ``count`` evaluators and no others."""
        running = {row.name for row in self.cluster.status() if row.pid}
        wanted = set(self.evaluators[:count])
        with ThreadPoolExecutor() as threads:
            list(threads.map(self.cluster.start, sorted(wanted - running)))
            list(threads.map(self.cluster.stop, sorted((set(self.evaluators) & running) - wanted)))
        self.cluster.wait_until_ready(self.evaluators[:count])


@contextmanager
def system(*, workers: int, slots: int, durations: Durations, session_s: float = 3.0) -> Iterator[System]:
    """A cluster of its own in a temporary directory; nothing of it is left."""
    environment = {
        **durations.environment,
        "EVALUATOR_SLOTS": str(slots),
        "KAFKA_SESSION_TIMEOUT_MS": str(round(MS * session_s)),
        "SYNTHESIZER_OPERATORS_MAX": "4096",
        "LOG_FORMAT": "json",
    }
    with tempfile.TemporaryDirectory(prefix="ke-load-") as folder:
        cluster = Cluster(Path(folder))
        state = cluster.up(Layout(chips=(CHIP,), workers=workers, environment=environment))
        try:
            yield System(cluster=cluster, state=state, durations=durations)
        finally:
            cluster.down()


def cpu_between(before: Usage, after: Usage) -> dict[str, float]:
    """CPU seconds spent, by kind of process."""
    return {kind: spent - before.cpu_s.get(kind, 0.0) for kind, spent in after.cpu_s.items()}


def per_evaluation(cpu_s: Mapping[str, float], evaluations: int) -> str:
    """CPU time in ms, by kind of process and together."""
    parts = sorted(cpu_s.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{kind} {1000 * spent / evaluations:.1f}" for kind, spent in parts if spent > 0.05)
    return f"{1000 * sum(cpu_s.values()) / evaluations:.0f} ({shown})"


def _kind(name: str) -> str:
    return name.split("-", maxsplit=1)[0] or "supervisor and captures"


def _scraped(port: int) -> Iterator[tuple[str, dict[str, str], float]]:
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if match:
            yield match[1], dict(LABEL.findall(match[2] or "")), float(match[3])


def _is_trouble(line: str) -> bool:
    try:
        return json.loads(line)["level"] in TROUBLE
    except (ValueError, KeyError, TypeError):
        return "Traceback" in line or "Error" in line
