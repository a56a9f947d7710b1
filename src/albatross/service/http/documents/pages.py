"""The files of the page and of the JavaScript client. They are read once at the start, and nothing else is served."""

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from albatross.service.api.route import PAGE
from albatross.service.http.documents.declarations import declarations

KINDS = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
    "txt": b"text/plain; charset=utf-8",
}
START = "index.html"
CLIENT, CLIENT_TYPES = b"/albatross.js", b"/albatross.d.ts"
BASE = b"{base}"
"""Placeholder in the first file for the folder of the other files. Its name is a digest of them, so a new version has new URLs."""
SERVES = b"{serves}"
"""Placeholder in the first file for what the page shows: a recommender or an arena."""

POLICY = b"; ".join((b"default-src 'self'", b"base-uri 'none'", b"form-action 'none'", b"frame-ancestors 'none'", b"object-src 'none'"))
GUARDS = b"content-security-policy: %b\r\nx-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\n" % POLICY
FRESH, FOR_EVER = b"cache-control: no-cache\r\n", b"cache-control: public, max-age=31536000, immutable\r\n"


class File(NamedTuple):
    kind: bytes
    content: bytes
    headers: bytes


def page_files(serves: str = "recommender", prefix: str = "") -> dict[bytes, File]:
    """Every path of the page with its file. `prefix`: stands before all paths in the browser."""
    found = dict(sorted(_read(files("albatross").joinpath("page"), "")))
    digest = hashlib.blake2b(digest_size=8)
    for name, content in found.items():
        digest.update(b"%b %d %b" % (name.encode(), len(content), content))
    base = f"/page/{digest.hexdigest()}/"
    served = {
        f"{base}{name}".encode(): File(KINDS[name.rpartition(".")[2]], content, GUARDS + FOR_EVER)
        for name, content in found.items()
        if name != START
    }
    start = found[START].replace(BASE, f"{prefix}{base}".encode()).replace(SERVES, serves.encode())
    return {PAGE.encode(): File(KINDS["html"], start, GUARDS + FRESH), **served}


def client_files() -> dict[bytes, File]:
    """The client for browsers and Node, and its types."""
    folder = files("albatross").joinpath("javascript")
    types = folder.joinpath("client.d.ts").read_bytes() + b"\n" + declarations().encode()
    return {
        CLIENT: File(KINDS["js"], folder.joinpath("albatross.js").read_bytes(), GUARDS + FRESH),
        CLIENT_TYPES: File(KINDS["txt"], types, GUARDS + FRESH),
    }


def _read(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read(entry, f"{prefix}{entry.name}/")
        elif entry.name.rpartition(".")[2] in KINDS:
            yield f"{prefix}{entry.name}", entry.read_bytes()
