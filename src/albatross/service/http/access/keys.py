"""Keys: random secrets with scopes, of which only a hash is kept.

A key is `alb_` + a public name of 8 characters + `_` + 256 random bits. The file `keys.json` in the service's folder holds the names,
the scopes and a salted hash of the random part. A key is shown once, when it is made, and stored nowhere. Guessing 256 bits is
impossible, so the hash can be fast. Older files have a slow hash (scrypt): after one verification, such a key is recognised by a fast
keyed hash.

From the first key on, a key is always needed: a file without keys admits no one.
"""

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from albatross.core.errors import InvalidInput, unknown
from albatross.service.api.errors import NotReady
from albatross.service.api.route import Scope
from albatross.service.storage.keyring import FileKeyring, Keyring

SCOPES: tuple[str, ...] = get_args(Scope)
FILE = "keys.json"
OVERLAP = timedelta(days=1)
"""How long a replaced key still works."""
SLOW = "scrypt"
COST = {"n": 2**14, "r": 8, "p": 1, "maxmem": 2**26}
"""Parameters of scrypt in older files: 16 MiB and some 50 ms for each guess."""


class Key(Struct, frozen=True, omit_defaults=True):
    """What is stored of a key."""

    name: str
    scopes: tuple[str, ...]
    salt: str
    digest: str
    made: str
    note: str = ""
    hash: str = SLOW
    """How the digest is made. Older files do not say it: scrypt."""
    expires: str | None = None
    """When the key expires, as ISO 8601 in UTC."""

    def expired(self, now: datetime) -> bool:
        return self.expires is not None and datetime.fromisoformat(self.expires) <= now

    @property
    def lifespan(self) -> timedelta | None:
        """The time it was made for; None if it does not expire."""
        return None if self.expires is None else datetime.fromisoformat(self.expires) - datetime.fromisoformat(self.made)

    def matches(self, secret: str) -> bool:
        """Whether this is the secret. Slow on purpose if the hash is scrypt."""
        return hmac.compare_digest(_HASHES[self.hash](secret, bytes.fromhex(self.salt)), bytes.fromhex(self.digest))


class _File(Struct, frozen=True):
    keys: list[Key]


