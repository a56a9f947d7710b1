"""Named tuples that compiled functions hand to each other by address.

Numba hands over every number that a tuple consists of. A state and its scratch are several hundred: addresses, lengths and strides of
arrays. Half of all instructions that Numba generated took such tuples apart and put them together again, at every call. By address, a
call hands over one number, and a function reads the parts that it uses.
Only tuples of this package are handed over so, as its functions need no more of them than their fields.
"""

import functools
import hashlib
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_builtin, lower_getattr_generic, models, register_model, type_callable

from albatross.kernels.building.sources import is_ours

_BYTES = ir.IntType(8).as_pointer()
_NUMBER = ir.IntType(64)
WORD = 8
"""Each part begins at a multiple of so many bytes."""


class AddressType(types.Type):
    """For the compiler: the address of the parts of a named tuple of this type. It has the tuple's fields."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts
        # Short, because names of compiled functions contain it.
        super().__init__(name=f"Address({parts.instance_class.__name__} {hashlib.blake2b(str(parts).encode(), digest_size=6).hexdigest()})")

    @property
    def key(self) -> Any:
        """Identifies the type: two classes may have the same name."""
        return self.parts

    @property
    def instance_class(self) -> Any:
        return self.parts.instance_class

    @property
    def fields(self) -> Any:
        return self.parts.fields

    def __getitem__(self, index: Any) -> Any:
        return handed_over(self.parts[index])


def handed_over(kind: Any) -> Any:
    """The type as which a value of this type is handed over."""
    return AddressType(kind) if _is_tuple(kind) and is_ours(getattr(kind, "instance_class", tuple)) else kind


def _is_tuple(kind: Any) -> bool:
    return isinstance(kind, types.BaseTuple)


def by_address(parts: Any) -> Any:
    """The same, for compiled functions to be handed over by address, if it is a named tuple of this package.

    It must be called before the loop in which it is used: it copies all addresses and lengths.
    """
    return parts


@type_callable(by_address)
def _type_of(context):  # type: ignore[no-untyped-def]
    return lambda parts: handed_over(parts)


@lower_builtin(by_address, types.Any)  # type: ignore[no-untyped-call]
def _lend(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    """In the room of the function that calls it: in an overload of its own, the address would be that of nothing after its return."""
    kind, parts = signature.args[0], arguments[0]
    if signature.return_type == kind:
        return parts
    with builder.goto_entry_block():
        room = builder.alloca(_NUMBER, size=size_of(kind) // WORD)
    address = builder.bitcast(room, _BYTES)
    emit_write(context, builder, kind, parts, address)
    return address


@functools.cache
def size_of(kind: Any) -> int:
    """The number of bytes for a value of this type at an address."""
    if _is_tuple(kind):
        return sum(size_of(part) for part in kind)
    context: Any = cpu_target.target_context
    with global_compiler_lock:  # engines of one process start in their own threads
        context.refresh()  # otherwise some types may not be known yet
        size: int = context.get_abi_sizeof(context.get_value_type(kind))
    return -(-size // WORD) * WORD


def place_of(kind: Any, index: int) -> int:
    """Where a part of a tuple of this type begins."""
    return sum(size_of(part) for part in list(kind)[:index])


def emit_write(context: Any, builder: Any, kind: Any, value: Any, address: Any) -> None:
    """Code that writes a value of this type to an address."""
    if _is_tuple(kind):
        for index, part in enumerate(kind):
            emit_write(context, builder, part, builder.extract_value(value, index), _at(builder, address, place_of(kind, index)))
    else:
        builder.store(value, builder.bitcast(address, value.type.as_pointer()), align=WORD)


def emit_read(context: Any, builder: Any, kind: Any, address: Any) -> Any:
    """Code that reads a value of this type, or what is handed over in its place, from an address."""
    if isinstance(kind, AddressType):
        return address
    value_type = context.get_value_type(kind)
    if not _is_tuple(kind):
        return builder.load(builder.bitcast(address, value_type.as_pointer()), align=WORD)
    value = value_type(ir.Undefined)
    place = 0
    for index, part in enumerate(kind):
        value = builder.insert_value(value, emit_read(context, builder, part, _at(builder, address, place)), index)
        place += size_of(part.parts if isinstance(part, AddressType) else part)
    return value


def _at(builder: Any, address: Any, place: int) -> Any:
    return builder.gep(address, [_NUMBER(place)], inbounds=True) if place else address


@register_model(AddressType)
class _AddressModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: AddressType) -> None:
        super().__init__(manager, kind, _BYTES)  # type: ignore[no-untyped-call]

    def from_argument(self, builder: Any, value: Any) -> Any:
        # What is there does not change during a call. So LLVM need not read it again after a number was written somewhere else.
        if isinstance(value, ir.Argument) and "noalias" not in value.attributes:
            value.add_attribute("noalias")
        return value


@infer_getattr
class _Fields(AttributeTemplate):
    key = AddressType

    def generic_resolve(self, value: Any, attr: Any) -> Any:  # type: ignore[override]
        return value[value.fields.index(attr)] if attr in value.fields else None


@lower_getattr_generic(AddressType)  # type: ignore[no-untyped-call]
def _read_field(context, builder, kind, address, name):  # type: ignore[no-untyped-def]
    index = kind.fields.index(name)
    return emit_read(context, builder, kind[index], _at(builder, address, place_of(kind.parts, index)))
