"""What every request passes before anything else looks at it: whether it may come in, whether there is room, and how long it took."""

import ipaddress
import time
from collections.abc import Iterable
from urllib.parse import urlsplit

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from albatross.service.express import MAX_BODY
from albatross.service.messages import Overloaded, Refused
from albatross.service.metrics import Metrics
from albatross.service.problems import Denied, header_pairs, headers_of, of_refused, send_body, send_problem

MAX_WAITING_BODIES = 2**26
"""Bytes of bodies that may be in memory at one time: beyond, requests are refused before they are read."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ENDLESS = "/v1/stream"
UNCOUNTED = (ENDLESS, "/healthz", "/readyz")
"""What is answered under overload, too; streams have a bound of their own."""

PREFLIGHT = header_pairs(
    {
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": "authorization, content-type",
        "access-control-max-age": "600",
    }
)
"""What a browser asks before it lets a page of another origin send JSON."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("shop.example")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Gate:
    """Checks Host and Origin, bounds what is in flight, and counts.

    A page in somebody's browser can make it send requests to this machine, under a name of the page's choosing. So a request must call
    the service by one of its own names, and if a page sent it, the page must have come from here, or from where the owner said.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, hosts: Iterable[str], origins: Iterable[str], most_in_flight: int) -> None:
        self.app = app
        self.metrics = metrics
        self.hosts = frozenset(name.lower() for name in hosts)
        self.origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self.most_in_flight = most_in_flight
        self.in_flight = 0
        self.body_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0
        shared: list[tuple[bytes, bytes]] = []

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *shared]
            await send(message)

        counted = scope["path"] not in UNCOUNTED
        size = _announced(scope) if counted else 0
        self.in_flight += counted
        self.body_bytes += size
        try:
            origin = self._check_names(scope)
            if origin in self.origins:
                shared = header_pairs({"access-control-allow-origin": origin, "vary": "origin"})
                if scope["method"] == "OPTIONS":
                    await send_body(204, PREFLIGHT, b"", watched)
                    return
            if self.in_flight > self.most_in_flight or self.body_bytes > MAX_WAITING_BODIES:
                raise Overloaded(f"{self.most_in_flight} requests are being answered already; try again in a second")
            await self.app(scope, receive, watched)
        except Refused as refused:
            await send_problem(of_refused(refused), watched, headers_of(refused))
        finally:
            self.in_flight -= counted
            self.body_bytes -= size
            self.metrics.observe(scope["path"], status, time.perf_counter() - began)

    def _check_names(self, scope: Scope) -> str:
        """The origin of the page that sent this, if one did."""
        hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if "*" not in self.hosts and (len(hosts) != 1 or _without_port(hosts[0]) not in self.hosts):
            given = repr(hosts[0]) if len(hosts) == 1 else f"given {len(hosts)} times"
            raise Denied(f"Host is {given}; accepted: {', '.join(sorted(self.hosts))}; more by --allow-host")
        origin = ""
        for name, value in scope["headers"]:
            if name == b"origin":
                origin = value.decode("latin-1").lower()
                if origin not in self.origins and urlsplit(origin).netloc not in hosts:
                    raise Denied(f"Origin is {origin!r}; accepted: pages of this service; more by --allow-origin")
        return origin


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _announced(scope: Scope) -> int:
    """The length of the body, as far as it is told; the most it can be, where it is not."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return min(int(value), MAX_BODY) if value.isdigit() else 0
        if name == b"transfer-encoding":
            return MAX_BODY
    return 0
