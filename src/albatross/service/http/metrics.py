"""Numbers for those who watch the service: how often, how long, how full. Nobody's name is among them.

They are counted in plain integers and written as Prometheus reads them only when somebody asks, as the counting happens with every
request and the asking once in a while.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from albatross.service.api.answers import Readiness, Version

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
"""Where all paths are counted that there are not, so that no caller can make new labels."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds in seconds."""

_SIZES = ("seq", "users", "items", "retired", "ratings", "decisions")


class Meter:
    """What was answered at one path."""

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

    def expose(self, readiness: Readiness, version: Version | None, gauges: Mapping[str, tuple[str, float]]) -> bytes:
        """Everything, as Prometheus reads it. `gauges`: by name, what it is and its value."""
        return "".join(f"{line}\n" for line in self._lines(readiness, version, gauges)).encode()

    def _lines(self, readiness: Readiness, version: Version | None, gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        yield from _head("albatross_requests_total", "counter", "Requests answered, by path and status")
        for path, meter in self.meters.items():
            for status, count in sorted(meter.statuses.items()):
                yield f'albatross_requests_total{{path="{path}",status="{status}"}} {count}'
        yield from _head("albatross_request_seconds", "histogram", "Time to an answer")
        for path, meter in self.meters.items():
            running = 0
            for bound, count in zip((*BUCKETS, "+Inf"), meter.counts, strict=True):
                running += count
                yield f'albatross_request_seconds_bucket{{path="{path}",le="{bound}"}} {running}'
            yield f'albatross_request_seconds_count{{path="{path}"}} {running}'
            yield f'albatross_request_seconds_sum{{path="{path}"}} {meter.seconds!r}'
        shown = {
            **gauges,
            "waiting": ("Requests that wait for the engine", readiness.waiting),
            "ready": ("1 when the log has been replayed", float(readiness.ready)),
        }
        if version is not None:
            shown.update({name: (f"{name} of the model", getattr(version, name)) for name in _SIZES})
        for name, (meaning, value) in shown.items():
            yield from _head(f"albatross_{name}", "gauge", meaning)
            yield f"albatross_{name} {float(value)!r}"


def _head(name: str, kind: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"
