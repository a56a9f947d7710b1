"""Compiled functions that other compiled functions call by their address.

A loop over users is the same for every policy. If the policy's functions were part of it, the loop would be compiled again for each
policy, and the policy again for each loop. By address, both are compiled once, and the code that serves an `Agent` also runs its trials.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic, models, overload, register_model, typeof_impl, unbox

from albatross.kernels.building.keeping import Kept, unbox_address
from albatross.kernels.compiling import OPTIONS, compiled_for

_BYTES = ir.IntType(8).as_pointer()
_NUMBER = ir.IntType(64)


class Callee:
    """A compiled function with its first arguments, which are `Kept`. Compiled code calls it with `call`."""

    def __init__(self, function: Callable[..., Any], state_type: type, kept: tuple[Kept, ...], arguments: tuple[Any, ...]) -> None:
        """`arguments`: further arguments of the types with which it will be called."""
        self.function, self.state_type, self.kept = function, state_type, kept
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return
        found = compiled_for(function, state_type, *kept, *arguments)
        self._numba_type_ = CalleeType(len(kept), found.signature)  # where Numba's dispatcher looks first
        place = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
        self._native = np.array([place, *(each.address for each in kept)], np.uint64)
        self.address = self._native.ctypes.data


class CalleeType(types.Type):
    """For the compiler: a function of this signature, without its first arguments, whose types do not matter to the caller."""

    def __init__(self, n_kept: int, signature: Any) -> None:
        self.n_kept, self.returns, self.takes = n_kept, signature.return_type, signature.args[n_kept:]
        super().__init__(name=f"Callee({n_kept}, {self.takes}, {self.returns})")


def call(callee: Any, arguments: Any) -> Any:
    """The result of a callee for the further arguments, a tuple."""
    return callee.function(*callee.kept, *arguments)


@overload(call, jit_options=OPTIONS)
def _compiled_call(callee, arguments):  # type: ignore[no-untyped-def]
    return lambda callee, arguments: _call(callee, arguments)


def _calling(context, callee, arguments):  # type: ignore[no-untyped-def]
    kinds = (types.voidptr,) * callee.n_kept + callee.takes

    def emit(context, builder, signature, values):  # type: ignore[no-untyped-def]
        words = builder.bitcast(values[0], _NUMBER.as_pointer())
        place, *kept = (builder.load(builder.gep(words, [_NUMBER(word)])) for word in range(1 + callee.n_kept))
        given = [builder.inttoptr(address, _BYTES) for address in kept]
        for number, (kind, wanted) in enumerate(zip(arguments, callee.takes, strict=True)):
            given.append(context.cast(builder, builder.extract_value(values[1], number), kind, wanted))
        shape = context.call_conv.get_function_type(callee.returns, kinds)
        function = builder.inttoptr(place, shape.as_pointer())
        status, result = context.call_conv.call_function(builder, function, callee.returns, kinds, given)
        with cgutils.if_unlikely(builder, status.is_error):  # type: ignore[no-untyped-call]
            context.call_conv.return_status_propagate(builder, status)
        return result

    return callee.returns(callee, arguments), emit


_call: Any = intrinsic(_calling)


@register_model(CalleeType)
class _CalleeModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: CalleeType) -> None:
        super().__init__(manager, kind, _BYTES)  # type: ignore[no-untyped-call]


unbox(CalleeType)(unbox_address)  # type: ignore[no-untyped-call]


@typeof_impl.register(Callee)
def _typeof(callee, context):  # type: ignore[no-untyped-def]
    return callee._numba_type_
