"""Arrays as bytes: those of NumPy, whatever reads or writes them."""

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.core.sharing.arrays import read_arrays, write_arrays

ARRAYS: list[NDArray[Any]] = [
    np.arange(5, dtype=np.int32),
    np.empty(0),
    np.arange(12.0).reshape(4, 3),
    np.array([[1], [2]], np.uint64),
    np.empty((0, 15)),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array([True, False]),
    np.array(3.0),
]


def numpy_bytes(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def test_the_bytes_are_those_of_numpy() -> None:
    content = write_arrays(ARRAYS)
    assert content == b"".join(numpy_bytes(np.array(array, order="C")) for array in ARRAYS)
    for array, found in zip(ARRAYS, read_arrays(content), strict=True):
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert np.array_equal(found, array)
        assert found.flags.aligned
        assert found.flags.writeable  # compiled code knows no other


def test_what_numpy_wrote_otherwise_is_read_as_well() -> None:
    unusual = [ARRAYS[5], np.arange(3, dtype=">f8")]
    found = read_arrays(b"".join(map(numpy_bytes, unusual)) + numpy_bytes(ARRAYS[0]))
    assert [array.tolist() for array in found] == [array.tolist() for array in (*unusual, ARRAYS[0])]


@pytest.mark.parametrize("damaged", [b"nothing", write_arrays(ARRAYS)[:-1], write_arrays(ARRAYS)[:40], b"\x93NUMPY\x01\x00\xff\xff"])
def test_what_is_no_array_is_refused(damaged: bytes) -> None:
    with pytest.raises(InvalidInput, match=f"^{len(damaged)} bytes are no payload"):
        read_arrays(damaged)
