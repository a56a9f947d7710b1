"""Messages on a connection between a front and a shard: how they are told apart, and how both sides prove that they belong together.

A shard has a secret that only readers of the cluster's database know. Before any message, front and shard each show that they know it,
without sending it: a digest of the secret and of two random numbers, one from either side.
"""

import hmac
import secrets
from struct import Struct

HEAD = Struct(">IQ")
"""Length of the content, and number of the request."""
MOST_BYTES = 2**26
"""Limit of a content. A request is at most one body of HTTP; the longest answers are lists."""
RANDOM = 32
"""Length of a random number, of a proof, and of a secret."""

Frame = tuple[int, bytes]
"""Number and content."""


class BrokenLine(ConnectionError):
    """The other side has sent what it may not send."""


def framed(number: int, content: bytes) -> bytes:
    return HEAD.pack(len(content), number) + content


class Frames:
    """Cuts what arrives into messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The messages that are complete now. Raises `BrokenLine` if one is longer than it may be, before it has arrived."""
        found: list[Frame] = []
        arrived: bytes | bytearray = data
        if self._rest:
            self._rest += data
            arrived = self._rest
        place, end = 0, len(arrived)
        while end - place >= HEAD.size:
            length, number = HEAD.unpack_from(arrived, place)
            if length > MOST_BYTES:
                raise BrokenLine(f"a message of {length} bytes; accepted: up to {MOST_BYTES}")
            first = place + HEAD.size
            if end - first < length:
                break
            place = first + length
            found.append((number, bytes(arrived[first:place])))
        if place or arrived is data:  # else more of the same message has arrived
            self._rest = bytearray(arrived[place:])
        return found


def random_number() -> bytes:
    return secrets.token_bytes(RANDOM)


def proof_of(secret: bytes, side: str, first: bytes, second: bytes) -> bytes:
    """What a front or a shard (`side`) shows. `first` is the random number of the shard, `second` that of the front."""
    return hmac.digest(secret, b"albatross " + side.encode() + first + second, "sha256")


def is_proof(given: bytes, secret: bytes, side: str, first: bytes, second: bytes) -> bool:
    return hmac.compare_digest(given, proof_of(secret, side, first, second))
