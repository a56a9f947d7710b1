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
from numba.extending import NativeValue, intrinsic, models, overload, register_model, typeof_impl, unbox

from albatross.kernels.compiling import OPTIONS, program

_ADDRESS = ir.IntType(64)


class KeptType(types.Type):
    """The type of `Kept` for the compiler: an address, and the type of the data there."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts
        super().__init__(name=f"Kept({parts})")

    @property
    def key(self) -> Any:
        """Identifies the type: two classes may have the same name."""
        return self.parts

    @property
    def instance_class(self) -> Any:
        return self.parts.instance_class


class Kept:
    """A NamedTuple of arguments, prepared for many calls of compiled code, which unpacks it with `parts_of`.

    Arrays may change in place. If an array is replaced, a new `Kept` is needed.
    """

    def __init__(self, parts: Any) -> None:
        self.parts = parts
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return
        kind: Any = numba.typeof(parts)  # type: ignore[no-untyped-call]
        self._numba_type_ = KeptType(kind)  # where Numba's dispatcher looks first
        entry = program(keep, type(getattr(parts, "state", parts)))
        if kind not in _sizes:
            _sizes[kind] = entry(parts, 0)
        self._native = np.empty(_sizes[kind], np.uint8)
        self.address = self._native.ctypes.data
        entry(parts, self.address)


_sizes: dict[Any, int] = {}


def keep(parts: Any, address: int) -> int:
    """Write the native form of all parts to an address, unless it is 0. Returns its size."""
    if address != 0:
        _store(parts, address)
    return _size(parts)  # type: ignore[no-any-return]


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
        builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(parts, address), emit


def _measuring(context, parts):  # type: ignore[no-untyped-def]
    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.get_constant(types.intp, context.get_abi_sizeof(arguments[0].type))

    return types.intp(parts), emit


def _loading(context, kept):  # type: ignore[no-untyped-def]
    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = builder.inttoptr(arguments[0], context.get_value_type(kept.parts).as_pointer())
        return builder.load(place, align=1)

    return kept.parts(kept), emit


_store: Any = intrinsic(_storing)
_size: Any = intrinsic(_measuring)
_load: Any = intrinsic(_loading)


@register_model(KeptType)
class _KeptModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: KeptType) -> None:
        super().__init__(manager, kind, _ADDRESS)  # type: ignore[no-untyped-call]


@unbox(KeptType)  # type: ignore[no-untyped-call]
def _unbox(kind, kept, caller):  # type: ignore[no-untyped-def]
    address = caller.pyapi.object_getattr_string(kept, "address")
    native = caller.pyapi.long_as_ulonglong(address)
    caller.pyapi.decref(address)
    return NativeValue(native)  # type: ignore[no-untyped-call]


@typeof_impl.register(Kept)
def _typeof(kept, context):  # type: ignore[no-untyped-def]
    return kept._numba_type_
