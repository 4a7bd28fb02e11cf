"""Every metric there is, and the one door to ``prometheus_client``.

A metric is recorded by calling it; outside ``serving`` that is one comparison and nothing else, so nobody asks whether
metrics are on. Units are seconds, records, tokens or micro-units of money, and part of the name
(https://prometheus.io/docs/practices/naming/). Label values come from small closed sets: chips, topics, groups, codes;
never a search or a candidate, whose names belong to logs and traces.

``docs/operations.md`` explains each to whoever is on call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, ClassVar

from shared.errors import UserError

PREFIX = "kernelevolve_"

FAST_S = (0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Buckets of what should take milliseconds; 20 and 100 ms are the limits promised for a hop."""
SLOW_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Buckets of work."""
WAIT_S = (*(bound for bound in FAST_S if bound < 1.0), *(bound for bound in SLOW_S if bound >= 1.0))
"""Buckets of waiting for work: milliseconds while workers are free, and as long as it takes otherwise."""

ALL: list[Metric] = []
"""In the order defined below."""


class Metric:
    """A name, what it means, and its labels in the order in which calls give them."""

    kind: ClassVar[str] = ""

    def __init__(self, name: str, help_text: str, *labels: str, buckets: tuple[float, ...] = ()) -> None:
        self.name, self.help_text, self.labels, self.buckets = PREFIX + name, help_text, labels, buckets
        self._recorder: Any = None
        self._children: dict[tuple[str, ...], Any] = {}
        ALL.append(self)

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which a query finds it."""
        if self.kind != "Histogram":
            return (self.name,)
        return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))

    def attach(self, library: Any, registry: Any) -> None:
        """Begin to record into ``registry``."""
        options = {"buckets": self.buckets} if self.buckets else {}
        make = getattr(library, self.kind)
        self._recorder = make(self.name, self.help_text, self.labels, registry=registry, **options)
        self._children = {} if self.labels else {(): self._recorder}

    def detach(self) -> None:
        """Record nothing any more."""
        self._recorder = None

    def _child(self, values: tuple[str, ...]) -> Any:
        """The library finds it under a lock, by a slower way."""
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = self._recorder.labels(*values)
        return child


class Counter(Metric):
    """Only grows while the process lives."""

    kind = "Counter"

    def inc(self, *values: str, by: float = 1.0) -> None:
        if self._recorder is not None:
            self._child(values).inc(by)


class Gauge(Metric):
    """What is so now."""

    kind = "Gauge"

    def set(self, to: float, *values: str) -> None:
        if self._recorder is not None:
            self._child(values).set(to)


class Histogram(Metric):
    """A distribution of seconds."""

    kind = "Histogram"

    def observe(self, seconds: float, *values: str) -> None:
        if self._recorder is not None:
            self._child(values).observe(seconds)


# --- records ----------------------------------------------------------------------------------------------------------

RECORDS = Counter(
    "records_total",
    "Records taken from a topic, by how it ended: handled, poison (dead-lettered) or retried (a try that failed).",
    *("topic", "group", "outcome"),
)
HOP_SECONDS = Histogram(
    "hop_delay_seconds",
    "From a record's publication, by its publisher's clock, to the first start of its handler.",
    *("topic", "group"),
    buckets=FAST_S,
)
HANDLER_SECONDS = Histogram(
    "handler_seconds", "How long handlers of records run, retries included.", "topic", "group", buckets=SLOW_S
)
LAG = Gauge(
    "consumer_lag_records",
    "Records of the partitions owned here that the group has not committed; chip is empty but for evaluation queues.",
    *("topic", "group", "chip"),
)
OFFSET_GAPS = Counter(
    "offset_gaps_total", "Jumps in a partition's offsets: records the broker lost or never showed.", "topic"
)

# --- evaluation -------------------------------------------------------------------------------------------------------

