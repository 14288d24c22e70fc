"""What Prometheus reads: requests and their latency, events, commits, versions, the running measure and its bound."""

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankwise._extras import require
from rankwise.guarantees.bounds.online import RISK
from rankwise.serve.service import Service

prometheus = require("prometheus_client")
core = require("prometheus_client.core")

_EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_REMEMBERED = 2_048
_OF_MODELS = {
    "version": "The published version",
    "learned_lists": "Lists learned from",
    "refused_lists": "Lists that could not be learned from",
    "running_measure": "Mean measure of what was shown",
    "running_measure_low": "Lower end of its interval, at all times",
    "cumulative_loss": "Cumulative loss of the run",
    "risk_bound": "Bound on the mean risk of the run, with probability 0.95, at all times",
    "drift_share": "Largest share of a feature's values outside of its usual range",
}


class Metrics:
    """Counts of one application, in a registry of its own.

    Parameters
    ----------
    service : Service
        What the gauges look at.
    """

    def __init__(self, service: Service) -> None:
        self.registry = prometheus.CollectorRegistry()
        self._seconds = prometheus.Histogram(
            "rankwise_request_seconds", "Time to answer", ["route", "status"], buckets=_EDGES, registry=self.registry
        )
        self._children: dict[tuple[str, int], Any] = {}
        self.recent: dict[str, deque[float]] = {}
        self.registry.register(_Gauges(service))

    def observe(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        child = self._children.get((route, status))
        if child is None:
            child = self._children[route, status] = self._seconds.labels(route, str(status))
            self.recent.setdefault(route, deque(maxlen=_REMEMBERED))
        child.observe(seconds)
        self.recent[route].append(seconds)

    def latency(self, route: str) -> dict[str, float] | None:
        """Median and 99th percentile of the last requests, in milliseconds."""
        found = self.recent.get(route)
        if not found:
            return None
        half, high = np.percentile(np.array(found), [50, 99]) * 1e3
        return {"p50": float(half), "p99": float(high), "n": len(found)}

    def requests(self) -> dict[str, int]:
        """Number of requests by class of status."""
        found: dict[str, int] = {}
        for (_, status), child in list(self._children.items()):
            count = sum(int(bucket.get()) for bucket in child._buckets)
            found[f"{status // 100}xx"] = found.get(f"{status // 100}xx", 0) + count
        return found

    def text(self) -> bytes:
        """The text format of Prometheus."""
        return bytes(prometheus.generate_latest(self.registry))


class _Gauges:
    """Numbers that the service knows, read when they are asked for."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def collect(self) -> Iterator[Any]:
        """The metrics, as prometheus_client asks for them."""
        service, log = self.service, self.service.log
        counter, gauge = core.CounterMetricFamily, core.GaugeMetricFamily
        events = counter("rankwise_events", "Events by outcome", labels=["outcome"])
        for name in ("new", "duplicate", "refused", "failed"):
            events.add_metric([name], log.counts[name])
        shown = counter("rankwise_rankings", "Rankings by whether they were logged", labels=["logged"])
        shown.add_metric(["yes"], log.counts["shown"])
        shown.add_metric(["no"], log.counts["unlogged"])
        yield from (events, shown, counter("rankwise_commits", "Transactions", value=log.counts["commits"]))
        yield gauge("rankwise_seq", "The last event", value=log.committed)
        yield gauge("rankwise_lag_events", "Events not learned yet", log.committed - log.replay.seq)
        yield gauge("rankwise_up_seconds", "Time since the start", value=time.time() - service.began)
        yield gauge("rankwise_alarms", "Alarms that ring", value=len(service.alarms()))
        families = {name: gauge(f"rankwise_{name}", text, labels=["model"]) for name, text in _OF_MODELS.items()}
        for name in list(service.view.models):
            ledger, described = service.ledger(name), service.describe(name)
            families["version"].add_metric([name], described.published)
            families["learned_lists"].add_metric([name], described.lists)
            families["refused_lists"].add_metric([name], described.refused)
            if described.running.mean is not None:
                families["running_measure"].add_metric([name], described.running.mean)
                families["running_measure_low"].add_metric([name], described.running.low)
            families["cumulative_loss"].add_metric([name], ledger.loss)
            for bound in ledger.bounds:
                if bound.of == RISK and bound.applies is not False:
                    families["risk_bound"].add_metric([name], bound.value)
            families["drift_share"].add_metric([name], max(service.drift.shares(name), default=0.0))
        yield from families.values()
