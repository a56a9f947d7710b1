"""Arguments that are passed to compiled code once and then found again by their address.

Unpacking a state into the addresses and lengths of its arrays costs more than a choice among a thousand items, and a random generator
costs as much again. Both stay the same from call to call. So their native form is stored beside them, and a call passes one
address.
"""

import ctypes
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import NativeValue, intrinsic, overload, typeof_impl, unbox

from albatross.kernels.building.addressing import WORD, AddressType, emit_read, emit_write, handed_over, size_of
from albatross.kernels.compiling import OPTIONS, program

_BYTES = ir.IntType(8).as_pointer()


class Kept:
    """A NamedTuple of arguments, prepared for many calls of compiled code, which unpacks it with `parts_of`.

    Arrays may change in place. If an array is replaced, a new `Kept` is needed.
    """

    def __init__(self, parts: Any) -> None:
        self.parts = parts
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return
        self._numba_type_ = kind = _type_of(parts)  # where Numba's dispatcher looks first
        self._native = np.zeros(size_of(kind.parts) // WORD, np.uint64)
        self.address = self._native.ctypes.data
        words = _words(kind.parts, parts)
        if words is None:
            program(keep, type(getattr(parts, "state", parts)))(parts, self.address)
        else:
            self._native[:] = words  # of another length in a release of Numba with other native forms: then this fails


def _type_of(parts: Any) -> AddressType:
    """Numba takes half a millisecond to find the type of a state. So it is looked up by what it depends on."""
    features = _features(parts)
    if features not in _types:
        _types[features] = AddressType(numba.typeof(parts))  # type: ignore[no-untyped-call]
    return _types[features]


def _features(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value), *map(_features, value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num
    return type(value), isinstance(value, int) and value.bit_length() > SIGNED_BITS


SIGNED_BITS = 63
"""A larger whole number has a type of its own."""
_types: dict[Any, AddressType] = {}


def _words(kind: Any, value: Any) -> list[int] | None:
    """The native form of a value, in words of 64 bits; None if this function does not know it."""
    if isinstance(value, tuple):
        parts = [_words(kind[number], part) for number, part in enumerate(value)]
        return None if None in parts else [word for part in parts if part is not None for word in part]
    if isinstance(kind, types.Array):
        # Nothing counts references, so no memory has an owner. The array itself is there for parts that run in Python.
        return [0, id(value), value.size, value.itemsize, value.ctypes.data, *value.shape, *(stride % 2**64 for stride in value.strides)]
    if isinstance(kind, types.NumPyRandomGeneratorType):
        inside = value.bit_generator.ctypes
        functions = (ctypes.cast(each, ctypes.c_void_p).value for each in (inside.next_uint64, inside.next_uint32, inside.next_double))
        return [0, inside.state_address, inside.state.value, *functions, 0, 0, 0]
    if isinstance(kind, types.Integer | types.Boolean):
        return [int(value) % 2**64]
    if kind == types.float64:
        return [int(np.float64(value).view(np.uint64))]
    return None


def keep(parts: Any, address: int) -> None:
    """Write the native form of all parts to an address."""
    write_words(address, parts)


def parts_of(kept: Any) -> Any:
    """The stored parts."""
    return kept.parts


@overload(parts_of, jit_options=OPTIONS)
def _compiled_parts_of(kept):  # type: ignore[no-untyped-def]
    return lambda kept: _load(kept)


def write_words(address: int, words: Any) -> None:
    """Write a tuple of whole numbers of 64 bits to memory."""
    ctypes.memmove(address, np.array(words, np.uint64).tobytes(), 8 * len(words))


@overload(write_words, jit_options=OPTIONS)
def _compiled_write_words(address, words):  # type: ignore[no-untyped-def]
    return lambda address, words: _store(words, address)


def _storing(context, parts, address):  # type: ignore[no-untyped-def]
    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        value, address = arguments
        emit_write(context, builder, parts, value, builder.inttoptr(address, _BYTES))
        return context.get_dummy_value()

    return types.void(parts, address), emit


def _loading(context, kept):  # type: ignore[no-untyped-def]
    kind = kept.parts
    lent: Any = types.NamedTuple([handed_over(part) for part in kind], kind.instance_class)  # type: ignore[no-untyped-call]

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return emit_read(context, builder, lent, arguments[0])

    return lent(kept), emit


_store: Any = intrinsic(_storing)
_load: Any = intrinsic(_loading)


@unbox(AddressType)  # type: ignore[no-untyped-call]
def unbox_address(kind, kept, caller):  # type: ignore[no-untyped-def]
    """For compiled code, an object that has an address is that address."""
    address = caller.pyapi.object_getattr_string(kept, "address")
    native = caller.pyapi.long_as_ulonglong(address)
    caller.pyapi.decref(address)
    return NativeValue(caller.builder.inttoptr(native, _BYTES))  # type: ignore[no-untyped-call]


@typeof_impl.register(Kept)
def _typeof(kept, context):  # type: ignore[no-untyped-def]
    return kept._numba_type_
