"""Metrics of the service: counts, times and sizes. No user or item is named.

They are counted in plain integers, because this happens with every request. They are formatted for Prometheus only when they are
scraped.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from albatross.service.api.answers import Readiness, Version

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
"""All unknown paths are counted here, so that a caller cannot create new labels."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds in seconds."""

_SIZES = ("seq", "users", "items", "retired", "ratings", "decisions")


class Meter:
    """The answers of one path."""

    __slots__ = ("counts", "seconds", "statuses")

    def __init__(self) -> None:
        self.statuses: dict[int, int] = {}
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def observe(self, status: int, seconds: float) -> None:
        statuses = self.statuses
        statuses[status] = statuses.get(status, 0) + 1
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    """One set per service."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.meters = {path: Meter() for path in (*paths, OTHER)}


class Source(NamedTuple):
    """The metrics of one service."""

    metrics: Metrics
    readiness: Readiness
    version: Version | None
    in_flight: int


def expose(sources: Mapping[str | None, Source], connections: int, body_bytes: int) -> bytes:
    """All metrics in the Prometheus format. `sources`: by name of the shop, which becomes a label; None if there is only one."""
    return "".join(f"{line}\n" for line in _lines(sources, connections, body_bytes)).encode()


def _lines(sources: Mapping[str | None, Source], connections: int, body_bytes: int) -> Iterator[str]:
    meters = [(_shop(name), path, meter) for name, source in sources.items() for path, meter in source.metrics.meters.items()]
    yield from _head("albatross_requests_total", "counter", "Requests answered, by path and status")
    for shop, path, meter in meters:
        for status, count in sorted(meter.statuses.items()):
            yield f'albatross_requests_total{{{shop}path="{path}",status="{status}"}} {count}'
    yield from _head("albatross_request_seconds", "histogram", "Time to an answer")
    for shop, path, meter in meters:
        running = 0
        for bound, count in zip((*BUCKETS, "+Inf"), meter.counts, strict=True):
            running += count
            yield f'albatross_request_seconds_bucket{{{shop}path="{path}",le="{bound}"}} {running}'
        yield f'albatross_request_seconds_count{{{shop}path="{path}"}} {running}'
        yield f'albatross_request_seconds_sum{{{shop}path="{path}"}} {meter.seconds!r}'
    yield from _gauge("connections", "Open connections", {"": connections})
    yield from _gauge("body_bytes", "Bytes of bodies in memory", {"": body_bytes})
    told = {f"{{{label.rstrip(',')}}}" if (label := _shop(name)) else "": source for name, source in sources.items()}
    yield from _gauge("in_flight", "Requests being answered", {label: source.in_flight for label, source in told.items()})
    waiting = {label: source.readiness.waiting for label, source in told.items()}
    yield from _gauge("waiting", "Requests that wait for the engine", waiting)
    yield from _gauge("ready", "1 when the log has been replayed", {label: source.readiness.ready for label, source in told.items()})
    known = {label: source.version for label, source in told.items() if source.version is not None}
    for size in _SIZES if known else ():
        yield from _gauge(size, f"{size} of the model", {label: getattr(version, size) for label, version in known.items()})


def _shop(name: str | None) -> str:
    return "" if name is None else f'shop="{name}",'


def _gauge(name: str, meaning: str, values: Mapping[str, float]) -> Iterator[str]:
    yield from _head(f"albatross_{name}", "gauge", meaning)
    for label, value in values.items():
        yield f"albatross_{name}{label} {float(value)!r}"


def _head(name: str, kind: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"