class Keys:
    """The keys of a folder. The file is read again when it has changed, so a revoked key ends at once."""

    def __init__(self, where: str | os.PathLike[str] | Keyring) -> None:
        """`where`: a folder, or the keyring of a home."""
        self.ring = FileKeyring(Path(where)) if isinstance(where, str | os.PathLike) else where
        self._stamp: Hashable | None = None
        self._keys: dict[str, Key] = {}
        # A verified slow key is recognised by a fast keyed hash. The key of that hash exists only in this process.
        self._pepper = secrets.token_bytes(32)
        self._verified: dict[str, tuple[Key, bytes]] = {}
        self._once = self.ring.lost

    @property
    def needed(self) -> bool:
        """Whether every request needs a key. Raises `NotReady` if that is unknown."""
        self.refresh()
        return self._stamp is not None

    def __iter__(self) -> Iterator[Key]:
        self.refresh()
        return iter(list(self._keys.values()))

    def find(self, given: str) -> Key | None:
        """The given key, or None if it is unknown or expired. Raises `Unverified` if only a slow hash can tell."""
        name, secret = _split(given)
        key = self._keys.get(name)
        if key is None or (key.expires is not None and key.expired(datetime.now(UTC))):
            return None
        if key.hash != SLOW:
            return key if key.matches(secret) else None
        known, mark = self._verified.get(name, (None, b""))
        if known != key:
            raise Unverified
        return key if hmac.compare_digest(mark, self._mark(given)) else None

    def current(self, key: Key) -> Key | None:
        """A key that was found earlier, as it is now; None if it has ended since."""
        kept = self._keys.get(key.name)
        return None if kept is None or kept.digest != key.digest or kept.expired(datetime.now(UTC)) else kept

    def verify(self, given: str) -> Key | None:
        """Like `find`, but computes the slow hash if needed. May be called from any thread."""
        self.refresh()
        try:
            return self.find(given)
        except Unverified:
            name, secret = _split(given)
            key = self._keys.get(name)
            if key is None or not key.matches(secret):
                return None
            self._verified[name] = (key, self._mark(given))
            return key

    def create(self, scopes: Iterable[str], note: str = "", expires: datetime | None = None) -> str:
        """Make a key and return it. It cannot be shown again."""
        given = list(scopes)
        for scope in given:
            if scope not in SCOPES:
                raise unknown("scope", scope, SCOPES)
        if not given:
            raise InvalidInput(f"no scope is given; accepted: one or more of {', '.join(SCOPES)}")
        if expires is not None and expires <= datetime.now(UTC):
            raise InvalidInput(f"the key would expire at {_written(expires)}, which is in the past; accepted: a time in the future")
        with self._changed() as keys:
            return _add(keys, tuple(scope for scope in SCOPES if scope in given), note, expires)

    def revoke(self, name: str) -> None:
        """End a key."""
        with self._changed(name) as keys:
            del keys[name]

    def rotate(self, name: str, overlap: timedelta = OVERLAP) -> str:
        """Make a new key with the same scopes and lifespan. The old key ends after `overlap`; until then both work."""
        with self._changed(name) as keys:
            old, now = keys[name], datetime.now(UTC)
            if old.expired(now):
                raise InvalidInput(f"the key {name} has expired; accepted: one that works, or a new one by: albatross keys create")
            end = now + overlap
            if old.expires is None or datetime.fromisoformat(old.expires) > end:
                keys[name] = replace(old, expires=_written(end))
            lifespan = old.lifespan
            return _add(keys, old.scopes, old.note, None if lifespan is None else _later(now, lifespan))

    def refresh(self) -> None:
        """Read the file if it has changed. Raises `NotReady` if it existed before and cannot be read: no one is admitted then."""
        try:
            stamp = self.ring.stamp()
        except OSError as error:
            raise NotReady(f"{FILE} cannot be read: {error.strerror or error}") from None
        if stamp is None:
            if self._stamp is not None or self._once:
                raise NotReady(f"there were keys, and {FILE} is gone; put it back, or make a key: albatross keys create") from None
            return
        if stamp != self._stamp:
            self._keys = self._read()
            self._stamp = stamp

    def _read(self) -> dict[str, Key]:
        try:
            document = self.ring.read()
            if document is None:
                return {}
            found = msgspec.json.decode(document, type=_File).keys
            for key in found:
                if key.hash not in _HASHES:
                    raise ValueError(f"a hash called {key.hash}")
                key.expired(datetime.now(UTC))
                _ = key.lifespan, bytes.fromhex(key.digest)
                if len(bytes.fromhex(key.salt)) > hashlib.blake2b.MAX_KEY_SIZE:
                    raise ValueError("a long salt")
        except (OSError, ValueError, TypeError) as error:
            # Set an impossible stamp, so that the file is read again until it is valid.
            self._stamp = (0, 0, 0)
            raise NotReady(f"{FILE} is not a file of keys ({type(error).__name__}); put back one that is") from None
        return {key.name: key for key in found}

    @contextmanager
    def _changed(self, name: str | None = None) -> Iterator[dict[str, Key]]:
        """The keys, to be changed under a lock against other processes. The change is on disk at the end.

        `name`: a key that must exist. The lock file stays and shows that there has been a key, so it is not made for an unknown key.
        """
        if name is not None and self.ring.stamp() is None:
            raise unknown("key", name, ())
        with self.ring.changing() as write:
            keys = self._read()
            if name is not None and name not in keys:
                raise unknown("key", name, keys)
            yield keys
            write(msgspec.json.format(msgspec.json.encode(_File(list(keys.values()))), indent=1))

    def _mark(self, given: str) -> bytes:
        return hmac.digest(self._pepper, given.encode("utf-8", "surrogatepass"), "sha256")


class Unverified(Exception):
    """Only a slow hash can tell whether this is the key."""


def _add(keys: dict[str, Key], scopes: tuple[str, ...], note: str, expires: datetime | None) -> str:
    name = next(name for name in iter(lambda: secrets.token_hex(4), None) if name not in keys)
    secret = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    salt = secrets.token_bytes(16)
    made, end = _written(datetime.now(UTC)), None if expires is None else _written(expires)
    keys[name] = Key(name, scopes, salt.hex(), _fast(secret, salt).hex(), made, note, "blake2b", end)
    return f"alb_{name}_{secret}"


def _later(now: datetime, span: timedelta) -> datetime:
    """`now + span`, or the last time that can be written."""
    try:
        return now + span
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _written(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _split(given: str) -> tuple[str, str]:
    prefix, _, rest = given.partition("_")
    name, _, secret = rest.partition("_")
    return (name, secret) if prefix == "alb" else ("", "")


def _fast(secret: str, salt: bytes) -> bytes:
    return hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=salt, digest_size=32).digest()


def _slow(secret: str, salt: bytes) -> bytes:
    return hashlib.scrypt(secret.encode("utf-8", "surrogatepass"), salt=salt, dklen=32, **COST)


_HASHES = {"blake2b": _fast, SLOW: _slow}
