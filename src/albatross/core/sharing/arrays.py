"""Arrays as the bytes that shards exchange: one behind the other, as NumPy writes them to files.

NumPy reads the head of an array as an expression of Python, which takes longer than all the rest of an exchange between shards. Here the
usual head is read by its pattern, and any other by NumPy.
"""

import io
import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput

MAGIC = b"\x93NUMPY\x01\x00"
USUAL = re.compile(rb"\{'descr': '([<|][biuf][1248])', 'fortran_order': False, 'shape': \(([0-9]*(?:, ?[0-9]+)*),?\), \} *\n")
ALIGNED = 64
"""The head of an array is filled up to a multiple of so many bytes."""


def write_arrays(arrays: Iterable[NDArray[Any]]) -> bytes:
    """The same bytes as `numpy.lib.format.write_array` gives, version 1.0.

    >>> read_arrays(write_arrays([np.arange(3), np.eye(2)]))
    [array([0, 1, 2]), array([[1., 0.],
           [0., 1.]])]
    """
    parts = []
    for array in arrays:
        head = f"{{'descr': {array.dtype.str!r}, 'fortran_order': False, 'shape': {array.shape!r}, }}"
        filled = -(-(len(MAGIC) + 2 + len(head) + 1) // ALIGNED) * ALIGNED - len(MAGIC) - 2
        parts += [MAGIC, filled.to_bytes(2, "little"), head.ljust(filled - 1).encode("latin-1"), b"\n", array.tobytes()]
    return b"".join(parts)


def read_arrays(content: bytes) -> list[NDArray[Any]]:
    """What `write_arrays` wrote. Raises `InvalidInput` for anything else."""
    arrays: list[NDArray[Any]] = []
    start = 0
    try:
        while start < len(content):
            length = int.from_bytes(content[start + len(MAGIC) : start + len(MAGIC) + 2], "little")
            begin = start + len(MAGIC) + 2 + length
            head = USUAL.fullmatch(content, start + len(MAGIC) + 2, begin)
            if head is None or not content.startswith(MAGIC, start):
                file = io.BytesIO(content)
                file.seek(start)
                arrays.append(np.lib.format.read_array(file, allow_pickle=False))
                start = file.tell()
                continue
            kind = np.dtype(head[1].decode())
            shape = tuple(int(size) for size in head[2].split(b",") if size)
            count = math.prod(shape)
            found = np.frombuffer(content, kind, count, begin) if count else np.empty(0, kind)
            arrays.append(found.reshape(shape).copy())
            start = begin + count * kind.itemsize
    except (ValueError, EOFError) as error:
        raise InvalidInput(f"{len(content)} bytes are no payload of an exchange: {error}") from error
    return arrays
