"""Numbers for those who watch the service: how often, how long, how full. Nobody's name is among them."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from albatross.service.messages import Readiness, Version

CONTENT_TYPE = CONTENT_TYPE_LATEST
OTHER = "other"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

_SIZES = ("seq", "users", "items", "retired", "ratings", "decisions")


class Metrics:
    """One set per service. Only known paths become labels, so that no caller can make new ones."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        requests = Counter("albatross_requests", "Requests answered, by path and status", ["path", "status"], registry=self.registry)
        seconds = Histogram("albatross_request_seconds", "Time to an answer", ["path"], buckets=BUCKETS, registry=self.registry)
        self._requests = requests
        self._counts: dict[tuple[str, int], Counter] = {}
        self._seconds = {path: seconds.labels(path) for path in (*paths, OTHER)}
        self._in_flight = Gauge("albatross_in_flight", "Requests being answered", registry=self.registry)
        self._waiting = Gauge("albatross_waiting", "Requests that wait for the engine", registry=self.registry)
        self._ready = Gauge("albatross_ready", "1 when the log has been replayed", registry=self.registry)
        self._sizes = {name: Gauge(f"albatross_{name}", f"{name} of the model", registry=self.registry) for name in _SIZES}

    def observe(self, path: str, status: int, seconds: float) -> None:
        known = path if path in self._seconds else OTHER
        self._seconds[known].observe(seconds)
        count = self._counts.get((known, status))
        if count is None:
            count = self._counts[known, status] = self._requests.labels(known, str(status))
        count.inc()

    def expose(self, readiness: Readiness, version: Version | None, in_flight: int) -> bytes:
        """Everything, as Prometheus reads it."""
        self._in_flight.set(in_flight)
        self._waiting.set(readiness.waiting)
        self._ready.set(readiness.ready)
        if version is not None:
            for name, gauge in self._sizes.items():
                gauge.set(getattr(version, name))
        return generate_latest(self.registry)