EVALUATIONS = Counter(
    "evaluations_total",
    "Verdicts published, by status; memoised is true when nothing was run for it.",
    *("chip", "status", "memoised"),
)
STAGE_SECONDS = Histogram(
    "evaluation_stage_seconds",
    "Where an evaluation's time went: build, correctness, timing, profile, wait (device lease), framework.",
    *("chip", "stage"),
    buckets=SLOW_S,
)
QUEUE_DEPTH = Gauge("queue_depth", "Work in the shared queue of a chip, by state: waiting or claimed.", "chip", "state")
SLOTS = Gauge(
    "evaluator_slots",
    "Evaluations that this process runs at the same time; 0 while it drains or is in quarantine.",
    "chip",
)
QUEUE_WAIT_SECONDS = Histogram(
    "queue_wait_seconds",
    "From the publication of an evaluation request to its claim by a worker, by the publisher's clock.",
    *("chip",),
    buckets=WAIT_S,
)
BUSY_SECONDS = Counter("evaluator_busy_seconds_total", "Time slots were busy with evaluations; see slots.", "chip")
POOL = Counter(
    "pool_events_total",
    "What happened to requests in a pool: taken_in, poison, added_again (the queue had lost it), forgotten (its "
    "partition moved), redelivered (another worker had lost it), given_up (too many had), fenced (a late result was "
    "dropped), given_back (unfinished at the end of the drain), overdue, stuck, probed (a worker tried itself), "
    "unsound (and found a fault), withdrawn (a verdict of a worker found unsound meanwhile).",
    *("chip", "event"),
)

# --- search -----------------------------------------------------------------------------------------------------------

SEARCHES = Counter(
    "searches_total", "Searches by phase entered: started, forked, resumed, cancelled, finished.", "phase"
)
OUTCOMES = Counter("search_outcomes_total", "Searches that ended, by outcome.", "outcome")
JOURNAL_SECONDS = Histogram("journal_append_seconds", "How long a journal append took, durable.", buckets=FAST_S)
JOURNAL_CONFLICTS = Counter("journal_conflicts_total", "Appends refused because another owner was first.")
REQUESTED = Counter("evaluations_requested_total", "Evaluation requests published, repetitions included.", "chip")

# --- synthesis --------------------------------------------------------------------------------------------------------

CANDIDATES = Counter(
    "candidates_total", "Answers of the synthesizer: produced, or the code of a rejection or failure.", "outcome"
)
TOKENS = Counter(
    "model_tokens_total", "Tokens of models: input, output; of these: cached, cache_write, reasoning.", "kind"
)
MODEL_REQUESTS = Counter("model_requests_total", "Requests sent to models, failed ones included.", "endpoint")
UNPRICED = Counter("model_unpriced_total", "Candidates whose tokens have no known price.")
COST = Counter("model_cost_micro_total", "Price of those tokens in millionths of the currency, where it is known.")
WRITING_SECONDS = Histogram("candidate_writing_seconds", "What writing a candidate took, by whomever.", buckets=SLOW_S)

# --- process ----------------------------------------------------------------------------------------------------------

READY = Gauge("service_ready", "1 while the service may be given work.", "service")
DEPENDENCY_UP = Gauge("dependency_up", "1 while the dependency answers: bus, store, cache.", "dependency")
RPC = Counter("grpc_calls_total", "gRPC calls answered, by full method and status code.", "method", "code")
RPC_SECONDS = Histogram(
    "grpc_call_seconds", "How long gRPC calls took; a stream counts whole.", "method", buckets=SLOW_S
)


@contextmanager
def serving(listen: str) -> Iterator[str]:
    """Record, and answer ``GET /metrics`` on ``listen`` (``host:port``, port 0: any), for the length of the block.

    Gives the ``host:port`` that is listened on; an empty ``listen`` records nothing and gives an empty string. The
    server is a thread of ``prometheus_client``'s own: a blocked event loop is seen, not hidden.

    Raises:
        UserError: the library is missing, or the address is unusable.
    """
    if not listen:
        yield ""
        return
    host, port = _address(listen)
    if find_spec("prometheus_client") is None:
        raise UserError(
            "needs the extra `metrics`", where=f"METRICS_LISTEN={listen}", hint="pip install kernelevolve[metrics]"
        )
    import prometheus_client

    registry = prometheus_client.CollectorRegistry()
    for collector in (prometheus_client.ProcessCollector, prometheus_client.GCCollector):
        collector(registry=registry)
    try:
        server, thread = prometheus_client.start_http_server(port, host, registry)
    except OSError as error:
        raise UserError(f"cannot listen: {error}", where=f"METRICS_LISTEN={listen}") from error
    for metric in ALL:
        metric.attach(prometheus_client, registry)
    try:
        yield f"{host}:{server.server_port}"
    finally:
        for metric in ALL:
            metric.detach()
        server.shutdown()
        server.server_close()
        thread.join()


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UserError("is no address", where=f"METRICS_LISTEN={listen}", hint="write host:port, e.g. 127.0.0.1:9464")
    return host.strip("[]"), int(port)
