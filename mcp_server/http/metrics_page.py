"""Count requests and tool calls, and serve the metrics page in Prometheus's text format.

Law, tested: a label is a name that Memex chose (a route's template, a tool, a code), never text from a request."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from syncd.telemetry.metric_samples import HistogramSample, Sample

Samples: TypeAlias = Callable[[], Iterable[Sample | HistogramSample]]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SECONDS: Final = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 2.5, 5, 15, 60)
_LOADED: Final = time.monotonic()
OTHER: Final = "other"  # a path without a route, or a method that is not served


class Metrics:
    """Counts requests and calls of one server; safe to use from any thread."""

    def __init__(self, samples: Samples, *, version: str) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_Samples(samples, version))
        self._requests = Counter(
            "memex_http_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._refused = Counter(
            "memex_http_refused",
            "Requests refused by the guard, by status; 429 means too many requests.",
            ("status",),
            registry=registry,
        )
        self._took = Histogram(
            "memex_http_request_seconds",
            "Seconds from a request's head to its answer.",
            ("method", "route"),
            buckets=SECONDS,
            registry=registry,
        )
        self._calls = Counter("memex_tool_calls", "Calls of a tool, by outcome.", ("tool", "code"), registry=registry)
        self._call_took = Histogram(
            "memex_tool_seconds",
            "Duration of a tool's calls in seconds.",
            ("tool",),
            buckets=SECONDS,
            registry=registry,
        )
        self._first_answer = Gauge(
            "memex_first_answer_seconds",
            "Seconds from the start of the process until it answers requests; 0 before that.",
            registry=registry,
        )
        self._degraded = Counter("memex_degraded_searches", "Searches with incomplete results.", registry=registry)

    def mark_serving(self) -> None:
        """Record how long the process took until now, when it begins to answer requests."""
        self._first_answer.set(_process_age())

    def count_request(self, *, method: str, route: str, status: int, seconds: float, refused: bool) -> None:
        """Count an answered request."""
        self._requests.labels(method, route, status).inc()
        if refused:
            self._refused.labels(status).inc()
        else:  # refusals would hide the duration of real answers
            self._took.labels(method, route).observe(seconds)

    def count_call(self, tool: str, *, code: str, seconds: float, degraded: bool) -> None:
        """Count a finished tool call; `code` is OK, CANCELLED or an error code."""
        self._calls.labels(tool, code).inc()
        self._call_took.labels(tool).observe(seconds)
        if degraded:
            self._degraded.inc()

    def render_page(self) -> bytes:
        """Render all metrics in Prometheus's text format."""
        return generate_latest(self._registry)


class _Samples(Collector):
    """Collects the daemon's numbers, read again for each request."""

    def __init__(self, samples: Samples, version: str) -> None:
        self._samples = samples
        self._built = {"version": version, "python": platform.python_version()}

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration reads no numbers."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield one metric family for each name."""
        build = GaugeMetricFamily("memex_build_info", "Version of Memex.", labels=tuple(self._built))
        build.add_metric(list(self._built.values()), 1)
        yield build
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        histograms: dict[str, HistogramMetricFamily] = {}
        for sample in self._samples():
            labels = list(sample.labels.values())
            if isinstance(sample, HistogramSample):
                if sample.name not in histograms:
                    histograms[sample.name] = HistogramMetricFamily(
                        sample.name, sample.means, labels=tuple(sample.labels)
                    )
                buckets = [
                    ("+Inf" if math.isinf(bound) else str(bound), count) for bound, count in sample.buckets.items()
                ]
                histograms[sample.name].add_metric(labels, buckets, sample.seconds)
                continue
            if sample.name not in families:
                of = GaugeMetricFamily if sample.kind == "gauge" else CounterMetricFamily
                families[sample.name] = of(sample.name, sample.means, labels=tuple(sample.labels))
            families[sample.name].add_metric(labels, float(sample.value))
        yield from (*families.values(), *histograms.values())


def _process_age() -> float:
    """Return the seconds since the process started or, if the system does not report it, since this module was loaded."""
    try:
        ticks = int(Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.monotonic() - _LOADED
