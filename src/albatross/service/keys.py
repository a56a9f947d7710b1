"""Who may ask what: random keys, of which only a hash is kept.

A key is `alb_` + a public name of 8 characters + `_` + 256 random bits. The file `keys.json` in the service's folder holds the names,
the scopes and an scrypt hash of the rest. A key is shown once, when it is made, and appears nowhere else.
"""

import base64
import hashlib
import hmac
import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albatross.core.errors import InvalidInput, unknown

SCOPES = ("recommend", "feedback", "read", "admin")
"""What a key may allow: ask for items, send ratings, read the model and its metrics, change the catalogue and forget users."""

FILE = "keys.json"
COST = {"n": 2**14, "r": 8, "p": 1, "maxmem": 2**26}
"""Parameters of scrypt: 16 MiB and some 50 ms for each guess."""


@dataclass(frozen=True)
class Key:
    """All that is kept of a key."""

    name: str
    scopes: tuple[str, ...]
    salt: str
    digest: str
    made: str
    note: str = ""

    def matches(self, secret: str) -> bool:
        """Whether this is the secret; slow on purpose."""
        return hmac.compare_digest(_digest(secret, bytes.fromhex(self.salt)), bytes.fromhex(self.digest))


class Keys:
    """The keys of a folder. The file is read again whenever it has changed, so that a revoked key ends at once. Any thread may ask."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder) / FILE
        self._name = str(self.path)
        self._stamp: tuple[int, int, int] | None = None
        self._keys: dict[str, Key] = {}
        # What was verified once is recognised by a fast keyed hash, whose key dies with the process.
        self._pepper = secrets.token_bytes(32)
        self._verified: dict[str, tuple[Key, bytes]] = {}
        self._refresh()

    def __bool__(self) -> bool:
        self._refresh()
        return bool(self._keys)

    def __iter__(self) -> Any:
        self._refresh()
        return iter(self._keys.values())

    def known(self, given: str) -> Key | None:
        """The key that was given, if it was verified before; fast."""
        self._refresh()
        name, _ = _split(given)
        key, mark = self._verified.get(name, (None, b""))
        # Another thread may have verified what was revoked meanwhile: it counts only while it is still kept.
        return key if key is not None and key == self._keys.get(name) and hmac.compare_digest(mark, self._mark(given)) else None

    def verify(self, given: str) -> Key | None:
        """The key that was given, if it is one; takes as long as scrypt does."""
        self._refresh()
        name, secret = _split(given)
        key = self._keys.get(name)
        if key is None or not key.matches(secret):
            return None
        self._verified[name] = (key, self._mark(given))
        return key

    def create(self, scopes: Iterable[str], note: str = "") -> str:
        """Make a key and return it: the only time that it can be seen."""
        wanted = tuple(scope for scope in SCOPES if scope in set(scopes))
        for scope in scopes:
            if scope not in SCOPES:
                raise unknown("scope", scope, SCOPES)
        if not wanted:
            raise InvalidInput(f"no scope is given; accepted: one or more of {', '.join(SCOPES)}")
        self._refresh()
        name = next(name for name in iter(lambda: secrets.token_hex(4), None) if name not in self._keys)
        secret = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        salt = secrets.token_bytes(16)
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._write({**self._keys, name: Key(name, wanted, salt.hex(), _digest(secret, salt).hex(), made, note)})
        return f"alb_{name}_{secret}"

    def revoke(self, name: str) -> None:
        """End a key."""
        self._refresh()
        if name not in self._keys:
            raise unknown("key", name, self._keys)
        self._write({other: key for other, key in self._keys.items() if other != name})

    def _mark(self, given: str) -> bytes:
        return hmac.digest(self._pepper, given.encode("utf-8", "surrogatepass"), "sha256")

    def _refresh(self) -> None:
        try:
            status = os.stat(self._name)  # noqa: PTH116 - with every request, and a Path takes three times as long
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        except FileNotFoundError:
            if self._stamp is not None:
                # A file that was there and is gone must not open the door.
                raise InvalidInput(f"{self.path} was removed while the service runs; revoke keys with: albatross keys revoke") from None
            return
        if stamp == self._stamp:
            return
        try:
            entries = json.loads(self.path.read_bytes())["keys"]
            keys = {entry["name"]: Key(**{**entry, "scopes": tuple(entry["scopes"])}) for entry in entries}
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{self.path} is not a file of keys: {error}") from error
        self._keys, self._stamp = keys, stamp

    def _write(self, keys: dict[str, Key]) -> None:
        content = json.dumps({"keys": [asdict(key) for key in keys.values()]}, indent=1)
        # A temporary file is readable by its owner only, and stays so under its new name.
        with tempfile.NamedTemporaryFile("w", dir=self.path.parent, prefix=FILE, delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(self.path)
        self._refresh()


def _split(given: str) -> tuple[str, str]:
    prefix, _, rest = given.partition("_")
    name, _, secret = rest.partition("_")
    return (name, secret) if prefix == "alb" else ("", "")


def _digest(secret: str, salt: bytes) -> bytes:
    return hashlib.scrypt(secret.encode("utf-8", "surrogatepass"), salt=salt, dklen=32, **COST)
