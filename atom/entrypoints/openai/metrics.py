"""What /metrics shows: the table of spec/metrics.yaml, filled from this process and from the engine's statistics.

Owns the counting. Values are plain numbers until someone scrapes: a histogram costs a bisection a token, since
prometheus_client's own, with a lock for each of its numbers, costs ten times that. Knows no endpoint.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol

from atom_spec.metrics import METRICS, Metric
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from atom.entrypoints.openai.generation import SequenceRun
from atom.model_engine.engine_client import EngineClient

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_BY_NAME = {metric.name: metric for metric in METRICS}


class OpenStream(Protocol):
    """A stream that is being written. `last_frame`: monotonic time of its latest frame, or of its start."""

    last_frame: float


class ServerMetrics(Collector):
    """All metrics of a server."""

    def __init__(self, engine: EngineClient) -> None:
        self.open_streams: set[OpenStream] = set()
        self._engine = engine
        self._num_in_progress = 0
        self._counters: dict[str, dict[tuple[str, ...], float]] = {m.name: {} for m in METRICS if m.kind == "counter"}
        self._histograms: dict[str, dict[tuple[str, ...], _Histogram]] = {
            metric.name: {} for metric in METRICS if metric.kind == "histogram"
        }
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def request(
        self, endpoint: str, runs: Sequence[SequenceRun], num_prompt_tokens: int, started: float
    ) -> RequestMetrics:
        """A context around the generation of one answer; its end is counted however it comes."""
        return RequestMetrics(self, endpoint, runs, num_prompt_tokens, started)

    def http_response(self, path: str, status: int) -> None:
        """A response has started. `path`: the contract's."""
        self.count("atom:http_responses", 1, path, str(status))

    def count(self, name: str, amount: float, *labels: str) -> None:
        """Add to a counter."""
        values = self._counters[name]
        values[labels] = values.get(labels, 0.0) + amount

    def histogram(self, name: str, *labels: str) -> _Histogram:
        """The histogram of that name and those label values."""
        children = self._histograms[name]
        child = children.get(labels)
        if child is None:
            child = children[labels] = _Histogram(_BY_NAME[name].buckets)
        return child

    def total(self, name: str) -> tuple[int, float]:
        """How many observations a histogram has under all its labels, and their sum."""
        children = self._histograms[name].values()
        return sum(child.count for child in children), sum(child.sum for child in children)

    def in_progress(self, change: int) -> None:
        """A request was accepted (+1) or ended (-1)."""
        self._num_in_progress += change

    def render(self) -> bytes:
        """The text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """See Collector."""
        own_gauges = {
            "atom:requests_in_progress": float(self._num_in_progress),
            "atom:stream_longest_silence_seconds": self._longest_silence(),
            "atom:engine_up": float(self._engine.is_alive),
        }
        stats = self._engine.stats
        for metric in METRICS:
            if metric.engine:
                yield _family(metric, [((), _combined(metric, [getattr(stats, field) for field in metric.engine]))])
            elif metric.kind == "gauge":
                yield _family(metric, [((), own_gauges[metric.name])])
            elif metric.kind == "counter":
                children = self._counters[metric.name]
                yield _family(metric, children.items() if metric.labels else [((), children.get((), 0.0))])
            else:
                yield self._histogram_family(metric)

    def _histogram_family(self, metric: Metric) -> HistogramMetricFamily:
        family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, child in self._histograms[metric.name].items():
            family.add_metric(labels, child.cumulative(), child.sum)
        return family

    def _longest_silence(self) -> float:
        oldest = min((stream.last_frame for stream in self.open_streams), default=None)
        return 0.0 if oldest is None else max(0.0, time.monotonic() - oldest)


class RequestMetrics:
    """One answer while it is generated. `step` is called after each of its steps."""

    def __init__(
        self,
        metrics: ServerMetrics,
        endpoint: str,
        runs: Sequence[SequenceRun],
        num_prompt_tokens: int,
        started: float,
    ) -> None:
        self._metrics = metrics
        self._endpoint = endpoint
        self._runs = runs
        self._num_prompt_tokens = num_prompt_tokens
        self._started = started
        self._gaps = metrics.histogram("atom:inter_token_latency_seconds", endpoint)
        self._delivered: dict[int, tuple[int, float]] = {}  # choice -> tokens and time of its latest delivery

    def __enter__(self) -> RequestMetrics:
        self._metrics.in_progress(+1)
        self._metrics.count("atom:requests_received", 1, self._endpoint)
        self._metrics.histogram("atom:request_prompt_tokens", self._endpoint).observe(self._num_prompt_tokens)
        return self

    def step(self, run: SequenceRun) -> None:
        """The run has had a step."""
        now, before = run.last_token_time, self._delivered.get(run.index)
        if now is None:
            return
        if before is None:
            if not self._delivered:
                first = self._metrics.histogram("atom:time_to_first_token_seconds", self._endpoint)
                first.observe(now - self._started)
            if run.queue_time is not None:
                self._metrics.histogram("atom:request_queue_time_seconds").observe(run.queue_time)
        elif run.num_tokens > before[0]:
            self._gaps.observe((now - before[1]) / (run.num_tokens - before[0]))
        self._delivered[run.index] = (run.num_tokens, now)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        metrics, endpoint = self._metrics, self._endpoint
        metrics.in_progress(-1)
        metrics.count("atom:requests", 1, endpoint, self._outcome(error))
        metrics.count("atom:undeclared_tool_calls", sum(run.pipeline.num_undeclared for run in self._runs))
        metrics.histogram("atom:request_generation_tokens", endpoint).observe(sum(run.num_tokens for run in self._runs))
        if error is None:
            metrics.histogram("atom:request_latency_seconds", endpoint).observe(time.monotonic() - self._started)

    def _outcome(self, error: BaseException | None) -> str:
        if error is None:
            return self._runs[0].finish_reason or "error"
        return "error" if isinstance(error, Exception) else "aborted"


class _Histogram:
    """Counts by upper bound; an observation falls into the first bucket that is not below it."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self) -> list[tuple[str, float]]:
        """Upper bounds, as text, and how many observations are not above them."""
        total = 0
        rows: list[tuple[str, float]] = []
        for bound, count in zip((*map(float, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            rows.append((str(bound), float(total)))
        return rows


def _family(
    metric: Metric, samples: Iterable[tuple[tuple[str, ...], float]]
) -> CounterMetricFamily | GaugeMetricFamily:
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.name, metric.help, labels=metric.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _combined(metric: Metric, values: Sequence[float]) -> float:
    if metric.combine is None:
        return float(values[0])
    if metric.combine == "difference":
        return float(values[0] - values[1])
    return values[0] / values[1] if values[1] else 0.0
