"""Asks memory for what is needed soon, so that it is under way while something else is computed. It changes no result."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from albatross.kernels.compiling import OPTIONS
from albatross.kernels.linear import Matrix

write: Any = cgutils  # it has no type hints

_BYTES = ir.IntType(8).as_pointer()
_CHOICE = ir.IntType(32)
READING, NEAREST, DATA = _CHOICE(0), _CHOICE(3), _CHOICE(1)
"""What LLVM wants to know: for reading or writing, into which cache, data or instructions."""


def emit_ask(builder: Any, place: Any) -> None:
    """Ask for the line of memory at this place. It need not be a valid one."""
    asked = ir.FunctionType(ir.VoidType(), [_BYTES, _CHOICE, _CHOICE, _CHOICE])
    ask = write.get_or_insert_function(builder.module, asked, "llvm.prefetch.p0i8")
    builder.call(ask, [builder.bitcast(place, _BYTES), READING, NEAREST, DATA])


def _asking(context, table, row, column):  # type: ignore[no-untyped-def]
    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        emit_ask(builder, write.get_item_pointer(context, builder, kind, array, arguments[1:], wraparound=False))
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp), emit


emit_asking: Callable[..., None] = intrinsic(_asking)


def ask_for(table: Matrix, row: int, column: int) -> None:
    """Ask for the line of memory in which this number stands."""


@overload(ask_for, jit_options=OPTIONS, strict=False)
def _compiled_ask_for(table, row, column):  # type: ignore[no-untyped-def]
    def compiled(table, row, column):  # type: ignore[no-untyped-def]
        emit_asking(table, row, column)

    return compiled
