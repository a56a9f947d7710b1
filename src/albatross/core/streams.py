"""Random streams, named by a seed and a purpose.

Two purposes never share draws, so every policy meets the same public at the same seed.
"""

import ctypes
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

Streams = Callable[[str], np.random.Generator]
"""From a purpose to its stream, for one seed."""


def stream(seed: int, purpose: str) -> np.random.Generator:
    """The random stream for one purpose.

    >>> stream(0, "arrivals").integers(100, size=4).tolist() == stream(0, "arrivals").integers(100, size=4).tolist()
    True
    >>> stream(0, "arrivals").random() == stream(0, "reactions").random()
    False
    """
    name = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng([seed, name])


class Turner:
    """A generator that is switched from one stream to another: many times quicker than making a new one.

    For one thread: a stream is invalid once the generator is switched to the next.

    >>> turner = Turner()
    >>> first = turner.turn(bytes(range(32))).random()
    >>> turner.turn(bytes(32)).random() == first, turner.turn(bytes(range(32))).random() == first
    (False, True)
    """

    def __init__(self) -> None:
        self.random = np.random.Generator(np.random.PCG64(0))
        self._position = _position_of(self.random.bit_generator)
        self.addresses = None if self._position is None else _addresses(self.random.bit_generator)
        """Addresses at which compiled code sets the generator: its two numbers, and the spare half of the last draw."""

    def turn(self, name: bytes) -> np.random.Generator:
        """The stream of a name of 32 bytes, which give the state and the increment of PCG64."""
        step = int.from_bytes(name[16:], "little") | 1
        if self._position is not None:
            numbers, spare = self._position
            numbers[:16] = name[:16]
            numbers[16:] = step.to_bytes(16, "little")
            spare[:] = _NO_SPARE
        else:
            state = {"state": int.from_bytes(name[:16], "little"), "inc": step}
            self.random.bit_generator.state = {"bit_generator": "PCG64", "state": state, "has_uint32": 0, "uinteger": 0}
        return self.random

    def position(self) -> bytes:
        """The position of the stream: the next draw, and the spare half of the last."""
        if self._position is not None:
            numbers, spare = self._position
            return bytes(numbers) + bytes(spare)
        now: Any = self.random.bit_generator.state
        parts = (now["state"]["state"], 16), (now["state"]["inc"], 16), (now["has_uint32"], 4), (now["uinteger"], 4)
        return b"".join(number.to_bytes(size, "little") for number, size in parts)

    def turn_back(self, position: bytes) -> np.random.Generator:
        """The stream at that position."""
        if self._position is not None:
            numbers, spare = self._position
            numbers[:], spare[:] = position[:32], position[32:]
        else:
            state, inc, has, spare_bits = (int.from_bytes(position[a:b], "little") for a, b in ((0, 16), (16, 32), (32, 36), (36, 40)))
            state_of = {"bit_generator": "PCG64", "state": {"state": state, "inc": inc}, "has_uint32": has, "uinteger": spare_bits}
            self.random.bit_generator.state = state_of
        return self.random


_NO_SPARE = bytes(8)
"""PCG64's buffered half number: there is none."""


def _position_of(generator: np.random.BitGenerator) -> tuple[memoryview, memoryview] | None:
    """The memory of PCG64's two numbers, and of its buffered half number; None if the layout is different."""
    found, left = _addresses(generator)
    if not found:
        return None
    numbers = memoryview((ctypes.c_uint8 * 32).from_address(found)).cast("B")
    spare = memoryview((ctypes.c_uint8 * 8).from_address(left)).cast("B")
    known = generator.state["state"]
    as_known = known["state"].to_bytes(16, "little") + known["inc"].to_bytes(16, "little")
    return (numbers, spare) if bytes(numbers) == as_known and bytes(spare) == _NO_SPARE else None


def _addresses(generator: np.random.BitGenerator) -> tuple[int, int]:
    address = generator.ctypes.state_address
    return ctypes.c_void_p.from_address(address).value or 0, address + ctypes.sizeof(ctypes.c_void_p)
