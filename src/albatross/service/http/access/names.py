"""Checks of the headers Host and Origin.

A web page can make a browser send requests to this machine, under a host name that the page chooses (DNS rebinding). So the Host of a
request must be a name of this service. If a page sent it, its Origin must be this service or one that the owner has allowed.
"""

import ipaddress
from collections.abc import Iterable

from albatross.service.api.errors import Denied
from albatross.service.http.strict_json import shorten
from albatross.service.http.wire.exchange import Exchange

CORS = b"access-control-allow-origin: %b\r\naccess-control-expose-headers: retry-after\r\nvary: origin\r\n"
"""Headers that let a page of another origin read the answer."""

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("shop.example")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Names:
    """The names of a service, and the other origins that may call it."""

    def __init__(self, hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(name.lower().encode() for name in hosts)
        self._origins = frozenset(origin.lower().rstrip("/").encode() for origin in origins)
        self._accepted = ", ".join(sorted(name.decode() for name in self._hosts))
        self._known_hosts: set[bytes] = set()
        """Values of the Host header that were accepted before."""

    def check(self, exchange: Exchange) -> None:
        """Refuse an unknown Host or Origin. They are compared as bytes, not parsed."""
        headers = exchange.headers
        host = headers.get(b"host", b"").lower().removesuffix(b":")  # a port may be empty
        if host not in self._known_hosts:
            if b"*" not in self._hosts and _without_port(host) not in self._hosts:
                given = shorten(host.decode("latin-1"))
                raise Denied(f"Host is {given!r}; accepted: {self._accepted}; more by --allow-host")
            if len(self._known_hosts) < 100:
                self._known_hosts.add(host)
        if b"origin" in headers:
            origin = headers[b"origin"].lower()
            if origin in self._origins:
                exchange.cors = CORS % origin
            elif origin not in (b"http://" + host, b"https://" + host):
                given = shorten(origin.decode("latin-1"))
                raise Denied(f"Origin is {given!r}; accepted: pages of this service; more by --allow-origin")


def _without_port(host: bytes) -> bytes:
    name, colon, port = host.rpartition(b":")
    return name if colon and port.isdigit() else host
