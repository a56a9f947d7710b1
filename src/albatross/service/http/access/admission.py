"""Admission of a request: Host and Origin, a key with the right scope, and a free place."""

import asyncio
from collections.abc import Iterable

from albatross.service.api.errors import Denied, Overloaded, Unauthorized
from albatross.service.api.route import Scope
from albatross.service.http.access.keys import Key, Keys, Unverified
from albatross.service.http.access.names import Names
from albatross.service.http.bridge import AskedEngine
from albatross.service.http.wire.exchange import Exchange

MOST_GUESSES = 8
"""At most so many keys with a slow hash may wait for verification."""

NOT_A_KEY = "the key is not one of this service, or it has expired"
NO_KEY = "there is no key; accepted: the header Authorization: Bearer KEY"

PREFLIGHT = (
    b"access-control-allow-methods: GET, POST\r\n"
    b"access-control-allow-headers: authorization, content-type\r\n"
    b"access-control-max-age: 600\r\n"
)
"""The answer to a browser's preflight request, before a page of another origin may send JSON."""


class Admission:
    """Belongs to one event loop."""

    def __init__(
        self, engine: AskedEngine, keys: Keys, places: int, hosts: Iterable[str], origins: Iterable[str], key_needed: bool
    ) -> None:
        """`key_needed`: require a key even if none was created yet. True when the service listens beyond this machine."""
        self.engine, self.keys, self.places, self.key_needed = engine, keys, places, key_needed
        self.in_flight = 0
        self.names = Names(hosts, origins)
        self._by_key: dict[str, int] = {}
        self._looked = self._needed = False
        self._guess = asyncio.Lock()
        self._guesses = 0

    def check_load(self) -> None:
        """Refuse while the service is overloaded. This runs before a body is read, because reading it adds load."""
        if self.engine.congested or self.in_flight > self.engine.capacity:
            raise Overloaded(f"the service is overloaded; try again in {Overloaded.retry_after} s")
        self._check_places()

    def check_key(self, exchange: Exchange, scope: Scope) -> None:
        """Refuse a request without a key for `scope`. Raises `Unverified` if the key has a slow hash: then call `verify_key`."""
        if not self.key_is_needed():
            return
        key = self.keys.find(_bearer(exchange))
        _check_scope(key, scope)
        exchange.key = key

    def check_again(self, exchange: Exchange, scope: Scope) -> None:
        """Check an admitted request again: its key may have ended since, or keys may be needed now."""
        if not self.key_is_needed():
            return
        if exchange.key is None:
            raise Unauthorized(NO_KEY)
        _check_scope(self.keys.current(exchange.key), scope)

    async def verify_key(self, exchange: Exchange, scope: Scope) -> None:
        """Like `check_key`, with a slow hash. These verifications run one at a time, in a thread; other requests do not wait."""
        key = await self._verified(exchange)
        _check_scope(key, scope)
        exchange.key = key

    async def identify(self, exchange: Exchange) -> Key | None:
        """The key of the request, whatever its scopes; None if there is no Authorization header. Refuses an unknown or expired key."""
        if b"authorization" not in exchange.headers:
            return None
        try:
            key = self.keys.find(_bearer(exchange))
        except Unverified:
            key = await self._verified(exchange)
        if key is None:
            raise Unauthorized(NOT_A_KEY)
        return key

    async def _verified(self, exchange: Exchange) -> Key | None:
        if self._guesses >= MOST_GUESSES:
            raise Overloaded(f"{MOST_GUESSES} keys are being verified already; try again in {Overloaded.retry_after} s")
        self._guesses += 1
        try:
            async with self._guess:
                return await asyncio.to_thread(self.keys.verify, _bearer(exchange))
        finally:
            self._guesses -= 1

    def enter(self, exchange: Exchange) -> None:
        """Take a place among the requests in flight. One key may hold at most half of the places."""
        self._check_places()
        if exchange.key is not None:
            taken = self._by_key.get(exchange.key.name, 0)
            if 2 * taken >= self._all_places > 1:
                raise Overloaded(f"{taken} requests of this key are being answered already; try again in {Overloaded.retry_after} s")
            self._by_key[exchange.key.name] = taken + 1
        self.in_flight += 1
        exchange.placed = True

    @property
    def _all_places(self) -> int:
        """Those that wait for machine code are in flight, and take no place of others."""
        return self.places + self.engine.withheld

    def _check_places(self) -> None:
        if self.in_flight >= self._all_places:
            raise Overloaded(f"{self.in_flight} requests are being answered already; try again in {Overloaded.retry_after} s")

    def leave(self, exchange: Exchange) -> None:
        if not exchange.placed:
            return
        exchange.placed = False
        self.in_flight -= 1
        if exchange.key is not None:
            left = self._by_key[exchange.key.name] - 1
            if left:
                self._by_key[exchange.key.name] = left
            else:
                del self._by_key[exchange.key.name]

    def key_is_needed(self) -> bool:
        """Whether a key is needed. The file is checked once per turn of the event loop, for all its requests."""
        if not self._looked:
            needed = self.keys.needed
            self._looked = True
            self._needed = needed or self.key_needed
            asyncio.get_running_loop().call_soon(self._look_again)
        return self._needed

    def _look_again(self) -> None:
        self._looked = False


def _bearer(exchange: Exchange) -> str:
    word, _, given = exchange.headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    given = given.strip()
    if word.lower() != "bearer" or not given:
        raise Unauthorized(NO_KEY)
    return given


def _check_scope(key: Key | None, scope: Scope) -> None:
    if key is None:
        raise Unauthorized(NOT_A_KEY)
    if scope not in key.scopes:
        raise Denied(f"the key has the scope {', '.join(key.scopes)}; accepted: {scope}")
